/// The scheduler's part of /metrics, of `muster up` and `muster run` alike. docs/metrics.md lists
/// every name; a test compares.
#pragma once

#include "base/prometheus.h"
#include "scheduler/scheduler.h"

namespace muster::scheduler {

void add_metrics(prometheus::Page& page, const Scheduler& scheduler);

}  // namespace muster::scheduler
