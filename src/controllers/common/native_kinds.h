/// More of Kubernetes' own kinds, by the names that plans use.
#pragma once

#include <string_view>

#include "kube/resources.h"

namespace muster::controllers::kinds {

inline constexpr std::string_view kNativePodGroup = kube::kind_groups::kNativePodGroup;
inline constexpr std::string_view kWorkload = "Workload";
inline constexpr std::string_view kControllerRevision = "ControllerRevision";
inline constexpr std::string_view kEndpointSlice = "EndpointSlice";

}  // namespace muster::controllers::kinds
