// Gangs: how they take cells, reserve them, lose them, and are rebuilt from what their pods carry.

#include <fmt/core.h>

#include <algorithm>

#include "engine/cells/allocator.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

std::string_view to_string(GroupState state) {
  switch (state) {
    case GroupState::kAllocated:
      return "Allocated";
    case GroupState::kPreempting:
      return "Preempting";
    case GroupState::kBeingPreempted:
      return "BeingPreempted";
  }
  return "Allocated";
}

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

Index CellAllocator::group_index(const std::string& name) const {
  const auto found = group_names_.find(name);
  return found == group_names_.end() ? kNone : found->second;
}

const Group* CellAllocator::find_group(const std::string& name) const {
  const Index index = group_index(name);
  return index == kNone ? nullptr : &*groups_[at(index)];
}

std::vector<const Group*> CellAllocator::groups() const {
  std::vector<const Group*> out;
  for (const auto& group : groups_) {
    if (group) out.push_back(&*group);
  }
  std::sort(
      out.begin(), out.end(), [](const Group* a, const Group* b) { return a->name < b->name; });
  return out;
}

const Group* CellAllocator::user_of(Index leaf) const {
  const Index user = cells_.p(leaf).using_group;
  return user == kNone ? nullptr : &*groups_[at(user)];
}

Index CellAllocator::new_group(const PodSpec& spec, GroupState state) {
  Index index;
  if (free_groups_.empty()) {
    index = static_cast<Index>(groups_.size());
    groups_.emplace_back();
  } else {
    index = free_groups_.back();
    free_groups_.pop_back();
  }
  Group group;
  group.name = spec.group;
  group.vc = cells_.intern_vc(spec.vc);
  group.priority = spec.priority;
  group.lazy_preemption = spec.lazy_preemption;
  group.ignore_suggested = spec.ignore_suggested;
  group.state = state;
  for (const Placement::Member& member : empty_placement(spec).members) {
    Group::Member m;
    m.leaves = member.leaves;
    m.slots.resize(at(member.pods));
    m.physical.assign(at(member.pods) * at(member.leaves), kNone);
    m.virt.assign(m.physical.size(), kNone);
    group.members.push_back(std::move(m));
  }
  groups_[at(index)] = std::move(group);
  group_names_[spec.group] = index;
  return index;
}

void CellAllocator::drop_group(Index index) {
  group_names_.erase(groups_[at(index)]->name);
  groups_[at(index)].reset();
  free_groups_.push_back(index);
}

Index CellAllocator::rebind(Index leaf, Index virtual_leaf, std::int32_t priority) {
  if (virtual_leaf == kNone || cells_.can_bind(leaf, virtual_leaf)) return virtual_leaf;
  // Meanwhile the virtual cell was doomed: bound to a bad cell in advance. Another of its kind will
  // do.
  const VirtualCell& root = cells_.v(cells_.v(virtual_leaf).root);
  if (root.root_position < 0) return kNone;
  const RootList& roots = cells_.find_holding(root.vc, root.chain)->roots[at(root.level)];
  const Index other =
      inverse_map(leaf, roots.cells, &roots, root.level, priority, root.vc, cells_.p(leaf).healthy);
  return other != kNone && cells_.v(other).priority == kFreePriority && cells_.can_bind(leaf, other)
             ? other
             : kNone;
}

bool CellAllocator::create_preempting(const ScheduleRequest& request, const Placement& placement) {
  const Index index = new_group(request.spec, GroupState::kPreempting);
  Group& group = *groups_[at(index)];
  group.has_virtual = placement.has_virtual;
  group.preempting_pods.push_back(request.pod);
  for (std::size_t m = 0; m < placement.members.size(); ++m) {
    group.members[m].physical = placement.members[m].physical;
    if (placement.has_virtual) group.members[m].virt = placement.members[m].virt;
    for (std::size_t i = 0; i < group.members[m].physical.size(); ++i) {
      const Index leaf = group.members[m].physical[i];
      const bool used = cells_.p(leaf).state == CellState::kUsed;
      if (used) {
        cells_.release_leaf(leaf);
        groups_[at(cells_.p(leaf).using_group)]->state = GroupState::kBeingPreempted;
      }
      const Index planned = group.members[m].virt[i];
      group.members[m].virt[i] = rebind(leaf, planned, group.priority);
      if (planned != kNone && group.members[m].virt[i] == kNone) {
        // Never reserve for a guaranteed gang what is not guaranteed.
        if (used)
          (void)cells_.allocate_leaf(
              leaf, kNone, kOpportunistic, groups_[at(cells_.p(leaf).using_group)]->vc);
        cancel_preempting(index);
        return false;
      }
      (void)cells_.allocate_leaf(leaf, group.members[m].virt[i], group.priority, group.vc);
      cells_.p_mutable(leaf).reserving_group = index;
      cells_.set_state(leaf, used ? CellState::kReserving : CellState::kReserved);
    }
  }
  return true;
}

void CellAllocator::cancel_preempting(Index index) {
  Group& group = *groups_[at(index)];
  std::vector<Index> downgraded;
  for (Group::Member& member : group.members) {
    for (const Index leaf : member.physical) {
      if (leaf == kNone || cells_.p(leaf).reserving_group != index) continue;
      cells_.release_leaf(leaf);
      cells_.p_mutable(leaf).reserving_group = kNone;
      if (cells_.p(leaf).state != CellState::kReserving) {
        cells_.set_state(leaf, CellState::kFree);
        continue;
      }
      cells_.set_state(leaf, CellState::kUsed);
      Group& victim = *groups_[at(cells_.p(leaf).using_group)];
      Index virtual_leaf = kNone;
      for (Group::Member& m : victim.members) {
        const auto found = std::find(m.physical.begin(), m.physical.end(), leaf);
        if (found == m.physical.end() || !victim.has_virtual) continue;
        Index& remembered = m.virt[static_cast<std::size_t>(found - m.physical.begin())];
        const Index planned = remembered;
        remembered = rebind(leaf, remembered, victim.priority);
        virtual_leaf = remembered;
        if (planned != remembered && remembered == kNone)
          downgraded.push_back(cells_.p(leaf).using_group);
      }
      (void)cells_.allocate_leaf(leaf, virtual_leaf, victim.priority, victim.vc);
    }
  }
  // A gang is guaranteed as a whole or not at all.
  for (const Index victim : downgraded) lazy_preempt(victim, groups_[at(victim)]->name, Time{});
  drop_group(index);
}

void CellAllocator::lazy_preempt(Index index, const std::string& preemptor, Time now) {
  Group& group = *groups_[at(index)];
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

void CellAllocator::revert_lazy(Index index, std::vector<std::vector<Index>> virt) {
  Group& group = *groups_[at(index)];
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
      member.virt[i] = rebind(leaf, member.virt[i], group.priority);
      whole = whole && member.virt[i] != kNone;
      (void)cells_.allocate_leaf(leaf, member.virt[i], group.priority, group.vc);
    }
  }
  if (!whole) lazy_preempt(index, preemptor, Time{});
}

void CellAllocator::lazy_preempt_inside(Index virtual_cell,
                                        const std::string& preemptor,
                                        Time now) {
  const VirtualCell cell = cells_.v(virtual_cell);
  for (Index i = cell.leaf_begin; i < cell.leaf_end; ++i) {
    const VirtualCell& leaf = cells_.v(cells_.virtual_leaves[at(i)]);
    if (leaf.physical == kNone || leaf.state != CellState::kUsed) continue;
    const Index user = cells_.p(leaf.physical).using_group;
    if (user != kNone && cells_.p(leaf.physical).allocated_virtual != kNone)
      lazy_preempt(user, preemptor, now);
  }
}

Index CellAllocator::choose_virtual(std::span<const Index> list,
                                    const RootList* roots,
                                    std::int32_t priority) const {
  if (roots != nullptr) {
    const Index unbound = roots->first_unbound();
    if (unbound != kNone) return unbound;
  }
  Index lowest = kNone;
  for (const Index cell : list) {
    const VirtualCell& c = cells_.v(cell);
    if (c.priority == kFreePriority) {
      if (c.physical == kNone) return cell;
      continue;  // doomed
    }
    if (c.priority < priority && (lowest == kNone || c.priority < cells_.v(lowest).priority))
      lowest = cell;
  }
  return lowest;
}

Index CellAllocator::inverse_map(Index physical_cell,
                                 const std::vector<Index>& list,
                                 const RootList* roots,
                                 std::int32_t preassigned_level,
                                 std::int32_t priority,
                                 Index vc,
                                 bool healthy) {
  const PhysicalCell& c = cells_.p(physical_cell);
  if (c.virt != kNone) {
    const VirtualCell& bound = cells_.v(c.virt);
    const Index root = cells_.v(bound.root).physical;
    if (bound.vc != vc || cells_.v(bound.root).level != preassigned_level) {
      // Bound for another promise. If only because it is bad, that one can be shown another bad
      // cell.
      const bool idle = cells_.v(bound.root).priority < 0 && cells_.in_list(root, kDoomedList);
      // Within one virtual cluster only for a promise that is free: sharing the other is better
      // than losing the guarantee.
      const bool better = bound.vc != vc || choose_virtual(list, roots, priority) != kNone;
      if (!idle || !better) return bound.vc == vc ? c.virt : kNone;
      cells_.release_doomed(root);
    } else {
      return c.virt;
    }
  }
  if (cells_.p(physical_cell).level == preassigned_level) {
    const Index chosen = choose_virtual(list, roots, priority);
    if (roots == nullptr || !healthy ||
        (chosen != kNone && cells_.v(chosen).priority == kFreePriority))
      return chosen;
    // A cell of several nodes, bad in part, may be used through its healthy ones while the promise
    // it answers was already counted as lost with another bad cell. Any bad cell will do for that.
    for (const Index doomed :
         cells_.find_holding(vc, cells_.p(physical_cell).chain)->doomed[at(preassigned_level)]) {
      if (cells_.v(cells_.p(doomed).virt).priority >= 0) continue;
      cells_.release_doomed(doomed);
      return roots->first_unbound();
    }
    return chosen;
  }
  if (c.parent == kNone) return kNone;
  const Index parent = inverse_map(c.parent, list, roots, preassigned_level, priority, vc, healthy);
  if (parent == kNone) return kNone;
  const auto children = cells_.children(cells_.v(parent));
  return choose_virtual(children, nullptr, priority);
}

Index CellAllocator::find_virtual(const Group& group,
                                  const PodSpec& spec,
                                  Index leaf,
                                  const std::string& preassigned_type,
                                  bool& downgrade) {
  const Chain& chain = cells_.chain(cells_.p(leaf).chain);
  std::int32_t level = 0;
  for (std::int32_t l = 1; l <= chain.top; ++l) {
    if (cells_.type(chain.types[at(l)]).name == preassigned_type) level = l;
  }
  downgrade = true;
  if (level == 0) return kNone;
  const std::vector<Index>* list = nullptr;
  const RootList* roots = nullptr;
  if (!spec.pinned_cell.empty()) {
    for (const PinnedHolding& pinned : cells_.vc(group.vc).pinned) {
      if (pinned.id == spec.pinned_cell && at(level) < pinned.full.size())
        list = &pinned.full[at(level)];
    }
  } else if (const Holding* holding = cells_.find_holding(group.vc, cells_.p(leaf).chain);
             holding != nullptr && holding->has_cells) {
    roots = &holding->roots[at(level)];
    list = &roots->cells;
  }
  if (list == nullptr) return kNone;
  const Index found =
      inverse_map(leaf, *list, roots, level, spec.priority, group.vc, cells_.p(leaf).healthy);
  downgrade = found == kNone;
  return found;
}

Index CellAllocator::create_allocated(const PodSpec& spec, const BindInfo& bind, Time now) {
  const Index index = new_group(spec, GroupState::kAllocated);
  Group& group = *groups_[at(index)];
  group.has_virtual = true;
  bool downgrade = false;
  const auto named = cells_.chain_index.find(bind.chain);
  const Index chain = named == cells_.chain_index.end() ? kNone : named->second;
  for (const MemberPlacement& placement : *bind.group) {
    if (placement.pods.empty()) continue;
    const auto leaves = static_cast<std::int32_t>(placement.pods[0].leaves.size());
    auto member = std::find_if(group.members.begin(),
                               group.members.end(),
                               [&](const Group::Member& m) { return m.leaves == leaves; });
    if (member == group.members.end()) {
      // The spec does not know these pods, yet their cells are in use.
      Group::Member extra;
      extra.leaves = leaves;
      member = group.members.insert(
          std::find_if(group.members.begin(),
                       group.members.end(),
                       [&](const Group::Member& m) { return m.leaves > leaves; }),
          std::move(extra));
    }
    if (member->slots.size() < placement.pods.size()) {
      member->slots.resize(placement.pods.size());
      member->physical.resize(placement.pods.size() * at(leaves), kNone);
      member->virt.resize(member->physical.size(), kNone);
    }
    for (std::size_t pod = 0; pod < placement.pods.size(); ++pod) {
      const PodPlacement& place = placement.pods[pod];
      const Index node = cells_.find_node(place.node);
      for (std::size_t i = 0; i < place.leaves.size() && i < at(leaves); ++i) {
        const Index leaf = cells_.find_leaf(node, place.leaves[i], chain);
        if (leaf == kNone) continue;
        if (cells_.p(leaf).reserving_group != kNone)
          cancel_preempting(cells_.p(leaf).reserving_group);
        if (cells_.p(leaf).using_group != kNone) continue;  // somebody else's: never given twice
        Index virtual_leaf = kNone;
        if (place.preassigned_types.empty()) {
          downgrade = true;
        } else if (group.has_virtual && !downgrade) {
          const std::string& type =
              place.preassigned_types[std::min(i, place.preassigned_types.size() - 1)];
          if (type.empty())
            group.has_virtual = false;
          else
            virtual_leaf = find_virtual(group, spec, leaf, type, downgrade);
        }
        if (virtual_leaf != kNone) {
          const Index root = cells_.v(virtual_leaf).root;
          if (cells_.is_free(leaf) && cells_.v(root).priority > kFreePriority)
            lazy_preempt_inside(root, group.name, now);
          if (!cells_.can_bind(leaf, virtual_leaf) ||
              cells_.v(virtual_leaf).priority != kFreePriority) {
            virtual_leaf = kNone;
            downgrade = true;
          }
        }
        member->physical[pod * at(leaves) + i] = leaf;
        member->virt[pod * at(leaves) + i] = virtual_leaf;
        if (!cells_.allocate_leaf(leaf,
                                  virtual_leaf,
                                  virtual_leaf == kNone ? kOpportunistic : spec.priority,
                                  group.vc))
          downgrade = true;
        cells_.p_mutable(leaf).using_group = index;
        cells_.set_state(leaf, CellState::kUsed);
      }
    }
  }
  if (downgrade) lazy_preempt(index, group.name, now);
  return index;
}

std::int32_t CellAllocator::find_slot(const BindInfo& bind) {
  if (bind.group == nullptr || bind.leaves.empty()) return -1;
  for (const MemberPlacement& member : *bind.group) {
    if (member.pods.empty() || member.pods[0].leaves.size() != bind.leaves.size()) continue;
    for (std::size_t i = 0; i < member.pods.size(); ++i) {
      const PodPlacement& pod = member.pods[i];
      if (pod.node == bind.node &&
          std::find(pod.leaves.begin(), pod.leaves.end(), bind.leaves[0]) != pod.leaves.end())
        return static_cast<std::int32_t>(i);
    }
  }
  return -1;
}

Result<void> CellAllocator::add_allocated(const PodRef& pod,
                                          const PodSpec& spec,
                                          const BindInfo& bind,
                                          Time now) {
  const std::int32_t slot = find_slot(bind);
  if (slot < 0) {
    return fail(
        Code::kInvalid,
        fmt::format(
            "pod \"{}\": its bind info has no placement on node \"{}\" with its leaf cells; the pod is ignored",
            pod.name,
            bind.node));
  }
  Index index = group_index(spec.group);
  if (index == kNone) {
    index = create_allocated(spec, bind, now);
  } else if (groups_[at(index)]->state == GroupState::kPreempting) {
    Group& group = *groups_[at(index)];
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
  Group& group = *groups_[at(index)];
  for (Group::Member& member : group.members) {
    if (at(member.leaves) != bind.leaves.size() || at(slot) >= member.slots.size()) continue;
    auto& place = member.slots[at(slot)];
    if (place && place->pod.uid == pod.uid) return {};
    if (place) {
      return fail(
          Code::kConflict,
          fmt::format(
              "pod \"{}\": its place in group \"{}\" is held by pod \"{}\"; the pod is ignored",
              pod.name,
              spec.group,
              place->pod.name));
    }
    place = AllocatedPod{pod, bind};
    ++group.allocated_pods;
    return {};
  }
  return fail(
      Code::kInvalid,
      fmt::format("pod \"{}\": group \"{}\" has no pods with {} leaf cells; the pod is ignored",
                  pod.name,
                  spec.group,
                  bind.leaves.size()));
}

void CellAllocator::delete_group_cells(Index index) {
  Group& group = *groups_[at(index)];
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
  drop_group(index);
}

Result<void> CellAllocator::delete_allocated(const PodRef& pod,
                                             const PodSpec& spec,
                                             const BindInfo& bind) {
  const Index index = group_index(spec.group);
  if (index == kNone) {
    return fail(
        Code::kNotFound,
        fmt::format(
            "pod \"{}\": group \"{}\" is not known; nothing to release", pod.name, spec.group));
  }
  Group& group = *groups_[at(index)];
  (void)bind;
  for (Group::Member& member : group.members) {
    for (auto& place : member.slots) {
      if (!place || place->pod.uid != pod.uid) continue;
      place.reset();
      if (--group.allocated_pods == 0) delete_group_cells(index);
      return {};
    }
  }
  return fail(
      Code::kNotFound,
      fmt::format(
          "pod \"{}\" holds no place in group \"{}\"; nothing to release", pod.name, spec.group));
}

void CellAllocator::delete_unallocated(const PodRef& pod, const std::string& group_name) {
  const Index index = group_index(group_name);
  if (index == kNone || groups_[at(index)]->state != GroupState::kPreempting) return;
  std::vector<PodRef>& pods = groups_[at(index)]->preempting_pods;
  std::erase_if(pods, [&](const PodRef& p) { return p.uid == pod.uid; });
  if (pods.empty()) cancel_preempting(index);
}

std::shared_ptr<const std::vector<MemberPlacement>> CellAllocator::placement_of(Index index) {
  Group& group = *groups_[at(index)];
  if (group.placement == nullptr)
    group.placement = describe(group.members, group.has_virtual, &group);
  return group.placement;
}

std::shared_ptr<const std::vector<MemberPlacement>> CellAllocator::describe(
    const std::vector<Group::Member>& members, bool has_virtual, const Group* group) const {
  auto out = std::make_shared<std::vector<MemberPlacement>>();
  out->reserve(members.size());
  for (const Group::Member& member : members) {
    MemberPlacement placement;
    const std::size_t pods = member.leaves > 0 ? member.physical.size() / at(member.leaves) : 0;
    placement.pods.resize(pods);
    for (std::size_t i = 0; i < pods; ++i) {
      PodPlacement& pod = placement.pods[i];
      bool missing = false;
      for (std::size_t l = 0; l < at(member.leaves); ++l) {
        const std::size_t k = i * at(member.leaves) + l;
        const Index leaf = member.physical[k];
        if (leaf == kNone) {
          missing = true;
          break;
        }
        if (pod.node.empty()) pod.node = cells_.node_name(cells_.p(leaf));
        pod.leaves.push_back(cells_.p(leaf).leaf_index);
        pod.preassigned_types.push_back(
            has_virtual && member.virt[k] != kNone
                ? cells_.type(cells_.v(cells_.v(member.virt[k]).root).type).name
                : "");
      }
      if (!missing || group == nullptr) continue;
      // The cell is no longer configured: insist on what the gang's other pods carry.
      for (const Group::Member& other : group->members) {
        for (const auto& slot : other.slots) {
          if (!slot || slot->bind.group == nullptr) continue;
          for (const MemberPlacement& told : *slot->bind.group) {
            if (i < told.pods.size() && told.pods[i].leaves.size() == at(member.leaves))
              pod = told.pods[i];
          }
        }
      }
    }
    out->push_back(std::move(placement));
  }
  return out;
}

}  // namespace muster::engine::cells
