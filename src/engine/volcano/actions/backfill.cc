#include <algorithm>

#include "engine/volcano/actions/actions.h"
#include "engine/volcano/actions/jobs.h"
#include "engine/volcano/statement.h"

namespace muster::engine::volcano {

namespace {

/// The job's best-effort tasks; those that an earlier action pipelined wait again, since they need
/// not wait for anything.
std::vector<TaskIx> best_effort_tasks(Session& session, JobIx j) {
  Snapshot& snapshot = session.snapshot();
  std::vector<TaskIx> tasks = session.ask().pending_tasks(j);
  std::erase_if(tasks, [&](TaskIx t) { return !snapshot.best_effort(t); });
  for (const TaskIx t : snapshot.jobs[j].tasks) {
    if (snapshot.tasks[t].status != Status::kPipelined || !snapshot.best_effort(t)) continue;
    Statement::unpipeline(session, t);
    tasks.push_back(t);
  }
  std::sort(tasks.begin(), tasks.end(), [&](TaskIx a, TaskIx b) {
    return session.ask().task_before(a, b);
  });
  return tasks;
}

}  // namespace

/// Needs nothing but a pod slot.
void backfill(Session& session) {
  const auto& all = session.snapshot().jobs;
  JobsByQueue work(session);
  for (JobIx j = 0; j < all.size(); ++j) {
    if (all[j].phase != GroupPhase::kPending && session.ask().job_valid(j))
      work.add(all[j].queue, j);
  }
  // stable_sort, which bears it that paths of different lengths form circles.
  std::stable_sort(work.queues.begin(), work.queues.end(), [&](QueueIx a, QueueIx b) {
    return session.ask().queue_before(a, b);
  });
  for (const QueueIx q : work.queues) {
    std::vector<JobIx>& jobs = work.jobs[q];
    std::sort(
        jobs.begin(), jobs.end(), [&](JobIx a, JobIx b) { return session.ask().job_before(a, b); });
    for (const JobIx j : jobs) {
      Statement statement(session);
      for (const TaskIx t : best_effort_tasks(session, j)) {
        const BestNode best = session.ask().best_node(t, true);
        if (best.node.valid()) statement.allocate(t, best.node);
      }
      if (session.ask().job_ready(j)) {
        statement.commit(j, EvictKind::kPreempt);
      } else {
        statement.discard();
      }
    }
  }
}

}  // namespace muster::engine::volcano
