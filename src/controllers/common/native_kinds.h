/// More of Kubernetes' own kinds, by the names that plans use.
#pragma once

#include <string_view>

namespace muster::controllers::kinds {

inline constexpr std::string_view kNativePodGroup = "PodGroup.scheduling.k8s.io";
inline constexpr std::string_view kWorkload = "Workload";
inline constexpr std::string_view kControllerRevision = "ControllerRevision";
inline constexpr std::string_view kEndpointSlice = "EndpointSlice";

}  // namespace muster::controllers::kinds
