#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/volcano/actions/actions.h"
#include "engine/volcano/actions/jobs.h"
#include "engine/volcano/statement.h"

namespace muster::engine::volcano {

namespace {

class Preempt {
 public:
  explicit Preempt(Session& session) : session_(session), snapshot_(session.snapshot()) {}

  void run();

 private:
  /// Of the victims on one node, in kube-scheduler's order of choice: the priority of the most
  /// important, the sum of priorities, their number, and (negated) when the first of the most
  /// important started.
  using Cost = std::tuple<std::int64_t, std::int64_t, std::size_t, std::int64_t>;

  void between_jobs(std::vector<JobIx> preemptors);
  void inside_job(JobIx job);
  bool make_room(TaskIx preemptor, bool same_job, Statement& statement);
  bool make_room_choosing(TaskIx preemptor, bool same_job, Statement& statement);
  [[nodiscard]] std::optional<std::vector<TaskIx>> least_victims(TaskIx preemptor,
                                                                 NodeId node,
                                                                 bool same_job);
  [[nodiscard]] Cost cost_of(const std::vector<TaskIx>& victims) const;
  [[nodiscard]] std::int64_t priority_of(TaskIx task) const;
  [[nodiscard]] std::vector<TaskIx> candidates(TaskIx preemptor, NodeId node, bool same_job) const;
  [[nodiscard]] bool may_preempt(TaskIx preemptor) const;
  [[nodiscard]] bool in_vain(TaskIx preemptor, const Statement& statement) const;
  [[nodiscard]] bool fits_there(TaskIx preemptor, NodeId node) const;

  Session& session_;
  Snapshot& snapshot_;
};

void Preempt::run() {
  JobsByQueue work = starving_jobs(session_, [&](JobIx j) {
    return snapshot_.state.gang(snapshot_.jobs[j].gang).spec->topology.empty();
  });
  while (!work.queues.empty()) {
    const QueueIx q = pop_queue(session_, work.queues);
    between_jobs(work.jobs[q]);
    for (const JobIx j : work.jobs[q]) inside_job(j);
  }
}

void Preempt::between_jobs(std::vector<JobIx> preemptors) {
  std::vector<std::vector<TaskIx>> pending(snapshot_.jobs.size());
  for (const JobIx j : preemptors) pending[j] = session_.ask().pending_tasks(j);
  while (!preemptors.empty()) {
    const JobIx j = pop_job(session_, preemptors);
    Statement statement(session_);
    while (session_.ask().job_starving(j) && !pending[j].empty()) {
      const TaskIx t = pending[j].front();
      pending[j].erase(pending[j].begin());
      make_room(t, false, statement);
    }
    statement.commit_evictions(j, EvictKind::kPreempt);
  }
}

void Preempt::inside_job(JobIx j) {
  for (const TaskIx t : session_.ask().pending_tasks(j)) {
    Statement statement(session_);
    if (!make_room(t, true, statement)) return;
    if (session_.allocate_follows() && !statement.begins_with_eviction()) {
      statement.discard();  // Free already: left to allocate.
      return;
    }
    statement.commit(j, EvictKind::kPreempt);
  }
}

/// Not with policy Never, nor while the node it was nominated to is still being freed.
bool Preempt::may_preempt(TaskIx preemptor) const {
  const PodState& pod = snapshot_.pod_of(preemptor);
  if (pod.preemption_policy == PreemptionPolicy::kNever) return false;
  if (pod.nominated_hint->empty()) return true;
  const NodeId node = snapshot_.state.find_node(*pod.nominated_hint);
  if (!node.valid()) return true;
  const auto& there = snapshot_.rooms[node.index()].tasks;
  return std::none_of(there.begin(), there.end(), [&](TaskIx t) {
    return snapshot_.pod_of(t).phase == PodPhase::kReleasing &&
           snapshot_.pod_of(t).priority < pod.priority;
  });
}

/// Those on the node who might go for it.
std::vector<TaskIx> Preempt::candidates(TaskIx preemptor, NodeId node, bool same_job) const {
  std::vector<TaskIx> out;
  for (const TaskIx t : snapshot_.rooms[node.index()].tasks) {
    const PodState& other = snapshot_.pod_of(t);
    if (snapshot_.tasks[t].status != Status::kRunning || !other.preemptable || !other.ours)
      continue;
    if (snapshot_.best_effort(preemptor) && !snapshot_.best_effort(t)) continue;
    const bool in_job = snapshot_.tasks[t].job == snapshot_.tasks[preemptor].job;
    const bool in_queue = snapshot_.queue_of(t) == snapshot_.queue_of(preemptor);
    if (same_job ? in_job : !in_job && in_queue) out.push_back(t);
  }
  return out;
}

/// One who has evicted before, and lost the room, does not evict once more for the same end: a
/// victim who, being evicted, comes before it would have the room back at once, and so on for ever.
bool Preempt::in_vain(TaskIx preemptor, const Statement& statement) const {
  if (snapshot_.pod_of(preemptor).nominated_hint->empty()) return false;
  const JobIx job = snapshot_.tasks[preemptor].job;
  const auto evicted = statement.evicted();
  return std::any_of(evicted.begin(), evicted.end(), [&](TaskIx t) {
    const JobIx other = snapshot_.tasks[t].job;
    return other == job ? session_.ask().task_before(t, preemptor)
                        : session_.ask().job_before(other, job);
  });
}

bool Preempt::fits_there(TaskIx preemptor, NodeId node) const {
  return session_.ask().allocatable(preemptor) &&
         fits(snapshot_.tasks[preemptor].request, snapshot_.rooms[node.index()].future()) &&
         session_.ask().predicate(preemptor, node, false);
}

/// On success the evictions and the task's new place are added to the statement; otherwise nothing
/// is changed.
bool Preempt::make_room(TaskIx preemptor, bool same_job, Statement& statement) {
  if (!may_preempt(preemptor)) return false;
  if (session_.action_flag("preempt", "enableTopologyAwarePreemption", false))
    return make_room_choosing(preemptor, same_job, statement);
  std::vector<NodeId> nodes;
  for (const NodeId n : snapshot_.nodes) {
    if (session_.ask().predicate(preemptor, n, true)) nodes.push_back(n);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
    return session_.ask().score(preemptor, a) > session_.ask().score(preemptor, b);
  });
  for (const NodeId n : nodes) {
    const std::vector<TaskIx> chosen =
        session_.ask().victims(preemptor, candidates(preemptor, n, same_job), false);
    Amounts after = snapshot_.rooms[n.index()].future();
    for (const TaskIx t : chosen) after += snapshot_.tasks[t].request;
    if (!fits(snapshot_.tasks[preemptor].request, after)) continue;
    Statement here(session_);
    bool there = fits_there(preemptor, n);
    for (const TaskIx victim : session_.ask().sort_victims(chosen, preemptor)) {
      if (there) break;
      here.evict(victim);
      there = fits_there(preemptor, n);
    }
    if (!there || in_vain(preemptor, here)) {
      here.discard();
      continue;
    }
    here.pipeline(preemptor, n, !here.evicted().empty());
    statement.take(here);
    return true;
  }
  return false;
}

std::int64_t Preempt::priority_of(TaskIx t) const {
  return snapshot_.state.rank_priority(snapshot_.pod_of(t));
}

Preempt::Cost Preempt::cost_of(const std::vector<TaskIx>& victims) const {
  Cost cost{std::numeric_limits<std::int64_t>::min(), 0, victims.size(), 0};
  std::int64_t first_start = std::numeric_limits<std::int64_t>::max();
  for (const TaskIx t : victims) {
    std::get<0>(cost) = std::max(std::get<0>(cost), priority_of(t));
    std::get<1>(cost) += priority_of(t) + std::numeric_limits<std::int32_t>::max();
    if (priority_of(t) == priority_of(victims.front()))
      first_start = std::min(first_start, snapshot_.pod_of(t).started.us);
  }
  std::get<3>(cost) = -first_start;
  return cost;
}

/// All who may go are taken away, then as many as possible are let stay, the most important first.
/// Nothing: the task does not fit there.
std::optional<std::vector<TaskIx>> Preempt::least_victims(TaskIx preemptor,
                                                          NodeId node,
                                                          bool same_job) {
  std::vector<TaskIx> chosen =
      session_.ask().victims(preemptor, candidates(preemptor, node, same_job), false);
  std::stable_sort(chosen.begin(), chosen.end(), [&](TaskIx a, TaskIx b) {
    if (priority_of(a) != priority_of(b)) return priority_of(a) > priority_of(b);
    return snapshot_.pod_of(a).started < snapshot_.pod_of(b).started;
  });
  Statement here(session_);
  for (const TaskIx t : chosen) here.evict(t);
  if (!fits_there(preemptor, node) || in_vain(preemptor, here)) {
    here.discard();
    return std::nullopt;
  }
  std::vector<TaskIx> out;
  for (const TaskIx t : chosen) {
    here.spare(t);
    if (fits_there(preemptor, node)) continue;
    here.evict(t);
    out.push_back(t);
  }
  here.discard();
  return out;
}

/// enableTopologyAwarePreemption: of the nodes the one whose most important victim is the least so,
/// then the least sum of priorities, then the fewest victims, then the one whose victims started
/// last (kube-scheduler's choice).
bool Preempt::make_room_choosing(TaskIx preemptor, bool same_job, Statement& statement) {
  std::optional<Cost> best;
  NodeId best_node;
  std::vector<TaskIx> best_victims;
  for (const NodeId n : snapshot_.nodes) {
    if (!session_.ask().predicate(preemptor, n, true)) continue;
    auto victims = least_victims(preemptor, n, same_job);
    if (!victims) continue;
    const Cost cost = cost_of(*victims);
    if (best && *best <= cost) continue;
    best = cost;
    best_node = n;
    best_victims = std::move(*victims);
    if (best_victims.empty()) break;
  }
  if (!best) return false;
  for (const TaskIx t : best_victims) statement.evict(t);
  statement.pipeline(preemptor, best_node, !best_victims.empty());
  return true;
}

}  // namespace

void preempt(Session& session) { Preempt(session).run(); }

}  // namespace muster::engine::volcano
