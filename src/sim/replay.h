/// A trace through the very engine that runs clusters, on a virtual clock: jobs arrive, start when the engine binds
/// all of their tasks, and end after their duration. A preempted job goes back to the queue with its submission time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/config.h"
#include "engine/model.h"
#include "sim/trace.h"

namespace muster::sim {

/// What is compared: the engine's settings and what it is told.
struct Policy {
  std::string name;
  engine::Config engine;
  engine::BackfillMode backfill = engine::BackfillMode::kReservation;
  bool durations_known = true;  // the engine sees each job's duration
  bool resume = false;          // a preempted job keeps its progress (it checkpoints)
  bool tenants = false;         // each queue of the trace is a queue of the engine; otherwise one queue for all
};

/// "fifo", "skip", "backfill", "backfill-unknown", "spread", "fragmentation".
Result<Policy> named_policy(std::string_view name);
std::vector<std::string> policy_names();

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
  std::int64_t gpus_stranded = 0;  // free GPUs on nodes that are partly used
};

struct Outcome {
  std::string policy;
  std::vector<JobResult> jobs;  // as in the trace
  std::vector<Sample> samples;
  std::int64_t gpus_total = 0;
  std::int64_t evictions = 0;
  std::int64_t decisions = 0;
  Duration makespan{};
};

struct Summary {
  std::string policy;
  std::int64_t jobs = 0, started = 0, evictions = 0;
  double mean_wait_s = 0, p50_wait_s = 0, p99_wait_s = 0, mean_wait_big_s = 0, mean_jct_s = 0, makespan_s = 0, utilisation = 0;
};
Summary summarize(const Outcome& outcome);

/// `progress` is called now and then with the share done, 0..1.
Outcome replay(const std::vector<Job>& jobs, const std::vector<engine::Node>& nodes, const Policy& policy, const std::function<void(double)>& progress);

}  // namespace muster::sim
