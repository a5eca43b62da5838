/// The pods of a training job, by replica type and index: made, counted, replaced.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "controllers/common/training.h"

namespace muster::controllers {
namespace {

/// Between two pods of one replica that keep failing.
constexpr auto kBetweenStarts = std::chrono::seconds(10);
/// Counts as retryable, as upstream has it.
constexpr int kMissingExitCode = 0xbeef;

bool name_taken(const Pass& pass, const ReplicaSpec& replica) {
  for (int index = 0; index < replica.replicas; ++index) {
    const auto* pod = pass.view.find(kinds::kPod, child_name(pass, replica.type, index));
    if (pod != nullptr && !is_controlled_by(*pod, pass.job)) return true;
  }
  return false;
}

int exit_code(const Pass& pass, const json::Value& pod, std::vector<Event>* exits) {
  int code = kMissingExitCode;
  for (const auto& container : json::array_at(pod, "status", "containerStatuses")) {
    const auto& terminated = json::at(container, "state", "terminated");
    if (json::string_at(container, "name") != pass.traits.container || !terminated.is_object())
      continue;
    code = static_cast<int>(json::int_at(terminated, "exitCode"));
    if (exits != nullptr) {
      exits->push_back(
          {false,
           "ExitedWithCode",
           fmt::format("Pod: {}.{} exited with code {}", pass.ns(), name_of(pod), code)});
    }
  }
  return code;
}

/// When a failed pod may be replaced. One that ended as soon as it had begun would otherwise be
/// made again many times a second, for ever: a node starts it at once here. Nothing is waited for a
/// pod that was taken away, which says no such times.
Time replaceable_at(const Pass& pass, const json::Value& pod) {
  Time due;
  for (const auto& container : json::array_at(pod, "status", "containerStatuses")) {
    const auto& terminated = json::at(container, "state", "terminated");
    if (json::string_at(container, "name") != pass.traits.container ||
        !time_at(json::at(terminated, "finishedAt")))
      continue;
    due = std::max(time_at(json::at(terminated, "startedAt")),
                   time_at(json::at(pod, "status", "startTime"))) +
          kBetweenStarts;
  }
  return due;
}

}  // namespace

void add_env(json::Value& pod, const json::Array& added) {
  for (auto& container : array_at(pod, {"spec", "containers"})) {
    for (const auto& item : added) array_of(container, "env").push_back(item);
  }
}

void decorate_pod(Pass& pass, const ReplicaSpec& replica, json::Value& pod) {
  keep_submission_time(pass.job, pod);
  if (pass.settings.gang == Gang::kNone) return;
  auto& scheduler = json::make(pod, {"spec", "schedulerName"});
  const auto named = json::text(scheduler);
  bool other = false, ours = false;
  for (const auto& each : pass.replicas) {
    const auto name = json::string_at(*each.pod_template, "spec", "schedulerName");
    other = other || (!name.empty() && name != pass.settings.gang_scheduler);
    ours = ours || name == pass.settings.gang_scheduler;
  }
  // MPIJob v1 warns unless a template names the gang's scheduler itself, and spells the reason in
  // its own way.
  if (pass.traits.services ? other : !ours) {
    pass.event(
        true,
        pass.traits.services ? "SetPodTemplateSchedulerName" : "SettedPodTemplateSchedulerName",
        "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten");
  }
  if (named.empty()) scheduler = pass.settings.gang_scheduler;
  if (pass.settings.gang == Gang::kVolcano) {
    set_annotation(pod, kube::names::volcano::kGroupName, pass.name());
    set_annotation(pod, kube::names::volcano::kTaskSpec, to_lower(replica.type));
  } else {
    set_label(pod, kube::names::plugins::kPodGroup, pass.name());
  }
}

void TrainingKind::create_pod(Pass& pass, const ReplicaSpec& replica, int index) const {
  const auto& pod_template = *replica.pod_template;
  auto pod = make_child(pass.job, "v1", "Pod", child_name(pass, replica.type, index));
  for (const std::string_view field : {"labels", "annotations", "finalizers"}) {
    const auto& value = json::at(pod_template, "metadata", field);
    if (!json::is_empty(value)) json::make_object(pod, {"metadata"})[field] = value;
  }
  for (const auto& [key, value] : base_labels(pass, replica.type, index))
    json::make_object(pod, {"metadata", "labels"})[key] = value;
  if (is_master(pass, replica.type, index))
    set_label(pod, kube::names::kubeflow::kJobRole, "master");
  pod.as_object()["spec"] = json::at(pod_template, "spec");
  wire(pass, replica, index, pod);
  auto& policy = json::make(pod, {"spec", "restartPolicy"});
  if (!json::as_string(policy).empty()) {
    pass.event(
        true,
        "SetPodTemplateRestartPolicy",
        "Restart policy in pod template will be overwritten by restart policy in replica spec");
  }
  policy = replica.restart_policy == "ExitCode" ? "Never" : replica.restart_policy;
  decorate_pod(pass, replica, pod);
  auto action = create(kinds::kPod, std::move(pod));
  action.events.push_back({false, "SuccessfulCreatePod", "Created pod: " + action.name});
  action.failed_reason = "FailedCreatePod";
  action.failed_prefix = "Error creating: ";
  pass.plan.actions.push_back(std::move(action));
}

void TrainingKind::one_pod(Pass& pass,
                           const ReplicaSpec& replica,
                           int index,
                           const json::Value& pod,
                           std::vector<Event>& exits) const {
  if (index >= replica.replicas) delete_pod(pass.plan, pod);
  const auto phase = phase_of(pod);
  const bool ended = phase == "Failed" || phase == "Succeeded";
  const int code = exit_code(pass, pod, ended ? &exits : &pass.plan.events);
  if (phase == "Failed") {
    const bool by_code = replica.restart_policy == "ExitCode";
    if (replica.restart_policy == "OnFailure" || replica.restart_policy == "Always" ||
        (by_code && code >= 128)) {
      const auto due = replaceable_at(pass, pod);
      if (pass.now < due)
        wake_after(pass.plan, due - pass.now);
      else
        delete_pod(pass.plan, pod);
      pass.restart(fmt::format(
          "job {} is restarting because {} replica(s) failed.", pass.name(), replica.type));
    } else if (by_code) {
      const auto message = fmt::format(
          "job \"{}\" is failing because \"{}\" replica(s) failed.", pass.name(), replica.type);
      if (pass.conditions.set("Failed", true, pass.reason("Failed"), message))
        pass.event(true, pass.reason("Failed"), message);
    }
  }
  count(pass.counts[replica.type], pod);
}

void TrainingKind::reconcile_pods(Pass& pass) const {
  const auto& before = json::at(pass.job, "status", "replicaStatuses");
  // A type that cannot be completed, because a pod's name is taken by somebody else's, does not
  // hold up the others.
  auto order = pass.replicas;
  std::stable_partition(order.begin(), order.end(), [&](const ReplicaSpec& replica) {
    return !name_taken(pass, replica);
  });
  for (const auto& replica : order) {
    std::map<int, Objects> by_index;
    for (const auto* pod : pass.pods) {
      if (label_of(*pod, kube::names::kubeflow::kReplicaType) != to_lower(replica.type)) continue;
      if (const int index = index_label(*pod, kube::names::kubeflow::kReplicaIndex); index >= 0)
        by_index[index].push_back(pod);
    }
    const int size =
        std::max(replica.replicas, by_index.empty() ? 0 : by_index.rbegin()->first + 1);
    std::vector<Event> exits;
    for (int index = 0; index < size; ++index) {
      const auto found = by_index.find(index);
      if (found == by_index.end()) {
        if (index < replica.replicas) create_pod(pass, replica, index);
      } else if (found->second.size() == 1) {
        one_pod(pass, replica, index, *found->second[0], exits);
      }
    }
    // The exit codes of ended pods are news only when the counters moved.
    const auto& counts = pass.counts[replica.type];
    const auto& old = json::at(before, std::string_view(replica.type));
    if (json::int_at(old, "succeeded") != counts.succeeded ||
        json::int_at(old, "failed") != counts.failed) {
      for (auto& event : exits) pass.plan.events.push_back(std::move(event));
    }
    if (traits_.services) reconcile_services(pass, replica);
  }
  write_counts(pass, traits_.selector_in_status);
}

}  // namespace muster::controllers
