#include "controllers/vcjob/spec.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace muster::controllers::vcjob {
namespace {

using json::as_int;
using json::at;

std::vector<Policy> policies_of(const json::Value& list) {
  std::vector<Policy> policies;
  for (const json::Value& entry : json::as_array(list)) {
    Policy policy;
    policy.action = json::text_at(entry, "action");
    policy.exit_code = json::int_at(entry, "exitCode");
    if (const auto event = json::text_at(entry, "event"); !event.empty())
      policy.events.push_back(event);
    for (const json::Value& event : json::array_at(entry, "events"))
      policy.events.push_back(json::text(event));
    policies.push_back(std::move(policy));
  }
  return policies;
}

TaskSpec task_of(const json::Value& task, std::size_t position) {
  TaskSpec spec;
  spec.name = json::text_at(task, "name");
  if (spec.name.empty()) spec.name = fmt::format("default{}", position);
  spec.replicas = static_cast<int>(as_int(at(task, "replicas"), 1));
  spec.min_available = static_cast<int>(as_int(at(task, "minAvailable"), spec.replicas));
  spec.pod_template = &at(task, "template");
  spec.policies = policies_of(at(task, "policies"));
  for (const json::Value& name : json::array_at(task, "dependsOn", "name"))
    spec.depends_on.push_back(json::text(name));
  spec.depends_on_any = json::string_at(task, "dependsOn", "iteration") == "any";
  return spec;
}

std::string find_action(const std::vector<Policy>& policies,
                        std::string_view event,
                        std::int64_t exit_code) {
  for (const Policy& policy : policies) {
    const bool named =
        std::any_of(policy.events.begin(), policy.events.end(), [&](const std::string& each) {
          return each == event || each == "*";
        });
    if (named || (policy.exit_code != 0 && policy.exit_code == exit_code)) return policy.action;
  }
  return "";
}

}  // namespace

const TaskSpec* JobSpec::find(std::string_view task) const {
  const auto found = std::find_if(
      tasks.begin(), tasks.end(), [&](const TaskSpec& each) { return each.name == task; });
  return found == tasks.end() ? nullptr : &*found;
}

JobSpec spec_of(const json::Value& job) {
  const json::Value& from = at(job, "spec");
  JobSpec spec;
  int together = 0;
  for (const json::Value& task : json::array_at(from, "tasks")) {
    spec.tasks.push_back(task_of(task, spec.tasks.size()));
    spec.replicas += spec.tasks.back().replicas;
    together += spec.tasks.back().min_available;
  }
  spec.min_available = static_cast<int>(json::int_at(from, "minAvailable"));
  if (spec.min_available == 0) spec.min_available = together;
  spec.min_success = static_cast<int>(json::int_at(from, "minSuccess"));
  spec.max_retry = static_cast<int>(as_int(at(from, "maxRetry"), 3));
  if (const auto queue = json::text_at(from, "queue"); !queue.empty()) spec.queue = queue;
  if (const auto name = json::text_at(from, "schedulerName"); !name.empty()) spec.scheduler = name;
  spec.priority_class = json::text_at(from, "priorityClassName");
  spec.policies = policies_of(at(from, "policies"));
  for (const auto& member : json::object_at(from, "plugins")) {
    std::vector<std::string>& arguments = spec.plugins[std::string(member.key())];
    for (const json::Value& argument : json::as_array(member.value()))
      arguments.push_back(json::text(argument));
  }
  for (const char* plugin : {"pytorch", "tensorflow", "mpi"}) {
    if (spec.has_plugin(plugin)) spec.plugins.try_emplace("svc");
  }
  if (spec.has_plugin("mpi")) spec.plugins.try_emplace("ssh");
  return spec;
}

std::string problem_of(const JobSpec& spec) {
  if (spec.tasks.empty()) return "the job has no tasks";
  std::set<std::string> names;
  for (const TaskSpec& task : spec.tasks) {
    if (!names.insert(task.name).second)
      return fmt::format("task \"{}\" is given twice", task.name);
    if (task.replicas < 0)
      return fmt::format("task \"{}\": replicas must not be negative", task.name);
    if (task.min_available > task.replicas) {
      return fmt::format("task \"{}\": minAvailable {} is more than its {} replicas",
                         task.name,
                         task.min_available,
                         task.replicas);
    }
    for (const std::string& name : task.depends_on) {
      if (spec.find(name) == nullptr)
        return fmt::format("task \"{}\" depends on \"{}\", which is not a task", task.name, name);
    }
  }
  if (spec.min_available > spec.replicas) {
    return fmt::format("minAvailable {} is more than the {} replicas of all tasks",
                       spec.min_available,
                       spec.replicas);
  }
  static const std::set<std::string> kPlugins{"env", "mpi", "pytorch", "ssh", "svc", "tensorflow"};
  for (const auto& [name, arguments] : spec.plugins) {
    if (!kPlugins.contains(name)) return fmt::format("plugin \"{}\" is not known here", name);
  }
  return "";
}

std::string action_for(const JobSpec& spec,
                       const TaskSpec& task,
                       std::string_view event,
                       std::int64_t exit_code) {
  std::string action = find_action(task.policies, event, exit_code);
  return action.empty() ? find_action(spec.policies, event, exit_code) : action;
}

}  // namespace muster::controllers::vcjob
