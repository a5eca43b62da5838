// One scheduling call: which gang, which chain, whose cells, and what the caller is told.

#include <fmt/core.h>

#include <algorithm>

#include "engine/cells/allocator.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

Decision error(const PodRef& pod, const std::string& text) {
  Decision out;
  out.kind = Decision::Kind::kError;
  out.reason = fmt::format("[{}({})]: {}", pod.uid, pod.name, text);
  return out;
}

void add_unique(std::vector<Index>& list, Index value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

}  // namespace

CellAllocator::Placement CellAllocator::empty_placement(const PodSpec& spec) const {
  Placement out;
  for (const GroupMember& member : spec.members) {
    auto place = std::find_if(out.members.begin(), out.members.end(), [&](const auto& m) {
      return m.leaves >= member.leaves;
    });
    if (place == out.members.end() || place->leaves != member.leaves) {
      Placement::Member fresh;
      fresh.leaves = member.leaves;
      place = out.members.insert(place, std::move(fresh));
    }
    place->pods += member.pods;
  }
  return out;
}

Decision CellAllocator::schedule(const ScheduleRequest& request) {
  load_suggested(request);
  const Index group = group_index(request.spec.group);
  if (group != kNone) {
    bool gone = false;
    Decision decision = schedule_existing(request, group, gone);
    if (!gone) return decision;
  }
  return schedule_new(request);
}

bool CellAllocator::has_bad_or_unsuggested(const Group& group) const {
  for (const Group::Member& member : group.members) {
    for (const Index leaf : member.physical) {
      if (leaf == kNone) continue;
      const PhysicalCell& c = cells_.p(leaf);
      if (!c.healthy) return true;
      if (!group.ignore_suggested && !is_suggested(cells_.cell_nodes[at(c.node_begin)]))
        return true;
    }
  }
  return false;
}

Decision CellAllocator::schedule_existing(const ScheduleRequest& request, Index index, bool& gone) {
  Group& group = *groups_[at(index)];
  auto member =
      std::find_if(group.members.begin(), group.members.end(), [&](const Group::Member& m) {
        return m.leaves == request.spec.leaves;
      });
  const std::size_t configured = member == group.members.end() ? 0 : member->slots.size();
  if (group.state == GroupState::kPreempting) {
    if (request.phase == Phase::kPreempting && has_bad_or_unsuggested(group)) {
      cancel_preempting(index);
      gone = true;
      return {};
    }
    if (configured == 0) {
      return error(
          request.pod,
          fmt::format(
              "Requesting more pods than the configured number for {} leaf cells (0 pods) in affinity group {}",
              request.spec.leaves,
              group.name));
    }
    std::vector<Index> victims, preemptors;
    for (const Group::Member& m : group.members) collect_victims(m.physical, victims, preemptors);
    if (std::find(group.preempting_pods.begin(), group.preempting_pods.end(), request.pod) ==
        group.preempting_pods.end()) {
      group.preempting_pods.push_back(request.pod);
    }
    return bind_or_preempt(request, group.members, 0, placement_of(index), victims);
  }
  std::int32_t slot = -1;
  for (std::size_t i = 0; i < configured && slot < 0; ++i) {
    if (!member->slots[i]) slot = static_cast<std::int32_t>(i);
  }
  if (slot < 0) {
    return error(
        request.pod,
        fmt::format(
            "Requesting more pods than the configured number for {} leaf cells ({} pods) in affinity group {}",
            request.spec.leaves,
            configured,
            group.name));
  }
  if (group.state == GroupState::kBeingPreempted) {
    for (const Group::Member& m : group.members) {
      for (const Index leaf : m.physical) {
        if (leaf == kNone || cells_.p(leaf).reserving_group == kNone) continue;
        Decision wait;
        wait.reason = fmt::format("affinity group {} is being preempted by {}",
                                  group.name,
                                  groups_[at(cells_.p(leaf).reserving_group)]->name);
        return wait;
      }
    }
  }
  return bind_or_preempt(request, group.members, slot, placement_of(index), {});
}

void CellAllocator::collect_victims(const std::vector<Index>& leaves,
                                    std::vector<Index>& victims,
                                    std::vector<Index>& preemptors) const {
  for (const Index leaf : leaves) {
    if (leaf == kNone) continue;
    const PhysicalCell& c = cells_.p(leaf);
    if (c.state == CellState::kUsed || c.state == CellState::kReserving)
      add_unique(victims, c.using_group);
    if (c.state == CellState::kReserved || c.state == CellState::kReserving)
      add_unique(preemptors, c.reserving_group);
  }
}

bool CellAllocator::attempt_chain(const ScheduleRequest& request,
                                  Index vc,
                                  Index chain,
                                  const PinnedHolding* pinned,
                                  Placement& out,
                                  std::string& reason) {
  out = empty_placement(request.spec);
  if (request.spec.priority < 0) {
    return search_view(
        cells_.view(cells_.chain(chain).view), true, request, out, reason, "physical cluster");
  }
  View& view = cells_.view(pinned != nullptr ? pinned->view : cells_.find_holding(vc, chain)->view);
  out.has_virtual = true;
  return search_view(view, false, request, out, reason, "VC " + request.spec.vc) &&
         map_placement(request, chain, out, reason);
}

bool CellAllocator::attempt_leaf_type(const ScheduleRequest& request,
                                      Index leaf_type,
                                      Placement& out,
                                      std::string& reason,
                                      bool& vc_has_type) {
  const Index vc = cells_.find_vc(request.spec.vc);
  for (const Index chain : cells_.chains_of_leaf_type[at(leaf_type)]) {
    if (request.spec.priority >= 0) {
      const Holding* holding = cells_.find_holding(vc, chain);
      if (holding == nullptr || !holding->has_cells) continue;
    }
    vc_has_type = true;
    if (attempt_chain(request, vc, chain, nullptr, out, reason)) return true;
  }
  return false;
}

Decision CellAllocator::schedule_new(const ScheduleRequest& request) {
  return plan_new(request, false);
}

Decision CellAllocator::plan_new(const ScheduleRequest& request, bool last) {
  const PodSpec& spec = request.spec;
  const Index vc = cells_.find_vc(spec.vc);
  if (vc == kNone || !cells_.vc(vc).configured)
    return error(request.pod, fmt::format("VC {} does not exists!", spec.vc));
  Placement placement;
  std::string reason;
  bool found = false;
  if (!spec.pinned_cell.empty()) {
    const PinnedHolding* pinned = nullptr;
    for (const PinnedHolding& p : cells_.vc(vc).pinned) {
      if (p.id == spec.pinned_cell) pinned = &p;
    }
    if (pinned == nullptr)
      return error(request.pod,
                   fmt::format("VC {} does not have pinned cell {}", spec.vc, spec.pinned_cell));
    if (spec.priority < 0)
      return error(
          request.pod,
          fmt::format("opportunistic pod not supported to use pinned cell {}", spec.pinned_cell));
    found = attempt_chain(request, vc, cells_.p(pinned->physical).chain, pinned, placement, reason);
  } else if (!spec.leaf_type.empty()) {
    const auto type = std::find(cells_.leaf_types.begin(), cells_.leaf_types.end(), spec.leaf_type);
    if (type == cells_.leaf_types.end())
      return error(
          request.pod,
          fmt::format("Pod requesting leaf cell type {} which the whole cluster does not have",
                      spec.leaf_type));
    bool vc_has_type = false;
    found = attempt_leaf_type(request,
                              static_cast<Index>(type - cells_.leaf_types.begin()),
                              placement,
                              reason,
                              vc_has_type);
    if (!vc_has_type && spec.priority >= 0) {
      return error(request.pod,
                   fmt::format("Pod requesting leaf cell type {} which VC {} does not have",
                               spec.leaf_type,
                               spec.vc));
    }
  } else {
    for (std::size_t type = 0; type < cells_.leaf_types.size() && !found; ++type) {
      bool vc_has_type = false;
      found = attempt_leaf_type(request, static_cast<Index>(type), placement, reason, vc_has_type);
    }
    if (!found && reason.empty())
      reason = fmt::format("insufficient capacity when scheduling in VC {}", spec.vc);
  }
  if (!found) {
    Decision wait;
    wait.reason = std::move(reason);
    return wait;
  }
  return answer(request, placement, last);
}

bool CellAllocator::still_possible(const Placement& placement) const {
  if (!placement.has_virtual) return true;
  for (const Placement::Member& member : placement.members) {
    for (std::size_t i = 0; i < member.physical.size(); ++i) {
      if (!cells_.can_bind(member.physical[i], member.virt[i])) return false;
    }
  }
  return true;
}

Decision CellAllocator::answer(const ScheduleRequest& request,
                               const Placement& placement,
                               bool last) {
  std::vector<Index> victims, preemptors;
  std::vector<Group::Member> members;
  for (const Placement::Member& m : placement.members) {
    collect_victims(m.physical, victims, preemptors);
    Group::Member member;
    member.leaves = m.leaves;
    member.physical = m.physical;
    member.virt = m.virt;
    members.push_back(std::move(member));
  }
  // What is about to be bound (or reserved) is reserved by nobody else.
  if (request.phase == Phase::kPreempting || victims.empty()) {
    for (const Index preemptor : preemptors) cancel_preempting(preemptor);
    // Cancelling may move doomed bindings, rarely so that the plan no longer holds.
    if (!preemptors.empty() && !last && !still_possible(placement)) return plan_new(request, true);
  }
  const auto described = describe(members, placement.has_virtual, nullptr);
  Decision decision = bind_or_preempt(request, members, 0, described, victims);
  if (request.phase == Phase::kPreempting && !victims.empty() &&
      !create_preempting(request, placement)) {
    Decision wait;
    wait.reason = fmt::format("insufficient capacity when scheduling in VC {}", request.spec.vc);
    return wait;
  }
  return decision;
}

Decision CellAllocator::bind_or_preempt(
    const ScheduleRequest& request,
    const std::vector<Group::Member>& members,
    std::int32_t slot,
    std::shared_ptr<const std::vector<MemberPlacement>> placement,
    const std::vector<Index>& victims) {
  Decision out;
  if (!victims.empty()) {
    out.kind = Decision::Kind::kPreempt;
    std::map<std::string, std::vector<PodRef>> by_node;
    for (const Index victim : victims) {
      for (const Group::Member& member : groups_[at(victim)]->members) {
        for (const auto& pod : member.slots) {
          if (pod) by_node[pod->bind.node].push_back(pod->pod);
        }
      }
    }
    for (auto& [node, pods] : by_node) out.victims.push_back({node, std::move(pods)});
    return out;
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (members[m].leaves != request.spec.leaves) continue;
    const PodPlacement& pod = (*placement)[m].pods[at(slot)];
    out.kind = Decision::Kind::kBind;
    out.slot = slot;
    out.bind.node = pod.node;
    out.bind.leaves = pod.leaves;
    const Index leaf = members[m].physical[at(slot) * at(members[m].leaves)];
    if (leaf != kNone) {
      out.bind.chain = cells_.chain(cells_.p(leaf).chain).name;
    } else if (const Group* group = find_group(request.spec.group)) {
      for (const Group::Member& other : group->members) {
        for (const auto& known : other.slots) {
          if (known && out.bind.chain.empty()) out.bind.chain = known->bind.chain;
        }
      }
    }
    out.bind.group = std::move(placement);
    return out;
  }
  out.reason = "the affinity group has no pods of this size";
  return out;
}

}  // namespace muster::engine::cells
