#include "controllers/common/training/limits.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/common/training/clean_up.h"

namespace muster::controllers {

bool past_backoff_limit(const Pass& pass) {
  const auto& limit_value = json::at(run_policy(pass.job), "backoffLimit");
  if (!limit_value.is_number()) return false;
  const auto limit = json::as_int(limit_value);
  int active = 0, failed = 0, failed_before = 0;
  std::int64_t restarts = 0;
  for (const auto* pod : pass.pods) {
    if (is_active(*pod)) ++active;
    if (phase_of(*pod) == "Failed") ++failed;
  }
  for (const auto& [type, status] : json::object_at(pass.status, "replicaStatuses")) {
    failed_before += static_cast<int>(json::int_at(status, "failed"));
  }
  // The counter of requeues that upstream compares here is always 0, so this rule works for a limit
  // of 0 only.
  if (failed > failed_before && active != pass.total() && 1 > limit) return true;
  for (const auto& replica : pass.replicas) {
    if (replica.restart_policy != "OnFailure" && replica.restart_policy != "Always" &&
        replica.restart_policy != "ExitCode")
      continue;
    for (const auto* pod : pass.pods) {
      if (phase_of(*pod) != "Running" ||
          label_of(*pod, kube::names::kubeflow::kReplicaType) != to_lower(replica.type))
        continue;
      for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
        for (const auto& container : json::array_at(*pod, "status", list))
          restarts += json::int_at(container, "restartCount");
      }
    }
  }
  return limit == 0 ? restarts > 0 : restarts >= limit;
}

bool past_deadline(Pass& pass) {
  const auto& seconds = json::at(run_policy(pass.job), "activeDeadlineSeconds");
  const auto started = time_at(json::at(pass.status, "startTime"));
  if (!seconds.is_number() || !started) return false;
  const auto deadline = started + std::chrono::seconds(json::as_int(seconds));
  if (pass.now >= deadline) return true;
  wake_after(pass.plan, deadline - pass.now);
  return false;
}

void apply_ttl(Pass& pass) {
  const auto& ttl = json::at(run_policy(pass.job), "ttlSecondsAfterFinished");
  if (!ttl.is_number() || is_suspended(pass.job)) return;
  const auto ended = time_at(json::at(pass.status, "completionTime"));
  if (!ended) return;
  const auto expires = ended + std::chrono::seconds(json::as_int(ttl));
  if (pass.now < expires) {
    wake_after(pass.plan, expires - pass.now);
    return;
  }
  pass.plan.delete_job = true;
  pass.event(false,
             pass.traits.ttl_reports_pod ? "SuccessfulDeletePod" : "SuccessfulDeleteJob",
             "Deleted job: " + pass.name());
}

}  // namespace muster::controllers
