#include "hived_state.h"

#include <algorithm>
#include <map>

namespace muster::vectors {
namespace {

using namespace engine::cells;
using json::Array;
using json::Object;
using json::Value;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

template <typename Key, typename Item>
Object lists(const std::map<Key, std::vector<Item>>& map) {
  Object out;
  for (auto [key, items] : map) {
    std::sort(items.begin(), items.end());
    Array array;
    for (const Item& item : items) array.push_back(Value(item));
    out[key] = std::move(array);
  }
  return out;
}

Array names(std::vector<std::string> list) {
  std::sort(list.begin(), list.end());
  Array out;
  for (const std::string& one : list) out.push_back(Value(one));
  return out;
}

Value group_dump(const CellAllocator& allocator, const Group& group) {
  const Cells& cells = allocator.cells();
  std::map<std::string, std::vector<std::int32_t>> physical;
  std::map<std::string, std::vector<std::string>> virt;
  std::vector<std::string> pods, preempting;
  bool missing = false;
  for (const Group::Member& member : group.members) {
    for (std::size_t i = 0; i < member.physical.size(); ++i) {
      const Index leaf = member.physical[i];
      if (leaf == kNone) {
        missing = true;
        continue;
      }
      physical[cells.node_name(cells.p(leaf))].push_back(cells.p(leaf).leaf_index);
      if (group.has_virtual && member.virt[i] != kNone)
        virt[cells.vaddress(cells.v(member.virt[i]).root)].push_back(
            cells.vaddress(member.virt[i]));
    }
    for (const auto& slot : member.slots) {
      if (slot) pods.push_back(slot->pod.uid);
    }
  }
  for (const PodRef& pod : group.preempting_pods) preempting.push_back(pod.uid);
  Object out;
  out["vc"] = cells.vc(group.vc).name;
  out["priority"] = group.priority;
  out["state"] = to_string(group.state);
  out["lazyPreempted"] = !group.lazy_preemptor.empty();
  if (!group.lazy_preemptor.empty()) out["preemptor"] = group.lazy_preemptor;
  out["physicalPlacement"] = lists(physical);
  out["virtualPlacement"] = group.has_virtual ? Value(lists(virt)) : Value(nullptr);
  out["allocatedPods"] = names(pods);
  out["preemptingPods"] = names(preempting);
  if (missing) out["hasMissingCells"] = true;
  return out;
}

Object physical_dump(const Cells& cells) {
  Object out;
  for (std::size_t i = 0; i < cells.physical.size(); ++i) {
    const PhysicalCell& c = cells.physical[i];
    Object cell;
    if (c.priority != kFreePriority) cell["priority"] = c.priority;
    if (c.state != CellState::kFree) cell["state"] = to_string(c.state);
    if (!c.healthy) cell["healthiness"] = "Bad";
    if (c.virt != kNone) {
      cell["vc"] = cells.vc(cells.v(c.virt).vc).name;
      cell["virtualCell"] = cells.vaddress(c.virt);
    } else if (c.opportunistic_vc != kNone) {
      cell["vc"] = cells.vc(c.opportunistic_vc).name;
    }
    if (!cell.empty())
      out[cells.type(c.type).name + "@" + cells.physical_address[i]] = std::move(cell);
  }
  return out;
}

Object virtual_dump(const Cells& cells) {
  Object out;
  for (std::size_t i = 0; i < cells.virtuals.size(); ++i) {
    const VirtualCell& c = cells.virtuals[i];
    Object cell;
    if (c.priority != kFreePriority) cell["priority"] = c.priority;
    if (c.state != CellState::kFree) cell["state"] = to_string(c.state);
    if (!c.healthy) cell["healthiness"] = "Bad";
    if (c.physical != kNone) cell["physicalCell"] = cells.address(c.physical);
    if (!cell.empty()) out[cells.virtual_address[i]] = std::move(cell);
  }
  return out;
}

Object internal_dump(const Cells& cells) {
  Object counters, free;
  for (const Chain& chain : cells.chains) {
    Object levels, lists_of_chain;
    for (std::int32_t l = 1; l <= chain.top; ++l) {
      if (chain.counted) {
        levels[std::to_string(l)] = Array{chain.total_left[at(l)],
                                          chain.all_vc_free[at(l)],
                                          static_cast<std::int64_t>(chain.bad_free[at(l)].size()),
                                          chain.all_vc_doomed[at(l)]};
      }
      std::vector<std::string> addresses;
      for (const Index c : chain.free[at(l)]) addresses.push_back(cells.address(c));
      if (!addresses.empty()) lists_of_chain[std::to_string(l)] = names(addresses);
    }
    if (chain.counted) counters[chain.name] = std::move(levels);
    free[chain.name] = std::move(lists_of_chain);
  }
  Object out;
  out["cellCounters"] = std::move(counters);
  out["freeCells"] = std::move(free);
  return out;
}

}  // namespace

Value hived_state(const CellAllocator& allocator) {
  const Cells& cells = allocator.cells();
  Object groups, opportunistic;
  for (const Group* group : allocator.groups()) groups[group->name] = group_dump(allocator, *group);
  for (const VirtualCluster& vc : cells.vcs) {
    std::vector<std::string> addresses;
    for (const Index leaf : vc.opportunistic) addresses.push_back(cells.address(leaf) + "-opp");
    if (!addresses.empty()) opportunistic[vc.name] = names(addresses);
  }
  Object out;
  out["groups"] = std::move(groups);
  out["physicalCells"] = physical_dump(cells);
  out["virtualCells"] = virtual_dump(cells);
  out["opportunisticCells"] = std::move(opportunistic);
  out["internal"] = internal_dump(cells);
  return out;
}

namespace {

Value physical_cell(const Cells& cells, Index i) {
  const PhysicalCell& c = cells.p(i);
  Array nodes, indices, children;
  for (const Index n : cells.nodes_of(c)) nodes.push_back(Value(cells.nodes[at(n)].name));
  if (cells.type(c.type).multi_node) {
    indices.push_back(-1);
  } else {
    for (Index l = c.leaf_begin; l < c.leaf_end; ++l)
      indices.push_back(cells.p(cells.leaves[at(l)]).leaf_index);
  }
  for (const Index child : cells.children(c)) children.push_back(Value(cells.address(child)));
  return Object{{"address", cells.address(i)},
                {"cellType", cells.type(c.type).name},
                {"chain", cells.chain(c.chain).name},
                {"level", c.level},
                {"nodes", std::move(nodes)},
                {"leafCellIndices", std::move(indices)},
                {"children", std::move(children)},
                {"pinned", c.pinned}};
}

Value virtual_cell(const Cells& cells, Index i, const std::string& pinned_id) {
  const VirtualCell& c = cells.v(i);
  Array children;
  for (const Index child : cells.children(c)) children.push_back(Value(cells.vaddress(child)));
  Object out{{"address", cells.vaddress(i)},
             {"cellType", cells.type(c.type).name},
             {"chain", cells.chain(c.chain).name},
             {"level", c.level},
             {"children", std::move(children)},
             {"preassigned", cells.vaddress(c.root)},
             {"pinned", !pinned_id.empty()}};
  if (!pinned_id.empty()) out["pinnedCellId"] = pinned_id;
  return out;
}

/// Virtual cluster -> address -> cell.
Object virtual_cells(const Cells& cells) {
  std::map<Index, std::string> pinned;
  Object out;
  for (const VirtualCluster& vc : cells.vcs) {
    if (vc.configured) out[vc.name] = Object{};
    for (const PinnedHolding& pin : vc.pinned) pinned[pin.root] = pin.id;
  }
  for (std::size_t i = 0; i < cells.virtuals.size(); ++i) {
    const auto cell = static_cast<Index>(i);
    const auto pin = pinned.find(cells.v(cell).root);
    out[cells.vc(cells.v(cell).vc).name].as_object()[cells.vaddress(cell)] =
        virtual_cell(cells, cell, pin == pinned.end() ? "" : pin->second);
  }
  return out;
}

/// "" if the cell has every field that is wanted, as wanted.
std::string one_cell(const Value& want, const Value& got) {
  for (const auto& member : json::as_object(want)) {
    const Value& value = json::at(got, std::string_view(member.key()));
    if (!json::equal(member.value(), value))
      return json::text_at(want, "address") + "." + std::string(member.key()) + " = " +
             json::dump(value) + ", wanted " + json::dump(member.value());
  }
  return "";
}

std::string count_difference(const std::string& where, std::size_t want, std::size_t got) {
  return want == got
             ? ""
             : where + " has " + std::to_string(got) + " cells, wanted " + std::to_string(want);
}

/// Chain -> cells, from the top level down in list order.
std::string physical_difference(const Value& want, const Value& got) {
  for (const auto& chain : json::as_object(want)) {
    const Array& wanted = json::as_array(chain.value());
    const Array& cells = json::as_array(json::at(got, std::string_view(chain.key())));
    for (std::size_t i = 0; i < wanted.size() && i < cells.size(); ++i) {
      if (auto wrong = one_cell(wanted[i], cells[i]); !wrong.empty()) return wrong;
    }
    if (auto wrong = count_difference(std::string(chain.key()), wanted.size(), cells.size());
        !wrong.empty())
      return wrong;
  }
  return "";
}

/// Virtual cluster -> cells, found by their addresses.
std::string virtual_difference(const Value& want, const Value& got) {
  for (const auto& vc : json::as_object(want)) {
    const Object& cells = json::as_object(json::at(got, std::string_view(vc.key())));
    const Array& wanted = json::as_array(vc.value());
    for (const Value& cell : wanted) {
      const Value* mine = cells.if_contains(json::string_at(cell, "address"));
      if (mine == nullptr) return "no virtual cell " + json::text_at(cell, "address");
      if (auto wrong = one_cell(cell, *mine); !wrong.empty()) return wrong;
    }
    if (auto wrong = count_difference(std::string(vc.key()), wanted.size(), cells.size());
        !wrong.empty())
      return wrong;
  }
  return "";
}

}  // namespace

Value hived_cells(const CellAllocator& allocator) {
  const Cells& cells = allocator.cells();
  Object physical, chains_of_type;
  Array nodes;
  for (std::size_t type = 0; type < cells.leaf_types.size(); ++type) {
    Array chains;
    for (const Index chain : cells.chains_of_leaf_type[type])
      chains.push_back(Value(cells.chain(chain).name));
    chains_of_type[cells.leaf_types[type]] = std::move(chains);
  }
  for (const Node& node : cells.nodes) nodes.push_back(Value(node.name));
  for (const Chain& chain : cells.chains) {
    Array list;
    for (std::int32_t level = chain.top; level >= 1; --level) {
      for (const Index cell : chain.full[at(level)]) list.push_back(physical_cell(cells, cell));
    }
    physical[chain.name] = std::move(list);
  }
  return Object{{"leafCellTypeToChains", std::move(chains_of_type)},
                {"nodesInConfigOrder", std::move(nodes)},
                {"physical", std::move(physical)},
                {"virtual", virtual_cells(cells)}};
}

std::string cells_difference(const Value& want, const Value& got) {
  for (const auto& member : json::as_object(want)) {
    const std::string_view key = member.key();
    const Value& mine = json::at(got, key);
    std::string wrong;
    if (key == "physical")
      wrong = physical_difference(member.value(), mine);
    else if (key == "virtual")
      wrong = virtual_difference(member.value(), mine);
    else if (mine.is_null())
      wrong = "\"" + std::string(key) + "\" is no part of the format";
    else if (!json::equal(member.value(), mine))
      wrong =
          std::string(key) + " = " + json::dump(mine) + ", wanted " + json::dump(member.value());
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace muster::vectors
