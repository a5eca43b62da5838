// Why groups and pods still wait at the end of a session. Volcano's own word for it is one line per
// node; here it is the engine's refusal with numbers, told when it changed.
#include <algorithm>

#include "engine/state/fit.h"
#include "engine/volcano/session.h"

namespace muster::engine::volcano {

namespace {

std::int64_t units(const State& state, std::size_t i, Wide amount) {
  const bool milli =
      i == ResourceNames::kCpu || i == ResourceNames::kMemory || i == ResourceNames::kDevice;
  const Wide inner = amount / (milli ? 1000 : 1'000'000);
  return static_cast<std::int64_t>(inner / state.names().factor(i));
}

}  // namespace

/// In the first dimension of `request` that does not fit beside `used` under `limit`.
bool Session::over_limit(const Amounts& used,
                         const Amounts& limit,
                         const Amounts& request,
                         Refusal& refusal) const {
  for (std::size_t i = 0; i < dims_; ++i) {
    if (!compared(i) || request[i] <= 0 || less_equal(used[i] + request[i], limit[i])) continue;
    const Wide left = std::max<Wide>(limit[i] - used[i], 0);
    refusal.shortages.push_back({state_.names().name(i),
                                 units(state_, i, request[i]),
                                 units(state_, i, left),
                                 units(state_, i, limit[i])});
    return true;
  }
  return false;
}

Refusal Session::refused_by_queue(const Job& job, const Amounts& request, bool admission) const {
  Refusal r;
  r.queue = state_.tenant(queues_[job.queue].tenant).name;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p.kind != Kind::kProportion && p.kind != Kind::kCapacity) continue;
      if (state_.tenant(queues_[job.queue].tenant).spec.state != QueueState::kOpen) {
        r.reason = Reason::kQueueNotOpen;
        return r;
      }
      std::vector<QueueIx> chain = {job.queue};
      if (p.kind == Kind::kCapacity && p.config->hierarchy) {
        chain.insert(
            chain.end(), queues_[job.queue].ancestors.begin(), queues_[job.queue].ancestors.end());
      }
      for (const QueueIx q : chain) {
        const QueueAttr& attr = queues_[q];
        const bool share = p.kind == Kind::kProportion && !admission;
        const Amounts used =
            admission ? attr.allocated + attr.inqueue - attr.elastic : attr.allocated;
        if (!over_limit(used, share ? attr.deserved : attr.real, request, r)) continue;
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
    over_limit(overcommit_inqueue_, overcommit_idle_, request, r);
  }
  return r;
}

/// Counts the nodes by what each lacks for the task.
Refusal Session::refused_by_nodes(const Job& job, TaskIx task) const {
  Refusal r;
  r.reason = Reason::kNoNodeFits;
  r.nodes_total = static_cast<std::int32_t>(state_.live_nodes());
  r.members_wanted = std::max(job.min_member - ready_tasks(job), 1);
  std::map<std::string, std::int32_t> causes;
  const PodId pod = tasks_[task].pod;
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

Refusal Session::refusal_of(JobIx j, TaskIx task) const {
  const Job& job = jobs_[j];
  Refusal r;
  if (!job_valid(j)) {
    r.reason = Reason::kNotEnoughMembers;
    r.members_wanted = job.min_member;
    for (const TaskIx t : job.tasks)
      r.members_found +=
          tasks_[t].status != Status::kReleasing && tasks_[t].status != Status::kFailed ? 1 : 0;
    return r;
  }
  if (job.phase == GroupPhase::kPending && job.has_min_resources)
    return refused_by_queue(job, job.min_resources, true);
  if (job.phase == GroupPhase::kPending) return refused_by_queue(job, tasks_[task].request, true);
  if (tasks_[task].status == Status::kPipelined && tasks_[task].eviction) {
    r.reason = Reason::kWaitingForVictims;
    return r;
  }
  r = refused_by_queue(job, tasks_[task].request, false);
  return r.reason != Reason::kNone ? r : refused_by_nodes(job, task);
}

void Session::tell(const std::string& group, const std::string& pod, Refusal refusal) {
  const std::string& key = group.empty() ? pod : group;
  still_waiting_.insert(key);
  auto [it, fresh] = memory_.told.try_emplace(key);
  if (!fresh && it->second.refusal.same_story(refusal)) return;
  it->second = {group.empty(), refusal};
  plan_.waits.push_back({group, pod, std::move(refusal)});
}

void Session::tell_waits() {
  std::int32_t told = 0;
  for (JobIx j = 0; j < jobs_.size() && told < state_.config().reason_limit; ++j) {
    const Job& job = jobs_[j];
    const GangState& gang = state_.gang(job.gang);
    const bool whole = ready_tasks(job) + pending_best_effort(job) >= job.min_member;
    for (const TaskIx t : job.tasks) {
      const bool waits = tasks_[t].status == Status::kPending ||
                         tasks_[t].status == Status::kPipelined ||
                         tasks_[t].status == Status::kAllocated;
      if (!waits || state_.pod(tasks_[t].pod).gated || !state_.pod(tasks_[t].pod).ours) continue;
      ++told;
      // A gang below its minimum has one story; what a running one has in surplus is told pod by
      // pod.
      if (gang.has_group && !whole) {
        tell(gang.key, "", refusal_of(j, t));
        break;
      }
      tell("", state_.pod(tasks_[t].pod).key, refusal_of(j, t));
    }
  }
  for (auto it = memory_.told.begin(); it != memory_.told.end();) {
    if (still_waiting_.contains(it->first)) {
      ++it;
      continue;
    }
    plan_.waits.push_back(
        {it->second.is_pod ? "" : it->first, it->second.is_pod ? it->first : "", Refusal{}});
    it = memory_.told.erase(it);
  }
}

}  // namespace muster::engine::volcano
