/// Job traces and clusters for the simulator, read from text.
///
/// Job tables (CSV with a header line) are recognised by their columns; `user` may stand among them:
///   job_id,submit_s,vc,gpus,duration_s                        Philly: a job of more GPUs than a
///   node has becomes a gang of whole nodes name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,…
///   openb: single tasks, shares of one GPU included
///   name,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib   Muster's own: `gpus`,
///   `cpu` and memory are one task's
/// Node tables likewise: `sn,cpu_milli,memory_mib,gpu,model`, `node,gpu_model,gpus,cpus`, or `64x8`
/// for 64 nodes of 8 GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/model/model.h"

namespace muster::sim {

struct Job {
  std::int64_t id = 0;  // of the trace's own, or its place among the rows
  std::string name;
  std::string queue;
  std::string user;  // empty: not known
  std::string stem;  // what it has in common with its owner's like jobs; empty: not known
  std::int32_t priority = 0;
  Duration submit{};  // from the start of the trace
  Duration duration{};
  std::int32_t tasks = 1;
  std::int64_t gpus = 0;       // of one task, whole
  std::int32_t gpu_milli = 0;  // or a share of one GPU
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::vector<std::string> models;

  [[nodiscard]] std::int64_t gpus_total() const { return gpus * tasks + (gpu_milli > 0 ? 1 : 0); }
  [[nodiscard]] std::int64_t gpu_milli_total() const { return tasks * (gpus * 1000 + gpu_milli); }
};

struct TraceOptions {
  std::int64_t gpus_a_node = 8;  // Philly: where a job is cut into nodes
  Duration from{};               // only jobs submitted in [from, to); to zero: all
  Duration to{};
  std::int64_t limit = 0;  // only the first so many
  double speed = 1;        // arrival times divided by this
};

/// From then on the virtual cluster has so many GPUs.
struct QuotaChange {
  Duration at{};
  std::string queue;
  std::int64_t gpus = 0;
};

/// Sizes of virtual clusters: `vc,nodes` for sizes that never change, or `date,VC,VC,…,total` with
/// a line a day, the first at the start of the trace. Sorted by time.
Result<std::vector<QuotaChange>> parse_quotas(std::string_view csv, const TraceOptions& options);

/// Sorted by submit time.
Result<std::vector<Job>> parse_jobs(std::string_view csv, const TraceOptions& options);
Result<std::vector<engine::Node>> parse_nodes(std::string_view text);

}  // namespace muster::sim
