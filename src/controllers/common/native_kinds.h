/// Kubernetes' own groups, by the names that plans use.
#pragma once

#include <string_view>

namespace muster::controllers::kinds {

inline constexpr std::string_view kNativePodGroup = "PodGroup.scheduling.k8s.io";
inline constexpr std::string_view kWorkload = "Workload";

}  // namespace muster::controllers::kinds
