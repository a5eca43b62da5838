/// What a node says of its machine: the facts and the conditions of a Node's status.
#pragma once

#include <string>

#include "base/time.h"
#include "json/json.h"

namespace muster::agent {

/// As Kubernetes names this machine's processor: amd64, arm64.
std::string architecture();
/// status.nodeInfo.
json::Value node_info(const std::string& runtime_version);
/// The conditions of a node that is well; a condition that `node` has already keeps the time since
/// when it holds.
json::Array ready_conditions(const json::Value& node, Time now);

}  // namespace muster::agent
