// Volcano's actions, in its own order of steps.
#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "engine/volcano/session.h"

namespace muster::engine::volcano {

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
  if (job.min_member >= static_cast<std::int32_t>(job.tasks.size())) return false;
  if (job.min_member < job.role_min_total) {
    std::int32_t left = 0;
    for (const TaskIx t : job.tasks) {
      left += tasks_[t].status == Status::kPending &&
                      !job.failed_roles.contains(state_.pod(tasks_[t].pod).role)
                  ? 1
                  : 0;
    }
    return ready_tasks(job) + left >= job.min_member;
  }
  std::map<std::string, std::int32_t> have;
  for (const TaskIx t : job.tasks) {
    const Status s = tasks_[t].status;
    const bool counts = s == Status::kAllocated || s == Status::kBinding || s == Status::kRunning ||
                        s == Status::kSucceeded ||
                        (s == Status::kPending && best_effort(tasks_[t]));
    if (counts) ++have[state_.pod(tasks_[t].pod).role];
  }
  for (const auto& role : job.failed_roles) {
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
    pending[j] = pending_tasks(j);
    std::erase_if(pending[j], [&](TaskIx t) { return best_effort(tasks_[t]); });
  }
  while (!queues.empty()) {
    const QueueIx q = pop_best(queues, [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
    if (overused(q) || jobs[q].empty()) continue;
    const JobIx j = pop_best(jobs[q], [&](JobIx a, JobIx b) { return job_before(a, b); });
    if (!pending[j].empty()) allocate_job(j, pending[j], jobs[q]);
    queues.push_back(q);
  }
}

/// One attempt: as many tasks as it takes to be ready. What is left waits for its turn behind the
/// others.
void Session::allocate_job(JobIx j, std::vector<TaskIx>& pending, std::vector<JobIx>& jobs) {
  ++state_.attempts;
  if (!state_.gang(jobs_[j].gang).spec.topology.empty() && !choose_domain(j, pending)) return;
  std::vector<Op> ops;
  const Outcome outcome = try_tasks(j, pending, ops);
  within_.reset();
  if (outcome == Outcome::kReady) {
    commit(ops, j, EvictKind::kPreempt);
    if (!pending.empty()) jobs.push_back(j);
  } else if (outcome == Outcome::kNothing) {
    discard(ops);
  }
}

Session::Outcome Session::try_tasks(JobIx j, std::vector<TaskIx>& pending, std::vector<Op>& ops) {
  Job& job = jobs_[j];
  const bool error_cache = action_flag("allocate", "predicateErrorCacheEnable", true);
  while (!pending.empty()) {
    const TaskIx t = pending.front();
    pending.erase(pending.begin());
    if (!allocatable(job.queue, t)) continue;
    const std::string& role = state_.pod(tasks_[t].pod).role;
    if (!role.empty() && error_cache && job.failed_roles.contains(role)) continue;
    bool idle = false;
    const NodeId node = best_node(t, false, idle);
    if (!node.valid()) {
      job.failed_roles.insert(role);
      if (need_continue(job)) continue;
      break;
    }
    if (idle) {
      do_allocate(t, node, ops);
    } else {
      do_pipeline(t, node, false, ops);
    }
    if (job_ready(j)) break;
  }
  if (job_ready(j)) return Outcome::kReady;
  return job_pipelined(j) ? Outcome::kHeld : Outcome::kNothing;
}

/// Pending tasks that may be placed, in task order.
std::vector<TaskIx> Session::pending_tasks(JobIx j) const {
  std::vector<TaskIx> tasks;
  for (const TaskIx t : jobs_[j].tasks) {
    const PodState& pod = state_.pod(tasks_[t].pod);
    if (tasks_[t].status == Status::kPending && !pod.gated && pod.ours) tasks.push_back(t);
  }
  std::stable_sort(
      tasks.begin(), tasks.end(), [&](TaskIx a, TaskIx b) { return task_before(a, b); });
  return tasks;
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
  // stable_sort, which bears it that paths of different lengths form circles.
  std::stable_sort(
      queues.begin(), queues.end(), [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
  for (const QueueIx q : queues) {
    std::sort(jobs[q].begin(), jobs[q].end(), [&](JobIx a, JobIx b) { return job_before(a, b); });
    for (const JobIx j : jobs[q]) {
      std::vector<TaskIx> tasks = pending_tasks(j);
      std::erase_if(tasks, [&](TaskIx t) { return !best_effort(tasks_[t]); });
      // Pipelined by an earlier action: they need not wait for anything.
      for (const TaskIx t : jobs_[j].tasks) {
        if (tasks_[t].status != Status::kPipelined || !best_effort(tasks_[t])) continue;
        std::vector<Op> undo = {{Op::What::kPipeline, t}};
        discard(undo);
        tasks.push_back(t);
      }
      std::sort(tasks.begin(), tasks.end(), [&](TaskIx a, TaskIx b) { return task_before(a, b); });
      std::vector<Op> ops;
      for (const TaskIx t : tasks) {
        bool idle = false;
        const NodeId node = best_node(t, true, idle);
        if (node.valid()) do_allocate(t, node, ops);
      }
      if (job_ready(j)) {
        commit(ops, j, EvictKind::kPreempt);
      } else {
        discard(ops);
      }
    }
  }
}

/// Room for starving groups at the cost of others in the same queue; then inside each group.
void Session::preempt() {
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> starving(queues_.size());
  std::vector<std::vector<TaskIx>> pending(jobs_.size());
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    if (jobs_[j].phase == GroupPhase::kPending || !job_valid(j) || !job_starving(j)) continue;
    if (!state_.gang(jobs_[j].gang).spec.topology.empty()) continue;
    const QueueIx q = jobs_[j].queue;
    if (starving[q].empty()) queues.push_back(q);
    starving[q].push_back(j);
    pending[j] = pending_tasks(j);
  }
  while (!queues.empty()) {
    const QueueIx q = pop_best(queues, [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
    std::vector<JobIx> preemptors = starving[q];
    while (!preemptors.empty()) {
      const JobIx j = pop_best(preemptors, [&](JobIx a, JobIx b) { return job_before(a, b); });
      std::vector<Op> ops;
      while (job_starving(j) && !pending[j].empty()) {
        const TaskIx t = pending[j].front();
        pending[j].erase(pending[j].begin());
        preempt_for(t, false, ops);
      }
      commit_evictions(ops, j, EvictKind::kPreempt);
    }
    for (const JobIx j : starving[q]) {
      for (const TaskIx t : pending_tasks(j)) {
        std::vector<Op> ops;
        if (!preempt_for(t, true, ops)) break;
        if (allocate_follows_ && ops.front().what != Op::What::kEvict) {
          discard(ops);  // Free already: left to allocate.
          break;
        }
        commit(ops, j, EvictKind::kPreempt);
      }
    }
  }
}

/// Not with policy Never, nor while the node it was nominated to is still being freed.
bool Session::may_preempt(TaskIx preemptor) const {
  const PodState& pod = state_.pod(tasks_[preemptor].pod);
  if (pod.preemption_policy == PreemptionPolicy::kNever) return false;
  if (pod.nominated_hint.empty()) return true;
  const NodeId node = state_.find_node(pod.nominated_hint);
  if (!node.valid()) return true;
  return std::none_of(
      rooms_[node.index()].tasks.begin(), rooms_[node.index()].tasks.end(), [&](TaskIx t) {
        return state_.pod(tasks_[t].pod).phase == PodPhase::kReleasing &&
               state_.pod(tasks_[t].pod).priority < pod.priority;
      });
}

/// Those on the node who might go for it.
std::vector<TaskIx> Session::preemptees(TaskIx preemptor, NodeId node, bool same_job) const {
  std::vector<TaskIx> candidates;
  for (const TaskIx t : rooms_[node.index()].tasks) {
    const PodState& other = state_.pod(tasks_[t].pod);
    if (tasks_[t].status != Status::kRunning || !other.preemptable || !other.ours) continue;
    if (best_effort(tasks_[preemptor]) && !best_effort(tasks_[t])) continue;
    const bool in_job = tasks_[t].job == tasks_[preemptor].job;
    if (same_job ? !in_job
                 : in_job || jobs_[tasks_[t].job].queue != jobs_[tasks_[preemptor].job].queue)
      continue;
    candidates.push_back(t);
  }
  return candidates;
}

/// One who has evicted before, and lost the room, does not evict once more for the same end: a
/// victim who, being evicted, comes before it would have the room back at once, and so on for ever.
bool Session::in_vain(TaskIx preemptor, const std::vector<Op>& evictions) const {
  if (state_.pod(tasks_[preemptor].pod).nominated_hint.empty()) return false;
  const JobIx job = tasks_[preemptor].job;
  return std::any_of(evictions.begin(), evictions.end(), [&](const Op& op) {
    const JobIx other = tasks_[op.task].job;
    return other == job ? task_before(op.task, preemptor) : job_before(other, job);
  });
}

bool Session::fits_there(TaskIx preemptor, NodeId node) const {
  return allocatable(jobs_[tasks_[preemptor].job].queue, preemptor) &&
         fits(tasks_[preemptor].request, rooms_[node.index()].future()) &&
         predicate(preemptor, node, false);
}

/// On success the evictions and the task's new place are added to `ops`; otherwise nothing is
/// changed.
bool Session::preempt_for(TaskIx preemptor, bool same_job, std::vector<Op>& ops) {
  if (!may_preempt(preemptor)) return false;
  if (action_flag("preempt", "enableTopologyAwarePreemption", false))
    return preempt_choosing(preemptor, same_job, ops);
  const Amounts request = tasks_[preemptor].request;
  std::vector<NodeId> nodes;
  for (const NodeId n : nodes_) {
    if (predicate(preemptor, n, true)) nodes.push_back(n);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
    return score(preemptor, a) > score(preemptor, b);
  });
  for (const NodeId n : nodes) {
    const std::vector<TaskIx> chosen =
        victims(preemptor, preemptees(preemptor, n, same_job), false);
    Amounts after = rooms_[n.index()].future();
    for (const TaskIx t : chosen) after += tasks_[t].request;
    if (!fits(request, after)) continue;
    std::vector<Op> here;
    bool there = fits_there(preemptor, n);
    for (const TaskIx victim : sort_victims(chosen, preemptor)) {
      if (there) break;
      do_evict(victim, here);
      there = fits_there(preemptor, n);
    }
    if (!there || in_vain(preemptor, here)) {
      discard(here);
      continue;
    }
    do_pipeline(preemptor, n, !here.empty(), here);
    ops.insert(ops.end(), here.begin(), here.end());
    return true;
  }
  return false;
}

/// enableTopologyAwarePreemption: on every node all who may go are taken away, then as many as
/// possible are let stay, the most important first. Of the nodes the one whose most important
/// victim is the least so, then the least sum of priorities, then the fewest victims, then the one
/// whose victims started last (kube-scheduler's choice).
bool Session::preempt_choosing(TaskIx preemptor, bool same_job, std::vector<Op>& ops) {
  const auto priority_of = [&](TaskIx t) {
    return static_cast<std::int64_t>(state_.rank_priority(state_.pod(tasks_[t].pod)));
  };
  using Cost = std::tuple<std::int64_t, std::int64_t, std::size_t, std::int64_t>;
  std::optional<Cost> best;
  NodeId best_node;
  std::vector<TaskIx> best_victims;
  for (const NodeId n : nodes_) {
    if (!predicate(preemptor, n, true)) continue;
    std::vector<TaskIx> chosen = victims(preemptor, preemptees(preemptor, n, same_job), false);
    std::stable_sort(chosen.begin(), chosen.end(), [&](TaskIx a, TaskIx b) {
      if (priority_of(a) != priority_of(b)) return priority_of(a) > priority_of(b);
      return state_.pod(tasks_[a].pod).started < state_.pod(tasks_[b].pod).started;
    });
    std::vector<Op> here;
    for (const TaskIx t : chosen) do_evict(t, here);
    if (!fits_there(preemptor, n) || in_vain(preemptor, here)) {
      discard(here);
      continue;
    }
    std::vector<TaskIx> stay_out;
    for (const TaskIx t : chosen) {
      std::vector<Op> undo = {{Op::What::kEvict, t}};
      discard(undo);
      std::erase_if(here, [&](const Op& op) { return op.task == t; });
      if (fits_there(preemptor, n)) continue;
      do_evict(t, here);
      stay_out.push_back(t);
    }
    discard(here);
    Cost cost{std::numeric_limits<std::int64_t>::min(), 0, stay_out.size(), 0};
    std::int64_t first_start = std::numeric_limits<std::int64_t>::max();
    for (const TaskIx t : stay_out) {
      std::get<0>(cost) = std::max(std::get<0>(cost), priority_of(t));
      std::get<1>(cost) += priority_of(t) + std::numeric_limits<std::int32_t>::max();
      if (priority_of(t) == priority_of(stay_out.front()))
        first_start = std::min(first_start, state_.pod(tasks_[t].pod).started.us);
    }
    std::get<3>(cost) = -first_start;
    if (best && *best <= cost) continue;
    best = cost;
    best_node = n;
    best_victims = stay_out;
    if (stay_out.empty()) break;
  }
  if (!best) return false;
  for (const TaskIx t : best_victims) do_evict(t, ops);
  do_pipeline(preemptor, best_node, !best_victims.empty(), ops);
  return true;
}

/// Room for starving groups of queues below their due, at the cost of other queues.
void Session::reclaim() {
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> starving(queues_.size());
  std::vector<std::vector<TaskIx>> pending(jobs_.size());
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    const Job& job = jobs_[j];
    if (job.phase == GroupPhase::kPending || !job_valid(j) || !job_starving(j)) continue;
    if (starving[job.queue].empty()) queues.push_back(job.queue);
    starving[job.queue].push_back(j);
    pending[j] = pending_tasks(j);
  }
  while (!queues.empty()) {
    const QueueIx q = pop_best(queues, [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
    if (overused(q)) continue;
    while (!starving[q].empty()) {
      const JobIx j = pop_best(starving[q], [&](JobIx a, JobIx b) { return job_before(a, b); });
      std::vector<Op> ops;
      while (job_starving(j) && !pending[j].empty()) {
        const TaskIx t = pending[j].front();
        pending[j].erase(pending[j].begin());
        if (state_.pod(tasks_[t].pod).preemption_policy == PreemptionPolicy::kNever) continue;
        if (preemptive(q, tasks_[t].request)) reclaim_for(t, ops);
      }
      commit_evictions(ops, j, EvictKind::kReclaim);
    }
  }
}

/// What was found for a starving group stands if the whole group has its room. If nobody had to go
/// for it and allocate is still to come, the room is left to allocate, which sees waiting tasks
/// only: held here it would be held in every session.
void Session::commit_evictions(std::vector<Op>& ops, JobIx j, EvictKind kind) {
  const bool evicts =
      std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.what == Op::What::kEvict; });
  if ((evicts || !allocate_follows_) && job_pipelined(j)) {
    commit(ops, j, kind);
  } else {
    discard(ops);
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
    Amounts available = rooms_[n.index()].future();
    Amounts after = available;
    for (const TaskIx t : chosen) after += tasks_[t].request;
    if (!fits(request, after)) continue;
    bool evicts = false;
    for (const TaskIx victim : sort_victims(chosen, task)) {
      if (fits(request, available)) break;
      do_evict(victim, ops);
      available += tasks_[victim].request;
      evicts = true;
    }
    do_pipeline(task, n, evicts, ops);
    return true;
  }
  return false;
}

}  // namespace muster::engine::volcano
