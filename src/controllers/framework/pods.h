/// The pod of a task and the ConfigMap of an attempt, named and marked as FrameworkController does.
#pragma once

#include <cstdint>
#include <string>

#include "json/json.h"

namespace muster::controllers::framework {

/// Which pod is meant.
struct TaskOf {
  const json::Value& framework;
  const json::Value& role;  // of the spec
  std::int64_t index = 0;
  std::int64_t framework_attempt = 0, task_attempt = 0;
};

std::string config_map_name(const json::Value& framework);
json::Value config_map_of(const json::Value& framework, std::int64_t attempt);

/// `<framework>-<role>-<index>`.
std::string pod_name(const json::Value& framework, std::string_view role, std::int64_t index);
/// Owned by the attempt's ConfigMap.
json::Value pod_of(const TaskOf& task, const json::Value& config_map);
/// Whether the pod is of this very attempt of the task.
bool is_pod_of(const json::Value& pod, std::int64_t framework_attempt, std::int64_t task_attempt);

/// "0_uid", how FrameworkController calls an instance of an attempt.
std::string instance_uid(std::int64_t attempt, std::string_view uid);

}  // namespace muster::controllers::framework
