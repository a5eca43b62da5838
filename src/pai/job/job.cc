#include "pai/job/job.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "kube/framework.h"
#include "kube/names.h"
#include "pai/job/ports.h"

namespace muster::pai {
namespace {

namespace names = kube::names::pai;

bool was_stopped(const json::Value& code) {
  return code.is_number() && (json::as_int(code) == kube::completion::kStopFrameworkRequested ||
                              json::as_int(code) == kube::completion::kFrameworkAttemptCompletion);
}

const json::Value& note(const json::Value& framework, std::string_view key) {
  return json::at(framework, "metadata", "annotations", key);
}

/// In full on the Framework; its label may be a digest of it.
const json::Value& named(const json::Value& framework, std::string_view key) {
  const json::Value& full = note(framework, key);
  return full.is_string() ? full : json::at(framework, "metadata", "labels", key);
}

std::int64_t number_note(const json::Value& framework, std::string_view key) {
  return parse_int(json::as_string(note(framework, key))).value_or(0);
}

const json::Value& completion(const json::Value& status) {
  return json::at(status, "attemptStatus", "completionStatus");
}

std::string_view state_of(const json::Value& status) {
  const auto sub_state = json::as_string(json::at(status, "state"), "AttemptCreationPending");
  return shown_state(sub_state,
                     json::at(completion(status), "code"),
                     json::at(status, "retryPolicyStatus", "retryDelaySec").is_number());
}

json::Value retry_details(const json::Value& status) {
  const auto all = json::int_at(status, "retryPolicyStatus", "totalRetriedCount");
  const auto counted = json::int_at(status, "retryPolicyStatus", "accountableRetriedCount");
  return json::Object{{"user", counted}, {"platform", all - counted}, {"resource", 0}};
}

json::Array tags_of(const json::Value& framework) {
  json::Array out;
  for (const std::string& tag : split_nonempty(json::as_string(note(framework, names::kTags)), ','))
    out.push_back(json::Value(tag));
  return out;
}

/// What list and detail share.
json::Object status_of(const json::Value& framework) {
  const json::Value& status = json::at(framework, "status");
  const json::Value& submitted = note(framework, kube::names::kSubmittedAt);
  const json::Value& created = json::at(framework, "metadata", "creationTimestamp");
  return json::Object{
      {"username", named(framework, names::kUserName)},
      {"state", state_of(status)},
      {"subState", json::as_string(json::at(status, "state"), "AttemptCreationPending")},
      {"executionType",
       json::string_at(framework, "spec", "executionType") == "Stop" ? "STOP" : "START"},
      {"retries", json::int_at(status, "retryPolicyStatus", "totalRetriedCount")},
      {"retryDetails", retry_details(status)},
      {"retryDelayTime", json::at(status, "retryPolicyStatus", "retryDelaySec")},
      {"submissionTime", millis(submitted.is_string() ? submitted : created)},
      {"createdTime", millis(created)},
      {"launchedTime", millis(json::at(status, "runTime"))},
      {"completedTime", millis(json::at(status, "completionTime"))},
      {"appExitCode", json::at(completion(status), "code")},
      {"virtualCluster", named(framework, names::kVirtualCluster)},
      {"totalGpuNumber", number_note(framework, names::kTotalGpuNumber)},
      {"totalTaskNumber", number_note(framework, names::kTotalTaskNumber)},
      {"totalTaskRoleNumber", number_note(framework, names::kTotalTaskRoleNumber)},
      {"jobPriority", note(framework, names::kJobPriority)}};
}

/// The pod template of a role.
const json::Value& template_of(const json::Value& framework, std::string_view role) {
  for (const json::Value& each : json::array_at(framework, "spec", "taskRoles")) {
    if (json::string_at(each, "name") == role) return json::at(each, "task", "pod");
  }
  return json::null_value();
}

/// What the pod template says of every task of a role.
struct OfRole {
  json::Value ports;  // {label: count}
  json::Value hived;
};

json::Value ports_of_task(const json::Value& wanted, std::string_view pod_uid) {
  json::Object out;
  if (pod_uid.empty()) return out;
  for (const auto& port : json::as_object(wanted))
    out[port.key()] = ports_text(pod_uid, port.key(), static_cast<int>(json::as_int(port.value())));
  return out;
}

json::Value hived_of(const json::Value& pod_template) {
  const auto spec = json::parse_yaml_one(json::string_at(
      pod_template, "metadata", "annotations", kube::names::hived::kSchedulingSpec));
  return json::Object{
      {"affinityGroupName", spec ? json::at(*spec, "affinityGroup", "name") : json::Value(nullptr)},
      {"lazyPreempted", nullptr},
      {"lazyPreemptionStatus", nullptr}};
}

std::string diagnostics_of(const json::Value& status) {
  return json::text_at(status, "diagnostics");
}

OfRole of_role(const json::Value& pod_template) {
  auto ports = json::parse(json::string_at(pod_template, "metadata", "annotations", names::kPorts));
  return {ports ? std::move(*ports) : json::Value(), hived_of(pod_template)};
}

json::Value task_detail(const json::Value& task, const OfRole& role) {
  const json::Value& attempt = json::at(task, "attemptStatus");
  const json::Value& ended = json::at(attempt, "completionStatus");
  const json::Value& code = json::at(ended, "code");
  return json::Object{
      {"taskIndex", json::at(task, "index")},
      {"taskUid", json::at(attempt, "instanceUID")},
      {"taskState", state_of(task)},
      {"containerId", json::at(attempt, "podUID")},
      {"containerIp", json::at(attempt, "podIP")},
      {"containerNodeName", json::at(attempt, "podNodeName")},
      {"containerPorts", ports_of_task(role.ports, json::string_at(attempt, "podUID"))},
      {"containerGpus", nullptr},
      {"containerLog", nullptr},
      {"containerExitCode", code},
      {"containerExitSpec",
       code.is_number() ? exit_spec(json::as_int(code)) : json::Value(nullptr)},
      {"containerExitDiagnostics",
       ended.is_object() ? json::Value(diagnostics_of(ended)) : json::Value(nullptr)},
      {"retries", json::int_at(task, "retryPolicyStatus", "totalRetriedCount")},
      {"accountableRetries", json::int_at(task, "retryPolicyStatus", "accountableRetriedCount")},
      {"createdTime", millis(json::at(task, "startTime"))},
      {"launchedTime", millis(json::at(task, "runTime"))},
      {"completedTime", millis(json::at(task, "completionTime"))},
      {"attemptId", json::at(attempt, "id")},
      {"attemptState", state_of(task)},
      {"currentAttemptCreatedTime", millis(json::at(attempt, "startTime"))},
      {"currentAttemptLaunchedTime", millis(json::at(attempt, "runTime"))},
      {"currentAttemptCompletedTime", millis(json::at(attempt, "completionTime"))},
      {"hived", role.hived}};
}

json::Object task_roles(const json::Value& framework) {
  json::Object out;
  for (const json::Value& role :
       json::array_at(framework, "status", "attemptStatus", "taskRoleStatuses")) {
    const auto name = json::string_at(role, "name");
    const OfRole shared = of_role(template_of(framework, name));
    json::Array tasks;
    for (const json::Value& task : json::array_at(role, "taskStatuses"))
      tasks.push_back(task_detail(task, shared));
    out[name] = json::Object{{"taskRoleStatus", json::Object{{"name", name}}},
                             {"taskStatuses", std::move(tasks)}};
  }
  return out;
}

/// How the attempt ended, with the words of each layer.
void add_exit(json::Object& out, const json::Value& framework) {
  const json::Value& attempt = json::at(framework, "status", "attemptStatus");
  const json::Value& ended = json::at(attempt, "completionStatus");
  const json::Value& code = json::at(ended, "code");
  const json::Value spec = code.is_number() ? exit_spec(json::as_int(code)) : json::Value(nullptr);
  out["attemptId"] = json::at(attempt, "id");
  out["attemptState"] = state_of(json::at(framework, "status"));
  out["appId"] = json::at(attempt, "instanceUID");
  out["appCreatedTime"] = millis(json::at(attempt, "startTime"));
  out["appLaunchedTime"] = millis(json::at(attempt, "runTime"));
  out["appCompletedTime"] = millis(json::at(attempt, "completionTime"));
  out["appExitSpec"] = spec;
  out["appExitType"] = json::at(spec, "type");
  out["appExitDiagnostics"] =
      ended.is_object() ? json::Value(diagnostics_of(ended)) : json::Value(nullptr);
  out["appExitMessages"] =
      ended.is_object()
          ? json::Value(json::Object{
                {"container", nullptr}, {"runtime", nullptr}, {"launcher", diagnostics_of(ended)}})
          : json::Value(nullptr);
  out["appExitTriggerMessage"] = json::at(ended, "trigger", "message");
  out["appExitTriggerTaskRoleName"] = json::at(ended, "trigger", "taskRoleName");
  out["appExitTriggerTaskIndex"] = json::at(ended, "trigger", "taskIndex");
}

}  // namespace

std::string_view shown_state(std::string_view sub_state, const json::Value& code, bool retries) {
  if (sub_state == "AttemptCreationPending" || sub_state == "AttemptCreationRequested" ||
      sub_state == "AttemptPreparing")
    return "WAITING";
  if (sub_state == "AttemptRunning") return "RUNNING";
  if (sub_state == "AttemptDeletionPending" || sub_state == "AttemptDeletionRequested" ||
      sub_state == "AttemptDeleting")
    return was_stopped(code) ? "STOPPING" : "RUNNING";
  if (sub_state == "AttemptCompleted") return retries ? "WAITING" : "RUNNING";
  if (sub_state != "Completed") return "UNKNOWN";
  if (was_stopped(code)) return "STOPPED";
  return json::as_int(code, -1) == 0 ? "SUCCEEDED" : "FAILED";
}

json::Value millis(const json::Value& time) {
  const auto parsed = parse_time(json::as_string(time));
  if (!time.is_string() || !parsed) return nullptr;
  return parsed->seconds() * 1000;
}

json::Value job_summary(const json::Value& framework) {
  json::Object out{{"debugId", json::at(framework, "metadata", "name")},
                   {"name", note(framework, names::kJobName)},
                   {"tags", tags_of(framework)}};
  for (auto& member : status_of(framework)) out[member.key()] = std::move(member.value());
  return out;
}

json::Value job_detail(const json::Value& framework) {
  json::Object status = status_of(framework);
  add_exit(status, framework);
  return json::Object{{"debugId", json::at(framework, "metadata", "name")},
                      {"name", note(framework, names::kJobName)},
                      {"tags", tags_of(framework)},
                      {"jobStatus", std::move(status)},
                      {"taskRoles", task_roles(framework)}};
}

json::Array task_attempts(const json::Value& framework, std::string_view role, std::int64_t index) {
  const OfRole shared = of_role(template_of(framework, role));
  json::Array out;
  const auto add = [&](const json::Value& task) {
    json::Value detail = task_detail(task, shared);
    detail.as_object()["taskAttemptIndex"] = json::at(detail, "attemptId");
    out.push_back(std::move(detail));
  };
  for (const json::Value& each :
       json::array_at(framework, "status", "attemptStatus", "taskRoleStatuses")) {
    if (json::string_at(each, "name") != role) continue;
    for (const json::Value& task : json::array_at(each, "taskStatuses")) {
      if (json::int_at(task, "index") != index) continue;
      add(task);
      const json::Array& former = json::array_at(task, kube::names::framework::kFormerAttempts);
      for (auto one = former.rbegin(); one != former.rend(); ++one)
        add(json::Object{{"index", index},
                         {"state", "Completed"},
                         {"startTime", json::at(*one, "startTime")},
                         {"runTime", json::at(*one, "runTime")},
                         {"completionTime", json::at(*one, "completionTime")},
                         {"attemptStatus", *one}});
    }
  }
  return out;
}

std::string job_config(const json::Value& framework) {
  return json::text(note(framework, names::kConfig));
}

}  // namespace muster::pai
