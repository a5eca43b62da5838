#include "hived/inspect.h"

#include <algorithm>

namespace muster::hived {
namespace {

using namespace engine::cells;
using json::Array;
using json::Object;
using json::Value;

template <typename Cell>
Object common(const Cells& cells, const Cell& c, const std::string& address, bool top) {
  const TypeInfo& type = cells.type(c.type);
  Object out;
  if (top) out["leafCellType"] = cells.type(type.leaf_type).name;
  out["cellType"] = type.name;
  if (type.at_or_above_node && !type.multi_node) out["isNodeLevel"] = true;
  out["cellAddress"] = address;
  out["cellState"] = to_string(c.state);
  out["cellHealthiness"] = c.healthy ? "Healthy" : "Bad";
  out["cellPriority"] = c.priority;
  return out;
}

Object physical_bare(const Cells& cells, Index i) {
  return common(cells, cells.p(i), cells.address(i), cells.p(i).parent == kNone);
}
Object virtual_bare(const Cells& cells, Index i) {
  return common(cells, cells.v(i), cells.vaddress(i), cells.v(i).parent == kNone);
}

/// Whose the cell is: bound to a virtual one, or used opportunistically.
void add_owner(const Cells& cells, const PhysicalCell& c, Object& out) {
  const Index vc = c.virt != kNone ? cells.v(c.virt).vc : c.opportunistic_vc;
  if (vc != kNone) out["vc"] = cells.vc(vc).name;
}

Object physical_cell(const Cells& cells, Index i) {
  const PhysicalCell& c = cells.p(i);
  Object out = physical_bare(cells, i);
  Array children;
  for (const Index child : cells.children(c)) children.push_back(physical_cell(cells, child));
  if (!children.empty()) out["cellChildren"] = std::move(children);
  add_owner(cells, c, out);
  if (c.virt != kNone) {
    Object twin = virtual_bare(cells, c.virt);
    // As the original: its copy of the virtual cell is older than the binding.
    if (c.bound_while_bad) twin["cellHealthiness"] = "Healthy";
    out["virtualCell"] = std::move(twin);
  }
  return out;
}

Object virtual_cell(const Cells& cells, Index i) {
  const VirtualCell& c = cells.v(i);
  Object out = virtual_bare(cells, i);
  Array children;
  for (const Index child : cells.children(c)) children.push_back(virtual_cell(cells, child));
  if (!children.empty()) out["cellChildren"] = std::move(children);
  if (c.physical != kNone) {
    Object twin = physical_bare(cells, c.physical);
    add_owner(cells, cells.p(c.physical), twin);
    out["physicalCell"] = std::move(twin);
  }
  return out;
}

Array uids(const std::vector<PodRef>& pods) {
  Array out;
  for (const PodRef& pod : pods) out.push_back(Value(pod.uid));
  return out;
}

}  // namespace

Value inspect_group(const CellAllocator& allocator, const Group& group) {
  const Cells& cells = allocator.cells();
  Object physical, virt;
  std::vector<PodRef> pods;
  const auto push = [](Object& map, const std::string& key, Value value) {
    if (!map.contains(key)) map[key] = Array{};
    map[key].get_array().push_back(std::move(value));
  };
  for (const Group::Member& member : group.members) {
    for (std::size_t i = 0; i < member.physical.size(); ++i) {
      const Index leaf = member.physical[i];
      if (leaf == kNone) continue;
      push(physical, cells.node_name(cells.p(leaf)), cells.p(leaf).leaf_index);
      if (group.has_virtual && member.virt[i] != kNone)
        push(virt,
             cells.vaddress(cells.v(member.virt[i]).root),
             Value(cells.vaddress(member.virt[i])));
    }
    for (const auto& slot : member.slots) {
      if (slot) pods.push_back(slot->pod);
    }
  }
  Object status;
  status["vc"] = cells.vc(group.vc).name;
  status["priority"] = group.priority;
  status["state"] = to_string(group.state);
  if (!physical.empty()) status["physicalPlacement"] = std::move(physical);
  if (!virt.empty()) status["virtualPlacement"] = std::move(virt);
  if (!pods.empty()) status["allocatedPods"] = uids(pods);
  if (!group.preempting_pods.empty()) status["preemptingPods"] = uids(group.preempting_pods);
  if (!group.lazy_preemptor.empty()) {
    status["lazyPreemptionStatus"] = Object{{"preemptor", group.lazy_preemptor},
                                            {"preemptionTime", format_time(group.lazy_time)}};
  }
  return Object{{"metadata", Object{{"name", group.name}}}, {"status", std::move(status)}};
}

Value inspect_groups(const CellAllocator& allocator) {
  Array items;
  for (const Group* group : allocator.groups()) items.push_back(inspect_group(allocator, *group));
  return Object{{"items", items.empty() ? Value(nullptr) : Value(std::move(items))}};
}

Value inspect_physical(const CellAllocator& allocator) {
  Array out;
  for (const Index top : allocator.cells().tops)
    out.push_back(physical_cell(allocator.cells(), top));
  return out;
}

Value inspect_virtual(const CellAllocator& allocator, Index number) {
  const Cells& cells = allocator.cells();
  const VirtualCluster& vc = cells.vc(number);
  Array out;
  for (const Holding& holding : vc.holdings) {
    for (const RootList& roots : holding.roots) {
      for (const Index root : roots.cells) out.push_back(virtual_cell(cells, root));
    }
  }
  for (const PinnedHolding& pinned : vc.pinned) out.push_back(virtual_cell(cells, pinned.root));
  for (const Index leaf : vc.opportunistic) {
    out.push_back(Object{{"cellType", cells.type(cells.p(leaf).type).name},
                         {"cellAddress", cells.address(leaf) + "-opp"},
                         {"cellState", "Used"},
                         {"cellHealthiness", cells.p(leaf).used_while_bad ? "Bad" : "Healthy"},
                         {"cellPriority", kOpportunistic},
                         {"physicalCell", physical_cell(cells, leaf)}});
  }
  return out;
}

Value inspect_virtual_clusters(const CellAllocator& allocator) {
  Object out;
  for (std::size_t i = 0; i < allocator.cells().vcs.size(); ++i) {
    const VirtualCluster& vc = allocator.cells().vcs[i];
    if (vc.configured || !vc.opportunistic.empty())
      out[vc.name] = inspect_virtual(allocator, static_cast<Index>(i));
  }
  return out;
}

Value inspect_cluster(const CellAllocator& allocator) {
  return Object{{"physicalCluster", inspect_physical(allocator)},
                {"virtualClusters", inspect_virtual_clusters(allocator)}};
}

}  // namespace muster::hived
