#include <algorithm>

#include "engine/volcano/actions/actions.h"
#include "engine/volcano/actions/jobs.h"

namespace muster::engine::volcano {

namespace {

void let_in(Session& session, Job& job) {
  Snapshot& snapshot = session.snapshot();
  job.phase = GroupPhase::kInqueue;
  if (!job.has_min_resources) return;
  const Amounts admitted = exceeded(job.min_resources, job.gated);
  for (const QueueIx q : snapshot.chain(job.queue, snapshot.tree))
    snapshot.queues[q].inqueue += admitted;
  for (const auto& tier : session.ask().tiers()) {
    for (const auto& plugin : tier) plugin->enqueued(admitted);
  }
}

}  // namespace

/// A refused group does not block those behind it.
void enqueue(Session& session) {
  auto& jobs = session.snapshot().jobs;
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> waiting(session.snapshot().queues.size());
  for (JobIx j = 0; j < jobs.size(); ++j) {
    const QueueIx q = jobs[j].queue;
    if (std::find(queues.begin(), queues.end(), q) == queues.end()) queues.push_back(q);
    if (jobs[j].phase == GroupPhase::kPending) waiting[q].push_back(j);
  }
  while (!queues.empty()) {
    const QueueIx q = pop_queue(session, queues);
    if (waiting[q].empty()) continue;
    const JobIx j = pop_job(session, waiting[q]);
    if (!jobs[j].has_min_resources || session.ask().job_enqueueable(j)) let_in(session, jobs[j]);
    queues.push_back(q);
  }
}

}  // namespace muster::engine::volcano
