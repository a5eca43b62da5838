#include "engine/cells/groups.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// What a pod of the gang that is bound already carries about pod `i` of a member.
const PodPlacement* told(const Group& group,
                         const Group::Member& wanted,
                         std::size_t i,
                         std::size_t leaves) {
  const auto number = static_cast<std::size_t>(&wanted - group.members.data());
  const PodPlacement* out = nullptr;
  for (const Group::Member& member : group.members) {
    for (const auto& slot : member.slots) {
      if (!slot || slot->bind.group == nullptr) continue;
      for (const MemberPlacement& placement : *slot->bind.group) {
        if (group.tree && &placement != slot->bind.group->data() + number) continue;
        if (i < placement.pods.size() && placement.pods[i].leaves.size() == leaves)
          out = &placement.pods[i];
      }
    }
  }
  return out;
}

}  // namespace

bool Group::Member::is_free(std::size_t slot) const {
  const auto first = physical.begin() + static_cast<std::ptrdiff_t>(slot * at(leaves));
  return !slots[slot] && std::find(first, first + leaves, kNone) == first + leaves;
}

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

Placement empty_placement(const PodSpec& spec) {
  Placement out;
  out.members.reserve(spec.members.size());
  if (!spec.root.empty()) {
    for (const GroupMember& member : spec.members) {
      Placement::Member& fresh = out.members.emplace_back();
      fresh.leaves = member.leaves;
      fresh.pods = member.pods;
    }
    return out;
  }
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

Index Groups::add(const std::string& name) {
  const auto [known, fresh] = names_.try_emplace(name, kNone);
  MUSTER_CHECK(fresh, "a gang is known once");
  Index index = kNone;
  if (free_.empty()) {
    index = static_cast<Index>(groups_.size());
    groups_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  known->second = index;
  groups_[cells::at(index)].emplace().name = name;
  return index;
}

void Groups::drop(Index index) {
  MUSTER_CHECK(groups_[cells::at(index)].has_value(), "only a gang that is known goes");
  names_.erase(at(index).name);
  groups_[cells::at(index)].reset();
  free_.push_back(index);
}

Index Groups::index_of(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? kNone : found->second;
}

const Group* Groups::find(const std::string& name) const {
  const Index index = index_of(name);
  return index == kNone ? nullptr : &at(index);
}

std::vector<const Group*> Groups::all() const {
  std::vector<const Group*> out;
  for (const auto& group : groups_) {
    if (group) out.push_back(&*group);
  }
  std::sort(
      out.begin(), out.end(), [](const Group* a, const Group* b) { return a->name < b->name; });
  return out;
}

const Group* Groups::user_of(const Cells& cells, Index leaf) const {
  const Index user = cells.p(leaf).using_group;
  return user == kNone ? nullptr : &at(user);
}

GroupPlacement describe(const Cells& cells,
                        const std::vector<Group::Member>& members,
                        bool has_virtual,
                        const Group* group) {
  auto out = std::make_shared<std::vector<MemberPlacement>>();
  out->reserve(members.size());
  for (const Group::Member& member : members) {
    MemberPlacement placement;
    const std::size_t pods = member.leaves > 0 ? member.physical.size() / at(member.leaves) : 0;
    placement.pods.resize(pods);
    for (std::size_t i = 0; i < pods; ++i) {
      PodPlacement& pod = placement.pods[i];
      bool missing = false;
      pod.leaves.reserve(at(member.leaves));
      pod.preassigned_types.reserve(at(member.leaves));
      for (std::size_t l = 0; l < at(member.leaves); ++l) {
        const std::size_t k = i * at(member.leaves) + l;
        const Index leaf = member.physical[k];
        if (leaf == kNone) {
          missing = true;
          break;
        }
        if (pod.node.empty()) pod.node = cells.node_name(cells.p(leaf));
        pod.leaves.push_back(cells.p(leaf).leaf_index);
        pod.preassigned_types.push_back(
            has_virtual && member.virt[k] != kNone
                ? cells.type(cells.v(cells.v(member.virt[k]).root).type).name
                : "");
      }
      if (!missing || group == nullptr) continue;
      // The cell is no longer configured: insist on what the gang's other pods carry.
      if (const PodPlacement* known = told(*group, member, i, at(member.leaves))) pod = *known;
    }
    out->push_back(std::move(placement));
  }
  return out;
}

GroupPlacement placement_of(const Cells& cells, Group& group) {
  if (group.placement == nullptr)
    group.placement = describe(cells, group.members, group.has_virtual, &group);
  return group.placement;
}

Slot find_slot(const BindInfo& bind) {
  if (bind.group == nullptr || bind.leaves.empty()) return {};
  for (std::size_t m = 0; m < bind.group->size(); ++m) {
    const MemberPlacement& member = (*bind.group)[m];
    if (member.pods.empty() || member.pods[0].leaves.size() != bind.leaves.size()) continue;
    for (std::size_t i = 0; i < member.pods.size(); ++i) {
      const PodPlacement& pod = member.pods[i];
      if (pod.node == bind.node &&
          std::find(pod.leaves.begin(), pod.leaves.end(), bind.leaves[0]) != pod.leaves.end())
        return {m, static_cast<std::int32_t>(i)};
    }
  }
  return {};
}

const Group::Member* find_member(const std::vector<Group::Member>& members, const PodSpec& spec) {
  const auto named = at(spec.member);
  if (!spec.root.empty() && named < members.size() && members[named].leaves == spec.leaves)
    return &members[named];
  const auto found = std::find_if(
      members.begin(), members.end(), [&](const auto& m) { return m.leaves == spec.leaves; });
  return found == members.end() ? nullptr : &*found;
}

}  // namespace muster::engine::cells
