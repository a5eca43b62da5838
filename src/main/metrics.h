/// What `muster run` says on /metrics, in Prometheus' text format. docs/metrics.md lists every
/// name; a test compares.
#pragma once

#include <string>

#include "scheduler/scheduler.h"

namespace muster {

struct MetricsInput {
  bool leader = false;
  const scheduler::Scheduler* scheduler = nullptr;  // null: this replica does not lead
};

std::string format_metrics(const MetricsInput& input);

}  // namespace muster
