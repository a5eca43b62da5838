/// The three annotations that carry HiveD's state on pods, in its names and formats.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/model/cell_request.h"

namespace muster::hived {

inline constexpr std::string_view kSchedulingSpec =
    "hivedscheduler.microsoft.com/pod-scheduling-spec";
inline constexpr std::string_view kBindInfo = "hivedscheduler.microsoft.com/pod-bind-info";
inline constexpr std::string_view kLeafCellIsolation =
    "hivedscheduler.microsoft.com/pod-leaf-cell-isolation";
/// Its old name.
inline constexpr std::string_view kGpuIsolation = "hivedscheduler.microsoft.com/pod-gpu-isolation";
inline constexpr std::string_view kSchedulingEnable =
    "hivedscheduler.microsoft.com/pod-scheduling-enable";

/// `pod-scheduling-spec`; a pod without a group is a group of its own, named namespace/name. Errors
/// carry the original's texts.
Result<engine::cells::PodSpec> parse_scheduling_spec(std::string_view yaml,
                                                     const std::string& pod_namespace,
                                                     const std::string& pod_name);
std::string format_scheduling_spec(const engine::cells::PodSpec& spec);

Result<engine::cells::BindInfo> parse_bind_info(std::string_view yaml);
std::string format_bind_info(const engine::cells::BindInfo& bind);

/// "8,9,10".
std::string format_isolation(const engine::cells::BindInfo& bind);

}  // namespace muster::hived
