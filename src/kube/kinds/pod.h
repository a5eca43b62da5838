/// What a pod asks for and where it may run, read off its JSON: for the scheduler, the agent, quota
/// and the CLI.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/quantity.h"
#include "kube/meta.h"

namespace muster::kube {

/// Resource name -> amount; cpu in milli, everything else in units.
using ResourceAmounts = std::map<std::string, std::int64_t>;

/// max(Σ containers + sidecars, init rules) + overhead, pod-level resources included
/// (kubernetes-api.md §15.3).
ResourceAmounts pod_requests(const json::Value& pod);
ResourceAmounts pod_limits(const json::Value& pod);
/// A resource map such as node.status.allocatable or PodGroup.spec.minResources.
ResourceAmounts resource_amounts(const json::Value& resource_map);
std::string qos_class(const json::Value& pod);
/// Succeeded or Failed.
bool pod_finished(const json::Value& pod);

}  // namespace muster::kube
