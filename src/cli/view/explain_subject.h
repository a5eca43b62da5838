/// What `explain` is asked about, read from the cluster with all that belongs to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/view/explain_ends.h"
#include "cli/view/fetch.h"
#include "cli/view/job.h"

namespace muster::cli {

/// What the command is asked about: a training job, another workload, or a pod.
struct Subject {
  SnapshotPtr snapshot;           // where a job's objects live
  json::Value object;             // where a pod or another workload does
  std::vector<json::Value> pods;  // of that workload
  Job job;
};

/// Asked right after `submit`, the answer is a moment away: it is awaited, though not for long.
Task<Result<std::unique_ptr<Subject>>> fetch_answered(Session& session,
                                                      std::string name,
                                                      std::string type);

/// The last lines of what containers that crashed had to say.
Task<void> read_last_lines(Session& session, std::string ns, std::vector<Crash>& crashes);

/// Everyone who may hold what a waiting job wants: the jobs, and the pods that belong to none.
struct Others {
  SnapshotPtr snapshot;
  std::vector<Job> pods;
};

Task<Others> fetch_others(Session& session);

}  // namespace muster::cli
