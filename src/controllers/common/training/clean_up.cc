#include "controllers/common/training/clean_up.h"

#include <fmt/core.h>

namespace muster::controllers {
namespace {

/// Services are known by the job's labels, whoever made them.
bool serves(const Pass& pass, const json::Value& service) {
  return is_controlled_by(service, pass.job) ||
         (label_of(service, kube::names::kubeflow::kJobName) == pass.name() &&
          label_of(service, kube::names::kubeflow::kOperatorName) == pass.traits.controller);
}

}  // namespace

void wake_after(Plan& plan, Duration delay) {
  if (!plan.requeue_after || delay < *plan.requeue_after) plan.requeue_after = delay;
}

void delete_pod(Plan& plan, const json::Value& pod) {
  if (is_deleting(pod)) return;
  auto action = remove(kinds::kPod, pod);
  action.events.push_back({false, "SuccessfulDeletePod", "Deleted pod: " + name_of(pod)});
  action.failed_reason = "FailedDeletePod";
  action.failed_prefix = "Error deleting: ";
  plan.actions.push_back(std::move(action));
}

void delete_pods_and_services(Pass& pass, std::string_view policy) {
  for (const auto* pod : pass.pods) {
    const auto phase = phase_of(*pod);
    if (policy == "Running" && phase != "Running" && phase != "Pending" && !phase.empty()) continue;
    delete_pod(pass.plan, *pod);
    const auto* service = pass.view.find(kinds::kService, name_of(*pod));
    if (service != nullptr && serves(pass, *service) && !is_deleting(*service)) {
      auto action = remove(kinds::kService, *service);
      action.events.push_back(
          {false, "SuccessfulDeleteService", "Deleted service: " + name_of(*service)});
      action.failed_reason = "FailedDeleteService";
      action.failed_prefix = "Error deleting: ";
      pass.plan.actions.push_back(std::move(action));
    }
  }
}

void delete_podgroup(Pass& pass, bool entering) {
  if (pass.settings.gang == Gang::kNone) return;
  const auto kind = podgroup_kind(pass.settings.gang);
  const auto* group = pass.view.find(kind, pass.name());
  const bool ours = group != nullptr && is_controlled_by(*group, pass.job) && !is_deleting(*group);
  if (!ours && !entering) return;
  pass.event(false, "JobTerminated", "Job has been terminated. Deleting PodGroup");
  const Event deleted{false, "SuccessfulDeletePodGroup", "Deleted PodGroup: " + pass.name()};
  if (!ours) {
    pass.plan.events.push_back(deleted);
    return;
  }
  auto action = remove(kind, *group);
  action.events.push_back(deleted);
  action.failed_reason = "FailedDeletePodGroup";
  action.failed_prefix = "Error deleting: ";
  pass.plan.actions.push_back(std::move(action));
}

void force_delete_stuck(Plan& plan, const Objects& pods, const Settings& settings, Time now) {
  if (settings.force_delete_after <= Duration{0}) return;
  for (const auto* pod : pods) {
    if (!is_deleting(*pod)) continue;
    const auto due =
        time_at(json::at(*pod, "metadata", "deletionTimestamp")) + settings.force_delete_after;
    if (now < due) {
      wake_after(plan, due - now);
      continue;
    }
    auto action = remove(kinds::kPod, *pod);
    action.grace_s = 0;
    action.events.push_back(
        {true,
         "ForceDeletedPod",
         fmt::format("Pod {} did not end in its grace period: deleted by force", name_of(*pod))});
    plan.actions.push_back(std::move(action));
  }
}

}  // namespace muster::controllers
