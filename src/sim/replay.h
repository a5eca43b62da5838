/// A trace through the very engine that runs clusters, on a virtual clock: jobs arrive, start when
/// the engine binds all of their tasks, and end after their duration. A preempted job goes back to
/// the queue with its submission time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/model/cell_config.h"
#include "engine/model/model.h"
#include "sim/policy.h"
#include "sim/trace.h"

namespace muster::sim {

struct JobResult {
  Duration submit{}, start{}, end{};
  std::int64_t gpus = 0;
  std::string queue;
  std::int32_t evictions = 0;
  bool started = false;
};

/// The cluster over time, sampled when it changes.
struct Sample {
  Duration at{};
  std::int64_t gpu_milli_used = 0;
  std::int64_t jobs_waiting = 0;
  std::int64_t gpus_stranded = 0;      // free GPUs on nodes that are partly used
  std::int64_t gpus_free = 0;          // wholly free ones
  std::vector<std::int64_t> by_queue;  // GPU milli of each of Outcome::queues
};

struct Outcome {
  std::string policy;
  std::vector<JobResult> jobs;  // as in the trace
  std::vector<Sample> samples;
  std::vector<std::string> queues;  // of the trace, in order of first sight
  std::int64_t gpus_total = 0;
  std::int64_t evictions = 0;
  std::int64_t decisions = 0;
  Duration makespan{};
};

struct Summary {
  std::string policy;
  std::int64_t jobs = 0, started = 0, evictions = 0;
  double mean_wait_s = 0, p50_wait_s = 0, p99_wait_s = 0, mean_wait_big_s = 0, mean_jct_s = 0,
         makespan_s = 0, utilisation = 0;
  double fragmentation = 0;  // share of the free GPUs that stand on partly used nodes, over time
};
Summary summarize(const Outcome& outcome);

/// `quotas` are the sizes of virtual clusters over time, for policies with tenants. `progress` is
/// called now and then with the share done, 0..1.
Outcome replay(const std::vector<Job>& jobs,
               const std::vector<engine::Node>& nodes,
               const Policy& policy,
               const std::function<void(double)>& progress,
               const std::vector<QuotaChange>& quotas = {});

/// The same with HiveD's cells instead of nodes: each queue of the trace is a virtual cluster of the
/// configuration. Errors: a job's queue is none, or the configuration is wrong.
Result<Outcome> replay_cells(const std::vector<Job>& jobs,
                             const engine::cells::Config& config,
                             const Policy& policy,
                             const std::function<void(double)>& progress);

}  // namespace muster::sim
