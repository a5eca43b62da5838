#include "engine/muster/gang.h"

#include <algorithm>
#include <functional>

#include "engine/state/match.h"

namespace muster::engine {

namespace {

/// The roles' minimums count only where together they do not ask for more than the gang's.
bool roles_count(const GangState& gang) {
  std::int32_t total = 0;
  for (const auto& [role, n] : gang.spec.min_task_member) total += n;
  return !gang.spec.min_task_member.empty() && gang.spec.min_member >= total;
}

/// Fewer members exist than the gang, or one of its roles, must have to start.
bool too_few_members(const State& state, const GangState& gang, Refusal& refusal) {
  const auto refuse = [&](std::int32_t wanted, std::int32_t found) {
    refusal.reason = Reason::kNotEnoughMembers;
    refusal.members_wanted = wanted;
    refusal.members_found = found;
    return true;
  };
  const std::int32_t exist = gang.bound + gang.succeeded + gang.pending;
  if (exist < gang.spec.min_member) return refuse(gang.spec.min_member, exist);
  if (!roles_count(gang)) return false;
  for (const auto& [role, n] : gang.spec.min_task_member) {
    std::int32_t have = 0;
    for (const PodId p : gang.pods) {
      const PodState& pod = state.pod(p);
      const bool counts =
          (pod.phase != PodPhase::kFinished || pod.succeeded) && pod.phase != PodPhase::kReleasing;
      have += pod.role == role && counts ? 1 : 0;
    }
    if (have >= n) continue;
    refusal.subject = role;
    return refuse(n, have);
  }
  return false;
}

}  // namespace

Need need_of(const State& state, const GangState& gang) {
  Need need;
  need.total = std::max(0, gang.spec.min_member - gang.bound - gang.succeeded);
  if (!roles_count(gang)) return need;
  std::int32_t sum = 0;
  for (const auto& [role, n] : gang.spec.min_task_member) {
    std::int32_t have = 0;
    for (const PodId p : gang.pods) {
      const PodState& pod = state.pod(p);
      have += pod.role == role && (pod.phase == PodPhase::kBound ||
                                   (pod.phase == PodPhase::kFinished && pod.succeeded))
                  ? 1
                  : 0;
    }
    if (n > have) {
      need.roles.emplace_back(role, n - have);
      sum += n - have;
    }
  }
  need.total = std::max(need.total, sum);
  return need;
}

std::vector<PodId> tasks_of(const State& state, GangId id) {
  std::vector<PodId> tasks;
  for (const PodId p : state.gang(id).pods) {
    const PodState& pod = state.pod(p);
    if (pod.phase == PodPhase::kPending && !pod.gated && pod.ours) tasks.push_back(p);
  }
  std::sort(tasks.begin(), tasks.end(), [&](PodId a, PodId b) {
    const PodState& x = state.pod(a);
    const PodState& y = state.pod(b);
    if (x.priority != y.priority) return x.priority > y.priority;
    if (x.cls != y.cls) {
      const ResourceVector& rx = state.cls(x.cls).request;
      const ResourceVector& ry = state.cls(y.cls).request;
      for (const std::size_t i :
           {ResourceNames::kDevice, ResourceNames::kCpu, ResourceNames::kMemory}) {
        if (rx[i] != ry[i]) return rx[i] > ry[i];
      }
      return x.cls < y.cls;
    }
    return x.seq < y.seq;
  });
  return tasks;
}

Members members_of(const State& state, GangId id) {
  return {id, need_of(state, state.gang(id)), tasks_of(state, id)};
}

ResourceVector request_of(const State& state, const Members& members) {
  ResourceVector sum;
  std::int32_t n = std::max(members.need.total, 1);
  for (const PodId p : members.tasks) {
    if (n-- == 0) break;
    sum += state.cls_of(p).request;
  }
  return sum;
}

Refusal unready(const State& state, const GangState& gang) {
  Refusal refusal;
  if (!gang.has_group && gang.spec.key.empty()) {
    refusal.reason = Reason::kGroupMissing;
    refusal.subject = gang.key;
    return refusal;
  }
  if (gang.spec.is_parent) return refusal;
  if (gang.spec.hold) {
    refusal.reason = Reason::kGated;
    refusal.subject = "suspended";
    return refusal;
  }
  if (gang.gated > 0 && (gang.bound == 0 || gang.gated == gang.pending)) {
    refusal.reason = Reason::kGated;
    refusal.members_found = gang.gated;
    refusal.members_wanted = gang.pending;
    return refusal;
  }
  if (!gang.spec.parent.empty() && !state.find_gang(gang.spec.parent).valid()) {
    refusal.reason = Reason::kParentMissing;
    refusal.subject = gang.spec.parent;
    return refusal;
  }
  if (too_few_members(state, gang, refusal)) return refusal;
  const TenantState& tenant = state.tenant(gang.tenant);
  if (!tenant.live && tenant.name != state.config().default_queue) {
    refusal.reason = Reason::kQueueMissing;
    refusal.queue = tenant.name;
  } else if (tenant.live && tenant.spec.state != QueueState::kOpen) {
    refusal.reason = Reason::kQueueNotOpen;
    refusal.queue = tenant.name;
    refusal.subject = tenant.spec.state == QueueState::kClosing ? "closing" : "closed";
  }
  return refusal;
}

bool never_preempts(const State& state, GangId id) {
  const GangState& gang = state.gang(id);
  if (gang.spec.preemption_policy == PreemptionPolicy::kNever) return true;
  const auto waits = std::find_if(gang.pods.begin(), gang.pods.end(), [&](PodId p) {
    return state.pod(p).phase == PodPhase::kPending;
  });
  return waits != gang.pods.end() &&
         state.pod(*waits).preemption_policy == PreemptionPolicy::kNever;
}

std::int64_t expected_duration(const State& state,
                               const Durations& durations,
                               Time now,
                               GangId id) {
  const GangState& gang = state.gang(id);
  const auto expected = [&]() -> std::int64_t {
    if (gang.spec.expected_duration.count() > 0) return gang.spec.expected_duration.count();
    std::int64_t longest = 0;
    ClassId cls;
    for (const PodId p : gang.pods) {
      const PodState& pod = state.pod(p);
      if (!cls.valid()) cls = pod.cls;
      if (pod.expected_duration.count() == 0) {
        longest = 0;
        break;
      }
      longest = std::max<std::int64_t>(longest, pod.expected_duration.count());
    }
    if (longest > 0) return longest;
    return cls.valid() ? durations.estimate(gang.tenant, cls) : Durations::kUnknown;
  };
  if (state.tenant(gang.tenant).spec.max_duration.count() == 0) return expected();
  // Its queue ends pods of a certain age, whatever they had in mind; the youngest is the last to
  // go.
  Time latest;
  for (const PodId p : gang.pods)
    latest = std::max(latest, state.latest_end(gang.tenant, state.pod(p).created));
  const std::int64_t left =
      latest == kNever ? Durations::kUnknown : std::max<std::int64_t>((latest - now).count(), 1);
  return std::min(expected(), left);
}

Time expected_end(const State& state, const Durations& durations, Time now, const PodState& pod) {
  if (pod.phase == PodPhase::kBound && pod.ends != kNever && pod.ends > now) return pod.ends;
  if (pod.phase == PodPhase::kReleasing)
    return pod.leaves ? pod.leaves : now + std::chrono::seconds(30);
  std::int64_t us = pod.expected_duration.count();
  const GangState& gang = state.gang(pod.gang);
  if (us == 0) us = gang.spec.expected_duration.count();
  const Time latest = state.latest_end(gang.tenant, pod.created);
  if (us == 0) {
    const std::int64_t estimate = durations.estimate(gang.tenant, pod.cls);
    if (estimate == Durations::kUnknown && latest == kNever) return kNever;
    us = estimate;
  }
  const Time end =
      us == Durations::kUnknown ? latest : std::min(pod.started + Duration(us), latest);
  // Late already: it will take about as long again as it is late.
  if (end <= now) return now + Duration(std::max<std::int64_t>((now - end).count(), 60'000'000));
  return end;
}

bool group_runs(const State& state, GangId id) {
  const GangState& gang = state.gang(id);
  if (!gang.spec.is_parent) return gang.bound > 0 && need_of(state, gang).total == 0;
  std::int32_t running = 0;
  for (const GangId child : state.children_of(gang.key))
    running += group_runs(state, child) ? 1 : 0;
  return running >= std::max(1, gang.spec.min_groups);
}

bool family_short(const State& state, GangId id, const std::vector<GangId>& starting) {
  if (need_of(state, state.gang(id)).total == 0) return false;
  const GangId root = state.root_of(id);
  const std::function<bool(GangId)> starts = [&](GangId g) {
    const GangState& gang = state.gang(g);
    if (!gang.spec.is_parent)
      return group_runs(state, g) ||
             std::find(starting.begin(), starting.end(), g) != starting.end();
    std::int32_t n = 0;
    for (const GangId child : state.children_of(gang.key)) n += starts(child) ? 1 : 0;
    return n >= std::max(1, gang.spec.min_groups);
  };
  return !starts(root);
}

std::vector<TopologyLevel> levels_of(const State& state, const GangState& gang) {
  std::vector<TopologyLevel> levels;
  std::string parent = gang.spec.parent;
  for (int depth = 0; !parent.empty() && depth < 8; ++depth) {
    const GangId up = state.find_gang(parent);
    if (!up.valid()) break;
    const auto& above = state.gang(up).spec.topology;
    levels.insert(levels.begin(), above.begin(), above.end());
    parent = state.gang(up).spec.parent;
  }
  levels.insert(levels.end(), gang.spec.topology.begin(), gang.spec.topology.end());
  return levels;
}

std::set<std::string> pinned_values(const State& state, GangId group, const std::string& key) {
  std::set<std::string> values;
  for (const GangId leaf : state.leaves_of(group)) {
    for (const PodId p : state.gang(leaf).pods) {
      const PodState& pod = state.pod(p);
      const NodeId at = pod.phase == PodPhase::kBound ? pod.node : pod.nominated;
      if (!at.valid()) continue;
      const std::string* value = find_label(state.node(at).spec.labels, key);
      if (value != nullptr) values.insert(*value);
    }
  }
  return values;
}

std::vector<NodeId> nodes_left_to(const State& state, GangId id) {
  std::vector<NodeId> nodes;
  for (std::uint32_t n = 0; n < state.node_count(); ++n) {
    if (state.node(NodeId(n)).live) nodes.push_back(NodeId(n));
  }
  for (GangId up = state.parent_of(id); up.valid(); up = state.parent_of(up)) {
    for (const auto& level : state.gang(up).spec.topology) {
      const std::set<std::string> values = pinned_values(state, up, level.key);
      if (values.empty() || !level.required) continue;
      std::erase_if(nodes, [&](NodeId n) {
        const std::string* value = find_label(state.node(n).spec.labels, level.key);
        return value == nullptr || !values.contains(*value);
      });
    }
    if (up == state.root_of(id)) break;
  }
  return nodes;
}

}  // namespace muster::engine
