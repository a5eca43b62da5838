/// A trace through HiveD's cells on a virtual clock: each queue of the trace is a virtual cluster
/// of the configuration.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/cells/config.h"
#include "sim/replay.h"
#include "sim/trace.h"

namespace muster::sim {

/// Policies: "skip" (HiveD's: whatever fits goes) and "fifo" (nobody passes the first of his
/// virtual cluster). Errors: a job's queue is no virtual cluster, or the configuration is refused.
Result<Outcome> replay_cells(const std::vector<Job>& jobs,
                             const engine::cells::Config& config,
                             const Policy& policy,
                             const std::function<void(double)>& progress);

}  // namespace muster::sim
