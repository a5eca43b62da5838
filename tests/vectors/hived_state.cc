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

Value hived_cells(const CellAllocator& allocator) {
  const Cells& cells = allocator.cells();
  Object physical, virt;
  for (std::size_t i = 0; i < cells.physical.size(); ++i) {
    const PhysicalCell& c = cells.physical[i];
    Array nodes, indices;
    for (const Index n : cells.nodes_of(c)) nodes.push_back(Value(cells.nodes[at(n)].name));
    if (cells.nodes_of(c).size() == 1 && !cells.type(c.type).multi_node) {
      for (Index l = c.leaf_begin; l < c.leaf_end; ++l)
        indices.push_back(cells.p(cells.leaves[at(l)]).leaf_index);
    } else {
      indices.push_back(-1);
    }
    Object cell;
    cell["chain"] = cells.chain(c.chain).name;
    cell["type"] = cells.type(c.type).name;
    cell["level"] = c.level;
    cell["address"] = cells.physical_address[i];
    cell["nodes"] = std::move(nodes);
    cell["leafCells"] = std::move(indices);
    cell["leafCellNumber"] = cells.type(c.type).leaf_count;
    cell["children"] = c.child_end - c.child_begin;
    cell["pinned"] = c.pinned;
    cell["atOrAboveNode"] = c.at_or_above_node;
    physical[cells.type(c.type).name + "@" + cells.physical_address[i]] = std::move(cell);
  }
  for (std::size_t i = 0; i < cells.virtuals.size(); ++i) {
    const VirtualCell& c = cells.virtuals[i];
    Object cell;
    cell["chain"] = cells.chain(c.chain).name;
    cell["type"] = cells.type(c.type).name;
    cell["level"] = c.level;
    cell["address"] = cells.virtual_address[i];
    cell["vc"] = cells.vc(c.vc).name;
    cell["preassignedCell"] = cells.vaddress(c.root);
    cell["leafCellNumber"] = cells.type(c.type).leaf_count;
    cell["children"] = c.child_end - c.child_begin;
    virt[cells.virtual_address[i]] = std::move(cell);
  }
  Object out;
  out["physicalCells"] = std::move(physical);
  out["virtualCells"] = std::move(virt);
  return out;
}

namespace {

/// The field of our dump that a name stands for; several names mean the same.
std::string_view field_of(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"cellType", "type"},
      {"cellLevel", "level"},
      {"cellChain", "chain"},
      {"cellAddress", "address"},
      {"node", "nodes"},
      {"leafIndices", "leafCells"},
      {"leafCellIndices", "leafCells"},
      {"indices", "leafCells"},
      {"physicalNodes", "nodes"},
      {"preassigned", "preassignedCell"},
      {"preassignedAddress", "preassignedCell"},
      {"isPinned", "pinned"},
      {"totalLeafCellNumber", "leafCellNumber"},
      {"leafCount", "leafCellNumber"},
      {"totalLeafCells", "leafCellNumber"},
      {"atOrHigherThanNode", "atOrAboveNode"},
      {"childNumber", "children"},
      {"childCellNumber", "children"}};
  for (const auto& [other, ours] : kNames) {
    if (name == other) return ours;
  }
  return name;
}

std::string one_cell(const std::string& where, const Value& want, const Value& got) {
  for (const auto& member : json::as_object(want)) {
    const Value* value = json::as_object(got).if_contains(field_of(member.key()));
    if (value == nullptr) return where + "." + std::string(member.key()) + " is not known";
    const bool count = member.value().is_array() && value->is_int64();
    const bool single =
        member.value().is_string() && value->is_array() && value->get_array().size() == 1;
    if (count ? static_cast<std::int64_t>(member.value().get_array().size()) != value->get_int64()
              : !json::equal(member.value(), single ? value->get_array()[0] : *value)) {
      return where + "." + std::string(member.key()) + " = " + json::dump(*value) + ", want " +
             json::dump(member.value());
    }
  }
  return "";
}

/// `want` names cells as a list of keys, a list of objects with an address, a map from key to
/// fields, or any of these below names of chains, virtual clusters and levels.
class CellList {
 public:
  CellList(std::string where, const Object& got) : where_(std::move(where)), got_(got) {}

  std::string compare(const Value& want) {
    walk(want);
    if (wrong_.empty() && count_ != got_.size())
      wrong_ =
          where_ + " has " + std::to_string(got_.size()) + " cells, want " + std::to_string(count_);
    return wrong_;
  }

 private:
  const Value* find(std::string_view key) const {
    if (const Value* exact = got_.if_contains(key)) return exact;
    for (const auto& member : got_) {
      if (json::string_at(member.value(), "address") == key) return &member.value();
    }
    return nullptr;
  }

  void one(std::string_view key, const Value& fields) {
    ++count_;
    const Value* cell = find(key);
    wrong_ = cell == nullptr ? where_ + " lacks " + std::string(key)
                             : one_cell(where_ + "." + std::string(key), fields, *cell);
  }

  void walk(const Value& want) {
    if (want.is_string()) one(json::as_string(want), Value(nullptr));
    for (const Value& item : json::as_array(want)) {
      if (wrong_.empty()) walk(item);
    }
    const Object& object = json::as_object(want);
    for (const char* key : {"address", "cellAddress"}) {
      if (const Value* address = object.if_contains(key);
          address != nullptr && address->is_string())
        return one(json::as_string(*address), want);
    }
    for (const auto& member : object) {
      if (!wrong_.empty()) return;
      if (find(member.key()) != nullptr)
        one(member.key(), member.value());
      else if (member.value().is_array() || member.value().is_object())
        walk(member.value());
      else
        wrong_ = where_ + " lacks " + std::string(member.key());
    }
  }

  std::string where_;
  const Object& got_;
  std::size_t count_ = 0;
  std::string wrong_;
};

}  // namespace

std::string cells_difference(const Value& want, const Value& got) {
  for (const auto& member : json::as_object(want)) {
    const bool virt = std::string_view(member.key()).find("irtual") != std::string_view::npos;
    const std::string wrong =
        CellList(std::string(member.key()),
                 json::object_at(got, virt ? "virtualCells" : "physicalCells"))
            .compare(member.value());
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace muster::vectors
