// One scheduling call: which gang, whose cells, and what the caller is told.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/cells/allocator.h"
#include "engine/cells/pod_groups.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

Decision error(const PodRef& pod, const std::string& text) {
  Decision out;
  out.kind = Decision::Kind::kError;
  out.reason = fmt::format("[{}({})]: {}", pod.uid, pod.name, text);
  return out;
}

Decision wait(std::string reason) {
  Decision out;
  out.reason = std::move(reason);
  return out;
}

Decision too_many_pods(const ScheduleRequest& request, std::size_t configured) {
  return error(
      request.pod,
      fmt::format(
          "Requesting more pods than the configured number for {} leaf cells ({} pods) in affinity group {}",
          request.spec.leaves,
          configured,
          request.spec.group));
}

void add_unique(std::vector<Index>& list, Index value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

/// Who sits in cells that are wanted, and who has reserved them.
struct Others {
  std::vector<Index> victims;
  std::vector<Index> preemptors;

  void add(const Cells& cells, const std::vector<Index>& leaves) {
    for (const Index leaf : leaves) {
      if (leaf == kNone) continue;
      const PhysicalCell& c = cells.p(leaf);
      if (c.state == CellState::kUsed || c.state == CellState::kReserving)
        add_unique(victims, c.using_group);
      if (c.state == CellState::kReserved || c.state == CellState::kReserving)
        add_unique(preemptors, c.reserving_group);
    }
  }
};

/// What the placement's members hold, nobody in their slots.
std::vector<Group::Member> members_in(Placement& placement) {
  std::vector<Group::Member> members;
  members.reserve(placement.members.size());
  for (Placement::Member& m : placement.members) {
    Group::Member& member = members.emplace_back();
    member.leaves = m.leaves;
    member.physical = std::move(m.physical);
    member.virt = std::move(m.virt);
  }
  return members;
}

}  // namespace

Decision CellAllocator::schedule(const ScheduleRequest& request) {
  if (request.spec.root.empty()) return decide(request);
  PodSpec sized = request.spec;
  if (const auto done = size_pod_groups(cells_, sized); !done)
    return error(request.pod, done.error().message);
  return decide({request.pod, sized, request.phase, request.suggested, request.now});
}

Decision CellAllocator::decide(const ScheduleRequest& request) {
  suggested_.load(cells_, request);
  const Index group = groups_.index_of(request.spec.group);
  if (group == kNone) return plan_new(request, false);
  const bool lost = groups_.at(group).state == GroupState::kPreempting &&
                    request.phase == Phase::kPreempting &&
                    has_bad_or_unsuggested(groups_.at(group));
  if (!lost) return schedule_existing(request, group);
  books().cancel(group);
  // Pod groups look for another place when they are asked again.
  Decision out = request.spec.root.empty()
                     ? plan_new(request, false)
                     : wait("a node of the cells that were being freed for it turned bad");
  out.cancelled = true;
  return out;
}

bool CellAllocator::has_bad_or_unsuggested(const Group& group) const {
  for (const Group::Member& member : group.members) {
    for (const Index leaf : member.physical) {
      if (leaf == kNone) continue;
      const PhysicalCell& c = cells_.p(leaf);
      if (!c.healthy) return true;
      if (!group.ignore_suggested && !suggested_.contains(cells_.cell_nodes[at(c.node_begin)]))
        return true;
    }
  }
  return false;
}

Decision CellAllocator::continue_preempting(const ScheduleRequest& request, Index index) {
  Group& group = groups_.at(index);
  const Group::Member* member = find_member(group.members, request.spec);
  if (member == nullptr || member->slots.empty()) return too_many_pods(request, 0);
  Others others;
  for (const Group::Member& m : group.members) others.add(cells_, m.physical);
  auto& pods = group.preempting_pods;
  if (std::find(pods.begin(), pods.end(), request.pod) == pods.end()) pods.push_back(request.pod);
  GroupPlacement placement = placement_of(cells_, group);
  if (!others.victims.empty()) return preempt(others.victims);
  return bind(request.spec, group.members, 0, std::move(placement));
}

Decision CellAllocator::schedule_existing(const ScheduleRequest& request, Index index) {
  Group& group = groups_.at(index);
  if (group.state == GroupState::kPreempting) return continue_preempting(request, index);
  const Group::Member* member = find_member(group.members, request.spec);
  const std::size_t configured = member == nullptr ? 0 : member->slots.size();
  // Where the gang has no cells any more, because they are not configured or because a pod was found
  // in them, nobody goes unless there is no other place.
  std::int32_t slot = -1;
  for (std::size_t i = 0; i < configured; ++i) {
    if (member->slots[i]) continue;
    if (slot < 0 || member->is_free(i)) slot = static_cast<std::int32_t>(i);
    if (member->is_free(i)) break;
  }
  if (slot < 0) return too_many_pods(request, configured);
  if (group.state == GroupState::kBeingPreempted) {
    for (const Group::Member& m : group.members) {
      for (const Index leaf : m.physical) {
        if (leaf == kNone || cells_.p(leaf).reserving_group == kNone) continue;
        return wait(fmt::format("affinity group {} is being preempted by {}",
                                group.name,
                                groups_.at(cells_.p(leaf).reserving_group).name));
      }
    }
  }
  return bind(request.spec, group.members, slot, placement_of(cells_, group));
}

// ------------------------------------------------------------------ a new gang

Decision CellAllocator::plan_new(const ScheduleRequest& request, bool last) {
  const Index vc = cells_.find_vc(request.spec.vc);
  if (vc == kNone || !cells_.vc(vc).configured)
    return error(request.pod, fmt::format("VC {} does not exists!", request.spec.vc));
  Attempt attempt(cells_, groups_, suggested_, scratch_, request, vc);
  if (const auto possible = attempt.anywhere(); !possible)
    return error(request.pod, possible.error().message);
  Attempt::Outcome& outcome = attempt.outcome();
  if (!outcome.found) return wait(std::move(outcome.reason));
  return answer(request, outcome.placement, last);
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

/// The placement is used up where the gang is bound.
Decision CellAllocator::answer(const ScheduleRequest& request, Placement& placement, bool last) {
  Others others;
  for (const Placement::Member& m : placement.members) others.add(cells_, m.physical);
  // What is about to be bound (or reserved) is reserved by nobody else.
  const bool takes = request.phase == Phase::kPreempting || others.victims.empty();
  const bool cancels = takes && !others.preemptors.empty();
  if (cancels) {
    for (const Index preemptor : others.preemptors) books().cancel(preemptor);
  }
  const auto decide = [&] {
    // Cancelling may move doomed bindings, rarely so that the plan no longer holds.
    if (cancels && !last && !still_possible(placement)) return plan_new(request, true);
    if (others.victims.empty()) {
      const std::vector<Group::Member> members = members_in(placement);
      return bind(
          request.spec, members, 0, describe(cells_, members, placement.has_virtual, nullptr));
    }
    Decision decision = preempt(others.victims);
    if (request.phase == Phase::kPreempting &&
        !books().reserve(request.pod, request.spec, placement))
      return wait(insufficient_capacity(request.spec.vc));
    return decision;
  };
  Decision out = decide();
  out.cancelled = out.cancelled || cancels;
  return out;
}

/// All pods of the gangs, node by node.
Decision CellAllocator::preempt(const std::vector<Index>& victims) const {
  Decision out;
  out.kind = Decision::Kind::kPreempt;
  std::map<std::string, std::vector<PodRef>> by_node;
  for (const Index victim : victims) {
    for (const Group::Member& member : groups_.at(victim).members) {
      for (const auto& pod : member.slots) {
        if (pod) by_node[pod->bind.node].push_back(pod->pod);
      }
    }
  }
  for (auto& [node, pods] : by_node) out.victims.push_back({node, std::move(pods)});
  return out;
}

Decision CellAllocator::bind(const PodSpec& spec,
                             const std::vector<Group::Member>& members,
                             std::int32_t slot,
                             GroupPlacement placement) const {
  if (const Group::Member* member = find_member(members, spec)) {
    const auto m = static_cast<std::size_t>(member - members.data());
    const PodPlacement& pod = (*placement)[m].pods[at(slot)];
    Decision out;
    out.kind = Decision::Kind::kBind;
    out.slot = slot;
    out.bind.node = pod.node;
    out.bind.leaves = pod.leaves;
    const Index leaf = members[m].physical[at(slot) * at(members[m].leaves)];
    if (leaf != kNone) {
      out.bind.chain = cells_.chain(cells_.p(leaf).chain).name;
    } else if (const Group* group = groups_.find(spec.group)) {
      for (const Group::Member& other : group->members) {
        for (const auto& known : other.slots) {
          if (known && out.bind.chain.empty()) out.bind.chain = known->bind.chain;
        }
      }
    }
    out.bind.group = std::move(placement);
    out.bind.root = spec.root;
    return out;
  }
  return wait("the affinity group has no pods of this size");
}

}  // namespace muster::engine::cells
