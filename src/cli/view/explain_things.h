/// `explain queue/Q` and `explain node/N`: what a queue or a node is doing, and why work does not get
/// in. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "json/json.h"

namespace muster::cli {

/// `groups`: the PodGroups of all queues.
std::string explain_queue(const json::Value& queue,
                          const std::vector<const json::Value*>& groups,
                          Time now);
/// `pods`: those of all nodes.
std::string explain_node(const json::Value& node,
                         const std::vector<const json::Value*>& pods,
                         Time now);

}  // namespace muster::cli
