/// Reads jobs and what belongs to them from the cluster, few requests at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/shell/session.h"
#include "cli/view/job.h"
#include "cli/view/members.h"
#include "cli/view/reads.h"

namespace muster::cli {

/// The objects and the jobs computed from them. Jobs point into the objects, so it never moves.
struct Snapshot {
  Snapshot() = default;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  json::Block block;  // what the values below live in

  struct Found {
    const Trainer* trainer = nullptr;
    json::Value object;
  };
  std::vector<Found> objects;
  std::vector<json::Value> pods, launcher_jobs, services, nodes;
  std::vector<Job> jobs;
};
using SnapshotPtr = std::unique_ptr<Snapshot>;

struct JobsQuery {
  std::string ns;    // empty: all
  std::string type;  // canonical; empty: all
  Detail detail = Detail::kRow;
};
/// Newest first.
Task<Result<SnapshotPtr>> fetch_jobs(Session& session, JobsQuery query);

/// Exactly one job; NotFound when there is none, Conflict when several types have it.
Task<Result<SnapshotPtr>> fetch_job(Session& session, std::string name, std::string type);
/// The job's object alone, with its trainer.
Task<Result<Snapshot::Found>> fetch_job_object(Session& session,
                                               std::string name,
                                               std::string type);

/// The type of a --type flag: canonical, empty when not given, or an error that names the supported
/// ones.
Result<std::string> type_flag(const Session& session, const Values& values);

/// Events of the namespace about these objects (by uid), oldest first.
Task<Result<std::vector<json::Value>>> fetch_events(Session& session,
                                                    std::string ns,
                                                    std::vector<std::string> uids);

}  // namespace muster::cli
