/// Metrics from the runtime's usage counters: the rate between two looks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "agent/context.h"
#include "agent/node/metrics.h"

namespace muster::agent {

class PodWorker;
std::unique_ptr<Metrics> make_pod_metrics(
    Context& context, std::function<std::vector<std::shared_ptr<PodWorker>>()> workers);

}  // namespace muster::agent
