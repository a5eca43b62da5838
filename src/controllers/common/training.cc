#include "controllers/common/training.h"

#include <fmt/core.h>

#include "controllers/common/training/limits.h"
#include "kube/names.h"

namespace muster::controllers {

Plan TrainingKind::plan(const json::Value& original,
                        const View& view,
                        const Settings& settings,
                        Time now) const {
  Plan plan;
  const auto& manager = json::at(run_policy(original), "managedBy");
  const bool of_another = traits_.heeds_managed_by && manager.is_string() &&
                          json::as_string(manager) != kube::names::kubeflow::kTrainingOperator;
  if (of_another || is_deleting(original)) return plan;
  const auto job = with_defaults(original);
  if (const auto problem = check(job); !problem.empty()) {
    // Nothing will get better until the job is edited, and an edit wakes us.
    plan.events.push_back({true,
                           traits_.kind + "FailedValidation",
                           fmt::format("{} failed validation because {}", traits_.kind, problem)});
    return plan;
  }
  Pass pass(traits_, job, view, settings, now, plan);
  pass.conditions.set("Created",
                      true,
                      pass.reason("Created"),
                      fmt::format("{} {} is created.", traits_.kind, pass.name()));
  before(pass, is_suspended(job));
  if (pass.conditions.finished()) {
    finished(pass);
  } else if (is_suspended(job)) {
    suspend(pass);
  } else {
    if (pass.conditions.is_true("Suspended")) {
      const auto message = fmt::format("{} {} is resumed.", traits_.kind, pass.name());
      pass.conditions.set("Suspended", false, pass.reason("Resumed"), message);
      pass.status.as_object()["startTime"] = time_value(now);
      pass.event(false, pass.reason("Resumed"), message);
    }
    report_abnormal_pods(pass);
    if (!exceeded(pass) && !gang_waits(pass) && !requeue_whole(pass)) {
      force_delete_stuck(plan, pass.pods, settings, now);
      reconcile_pods(pass);
      if (json::at(pass.status, "startTime").is_null())
        pass.status.as_object()["startTime"] = time_value(now);
      past_deadline(pass);
      update_status(pass);
      if (pass.conditions.is_true("Failed")) pass.complete();
    }
  }
  plan.status = std::move(pass.status);
  return plan;
}

void TrainingKind::finished(Pass& pass) const {
  const auto policy = json::string_at(run_policy(pass.job), "cleanPodPolicy");
  if (policy != "None") delete_pods_and_services(pass, policy);
  delete_podgroup(pass, false);
  apply_ttl(pass);
  if (!pass.conditions.is_true("Succeeded")) return;
  for (auto& [type, entry] : json::make_object(pass.status, {"replicaStatuses"})) {
    if (!entry.is_object()) continue;
    const auto active = json::int_at(entry, "active");
    if (active == 0) continue;
    entry.get_object()["succeeded"] = json::int_at(entry, "succeeded") + active;
    json::remove(entry, {"active"});
  }
  if (json::object_at(pass.status, "replicaStatuses").empty())
    json::remove(pass.status, {"replicaStatuses"});
}

void TrainingKind::suspend(Pass& pass) const {
  const bool entering = !pass.conditions.is_true("Suspended");
  delete_pods_and_services(pass, "");
  delete_podgroup(pass, entering);
  if (auto* statuses = pass.status.as_object().if_contains("replicaStatuses");
      statuses != nullptr && statuses->is_object()) {
    for (auto& [type, entry] : statuses->get_object()) json::remove(entry, {"active"});
  }
  const auto message = fmt::format("{} {} is suspended.", traits_.kind, pass.name());
  if (pass.conditions.is_true("Running"))
    pass.conditions.set("Running", false, pass.reason("Suspended"), message);
  if (entering) {
    pass.conditions.set("Suspended", true, pass.reason("Suspended"), message);
    pass.event(false, pass.reason("Suspended"), message);
  }
}

bool TrainingKind::exceeded(Pass& pass) const {
  std::string message;
  if (past_backoff_limit(pass)) {
    message = fmt::format("Job {} has failed because it has reached the specified backoff limit",
                          pass.name());
  } else if (past_deadline(pass)) {
    message = fmt::format("Job {} has failed because it was active longer than specified deadline",
                          pass.name());
  } else {
    return false;
  }
  pass.complete();
  delete_pods_and_services(pass, "");
  delete_podgroup(pass, true);
  pass.fail(message);
  apply_ttl(pass);
  return true;
}

}  // namespace muster::controllers
