/// What the scheduler has done since it started, for metrics. Only ever counted up.
#pragma once

#include <cstdint>

#include "base/prometheus.h"

namespace muster::scheduler {

struct Counters {
  std::int64_t bound = 0;  // bindings that the API server took
  std::int64_t bind_failures = 0;
  std::int64_t evicted = 0;
  std::int64_t evict_failures = 0;
  prometheus::Histogram decide;  // one pass of the engine
  prometheus::Histogram bind;    // a binding from the decision to the API server's answer
};

}  // namespace muster::scheduler
