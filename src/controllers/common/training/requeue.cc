#include "controllers/common/training/requeue.h"

#include <fmt/core.h>

#include "controllers/common/training/clean_up.h"

namespace muster::controllers {
namespace {

/// Pods that the last pass saw running or ended.
int counted(const json::Value& status) {
  std::int64_t sum = 0;
  for (const auto& [type, entry] : json::object_at(status, "replicaStatuses")) {
    for (const std::string_view field : {"active", "succeeded", "failed"})
      sum += json::int_at(entry, field);
  }
  return static_cast<int>(sum);
}

}  // namespace

bool wants_requeue(const json::Value& job) {
  return annotation_of(job, kube::names::kOnPreempt) == "requeue";
}

void keep_submission_time(const json::Value& job, json::Value& object) {
  if (wants_requeue(job))
    set_annotation(
        object, kube::names::kSubmittedAt, json::string_at(job, "metadata", "creationTimestamp"));
}

bool was_preempted(const json::Value& pod) {
  // It was to go, and had ended before anybody told it to: whoever marked it did not delete it. (One
  // that is being deleted may succeed because it was told to.)
  if (phase_of(pod) == "Succeeded" && !is_deleting(pod)) return false;
  for (const auto& condition : json::array_at(pod, "status", "conditions")) {
    if (json::string_at(condition, "type") == "DisruptionTarget" &&
        json::string_at(condition, "status") == "True")
      return true;
  }
  const auto reason = json::string_at(pod, "status", "reason");
  if (phase_of(pod) == "Failed" &&
      (reason == "Preempted" || reason == "Evicted" || reason == "Preempting"))
    return true;
  return is_deleting(pod) && phase_of(pod) != "Succeeded";
}

bool requeue_whole(Pass& pass) {
  if (!wants_requeue(pass.job)) return false;
  std::string lost;
  int there = 0;
  for (const auto* pod : pass.pods) {
    const auto* replica = replica_of(pass, *pod);
    if (replica == nullptr ||
        index_label(*pod, kube::names::kubeflow::kReplicaIndex) >= replica->replicas)
      continue;
    ++there;
    if (lost.empty() && was_preempted(*pod)) lost = name_of(*pod);
  }
  // All were there at the last look and one is not now: it vanished between two looks. (A job
  // scaled up is missing some too, but those were never there.)
  if (lost.empty() && pass.conditions.is_true("Running") && there > 0 && there < pass.total() &&
      counted(pass.status) >= pass.total())
    lost = "a pod";
  if (lost.empty()) return false;
  for (const auto* pod : pass.pods) {
    if (phase_of(*pod) != "Succeeded") delete_pod(pass.plan, *pod);
    if (const auto* replica = replica_of(pass, *pod)) count(pass.counts[replica->type], *pod);
  }
  force_delete_stuck(pass.plan, pass.pods, pass.settings, pass.now);
  write_counts(pass, pass.traits.selector_in_status);
  const auto message =
      fmt::format("{} {} lost {} to preemption and goes back to its queue as a whole.",
                  pass.traits.kind,
                  pass.name(),
                  lost);
  if (pass.conditions.reason("Restarting") != pass.reason("Requeued") &&
      pass.conditions.set("Restarting", true, pass.reason("Requeued"), message)) {
    pass.event(true, pass.reason("Requeued"), message);
  }
  return true;
}

}  // namespace muster::controllers
