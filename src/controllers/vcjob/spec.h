/// A Volcano Job's spec with its defaults.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "json/json.h"

namespace muster::controllers::vcjob {

struct Policy {
  std::string action;
  std::vector<std::string> events;
  std::int64_t exit_code = 0;  // 0: none
};

struct TaskSpec {
  std::string name;
  int replicas = 1;
  int min_available = 1;
  const json::Value* pod_template = nullptr;
  std::vector<Policy> policies;
  std::vector<std::string> depends_on;
  bool depends_on_any = false;
};

struct JobSpec {
  std::vector<TaskSpec> tasks;
  int min_available = 0;
  int min_success = 0;  // 0: all of min_available
  int max_retry = 3;
  int replicas = 0;  // of all tasks
  std::string queue = "default";
  std::string scheduler = "volcano";
  std::string priority_class;
  std::vector<Policy> policies;
  std::map<std::string, std::vector<std::string>> plugins;  // with those that others pull in

  [[nodiscard]] bool has_plugin(const std::string& name) const { return plugins.contains(name); }
  [[nodiscard]] const TaskSpec* find(std::string_view task) const;
};

/// Points into `job`.
JobSpec spec_of(const json::Value& job);
/// Why no pods can be made of it; empty when they can.
std::string problem_of(const JobSpec& spec);
/// The action for what happened to a pod of the task: an event's name, and the exit code when it
/// ended. Empty: none.
std::string action_for(const JobSpec& spec,
                       const TaskSpec& task,
                       std::string_view event,
                       std::int64_t exit_code);

}  // namespace muster::controllers::vcjob
