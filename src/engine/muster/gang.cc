#include "engine/muster/gang.h"

#include <algorithm>
#include <functional>

#include "engine/state/match.h"

namespace muster::engine {

namespace {

/// The roles' minimums count only where together they do not ask for more than the gang's.
bool roles_count(const GangState& gang) {
  std::int32_t total = 0;
  for (const auto& [role, n] : gang.spec->min_task_member) total += n;
  return !gang.spec->min_task_member.empty() && gang.spec->min_member >= total;
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
  if (exist < gang.spec->min_member) return refuse(gang.spec->min_member, exist);
  if (!roles_count(gang)) return false;
  for (const auto& [role, n] : gang.spec->min_task_member) {
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
  need.total = std::max(0, gang.spec->min_member - gang.bound - gang.succeeded);
  if (!roles_count(gang)) return need;
  std::int32_t sum = 0;
  for (const auto& [role, n] : gang.spec->min_task_member) {
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
  if (!gang.has_group && !gang.described) {
    refusal.reason = Reason::kGroupMissing;
    refusal.subject = gang.key;
    return refusal;
  }
  if (gang.spec->is_parent) return refusal;
  if (gang.spec->hold) {
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
  if (!gang.spec->parent.empty() && !state.find_gang(gang.spec->parent).valid()) {
    refusal.reason = Reason::kParentMissing;
    refusal.subject = gang.spec->parent;
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
  if (gang.spec->preemption_policy == PreemptionPolicy::kNever) return true;
  const auto waits = std::find_if(gang.pods.begin(), gang.pods.end(), [&](PodId p) {
    return state.pod(p).phase == PodPhase::kPending;
  });
  return waits != gang.pods.end() &&
         state.pod(*waits).preemption_policy == PreemptionPolicy::kNever;
}

namespace {

/// What is assumed of work that declares nothing: of those like it that lasted longer than it has run,
/// so many in a thousand are over by then. Chosen on `bench/engine/run backfill-philly`: gaps are filled
/// in the order of the middle, a reservation is passed by what most are over in time for, and it is
/// made for the time at which the first of those that run may well be gone, so that little passes it.
constexpr std::int32_t kWaitingPermille = 500;
constexpr std::int32_t kPassingPermille = 800;
constexpr std::int32_t kRunningPermille = 50;

/// Declared by the gang or by all of its pods; zero: not.
std::int64_t declared_us(const State& state, const GangState& gang) {
  if (gang.spec->expected_duration.count() > 0) return gang.spec->expected_duration.count();
  std::int64_t longest = 0;
  for (const PodId p : gang.pods) {
    const std::int64_t us = state.pod(p).expected_duration.count();
    if (us == 0) return 0;
    longest = std::max(longest, us);
  }
  return longest;
}

/// The same for runs with everything in common; never zero.
std::uint64_t key_of(const RunKind& kind) {
  std::uint64_t key = 1;
  for (const std::uint64_t part : {kind.user, kind.stem, kind.team, kind.shape})
    key = (key ^ part) * 0x9e3779b97f4a7c15ULL + (key >> 29);
  return std::max<std::uint64_t>(key, 1);
}

/// When limits end it at the latest, from now; kUnknown: never.
std::int64_t limit_us(const State& state, const GangState& gang, Time now) {
  std::int64_t left = 0;
  for (const PodId p : gang.pods) {
    const PodState& pod = state.pod(p);
    const Time latest = state.latest_end(gang.tenant, pod.created);
    std::int64_t us =
        latest == kNever ? History::kUnknown : std::max<std::int64_t>((latest - now).count(), 1);
    if (pod.limit.count() > 0) us = std::min<std::int64_t>(us, pod.limit.count());
    if (us == History::kUnknown) return us;
    left = std::max(left, us);
  }
  return left > 0 ? left : History::kUnknown;
}

}  // namespace

Expected expected_duration(const State& state, Time now, GangId id) {
  const GangState& gang = state.gang(id);
  Expected out;
  out.us = declared_us(state, gang);
  out.sure = out.us > 0;
  if (out.sure) {
    out.at_most_us = out.us;
  } else {
    const RunKind kind = state.kind_of(gang);
    out.kind = key_of(kind);
    out.us = History::kUnknown;
    if (state.history().taught() > 0) {
      const History::Longer like = state.history().longer_than(kind, 0);
      out.us = like.quantile(kWaitingPermille);
      out.at_most_us = like.quantile(kPassingPermille);
    }
  }
  // Pods of a certain age are ended, whatever they had in mind; the youngest is the last to go.
  const std::int64_t limit = limit_us(state, gang, now);
  if (limit <= out.at_most_us && limit != History::kUnknown) {
    out.at_most_us = limit;
    if (limit < out.us) {
      out.us = limit;
      out.kind = 0;
    }
    out.sure = true;
  }
  return out;
}

/// No limit is below what is expected and above what most take, so the lower of the two it is.
std::int64_t expected_us(const State& state, Time now, GangId id) {
  const GangState& gang = state.gang(id);
  std::int64_t us = declared_us(state, gang);
  if (us == 0) {
    us = state.history().taught() > 0
             ? state.history().estimate(state.kind_of(gang), 0, kWaitingPermille)
             : History::kUnknown;
  }
  return std::min(us, limit_us(state, gang, now));
}

namespace {

/// When a running gang ends by what others like it took that lasted longer than it has; kNever when
/// there are none. Worked out once a decision.
const Desk::Foretold& foretold_end(Desk& desk, GangId id) {
  static const Desk::Foretold kNothing{0, kNever, kNever, kNever};
  const State& state = desk.state;
  const History& history = state.history();
  if (history.taught() == 0) return kNothing;
  if (desk.foretold.size() <= id.index()) desk.foretold.resize(state.gang_count());
  Desk::Foretold& known = desk.foretold[id.index()];
  if (known.epoch == state.epoch) return known;
  known = {state.epoch, kNever, kNever, kNever};
  const GangState& gang = state.gang(id);
  const std::int64_t age = std::max<std::int64_t>((desk.now - gang.started).count(), 0);
  const History::Longer longer = history.longer_than(state.kind_of(gang), age);
  if (longer.runs.empty()) return known;
  known.early = gang.started + Duration(longer.quantile(kRunningPermille));
  known.late = gang.started + Duration(longer.quantile(kPassingPermille));
  // It outlasts the shortest of them then.
  known.same_until = gang.started + Duration(longer.runs.front());
  return known;
}

}  // namespace

End end_of(Desk& desk, const PodState& pod, Ends ends) {
  const State& state = desk.state;
  const Time now = desk.now;
  if (pod.phase == PodPhase::kBound && pod.ends != kNever && pod.ends > now)
    return {pod.ends, pod.ends};
  const Time at_once(now.us + 1);
  if (pod.phase == PodPhase::kReleasing) {
    if (pod.leaves) return {pod.leaves};
    return {now + std::chrono::seconds(30), at_once};
  }
  const GangState& gang = state.gang(pod.gang);
  // Nothing was declared, or it was not true: those like it tell.
  const Desk::Foretold& foretold = foretold_end(desk, pod.gang);
  End end{ends == Ends::kEarly ? foretold.early : foretold.late, foretold.same_until, true};
  end.estimated = end.at != kNever;
  end.by_kind_alone = pod.expected_duration.count() <= 0 && pod.limit.count() <= 0 &&
                      gang.spec->expected_duration.count() <= 0 &&
                      state.latest_end(gang.tenant, pod.created) == kNever;
  if (!end.estimated) {
    const Duration declared =
        pod.expected_duration.count() > 0 ? pod.expected_duration : gang.spec->expected_duration;
    if (declared.count() > 0) end.at = pod.started + declared;
  }
  end.at = std::min(end.at, state.latest_end(gang.tenant, pod.created));
  if (pod.limit.count() > 0) end.at = std::min(end.at, pod.started + pod.limit);
  if (end.at <= now) {
    // Late already: it will take about as long again as it is late.
    end.at = now + Duration(std::max<std::int64_t>((now - end.at).count(), 60'000'000));
    end.same_until = at_once;
  } else {
    end.same_until = std::min(end.same_until, end.at);
  }
  return end;
}

End estimated_end(const Desk& desk, Time started, const History::Levels& levels) {
  const std::int64_t age = std::max<std::int64_t>((desk.now - started).count(), 0);
  const History::Longer longer = desk.state->history().longer_than(levels, age);
  if (longer.runs.empty()) return {.at = kNever, .asked = true};
  // Later than now, since all of them lasted longer than this one has.
  const Time at = started + Duration(longer.quantile(kRunningPermille));
  const Time outlasts_one = started + Duration(longer.runs.front());
  return {.at = at, .same_until = std::min(outlasts_one, at), .asked = true, .estimated = true};
}

Time expected_end(Desk& desk, const PodState& pod, Ends ends) {
  const End end = end_of(desk, pod, ends);
  desk.estimated |= end.estimated;
  return end.at;
}

bool group_runs(const State& state, GangId id) {
  const GangState& gang = state.gang(id);
  if (!gang.spec->is_parent) return gang.bound > 0 && need_of(state, gang).total == 0;
  std::int32_t running = 0;
  for (const GangId child : state.children_of(gang.key))
    running += group_runs(state, child) ? 1 : 0;
  return running >= std::max(1, gang.spec->min_groups);
}

bool family_short(const State& state, GangId id, const std::vector<GangId>& starting) {
  if (need_of(state, state.gang(id)).total == 0) return false;
  const GangId root = state.root_of(id);
  const std::function<bool(GangId)> starts = [&](GangId g) {
    const GangState& gang = state.gang(g);
    if (!gang.spec->is_parent)
      return group_runs(state, g) ||
             std::find(starting.begin(), starting.end(), g) != starting.end();
    std::int32_t n = 0;
    for (const GangId child : state.children_of(gang.key)) n += starts(child) ? 1 : 0;
    return n >= std::max(1, gang.spec->min_groups);
  };
  return !starts(root);
}

std::vector<TopologyLevel> levels_of(const State& state, const GangState& gang) {
  std::vector<TopologyLevel> levels;
  std::string parent = gang.spec->parent;
  for (int depth = 0; !parent.empty() && depth < 8; ++depth) {
    const GangId up = state.find_gang(parent);
    if (!up.valid()) break;
    const auto& above = state.gang(up).spec->topology;
    levels.insert(levels.begin(), above.begin(), above.end());
    parent = state.gang(up).spec->parent;
  }
  levels.insert(levels.end(), gang.spec->topology.begin(), gang.spec->topology.end());
  return levels;
}

std::set<std::string> pinned_values(const State& state, GangId group, const std::string& key) {
  std::set<std::string> values;
  for (const GangId leaf : state.leaves_of(group)) {
    for (const PodId p : state.gang(leaf).pods) {
      const PodState& pod = state.pod(p);
      const NodeId at = pod.phase == PodPhase::kBound ? pod.node : pod.nominated;
      if (!at.valid()) continue;
      const std::string* value = find_label(state.node(at).spec->labels, key);
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
    for (const auto& level : state.gang(up).spec->topology) {
      const std::set<std::string> values = pinned_values(state, up, level.key);
      if (values.empty() || !level.required) continue;
      std::erase_if(nodes, [&](NodeId n) {
        const std::string* value = find_label(state.node(n).spec->labels, level.key);
        return value == nullptr || !values.contains(*value);
      });
    }
    if (up == state.root_of(id)) break;
  }
  return nodes;
}

}  // namespace muster::engine
