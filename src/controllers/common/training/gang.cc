/// The PodGroup of a training job.
#include "controllers/common/training.h"

namespace muster::controllers {

bool TrainingKind::gang_waits(Pass& pass) const {
  if (pass.settings.gang == Gang::kNone) return false;
  const auto& policy = json::at(run_policy(pass.job), "schedulingPolicy");
  PodGroupSpec spec;
  const auto& available = json::at(policy, "minAvailable");
  spec.min_member =
      available.is_number() ? static_cast<int>(json::as_int(available)) : pass.total();
  spec.priority_class = json::text_at(policy, "priorityClass");
  spec.timeout_s = json::at(policy, "scheduleTimeoutSeconds");
  const auto& given = json::at(policy, "minResources");
  spec.min_resources =
      given.is_object() ? given : min_resources(pass.replicas, spec.min_member, pass.view);
  const auto* group = pass.view.find(podgroup_kind(pass.settings.gang), pass.name());
  spec.queue = group == nullptr ? "" : json::text_at(*group, "spec", "queue");
  if (spec.queue.empty()) spec.queue = json::text_at(policy, "queue");
  if (spec.queue.empty()) spec.queue = "default";
  json::Value notes = json::at(pass.job, "metadata", "annotations");
  if (wants_requeue(pass.job)) {
    json::make_object(notes, {})[kube::names::kSubmittedAt] =
        json::at(pass.job, "metadata", "creationTimestamp");
  }
  sync_podgroup(pass.plan, pass.job, spec, notes, pass.view, pass.settings.gang);
  if (!pods_must_wait(pass.job, pass.view, pass.settings.gang)) return false;
  // Written once, not at every look: a status that changes by the clock alone would wake us for
  // ever.
  if (json::at(pass.status, "lastReconcileTime").is_null())
    pass.status.as_object()["lastReconcileTime"] = time_value(pass.now);
  return true;
}

}  // namespace muster::controllers
