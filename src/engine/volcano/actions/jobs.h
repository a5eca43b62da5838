/// Jobs of a session by queue, in the order in which actions take them.
#pragma once

#include <functional>
#include <vector>

#include "engine/volcano/session.h"

namespace muster::engine::volcano {

/// The queues that have jobs an action cares for, and these jobs.
struct JobsByQueue {
  /// In order of their first job.
  std::vector<QueueIx> queues;
  /// By queue.
  std::vector<std::vector<JobIx>> jobs;

  explicit JobsByQueue(const Session& session) : jobs(session.snapshot().queues.size()) {}
  void add(QueueIx queue, JobIx job) {
    if (jobs[queue].empty()) queues.push_back(queue);
    jobs[queue].push_back(job);
  }
};

[[nodiscard]] inline QueueIx pop_queue(const Session& session, std::vector<QueueIx>& queues) {
  return pop_best(queues, [&](QueueIx a, QueueIx b) { return session.ask().queue_before(a, b); });
}

[[nodiscard]] inline JobIx pop_job(const Session& session, std::vector<JobIx>& jobs) {
  return pop_best(jobs, [&](JobIx a, JobIx b) { return session.ask().job_before(a, b); });
}

/// Those that have been let in, may start and have too little room.
[[nodiscard]] inline JobsByQueue starving_jobs(const Session& session,
                                               const std::function<bool(JobIx)>& wanted) {
  JobsByQueue out(session);
  const auto& jobs = session.snapshot().jobs;
  for (JobIx j = 0; j < jobs.size(); ++j) {
    if (jobs[j].phase == GroupPhase::kPending || !session.ask().job_valid(j) ||
        !session.ask().job_starving(j))
      continue;
    if (wanted(j)) out.add(jobs[j].queue, j);
  }
  return out;
}

}  // namespace muster::engine::volcano
