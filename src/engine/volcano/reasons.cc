#include "engine/volcano/reasons.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/state/fit.h"

namespace muster::engine::volcano {

namespace {

std::int64_t units(const State& state, std::size_t i, Wide amount) {
  const bool milli =
      i == ResourceNames::kCpu || i == ResourceNames::kMemory || i == ResourceNames::kDevice;
  const Wide inner = amount / (milli ? 1000 : 1'000'000);
  return static_cast<std::int64_t>(inner / state.names().factor(i));
}

}  // namespace

/// In the first dimension of `request` that does not fit beside what is taken under the limit.
bool Reasons::over_limit(const Filling& filling, const Amounts& request, Refusal& refusal) const {
  for (std::size_t i = 0; i < snapshot_.dims; ++i) {
    const Wide taken = filling.taken[i];
    const Wide limit = filling.limit[i];
    if (!compared(i) || request[i] <= 0 || less_equal(taken + request[i], limit)) continue;
    refusal.shortages.push_back({state_.names().name(i),
                                 units(state_, i, request[i]),
                                 units(state_, i, std::max<Wide>(limit - taken, 0)),
                                 units(state_, i, limit)});
    return true;
  }
  return false;
}

Refusal Reasons::refused_by_queue(const Job& job, const Amounts& request, bool admission) const {
  Refusal r;
  r.queue = state_.tenant(snapshot_.queues[job.queue].tenant).name;
  Filling cluster;
  for (const auto& tier : session_.ask().tiers()) {
    for (const auto& p : tier) {
      if (const auto filling = p->admission()) cluster = *filling;
      for (const QueueIx q : p->limiting(job.queue)) {
        if (!snapshot_.queue_open(job.queue)) {
          r.reason = Reason::kQueueNotOpen;
          return r;
        }
        const QueueAttr& attr = snapshot_.queues[q];
        const bool share = p->limits_to_deserved() && !admission;
        Filling filling{attr.allocated, share ? attr.deserved : attr.real};
        if (admission) filling.taken += attr.inqueue - attr.elastic;
        if (!over_limit(filling, request, r)) continue;
        r.reason = admission ? Reason::kNotAdmitted
                   : share   ? Reason::kTenantOverDeserved
                             : Reason::kTenantOverLimit;
        r.queue = state_.tenant(attr.tenant).name;
        return r;
      }
    }
  }
  if (admission) {
    r.reason = Reason::kNotAdmitted;
    over_limit(cluster, request, r);
  }
  return r;
}

/// Counts the nodes by what each lacks for the task.
Refusal Reasons::refused_by_nodes(const Job& job, TaskIx task) const {
  Refusal r;
  r.reason = Reason::kNoNodeFits;
  r.nodes_total = static_cast<std::int32_t>(state_.live_nodes());
  r.members_wanted = std::max(job.min_member - job.ready_tasks(), 1);
  std::map<std::string, std::int32_t> causes;
  const PodId pod = snapshot_.tasks[task].pod;
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    if (!state_.node(NodeId(n)).live) continue;
    const Misfit misfit = fit(state_, pod, NodeId(n));
    if (misfit.ok()) {
      r.members_found +=
          fit_count(state_, state_.cls_of(pod), state_.node(NodeId(n)), r.members_wanted);
    } else {
      ++causes[misfit_text(state_, state_.pod(pod).cls, NodeId(n), misfit)];
    }
  }
  r.members_found = std::min(r.members_found, r.members_wanted);
  for (const auto& [text, n] : causes) r.by_cause.push_back({text, n});
  return r;
}

Refusal Reasons::refusal_of(JobIx j, TaskIx task) const {
  const Job& job = snapshot_.jobs[j];
  Refusal r;
  if (!session_.ask().job_valid(j)) {
    r.reason = Reason::kNotEnoughMembers;
    r.members_wanted = job.min_member;
    for (const TaskIx t : job.tasks)
      r.members_found += snapshot_.tasks[t].status != Status::kReleasing &&
                                 snapshot_.tasks[t].status != Status::kFailed
                             ? 1
                             : 0;
    return r;
  }
  if (job.phase == GroupPhase::kPending && job.has_min_resources)
    return refused_by_queue(job, job.min_resources, true);
  if (job.phase == GroupPhase::kPending)
    return refused_by_queue(job, snapshot_.tasks[task].request, true);
  if (snapshot_.tasks[task].status == Status::kPipelined && snapshot_.tasks[task].eviction) {
    r.reason = Reason::kWaitingForVictims;
    return r;
  }
  r = refused_by_queue(job, snapshot_.tasks[task].request, false);
  return r.reason != Reason::kNone ? r : refused_by_nodes(job, task);
}

void Reasons::tell(const std::string& group, const std::string& pod, Refusal refusal) {
  const std::string& key = group.empty() ? pod : group;
  still_waiting_.insert(key);
  auto [it, fresh] = memory_.told.try_emplace(key);
  if (!fresh && it->second.refusal.same_story(refusal)) return;
  it->second = {group.empty(), refusal};
  session_.plan().waits.push_back({group, pod, std::move(refusal)});
}

void Reasons::tell_waits() {
  std::int32_t told = 0;
  for (JobIx j = 0; j < snapshot_.jobs.size() && told < state_.config().reason_limit; ++j) {
    const Job& job = snapshot_.jobs[j];
    const GangState& gang = state_.gang(job.gang);
    const bool whole = job.ready_tasks() + snapshot_.pending_best_effort(job) >= job.min_member;
    for (const TaskIx t : job.tasks) {
      const bool waits = snapshot_.tasks[t].status == Status::kPending ||
                         snapshot_.tasks[t].status == Status::kPipelined ||
                         snapshot_.tasks[t].status == Status::kAllocated;
      if (!waits || snapshot_.pod_of(t).gated || !snapshot_.pod_of(t).ours) continue;
      ++told;
      // A gang below its minimum has one story; what a running one has in surplus is told pod by
      // pod.
      if (gang.has_group && !whole) {
        tell(gang.key, "", refusal_of(j, t));
        break;
      }
      tell("", snapshot_.pod_of(t).key, refusal_of(j, t));
    }
  }
  for (auto it = memory_.told.begin(); it != memory_.told.end();) {
    if (still_waiting_.contains(it->first)) {
      ++it;
      continue;
    }
    session_.plan().waits.push_back(
        {it->second.is_pod ? "" : it->first, it->second.is_pod ? it->first : "", Refusal{}});
    it = memory_.told.erase(it);
  }
}

}  // namespace muster::engine::volcano
