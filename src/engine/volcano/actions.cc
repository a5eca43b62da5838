// Volcano's actions, in its own order of steps.
#include <algorithm>
#include <set>

#include "engine/volcano/session.h"

namespace muster::engine::volcano {

namespace {

/// Removes and returns the least element by `before`.
template <typename T, typename Before>
T pop_best(std::vector<T>& items, Before before) {
  auto best = items.begin();
  for (auto it = std::next(items.begin()); it != items.end(); ++it) {
    if (before(*it, *best)) best = it;
  }
  const T out = *best;
  items.erase(best);
  return out;
}

}  // namespace

/// Which Pending groups become Inqueue. A refused one does not block those behind it.
void Session::enqueue() {
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> waiting(queues_.size());
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    const QueueIx q = jobs_[j].queue;
    if (std::find(queues.begin(), queues.end(), q) == queues.end()) queues.push_back(q);
    if (jobs_[j].phase == GroupPhase::kPending) waiting[q].push_back(j);
  }
  while (!queues.empty()) {
    const QueueIx q = pop_best(queues, [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
    if (waiting[q].empty()) continue;
    const JobIx j = pop_best(waiting[q], [&](JobIx a, JobIx b) { return job_before(a, b); });
    Job& job = jobs_[j];
    if (!job.has_min_resources || job_enqueueable(j)) {
      job.phase = GroupPhase::kInqueue;
      if (job.has_min_resources) {
        const Amounts admitted = exceeded(job.min_resources, job.gated);
        queues_[q].inqueue += admitted;
        overcommit_inqueue_ += admitted;
        if (tree_) {
          for (const QueueIx up : queues_[q].ancestors) queues_[up].inqueue += admitted;
        }
      }
    }
    queues.push_back(q);
  }
}

/// After one member of a role found no node: is it worth trying the rest?
bool Session::need_continue(const Job& job) const {
  if (job.min_member == static_cast<std::int32_t>(job.tasks.size())) return false;
  if (job.min_member < job.role_min_total) {
    std::int32_t left = 0;
    for (const TaskIx t : job.tasks) {
      left += tasks_[t].status == Status::kPending && !job.failed_roles.contains(state_.pod(tasks_[t].pod).role) ? 1 : 0;
    }
    return ready_tasks(job) + left >= job.min_member;
  }
  std::map<std::string, std::int32_t> have;
  for (const TaskIx t : job.tasks) {
    const Status s = tasks_[t].status;
    const bool counts = s == Status::kAllocated || s == Status::kBinding || s == Status::kRunning || s == Status::kSucceeded ||
                        (s == Status::kPending && best_effort(tasks_[t]));
    if (counts) ++have[state_.pod(tasks_[t].pod).role];
  }
  for (const auto& [role, _] : job.failed_roles) {
    const auto it = job.role_min.find(role);
    if (it != job.role_min.end() && have[role] < it->second) return false;
  }
  return true;
}

void Session::allocate() {
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> jobs(queues_.size());
  std::vector<std::vector<TaskIx>> pending(jobs_.size());
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    Job& job = jobs_[j];
    if (job.phase == GroupPhase::kPending) {
      if (has_enqueue_) continue;
      job.phase = GroupPhase::kInqueue;
    }
    if (!job_valid(j) || state_.gang(job.gang).spec.hold) continue;
    if (jobs[job.queue].empty()) queues.push_back(job.queue);
    jobs[job.queue].push_back(j);
    for (const TaskIx t : job.tasks) {
      const PodState& pod = state_.pod(tasks_[t].pod);
      if (tasks_[t].status == Status::kPending && !pod.gated && pod.ours && !best_effort(tasks_[t])) pending[j].push_back(t);
    }
    std::sort(pending[j].begin(), pending[j].end(), [&](TaskIx a, TaskIx b) { return task_before(a, b); });
  }
  while (!queues.empty()) {
    const QueueIx q = pop_best(queues, [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
    if (overused(q) || jobs[q].empty()) continue;
    const JobIx j = pop_best(jobs[q], [&](JobIx a, JobIx b) { return job_before(a, b); });
    if (!pending[j].empty()) allocate_job(j, pending[j], jobs[q]);
    queues.push_back(q);
  }
}

void Session::allocate_job(JobIx j, std::vector<TaskIx>& pending, std::vector<JobIx>& jobs) {
  Job& job = jobs_[j];
  std::vector<Op> ops;
  job.failed_roles.clear();
  while (!pending.empty()) {
    const TaskIx t = pending.front();
    pending.erase(pending.begin());
    if (!allocatable(job.queue, t)) continue;
    const std::string& role = state_.pod(tasks_[t].pod).role;
    if (!role.empty() && job.failed_roles.contains(role)) continue;
    bool idle = false;
    const NodeId node = best_node(t, false, idle);
    if (!node.valid()) {
      ++job.failed_roles[role];
      if (need_continue(job)) continue;
      break;
    }
    if (idle) {
      do_allocate(t, node, ops);
    } else {
      do_pipeline(t, node, false, ops);
    }
    if (job_ready(j) && !pending.empty()) {
      jobs.push_back(j);
      break;
    }
  }
  if (job_ready(j)) {
    commit(ops, j, EvictKind::kPreempt);
  } else if (!job_pipelined(j)) {
    discard(ops);
  }
}

/// Best-effort pods only; needs nothing but a pod slot.
void Session::backfill() {
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> jobs(queues_.size());
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    if (jobs_[j].phase == GroupPhase::kPending || !job_valid(j)) continue;
    if (jobs[jobs_[j].queue].empty()) queues.push_back(jobs_[j].queue);
    jobs[jobs_[j].queue].push_back(j);
  }
  std::sort(queues.begin(), queues.end(), [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
  for (const QueueIx q : queues) {
    std::sort(jobs[q].begin(), jobs[q].end(), [&](JobIx a, JobIx b) { return job_before(a, b); });
    for (const JobIx j : jobs[q]) {
      std::vector<TaskIx> tasks;
      for (const TaskIx t : jobs_[j].tasks) {
        const PodState& pod = state_.pod(tasks_[t].pod);
        if (tasks_[t].status == Status::kPending && !pod.gated && pod.ours && best_effort(tasks_[t])) tasks.push_back(t);
      }
      std::sort(tasks.begin(), tasks.end(), [&](TaskIx a, TaskIx b) { return task_before(a, b); });
      std::vector<Op> ops;
      for (const TaskIx t : tasks) {
        bool idle = false;
        const NodeId node = best_node(t, true, idle);
        if (node.valid()) do_allocate(t, node, ops);
      }
      // Those of a group that is not whole stay where they are for this cycle only.
      if (job_ready(j)) commit(ops, j, EvictKind::kPreempt);
    }
  }
}

void Session::preempt() {
  std::vector<JobIx> starving;
  std::vector<QueueIx> queues;
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    if (jobs_[j].phase == GroupPhase::kPending || !job_valid(j)) continue;
    if (!state_.gang(jobs_[j].gang).spec.topology.empty()) continue;
    const QueueIx q = jobs_[j].queue;
    if (std::find(queues.begin(), queues.end(), q) == queues.end()) queues.push_back(q);
    if (job_starving(j)) starving.push_back(j);
  }
  const auto pending_of = [&](JobIx j) {
    std::vector<TaskIx> tasks;
    for (const TaskIx t : jobs_[j].tasks) {
      const PodState& pod = state_.pod(tasks_[t].pod);
      if (tasks_[t].status == Status::kPending && !pod.gated && pod.ours) tasks.push_back(t);
    }
    std::sort(tasks.begin(), tasks.end(), [&](TaskIx a, TaskIx b) { return task_before(a, b); });
    return tasks;
  };
  std::sort(queues.begin(), queues.end(), [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
  std::vector<std::vector<TaskIx>> pending(jobs_.size());
  for (const JobIx j : starving) pending[j] = pending_of(j);
  for (const QueueIx q : queues) {
    std::vector<JobIx> preemptors;
    for (const JobIx j : starving) {
      if (jobs_[j].queue == q) preemptors.push_back(j);
    }
    while (!preemptors.empty()) {
      const JobIx j = pop_best(preemptors, [&](JobIx a, JobIx b) { return job_before(a, b); });
      std::vector<Op> ops;
      bool assigned = false;
      while (job_starving(j) && !pending[j].empty()) {
        const TaskIx t = pending[j].front();
        pending[j].erase(pending[j].begin());
        assigned = preempt_for(t, false, ops);
      }
      if (!job_pipelined(j)) {
        discard(ops);
        continue;
      }
      commit(ops, j, EvictKind::kPreempt);
      if (assigned) preemptors.push_back(j);
    }
    for (const JobIx j : starving) {
      for (const TaskIx t : pending_of(j)) {
        std::vector<Op> ops;
        const bool assigned = preempt_for(t, true, ops);
        commit(ops, j, EvictKind::kPreempt);
        if (!assigned) break;
      }
    }
  }
}

bool Session::preempt_for(TaskIx preemptor, bool same_job, std::vector<Op>& ops) {
  const PodState& pod = state_.pod(tasks_[preemptor].pod);
  if (pod.preemption_policy == PreemptionPolicy::kNever) return false;
  const QueueIx q = jobs_[tasks_[preemptor].job].queue;
  const Amounts request = tasks_[preemptor].request;
  std::vector<NodeId> nodes;
  for (const NodeId n : nodes_) {
    if (predicate(preemptor, n, true)) nodes.push_back(n);
  }
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
    const std::int64_t x = score(preemptor, a);
    const std::int64_t y = score(preemptor, b);
    return x != y ? x > y : a < b;
  });
  const auto fits = [&](NodeId n) {
    return allocatable(q, preemptor) && requested_less_equal(request, rooms_[n.index()].future(), request) &&
           predicate(preemptor, n, false);
  };
  for (const NodeId n : nodes) {
    std::vector<TaskIx> candidates;
    for (const TaskIx t : rooms_[n.index()].tasks) {
      const PodState& other = state_.pod(tasks_[t].pod);
      if (tasks_[t].status != Status::kRunning || !other.preemptable || !other.ours) continue;
      if (best_effort(tasks_[preemptor]) && !best_effort(tasks_[t])) continue;
      const bool in_job = tasks_[t].job == tasks_[preemptor].job;
      if (same_job ? !in_job : in_job || jobs_[tasks_[t].job].queue != q) continue;
      candidates.push_back(t);
    }
    const std::vector<TaskIx> chosen = victims(preemptor, candidates, false);
    Amounts after = rooms_[n.index()].future();
    for (const TaskIx t : chosen) after += tasks_[t].request;
    if (!requested_less_equal(request, after, request)) continue;
    bool evicted = false;
    for (const TaskIx victim : sort_victims(chosen, preemptor)) {
      if (fits(n)) break;
      do_evict(victim, ops);
      evicted = true;
    }
    if (fits(n)) {
      do_pipeline(preemptor, n, evicted, ops);
      return true;
    }
  }
  return false;
}

void Session::reclaim() {
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> starving(queues_.size());
  std::vector<std::vector<TaskIx>> pending(jobs_.size());
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    const Job& job = jobs_[j];
    if (job.phase == GroupPhase::kPending || !job_valid(j)) continue;
    if (std::find(queues.begin(), queues.end(), job.queue) == queues.end()) queues.push_back(job.queue);
    if (!job_starving(j)) continue;
    starving[job.queue].push_back(j);
    for (const TaskIx t : job.tasks) {
      const PodState& pod = state_.pod(tasks_[t].pod);
      if (tasks_[t].status == Status::kPending && !pod.gated && pod.ours) pending[j].push_back(t);
    }
    std::sort(pending[j].begin(), pending[j].end(), [&](TaskIx a, TaskIx b) { return task_before(a, b); });
  }
  while (!queues.empty()) {
    const QueueIx q = pop_best(queues, [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
    if (overused(q) || starving[q].empty()) continue;
    const JobIx j = pop_best(starving[q], [&](JobIx a, JobIx b) { return job_before(a, b); });
    std::vector<Op> ops;
    while (job_starving(j) && !pending[j].empty()) {
      const TaskIx t = pending[j].front();
      pending[j].erase(pending[j].begin());
      if (state_.pod(tasks_[t].pod).preemption_policy == PreemptionPolicy::kNever) continue;
      if (preemptive(q, tasks_[t].request)) reclaim_for(t, ops);
    }
    if (job_pipelined(j)) {
      commit(ops, j, EvictKind::kReclaim);
    } else {
      discard(ops);
    }
    queues.push_back(q);
  }
}

bool Session::reclaim_for(TaskIx task, std::vector<Op>& ops) {
  const QueueIx q = jobs_[tasks_[task].job].queue;
  const Amounts request = tasks_[task].request;
  for (const NodeId n : nodes_) {
    if (!predicate(task, n, true)) continue;
    std::vector<TaskIx> candidates;
    for (const TaskIx t : rooms_[n.index()].tasks) {
      const PodState& other = state_.pod(tasks_[t].pod);
      if (tasks_[t].status != Status::kRunning || !other.preemptable || !other.ours) continue;
      const QueueIx theirs = jobs_[tasks_[t].job].queue;
      if (theirs == q || !state_.tenant(queues_[theirs].tenant).spec.reclaimable) continue;
      candidates.push_back(t);
    }
    if (candidates.empty()) continue;
    const std::vector<TaskIx> chosen = victims(task, candidates, true);
    Amounts after = rooms_[n.index()].future();
    for (const TaskIx t : chosen) after += tasks_[t].request;
    if (chosen.empty() || !requested_less_equal(request, after, request)) continue;
    Amounts available = rooms_[n.index()].future();
    bool evicted = false;
    for (const TaskIx victim : sort_victims(chosen, task)) {
      if (requested_less_equal(request, available, request)) break;
      do_evict(victim, ops);
      available += tasks_[victim].request;
      evicted = true;
    }
    if (requested_less_equal(request, available, request)) {
      do_pipeline(task, n, evicted, ops);
      return true;
    }
  }
  return false;
}

void Session::gang_evict(bool across_queues) {
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> starving(queues_.size());
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    if (jobs_[j].phase == GroupPhase::kPending || !job_valid(j) || !job_starving(j)) continue;
    if (starving[jobs_[j].queue].empty()) queues.push_back(jobs_[j].queue);
    starving[jobs_[j].queue].push_back(j);
  }
  while (!queues.empty()) {
    const QueueIx q = pop_best(queues, [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
    if ((across_queues && overused(q)) || starving[q].empty()) continue;
    const JobIx j = pop_best(starving[q], [&](JobIx a, JobIx b) { return job_before(a, b); });
    gang_evict_for(j, across_queues);
    queues.push_back(q);
  }
}

/// Bundles of victims: what a group has above its minimum (safe), then the rest of it (whole). Safe ones go
/// first; then the group that would be served last. Bundles are added until the whole gang can be pipelined.
bool Session::gang_evict_for(JobIx j, bool across_queues) {
  const Job& job = jobs_[j];
  std::vector<TaskIx> pending;
  for (const TaskIx t : job.tasks) {
    const PodState& pod = state_.pod(tasks_[t].pod);
    if (tasks_[t].status == Status::kPending && !pod.gated && pod.ours) pending.push_back(t);
  }
  std::sort(pending.begin(), pending.end(), [&](TaskIx a, TaskIx b) { return task_before(a, b); });
  if (pending.empty() || state_.pod(tasks_[pending[0]].pod).preemption_policy == PreemptionPolicy::kNever) return false;
  Amounts need;
  for (const TaskIx t : pending) need += tasks_[t].request;
  if (across_queues && !preemptive(job.queue, need)) return false;

  std::vector<std::pair<bool, std::vector<TaskIx>>> bundles;  // whole?, tasks
  for (JobIx v = 0; v < jobs_.size(); ++v) {
    const Job& other = jobs_[v];
    if (v == j || (other.queue == job.queue) == across_queues) continue;
    if (across_queues && !state_.tenant(queues_[other.queue].tenant).spec.reclaimable) continue;
    if (!across_queues && state_.gang(other.gang).spec.priority >= state_.gang(job.gang).spec.priority) continue;
    std::vector<TaskIx> running;
    for (const TaskIx t : other.tasks) {
      const PodState& pod = state_.pod(tasks_[t].pod);
      if (tasks_[t].status == Status::kRunning && pod.preemptable && pod.ours && !pod.critical) running.push_back(t);
    }
    if (across_queues) {
      const std::vector<TaskIx> may = capacity_victims(pending[0], running);
      const std::set<TaskIx> in(may.begin(), may.end());
      std::erase_if(running, [&](TaskIx t) { return !in.contains(t); });
    }
    running = sort_victims(running, pending[0]);
    std::map<std::string, std::int32_t> roles;
    for (const TaskIx t : other.tasks) {
      if (tasks_[t].status == Status::kRunning) ++roles[state_.pod(tasks_[t].pod).role];
    }
    std::int32_t slack = ready_tasks(other) - other.min_member;
    std::vector<TaskIx> safe;
    std::vector<TaskIx> rest;
    for (const TaskIx t : running) {
      const std::string& role = state_.pod(tasks_[t].pod).role;
      const auto least = other.role_min.find(role);
      if (slack > 0 && (least == other.role_min.end() || roles[role] > least->second)) {
        --slack;
        --roles[role];
        safe.push_back(t);
      } else {
        rest.push_back(t);
      }
    }
    if (!safe.empty()) bundles.emplace_back(false, std::move(safe));
    if (!rest.empty()) bundles.emplace_back(true, std::move(rest));
  }
  std::sort(bundles.begin(), bundles.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return !a.first;
    const JobIx x = tasks_[a.second[0]].job;
    const JobIx y = tasks_[b.second[0]].job;
    if (x == y) return false;  // One bundle of a kind for each job.
    if (jobs_[x].queue != jobs_[y].queue) return victim_queue_before(jobs_[x].queue, jobs_[y].queue, job.queue);
    return job_before(y, x);
  });
  for (std::size_t n = 0; n <= bundles.size(); ++n) {
    std::vector<Op> ops;
    for (std::size_t i = 0; i < n; ++i) {
      for (const TaskIx t : bundles[i].second) do_evict(t, ops);
    }
    for (const TaskIx t : pending) {
      if (!job_starving(j)) break;
      if (!allocatable(job.queue, t)) continue;
      for (const NodeId node : nodes_) {
        const Amounts& request = tasks_[t].request;
        if (!requested_less_equal(request, rooms_[node.index()].future(), request) || !predicate(t, node, false)) continue;
        do_pipeline(t, node, n > 0, ops);
        break;
      }
    }
    if (job_pipelined(j) && !job_starving(j)) {
      commit(ops, j, across_queues ? EvictKind::kReclaim : EvictKind::kPreempt);
      return true;
    }
    discard(ops);
  }
  return false;
}

}  // namespace muster::engine::volcano
