// One scheduling call: which gang, which chain, whose cells, and what the caller is told.

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

std::string insufficient(const std::string& vc) {
  return fmt::format("insufficient capacity when scheduling in VC {}", vc);
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

/// Whether a pod group finds the type of cell that the pod asks for in a chain.
bool chain_has_type(const Cells& cells, const Chain& chain, const PodSpec& spec) {
  if (spec.root.empty() || spec.members[at(spec.member)].cell_type.empty()) return true;
  return std::any_of(chain.types.begin() + 1, chain.types.end(), [&](Index type) {
    return cells.type(type).name == spec.members[at(spec.member)].cell_type;
  });
}

/// The kind of device that the pod asks for; empty: any.
std::string leaf_type_of(const Cells& cells, const PodSpec& spec) {
  if (spec.root.empty()) return spec.leaf_type;
  const auto found = cells.type_index.find(spec.members[at(spec.member)].cell_type);
  return found == cells.type_index.end() ? ""
                                         : cells.type(cells.type(found->second).leaf_type).name;
}

std::string virtual_placement_json(const Cells& cells, const Placement& placement) {
  std::map<std::string, std::vector<std::string>> by_root;
  for (const Placement::Member& member : placement.members) {
    for (const Index leaf : member.virt)
      by_root[cells.vaddress(cells.v(leaf).root)].push_back(cells.vaddress(leaf));
  }
  std::string out = "{";
  for (const auto& [root, leaves] : by_root) {
    if (out.size() > 1) out += ',';
    out += '"' + root + "\":[";
    for (std::size_t i = 0; i < leaves.size(); ++i)
      out += (i == 0 ? "\"" : ",\"") + leaves[i] + "\"";
    out += ']';
  }
  return out + "}";
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
  if (!request.spec.root.empty())
    return wait("a node of the cells that were being freed for it turned bad");
  return plan_new(request, false);
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
  std::int32_t slot = -1;
  for (std::size_t i = 0; i < configured && slot < 0; ++i) {
    if (!member->slots[i]) slot = static_cast<std::int32_t>(i);
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

void CellAllocator::attempt_chain(const ScheduleRequest& request,
                                  Index chain,
                                  const PinnedHolding* pinned,
                                  Attempt& attempt) {
  const PodSpec& spec = request.spec;
  attempt.placement = empty_placement(spec);
  if (!spec.root.empty()) return attempt_pod_groups(request, chain, pinned, attempt);
  Search search(cells_, suggested_, search_);
  if (spec.priority < 0) {
    attempt.found = search.run({cells_.view(cells_.chain(chain).view), true, "physical cluster"},
                               spec.priority,
                               attempt.placement,
                               attempt.reason);
    return;
  }
  const Index view =
      pinned != nullptr ? pinned->view : cells_.find_holding(attempt.vc, chain)->view;
  attempt.placement.has_virtual = true;
  attempt.found = search.run({cells_.view(view), false, "VC " + spec.vc},
                             spec.priority,
                             attempt.placement,
                             attempt.reason) &&
                  map_placement(request, chain, attempt);
}

void CellAllocator::attempt_pod_groups(const ScheduleRequest& request,
                                       Index chain,
                                       const PinnedHolding* pinned,
                                       Attempt& attempt) {
  const PodSpec& spec = request.spec;
  const auto search = [&](const PodGroupSearch::Where& where) {
    return PodGroupSearch(cells_, where, spec).run(attempt.placement, attempt.reason);
  };
  if (spec.priority < 0) {
    const Chain& k = cells_.chain(chain);
    attempt.found = search({chain, cells_.view(k.view), k.full, true, "physical cluster"});
    return;
  }
  attempt.placement.has_virtual = true;
  const Holding* holding = pinned == nullptr ? cells_.find_holding(attempt.vc, chain) : nullptr;
  const Index view = pinned != nullptr ? pinned->view : holding->view;
  const auto& full = pinned != nullptr ? pinned->full : holding->full;
  attempt.found = search({chain, cells_.view(view), full, false, "VC " + spec.vc}) &&
                  map_placement(request, chain, attempt);
}

/// From the virtual leaves to physical ones. Gangs that sit there and may be preempted lazily lose
/// their guarantee, and have it back when the mapping fails.
bool CellAllocator::map_placement(const ScheduleRequest& request, Index chain, Attempt& attempt) {
  struct Saved {
    Index group;
    std::vector<std::vector<Index>> virt;
  };
  std::vector<Saved> preempted;
  for (const Placement::Member& member : attempt.placement.members) {
    for (const Index leaf : member.virt) {
      const Index physical = cells_.v(leaf).physical;
      if (physical == kNone || cells_.p(physical).state != CellState::kUsed) continue;
      const Index user = cells_.p(physical).using_group;
      if (user == kNone || !groups_.at(user).lazy_preemption || !groups_.at(user).has_virtual)
        continue;
      Saved saved{user, {}};
      for (const Group::Member& m : groups_.at(user).members) saved.virt.push_back(m.virt);
      preempted.push_back(std::move(saved));
      books().lazy_preempt(user, request.spec.group, request.now);
    }
  }
  if (Mapping(cells_, suggested_, mapping_).run(chain, attempt.placement)) return true;
  for (Saved& saved : preempted) books().revert_lazy(saved.group, std::move(saved.virt));
  attempt.reason = fmt::format(
      "Mapping the virtual placement would need to use at least one {} (virtual placement : {})",
      request.spec.ignore_suggested ? "bad node" : "bad or non-suggested node",
      virtual_placement_json(cells_, attempt.placement));
  return false;
}

/// False: the virtual cluster has no cells of the type.
bool CellAllocator::attempt_leaf_type(const ScheduleRequest& request,
                                      Index leaf_type,
                                      Attempt& attempt) {
  bool has_type = false;
  for (const Index chain : cells_.chains_of_leaf_type[at(leaf_type)]) {
    if (!chain_has_type(cells_, cells_.chain(chain), request.spec)) continue;
    if (request.spec.priority >= 0) {
      const Holding* holding = cells_.find_holding(attempt.vc, chain);
      if (holding == nullptr || !holding->has_cells) continue;
    }
    has_type = true;
    attempt_chain(request, chain, nullptr, attempt);
    if (attempt.found) break;
  }
  return has_type;
}

Result<void> CellAllocator::attempt_pinned(const ScheduleRequest& request, Attempt& attempt) {
  const PodSpec& spec = request.spec;
  const PinnedHolding* pinned = nullptr;
  for (const PinnedHolding& p : cells_.vc(attempt.vc).pinned) {
    if (p.id == spec.pinned_cell) pinned = &p;
  }
  if (pinned == nullptr)
    return fail(Code::kInvalid,
                fmt::format("VC {} does not have pinned cell {}", spec.vc, spec.pinned_cell));
  if (spec.priority < 0)
    return fail(
        Code::kInvalid,
        fmt::format("opportunistic pod not supported to use pinned cell {}", spec.pinned_cell));
  attempt_chain(request, cells_.p(pinned->physical).chain, pinned, attempt);
  return {};
}

/// In the pinned cell, in cells of the type, or in whatever there is. An error: the request asks for
/// what cannot be.
Result<void> CellAllocator::attempt_any(const ScheduleRequest& request, Attempt& attempt) {
  const PodSpec& spec = request.spec;
  if (!spec.pinned_cell.empty()) return attempt_pinned(request, attempt);
  const auto& types = cells_.leaf_types;
  const std::string wanted = leaf_type_of(cells_, spec);
  if (wanted.empty()) {
    for (std::size_t type = 0; type < types.size() && !attempt.found; ++type)
      (void)attempt_leaf_type(request, static_cast<Index>(type), attempt);
    if (!attempt.found && attempt.reason.empty()) attempt.reason = insufficient(spec.vc);
    return {};
  }
  const auto type = std::find(types.begin(), types.end(), wanted);
  if (type == types.end())
    return fail(
        Code::kInvalid,
        fmt::format("Pod requesting leaf cell type {} which the whole cluster does not have",
                    wanted));
  const auto index = static_cast<Index>(type - types.begin());
  if (!attempt_leaf_type(request, index, attempt) && spec.priority >= 0)
    return fail(
        Code::kInvalid,
        fmt::format("Pod requesting {} which VC {} does not have",
                    spec.root.empty() ? "leaf cell type " + wanted
                                      : "cell type " + spec.members[at(spec.member)].cell_type,
                    spec.vc));
  return {};
}

Decision CellAllocator::plan_new(const ScheduleRequest& request, bool last) {
  Attempt attempt;
  attempt.vc = cells_.find_vc(request.spec.vc);
  if (attempt.vc == kNone || !cells_.vc(attempt.vc).configured)
    return error(request.pod, fmt::format("VC {} does not exists!", request.spec.vc));
  if (const auto possible = attempt_any(request, attempt); !possible)
    return error(request.pod, possible.error().message);
  if (!attempt.found) return wait(std::move(attempt.reason));
  return answer(request, attempt.placement, last);
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
  Others others;
  std::vector<Group::Member> members;
  for (const Placement::Member& m : placement.members) {
    others.add(cells_, m.physical);
    Group::Member member;
    member.leaves = m.leaves;
    member.physical = m.physical;
    member.virt = m.virt;
    members.push_back(std::move(member));
  }
  // What is about to be bound (or reserved) is reserved by nobody else.
  if (request.phase == Phase::kPreempting || others.victims.empty()) {
    for (const Index preemptor : others.preemptors) books().cancel(preemptor);
    // Cancelling may move doomed bindings, rarely so that the plan no longer holds.
    if (!others.preemptors.empty() && !last && !still_possible(placement))
      return plan_new(request, true);
  }
  if (others.victims.empty()) {
    return bind(
        request.spec, members, 0, describe(cells_, members, placement.has_virtual, nullptr));
  }
  Decision decision = preempt(others.victims);
  if (request.phase == Phase::kPreempting && !books().reserve(request.pod, request.spec, placement))
    return wait(insufficient(request.spec.vc));
  return decision;
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
