#include "engine/cells/allocator.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/cells/explain.h"
#include "engine/cells/pod_groups.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Result<CellAllocator> CellAllocator::create(const Config& config, const Options& options) {
  auto cells = Cells::build(config, options.descending_chains);
  if (!cells) return fail(cells.error());
  CellAllocator out(std::move(*cells));
  if (options.nodes_start_bad) {
    for (std::size_t i = 0; i < out.cells_.nodes.size(); ++i)
      out.cells_.set_node(static_cast<Index>(i), false);
  }
  return out;
}

bool CellAllocator::set_node(const std::string& node, bool healthy) {
  const auto found = cells_.node_index.find(node);
  return found != cells_.node_index.end() && cells_.set_node(found->second, healthy);
}

Result<void> CellAllocator::size(PodSpec& spec) const { return size_pod_groups(cells_, spec); }

namespace {

/// A tree's sizes as they were when the gang was bound: the types may not be there any more.
PodSpec sized_by(const PodSpec& spec, const BindInfo& bind) {
  PodSpec out = spec;
  for (std::size_t m = 0; m < out.members.size() && m < bind.group->size(); ++m) {
    const auto& pods = (*bind.group)[m].pods;
    if (!pods.empty()) out.members[m].leaves = static_cast<std::int32_t>(pods[0].leaves.size());
  }
  out.leaves = static_cast<std::int32_t>(bind.leaves.size());
  return out;
}

tl::unexpected<Error> ignored(Code code, const PodRef& pod, const std::string& why) {
  return fail(code, fmt::format("pod \"{}\": {}; the pod is ignored", pod.name, why));
}

}  // namespace

Result<void> CellAllocator::add_allocated(const PodRef& pod,
                                          const PodSpec& spec,
                                          const BindInfo& bind,
                                          Time now) {
  const Slot slot = find_slot(bind);
  if (slot.pod < 0)
    return ignored(Code::kInvalid,
                   pod,
                   fmt::format("its bind info has no placement on node \"{}\" with its leaf cells",
                               bind.node));
  Index index = groups_.index_of(spec.group);
  if (index == kNone) {
    index = spec.root.empty() ? books().restore(spec, bind, slot, now)
                              : books().restore(sized_by(spec, bind), bind, slot, now);
  } else if (groups_.at(index).state == GroupState::kPreempting) {
    books().take_reserved(index);
  }
  Group& group = groups_.at(index);
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    Group::Member& member = group.members[m];
    if (group.tree && !bind.root.empty() && m != slot.member) continue;
    if (at(member.leaves) != bind.leaves.size() || at(slot.pod) >= member.slots.size()) continue;
    auto& place = member.slots[at(slot.pod)];
    if (place && place->pod.uid == pod.uid) return {};
    if (place)
      return ignored(
          Code::kConflict,
          pod,
          fmt::format(
              "its place in group \"{}\" is held by pod \"{}\"", spec.group, place->pod.name));
    place.emplace(pod, bind);
    ++group.allocated_pods;
    // Whoever keeps those cells for a pod that is not there has lost them.
    books().restore_place(index, spec, bind, slot, now);
    return {};
  }
  return ignored(
      Code::kInvalid,
      pod,
      fmt::format("group \"{}\" has no pods with {} leaf cells", spec.group, bind.leaves.size()));
}

Result<void> CellAllocator::delete_allocated(const PodRef& pod,
                                             const PodSpec& spec,
                                             const BindInfo& bind) {
  const Index index = groups_.index_of(spec.group);
  if (index == kNone) {
    return fail(
        Code::kNotFound,
        fmt::format(
            "pod \"{}\": group \"{}\" is not known; nothing to release", pod.name, spec.group));
  }
  Group& group = groups_.at(index);
  (void)bind;
  for (Group::Member& member : group.members) {
    for (auto& place : member.slots) {
      if (!place || place->pod.uid != pod.uid) continue;
      place.reset();
      if (--group.allocated_pods == 0) books().release(index);
      return {};
    }
  }
  return fail(
      Code::kNotFound,
      fmt::format(
          "pod \"{}\" holds no place in group \"{}\"; nothing to release", pod.name, spec.group));
}

void CellAllocator::delete_unallocated(const PodRef& pod, const std::string& group_name) {
  const Index index = groups_.index_of(group_name);
  if (index == kNone || groups_.at(index).state != GroupState::kPreempting) return;
  std::vector<PodRef>& pods = groups_.at(index).preempting_pods;
  std::erase_if(pods, [&](const PodRef& p) { return p.uid == pod.uid; });
  if (pods.empty()) books().cancel(index);
}

std::string CellAllocator::explain(const PodSpec& spec) const {
  return cells::explain(cells_, groups_, spec);
}

bool CellAllocator::could_hold(const PodSpec& spec) const {
  return cells::could_hold(cells_, spec);
}

}  // namespace muster::engine::cells
