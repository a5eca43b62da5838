#include "engine/cells/bookkeeping.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Index Bookkeeping::add_group(const PodSpec& spec, GroupState state) {
  const Index index = groups_.add(spec.group);
  Group& group = groups_.at(index);
  group.vc = cells_.intern_vc(spec.vc);
  group.priority = spec.priority;
  group.lazy_preemption = spec.lazy_preemption;
  group.ignore_suggested = spec.ignore_suggested;
  group.state = state;
  group.tree = !spec.root.empty();
  const Placement wanted = empty_placement(spec);
  group.members.reserve(wanted.members.size());
  for (const Placement::Member& member : wanted.members) {
    Group::Member& m = group.members.emplace_back();
    m.leaves = member.leaves;
    m.slots.resize(at(member.pods));
    m.physical.assign(at(member.pods) * at(member.leaves), kNone);
    m.virt.assign(m.physical.size(), kNone);
  }
  return index;
}

// ------------------------------------------------------------------ reserving

bool Bookkeeping::reserve(const PodRef& pod, const PodSpec& spec, const Placement& placement) {
  const Index index = add_group(spec, GroupState::kPreempting);
  Group& group = groups_.at(index);
  group.has_virtual = placement.has_virtual;
  group.preempting_pods.push_back(pod);
  for (std::size_t m = 0; m < placement.members.size(); ++m) {
    Group::Member& member = group.members[m];
    member.physical = placement.members[m].physical;
    if (placement.has_virtual) member.virt = placement.members[m].virt;
    for (std::size_t i = 0; i < member.physical.size(); ++i) {
      if (reserve_leaf(index, member, i)) continue;
      cancel(index);
      return false;
    }
  }
  return true;
}

/// False: the leaf's promise is gone, and never is reserved for a guaranteed gang what is not
/// guaranteed.
bool Bookkeeping::reserve_leaf(Index index, Group::Member& member, std::size_t i) {
  const Group& group = groups_.at(index);
  const Index leaf = member.physical[i];
  const bool used = cells_.p(leaf).state == CellState::kUsed;
  if (used) {
    cells_.release_leaf(leaf);
    groups_.at(cells_.p(leaf).using_group).state = GroupState::kBeingPreempted;
  }
  const Index planned = member.virt[i];
  member.virt[i] = promises_.renew(leaf, planned, group.priority);
  if (planned != kNone && member.virt[i] == kNone) {
    if (used)
      (void)cells_.allocate_leaf(
          leaf, kNone, kOpportunistic, groups_.at(cells_.p(leaf).using_group).vc);
    return false;
  }
  (void)cells_.allocate_leaf(leaf, member.virt[i], group.priority, group.vc);
  MUSTER_CHECK(cells_.p(leaf).reserving_group == kNone, "a leaf is reserved for one gang");
  cells_.p_mutable(leaf).reserving_group = index;
  cells_.set_state(leaf, used ? CellState::kReserving : CellState::kReserved);
  return true;
}

void Bookkeeping::cancel(Index index) {
  std::vector<Index> downgraded;
  for (const Group::Member& member : groups_.at(index).members) {
    for (const Index leaf : member.physical) {
      if (leaf == kNone || cells_.p(leaf).reserving_group != index) continue;
      cells_.release_leaf(leaf);
      cells_.p_mutable(leaf).reserving_group = kNone;
      if (cells_.p(leaf).state == CellState::kReserving) {
        cells_.set_state(leaf, CellState::kUsed);
        give_back(leaf, downgraded);
      } else {
        cells_.set_state(leaf, CellState::kFree);
      }
    }
  }
  // A gang is guaranteed as a whole or not at all.
  for (const Index victim : downgraded) lazy_preempt(victim, groups_.at(victim).name, Time{});
  groups_.drop(index);
}

/// The gang that uses the leaf has it as before; one that is not guaranteed any more is noted.
void Bookkeeping::give_back(Index leaf, std::vector<Index>& downgraded) {
  Group& victim = groups_.at(cells_.p(leaf).using_group);
  Index virtual_leaf = kNone;
  for (Group::Member& m : victim.members) {
    const auto found = std::find(m.physical.begin(), m.physical.end(), leaf);
    if (found == m.physical.end() || !victim.has_virtual) continue;
    Index& remembered = m.virt[static_cast<std::size_t>(found - m.physical.begin())];
    const Index planned = remembered;
    remembered = promises_.renew(leaf, remembered, victim.priority);
    virtual_leaf = remembered;
    if (planned != remembered && remembered == kNone)
      downgraded.push_back(cells_.p(leaf).using_group);
  }
  (void)cells_.allocate_leaf(leaf, virtual_leaf, victim.priority, victim.vc);
}

void Bookkeeping::take_reserved(Index index) {
  Group& group = groups_.at(index);
  for (const Group::Member& member : group.members) {
    for (const Index leaf : member.physical) {
      if (leaf == kNone || cells_.p(leaf).reserving_group != index) continue;
      cells_.p_mutable(leaf).reserving_group = kNone;
      cells_.p_mutable(leaf).using_group = index;
      cells_.set_state(leaf, CellState::kUsed);
    }
  }
  group.state = GroupState::kAllocated;
  group.preempting_pods.clear();
}

// ------------------------------------------------------------------ losing a guarantee

void Bookkeeping::lazy_preempt(Index index, const std::string& preemptor, Time now) {
  Group& group = groups_.at(index);
  if (group.has_virtual) {
    for (Group::Member& member : group.members) {
      for (std::size_t i = 0; i < member.physical.size(); ++i) {
        const Index leaf = member.physical[i];
        // A leaf that a preemptor has reserved is no longer this gang's to give.
        if (leaf == kNone || cells_.p(leaf).using_group != index ||
            cells_.p(leaf).state != CellState::kUsed)
          continue;
        if (cells_.p(leaf).allocated_virtual == kNone) continue;
        cells_.release_leaf(leaf);
        (void)cells_.allocate_leaf(leaf, kNone, kOpportunistic, group.vc);
      }
      std::fill(member.virt.begin(), member.virt.end(), kNone);
    }
  }
  group.has_virtual = false;
  group.placement.reset();
  group.lazy_preemptor = preemptor;
  group.lazy_time = now;
}

void Bookkeeping::revert_lazy(Index index, std::vector<std::vector<Index>> virt) {
  Group& group = groups_.at(index);
  const std::string preemptor = group.lazy_preemptor;
  bool whole = true;
  group.has_virtual = true;
  group.lazy_preemptor.clear();
  group.lazy_time = Time{};
  group.placement.reset();
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    Group::Member& member = group.members[m];
    member.virt = virt[m];
    for (std::size_t i = 0; i < member.physical.size(); ++i) {
      const Index leaf = member.physical[i];
      if (leaf == kNone || member.virt[i] == kNone) continue;
      if (cells_.p(leaf).using_group != index || cells_.p(leaf).state != CellState::kUsed) continue;
      cells_.release_leaf(leaf);
      member.virt[i] = promises_.renew(leaf, member.virt[i], group.priority);
      whole = whole && member.virt[i] != kNone;
      (void)cells_.allocate_leaf(leaf, member.virt[i], group.priority, group.vc);
    }
  }
  if (!whole) lazy_preempt(index, preemptor, Time{});
}

void Bookkeeping::lazy_preempt_inside(Index virtual_cell, const std::string& preemptor, Time now) {
  const VirtualCell cell = cells_.v(virtual_cell);
  for (Index i = cell.leaf_begin; i < cell.leaf_end; ++i) {
    const VirtualCell& leaf = cells_.v(cells_.virtual_leaves[at(i)]);
    if (leaf.physical == kNone || leaf.state != CellState::kUsed) continue;
    const Index user = cells_.p(leaf.physical).using_group;
    if (user != kNone && cells_.p(leaf.physical).allocated_virtual != kNone)
      lazy_preempt(user, preemptor, now);
  }
}

// ------------------------------------------------------------------ gangs that are found running

/// The member with as many leaf cells a pod (in a tree: that number), large enough for the placement.
/// The spec may not know these pods, yet their cells are in use.
Group::Member& Bookkeeping::member_of(Group& group,
                                      const MemberPlacement& placement,
                                      std::size_t number) {
  const auto leaves = static_cast<std::int32_t>(placement.pods[0].leaves.size());
  if (group.tree && number >= group.members.size()) group.members.resize(number + 1);
  auto member = std::find_if(group.members.begin(),
                             group.members.end(),
                             [&](const Group::Member& m) { return m.leaves >= leaves; });
  if (group.tree) {
    member = group.members.begin() + static_cast<std::ptrdiff_t>(number);
    member->leaves = leaves;
    member->physical.resize(member->slots.size() * at(leaves), kNone);
    member->virt.resize(member->physical.size(), kNone);
  }
  if (member == group.members.end() || member->leaves != leaves) {
    Group::Member extra;
    extra.leaves = leaves;
    member = group.members.insert(member, std::move(extra));
  }
  if (member->slots.size() < placement.pods.size()) {
    member->slots.resize(placement.pods.size());
    member->physical.resize(placement.pods.size() * at(leaves), kNone);
    member->virt.resize(member->physical.size(), kNone);
  }
  return *member;
}

/// The virtual leaf that the pod's leaf answers; kNone: it is not guaranteed.
Index Bookkeeping::promised_to(Restoring& restoring,
                               Index leaf,
                               const PodPlacement& place,
                               std::size_t i) {
  Group& group = groups_.at(restoring.group);
  if (place.preassigned_types.empty()) {
    restoring.downgrade = true;
    return kNone;
  }
  if (!group.has_virtual || restoring.downgrade) return kNone;
  const std::string& type =
      place.preassigned_types[std::min(i, place.preassigned_types.size() - 1)];
  if (type.empty()) {
    group.has_virtual = false;
    return kNone;
  }
  const Index virtual_leaf = promises_.find(group, restoring.spec, leaf, type);
  restoring.downgrade = virtual_leaf == kNone;
  if (virtual_leaf == kNone) return kNone;
  const Index root = cells_.v(virtual_leaf).root;
  if (cells_.is_free(leaf) && cells_.v(root).priority > kFreePriority)
    lazy_preempt_inside(root, group.name, restoring.now);
  if (cells_.can_bind(leaf, virtual_leaf) && cells_.v(virtual_leaf).priority == kFreePriority)
    return virtual_leaf;
  restoring.downgrade = true;
  return kNone;
}

/// The gang that keeps the leaf for a pod which is not there loses that place. False: its pod is there.
bool Bookkeeping::take_kept_place(Index leaf) {
  const Index keeper = cells_.p(leaf).using_group;
  for (Group::Member& member : groups_.at(keeper).members) {
    const auto found = std::find(member.physical.begin(), member.physical.end(), leaf);
    if (found == member.physical.end()) continue;
    const std::size_t slot =
        static_cast<std::size_t>(found - member.physical.begin()) / at(member.leaves);
    if (member.slots[slot]) return false;
    for (std::size_t i = slot * at(member.leaves); i < (slot + 1) * at(member.leaves); ++i) {
      const Index kept = std::exchange(member.physical[i], kNone);
      member.virt[i] = kNone;
      if (kept == kNone || cells_.p(kept).using_group != keeper) continue;
      if (cells_.p(kept).reserving_group != kNone) {
        cells_.p_mutable(kept).using_group = kNone;
        cells_.set_state(kept, CellState::kReserved);
        continue;
      }
      cells_.p_mutable(kept).using_group = kNone;
      cells_.release_leaf(kept);
      cells_.set_state(kept, CellState::kFree);
    }
    groups_.at(keeper).placement.reset();
    return true;
  }
  return false;
}

void Bookkeeping::restore_pod(Restoring& restoring,
                              Group::Member& member,
                              std::size_t pod,
                              const PodPlacement& place) {
  const Group& group = groups_.at(restoring.group);
  const Index node = cells_.find_node(place.node);
  std::vector<Index> leaves;
  leaves.reserve(place.leaves.size());
  for (std::size_t i = 0; i < place.leaves.size() && i < at(member.leaves); ++i)
    leaves.push_back(cells_.find_leaf(node, place.leaves[i], restoring.chain));
  const auto is_used = [this](Index leaf) {
    return leaf != kNone && cells_.p(leaf).using_group != kNone;
  };
  // A place that is kept for a pod is kept whole or not at all.
  if (!restoring.sits && std::any_of(leaves.begin(), leaves.end(), is_used)) return;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Index leaf = leaves[i];
    if (leaf == kNone) continue;
    if (cells_.p(leaf).reserving_group != kNone) cancel(cells_.p(leaf).reserving_group);
    if (is_used(leaf) && !take_kept_place(leaf)) continue;  // Somebody else's: never given twice.
    const Index virtual_leaf = promised_to(restoring, leaf, place, i);
    member.physical[pod * at(member.leaves) + i] = leaf;
    member.virt[pod * at(member.leaves) + i] = virtual_leaf;
    const std::int32_t priority = virtual_leaf == kNone ? kOpportunistic : restoring.spec.priority;
    if (!cells_.allocate_leaf(leaf, virtual_leaf, priority, group.vc)) restoring.downgrade = true;
    cells_.p_mutable(leaf).using_group = restoring.group;
    cells_.set_state(leaf, CellState::kUsed);
  }
}

Index Bookkeeping::restore(const PodSpec& spec, const BindInfo& bind, const Slot& found, Time now) {
  const auto named = cells_.chain_index.find(bind.chain);
  Restoring restoring{.group = add_group(spec, GroupState::kAllocated),
                      .spec = spec,
                      .chain = named == cells_.chain_index.end() ? kNone : named->second,
                      .now = now};
  Group& group = groups_.at(restoring.group);
  group.has_virtual = true;
  for (std::size_t m = 0; m < bind.group->size(); ++m) {
    const MemberPlacement& placement = (*bind.group)[m];
    if (placement.pods.empty() || placement.pods[0].leaves.empty()) continue;
    Group::Member& member = member_of(group, placement, m);
    for (std::size_t pod = 0; pod < placement.pods.size(); ++pod) {
      restoring.sits = m == found.member && pod == at(found.pod);
      restore_pod(restoring, member, pod, placement.pods[pod]);
    }
  }
  if (restoring.downgrade) lazy_preempt(restoring.group, group.name, now);
  return restoring.group;
}

void Bookkeeping::restore_place(
    Index index, const PodSpec& spec, const BindInfo& bind, const Slot& found, Time now) {
  Group& group = groups_.at(index);
  const MemberPlacement& placement = (*bind.group)[found.member];
  Group::Member& member = member_of(group, placement, found.member);
  const std::size_t first = at(found.pod) * at(member.leaves);
  for (std::size_t i = first; i < first + at(member.leaves); ++i) {
    if (member.physical[i] != kNone) return;
  }
  const auto named = cells_.chain_index.find(bind.chain);
  const PodPlacement& place = placement.pods[at(found.pod)];
  Restoring restoring{.group = index,
                      .spec = spec,
                      .chain = named == cells_.chain_index.end() ? kNone : named->second,
                      .now = now,
                      .sits = true};
  const auto& types = place.preassigned_types;
  restoring.downgrade = std::find(types.begin(), types.end(), "") != types.end();
  restore_pod(restoring, member, at(found.pod), place);
  // A gang is guaranteed as a whole or not at all.
  if (restoring.downgrade && group.has_virtual) lazy_preempt(index, group.name, now);
  group.placement.reset();
}

void Bookkeeping::release(Index index) {
  const Group& group = groups_.at(index);
  for (const Group::Member& member : group.members) {
    for (const Index leaf : member.physical) {
      if (leaf == kNone || cells_.p(leaf).using_group != index) continue;
      cells_.p_mutable(leaf).using_group = kNone;
      if (cells_.p(leaf).state == CellState::kUsed) {
        cells_.release_leaf(leaf);
        cells_.set_state(leaf, CellState::kFree);
      } else {
        cells_.set_state(leaf, CellState::kReserved);
      }
    }
  }
  groups_.drop(index);
}

}  // namespace muster::engine::cells
