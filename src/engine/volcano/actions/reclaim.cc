#include <utility>

#include "engine/volcano/actions/actions.h"
#include "engine/volcano/actions/jobs.h"
#include "engine/volcano/statement.h"

namespace muster::engine::volcano {

namespace {

/// Those on the node of other queues who might go for a task of this one.
std::vector<TaskIx> candidates(const Snapshot& snapshot, QueueIx queue, NodeId node) {
  std::vector<TaskIx> out;
  for (const TaskIx t : snapshot.rooms[node.index()].tasks) {
    const PodState& other = snapshot.pod_of(t);
    if (snapshot.tasks[t].status != Status::kRunning || !other.preemptable || !other.ours) continue;
    const QueueIx theirs = snapshot.queue_of(t);
    if (theirs == queue || !snapshot.state.tenant(snapshot.queues[theirs].tenant).spec.reclaimable)
      continue;
    out.push_back(t);
  }
  return out;
}

/// On success the evictions and the task's new place are added to the statement.
bool make_room(Session& session, TaskIx task, Statement& statement) {
  Snapshot& snapshot = session.snapshot();
  const Amounts request = snapshot.tasks[task].request;
  for (const NodeId n : snapshot.nodes) {
    if (!session.ask().predicate(task, n, true)) continue;
    std::vector<TaskIx> others = candidates(snapshot, snapshot.queue_of(task), n);
    if (others.empty()) continue;
    const std::vector<TaskIx> chosen = session.ask().victims(task, std::move(others), true);
    Amounts available = snapshot.rooms[n.index()].future();
    Amounts after = available;
    for (const TaskIx t : chosen) after += snapshot.tasks[t].request;
    if (!fits(request, after)) continue;
    bool evicts = false;
    for (const TaskIx victim : session.ask().sort_victims(chosen, task)) {
      if (fits(request, available)) break;
      statement.evict(victim);
      available += snapshot.tasks[victim].request;
      evicts = true;
    }
    statement.pipeline(task, n, evicts);
    return true;
  }
  return false;
}

}  // namespace

void reclaim(Session& session) {
  Snapshot& snapshot = session.snapshot();
  JobsByQueue work = starving_jobs(session, [](JobIx) { return true; });
  std::vector<std::vector<TaskIx>> pending(snapshot.jobs.size());
  for (const QueueIx q : work.queues) {
    for (const JobIx j : work.jobs[q]) pending[j] = session.ask().pending_tasks(j);
  }
  while (!work.queues.empty()) {
    const QueueIx q = pop_queue(session, work.queues);
    if (session.ask().overused(q)) continue;
    while (!work.jobs[q].empty()) {
      const JobIx j = pop_job(session, work.jobs[q]);
      Statement statement(session);
      while (session.ask().job_starving(j) && !pending[j].empty()) {
        const TaskIx t = pending[j].front();
        pending[j].erase(pending[j].begin());
        if (snapshot.pod_of(t).preemption_policy == PreemptionPolicy::kNever) continue;
        if (session.ask().preemptive(q, snapshot.tasks[t].request))
          (void)make_room(session, t, statement);
      }
      statement.commit_evictions(j, EvictKind::kReclaim);
    }
  }
}

}  // namespace muster::engine::volcano
