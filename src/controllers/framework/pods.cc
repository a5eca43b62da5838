#include "controllers/framework/pods.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/common/objects.h"
#include "kube/framework.h"
#include "kube/names.h"

namespace muster::controllers::framework {
namespace {

namespace names = kube::names::framework;

using Marks = std::vector<std::pair<std::string_view, std::string>>;

/// What names a task, for annotations and variables alike.
Marks marks_of(const TaskOf& task, const json::Value& config_map) {
  const std::string role = json::text_at(task.role, "name");
  const std::string attempt = std::to_string(task.framework_attempt);
  return {{names::kFrameworkNamespace, namespace_of(task.framework)},
          {names::kFrameworkName, name_of(task.framework)},
          {names::kTaskRoleName, role},
          {names::kTaskIndex, std::to_string(task.index)},
          {names::kConfigMapName, config_map_name(task.framework)},
          {names::kPodName, pod_name(task.framework, role, task.index)},
          {names::kFrameworkAttemptId, attempt},
          {names::kFrameworkAttemptUid, instance_uid(task.framework_attempt, uid_of(config_map))},
          {names::kConfigMapUid, uid_of(config_map)},
          {names::kTaskAttemptId, std::to_string(task.task_attempt)}};
}

/// `{{FC_TASK_INDEX}}` and the like may stand in any text of the pod's spec.
json::Value fill_placeholders(const json::Value& spec, const Marks& marks) {
  std::string text = json::dump(spec);
  if (text.find("{{FC_") == std::string::npos) return spec;
  for (const auto& [name, value] : marks)
    text = replace_all(text, fmt::format("{{{{{}}}}}", name), value);
  auto filled = json::parse(text);
  return filled ? std::move(*filled) : spec;
}

void add_variables(json::Value& pod, const Marks& marks) {
  json::Array added;
  for (const auto& [name, value] : marks) added.push_back(env(name, value));
  added.push_back(json::Object{
      {"name", names::kPodUid},
      {"valueFrom", json::Object{{"fieldRef", json::Object{{"fieldPath", "metadata.uid"}}}}}});
  added.push_back(env(names::kTaskAttemptUid,
                      fmt::format("$({})_$({})", names::kTaskAttemptId, names::kPodUid)));
  for (const char* list : {"initContainers", "containers"}) {
    if (!json::at(pod, "spec", list).is_array()) continue;
    for (json::Value& container : array_at(pod, {"spec", list})) {
      if (!container.is_object()) continue;  // the server will say so
      // Before the user's, which may refer to them.
      json::Array all = added;
      for (const json::Value& each : json::array_at(container, "env")) all.push_back(each);
      container.as_object()["env"] = std::move(all);
    }
  }
}

}  // namespace

std::string config_map_name(const json::Value& framework) {
  return name_of(framework) + "-attempt";
}

std::string instance_uid(std::int64_t attempt, std::string_view uid) {
  return fmt::format("{}_{}", attempt, uid);
}

json::Value config_map_of(const json::Value& framework, std::int64_t attempt) {
  json::Value map = make_child(framework, "v1", "ConfigMap", config_map_name(framework));
  set_label(map, names::kFrameworkName, name_of(framework));
  set_annotation(map, names::kFrameworkNamespace, namespace_of(framework));
  set_annotation(map, names::kFrameworkName, name_of(framework));
  set_annotation(map, names::kConfigMapName, config_map_name(framework));
  set_annotation(map, names::kFrameworkAttemptId, std::to_string(attempt));
  return map;
}

std::string pod_name(const json::Value& framework, std::string_view role, std::int64_t index) {
  return fmt::format("{}-{}-{}", name_of(framework), role, index);
}

json::Value pod_of(const TaskOf& task, const json::Value& config_map) {
  const Marks marks = marks_of(task, config_map);
  const std::string role = json::text_at(task.role, "name");
  json::Value owner = config_map;
  owner.as_object()["apiVersion"] = "v1";
  owner.as_object()["kind"] = "ConfigMap";
  json::Value pod = make_child(owner, "v1", "Pod", pod_name(task.framework, role, task.index));
  const json::Value& pod_template = json::at(task.role, "task", "pod");
  for (const char* part : {"labels", "annotations"}) {
    for (const auto& [key, value] : json::object_at(pod_template, "metadata", part))
      json::make_object(pod, {"metadata", part})[key] = value;
  }
  for (const auto& [name, value] : marks) set_annotation(pod, name, value);
  for (const std::string_view name :
       {names::kFrameworkName, names::kTaskRoleName, names::kTaskIndex}) {
    for (const auto& mark : marks) {
      if (mark.first == name) set_label(pod, name, mark.second);
    }
  }
  pod.as_object()["spec"] = fill_placeholders(json::at(pod_template, "spec"), marks);
  add_variables(pod, marks);
  return pod;
}

bool is_pod_of(const json::Value& pod, std::int64_t framework_attempt, std::int64_t task_attempt) {
  return annotation_of(pod, names::kFrameworkAttemptId) == std::to_string(framework_attempt) &&
         annotation_of(pod, names::kTaskAttemptId) == std::to_string(task_attempt);
}

}  // namespace muster::controllers::framework
