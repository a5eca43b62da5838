/// Names of Kubernetes that the engine reads or reports. The engine sees `base` alone, so they stand
/// here as well as in kube/names.h; scheduler/translate.cc, which sees both, asserts that they agree.
#pragma once

#include <string_view>

namespace muster::engine::names {

/// The taints of nodes that are cordoned and of nodes that do not report.
inline constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";
inline constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";

}  // namespace muster::engine::names
