#include "controllers/deployment/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "controllers/common/training.h"
#include "controllers/common/workload.h"
#include "kube/names.h"

namespace muster::controllers::deployment {
namespace {

std::int64_t revision_of(const json::Value& object) {
  return parse_int(annotation_of(object, kube::names::kubernetes::kDeploymentRevision)).value_or(0);
}

/// An older template that came back (`kubectl rollout undo`) is the newest revision from now on;
/// the deployment says which it has.
void number_revision(Plan& plan,
                     const json::Value& deployment,
                     const json::Value& current,
                     std::int64_t newest) {
  std::int64_t number = revision_of(current);
  if (number < newest) {
    const auto before = annotation_of(current, kube::names::kubernetes::kDeploymentHistory);
    json::Object notes{
        {kube::names::kubernetes::kDeploymentRevision, std::to_string(newest + 1)},
        {kube::names::kubernetes::kDeploymentHistory,
         before.empty() ? std::to_string(number) : fmt::format("{},{}", before, number)}};
    plan.actions.push_back(
        patch(kinds::kReplicaSet,
              name_of(current),
              json::Object{{"metadata", json::Object{{"annotations", std::move(notes)}}}}));
    number = newest + 1;
  }
  if (revision_of(deployment) != number)
    plan.job_patch =
        json::Object{{"metadata",
                      json::Object{{"annotations",
                                    json::Object{{kube::names::kubernetes::kDeploymentRevision,
                                                  std::to_string(number)}}}}}};
}

/// Old sets without pods beyond spec.revisionHistoryLimit go, the oldest first.
void forget_old(Plan& plan, const json::Value& deployment, Objects old) {
  std::erase_if(old, [](const json::Value* set) {
    return is_terminating(*set) || json::int_at(*set, "spec", "replicas") != 0 ||
           json::int_at(*set, "status", "replicas") != 0;
  });
  std::sort(old.begin(), old.end(), [](const json::Value* a, const json::Value* b) {
    return revision_of(*a) < revision_of(*b);
  });
  const auto limit = static_cast<std::size_t>(
      json::as_int(json::at(deployment, "spec", "revisionHistoryLimit"), 10));
  for (std::size_t i = 0; i + limit < old.size(); ++i)
    plan.actions.push_back(remove(kinds::kReplicaSet, *old[i]));
}

/// A number, or a percentage of `of` rounded up or down.
int amount(const json::Value& value, int of, int percent, bool up) {
  if (value.is_number()) return static_cast<int>(json::as_int(value));
  const auto text = json::as_string(value);
  if (text.ends_with('%'))
    percent = static_cast<int>(parse_int(text.substr(0, text.size() - 1)).value_or(percent));
  return (of * percent + (up ? 99 : 0)) / 100;
}

int replicas_of(const json::Value& set) {
  return static_cast<int>(json::int_at(set, "spec", "replicas"));
}
int status_of(const json::Value& set, std::string_view field) {
  return static_cast<int>(json::int_at(set, "status", field));
}

void scale(Plan& plan, const json::Value& deployment, const json::Value& set, int replicas) {
  const int now = replicas_of(set);
  if (now == replicas) return;
  auto action = patch(kinds::kReplicaSet,
                      name_of(set),
                      json::Object{{"spec", json::Object{{"replicas", replicas}}}});
  action.events.push_back({false,
                           "ScalingReplicaSet",
                           fmt::format("Scaled {} replica set {} from {} to {}",
                                       replicas > now ? "up" : "down",
                                       name_of(set),
                                       now,
                                       replicas)});
  (void)deployment;
  plan.actions.push_back(std::move(action));
}

json::Value new_set(const json::Value& deployment,
                    const std::string& hash,
                    int replicas,
                    std::int64_t revision) {
  auto set = make_child(
      deployment, "apps/v1", "ReplicaSet", fmt::format("{}-{}", name_of(deployment), hash));
  json::Value body = json::at(deployment, "spec", "template");
  set_label(body, kube::names::kubernetes::kPodTemplateHash, hash);
  json::make_object(set, {"metadata"})["labels"] = json::at(body, "metadata", "labels");
  for (const auto& [key, value] : json::object_at(deployment, "metadata", "annotations")) {
    if (std::string_view(key) != kube::names::kubernetes::kLastApplied)
      set_annotation(set, key, json::as_string(value));  // its change-cause, above all
  }
  set_annotation(set, kube::names::kubernetes::kDeploymentRevision, std::to_string(revision));
  json::Value selector = json::at(deployment, "spec", "selector");
  json::make_object(selector, {"matchLabels"})[kube::names::kubernetes::kPodTemplateHash] = hash;
  set.as_object()["spec"] =
      json::Object{{"replicas", replicas}, {"selector", selector}, {"template", body}};
  return set;
}

struct Progress {
  bool complete, moved, paused;
  std::string set;
};

/// Progressing: done, under way, or stuck for longer than spec.progressDeadlineSeconds, which
/// `kubectl rollout status` reports.
void report_progress(Plan& plan,
                     json::Value& status,
                     const json::Value& deployment,
                     const Progress& progress,
                     Time now) {
  Time last;
  std::string reason;
  for (const auto& condition : json::array_at(deployment, "status", "conditions")) {
    if (json::string_at(condition, "type") != "Progressing") continue;
    last = time_at(json::at(condition, "lastUpdateTime"));
    reason = json::text_at(condition, "reason");
  }
  const auto set = [&](bool value, std::string_view why, std::string_view what) {
    set_workload_condition(status,
                           "Progressing",
                           value,
                           why,
                           fmt::format("ReplicaSet \"{}\" {}", progress.set, what),
                           now);
  };
  if (progress.complete) return set(true, "NewReplicaSetAvailable", "has successfully progressed.");
  const auto& limit = json::at(deployment, "spec", "progressDeadlineSeconds");
  const bool stuck_before = reason == "ProgressDeadlineExceeded";
  if (!progress.moved && last && limit.is_number() && !progress.paused &&
      reason != "NewReplicaSetAvailable") {
    const auto due = last + std::chrono::seconds(json::as_int(limit));
    if (now >= due || stuck_before)
      return set(false, "ProgressDeadlineExceeded", "has timed out progressing.");
    wake_after(plan, due - now);
  }
  set(true, "ReplicaSetUpdated", "is progressing.");
  if (!progress.moved) return;
  for (auto& condition : array_at(status, {"conditions"})) {
    // Each step forward starts the clock anew.
    if (json::string_at(condition, "type") == "Progressing")
      condition.as_object()["lastProbeTime"] = time_value(now);
  }
}

}  // namespace

Plan plan(const json::Value& deployment, const View& view, const Settings&, Time now) {
  Plan plan;
  if (is_terminating(deployment)) return plan;
  const auto& spec = json::at(deployment, "spec");
  const int wanted = static_cast<int>(json::as_int(json::at(spec, "replicas"), 1));
  const auto hash = template_hash(json::at(spec, "template"));
  const bool recreate = json::string_at(spec, "strategy", "type") == "Recreate";
  const auto& rolling = json::at(spec, "strategy", "rollingUpdate");
  const int surge = recreate ? 0 : amount(json::at(rolling, "maxSurge"), wanted, 25, true);
  int unavailable =
      recreate ? wanted : amount(json::at(rolling, "maxUnavailable"), wanted, 25, false);
  if (surge == 0 && unavailable == 0) unavailable = 1;

  const json::Value* current = nullptr;
  Objects old;
  std::int64_t revision = 0;
  for (const auto* set : view.controlled_by(kinds::kReplicaSet, uid_of(deployment))) {
    revision = std::max(
        revision,
        parse_int(annotation_of(*set, kube::names::kubernetes::kDeploymentRevision)).value_or(0));
    label_of(*set, kube::names::kubernetes::kPodTemplateHash) == hash
        ? current = set
        : (old.push_back(set), nullptr);
  }
  int old_total = 0, total = 0, ready = 0, available = 0, updated = 0;
  for (const auto* set : old) old_total += replicas_of(*set);
  for (const auto* set : old) {
    total += status_of(*set, "replicas");
    ready += status_of(*set, "readyReplicas");
    available += status_of(*set, "availableReplicas");
  }
  if (current != nullptr) {
    updated = status_of(*current, "replicas");
    total += updated;
    ready += status_of(*current, "readyReplicas");
    available += status_of(*current, "availableReplicas");
  }
  const bool paused = json::bool_at(spec, "paused");
  const bool old_pods_gone = total - updated == 0;
  const int room = std::max(0,
                            std::min(wanted,
                                     recreate ? (old_pods_gone && old_total == 0 ? wanted : 0)
                                              : wanted + surge - old_total));
  if (current == nullptr) {
    if (!paused || old.empty()) {
      auto action = create(kinds::kReplicaSet, new_set(deployment, hash, room, revision + 1));
      action.events.push_back(
          {false,
           "ScalingReplicaSet",
           fmt::format("Scaled up replica set {} from 0 to {}", action.name, room)});
      plan.actions.push_back(std::move(action));
    }
  } else if (!paused) {
    if (replicas_of(*current) > wanted || room > replicas_of(*current))
      scale(plan,
            deployment,
            *current,
            std::min(wanted, std::max(room, std::min(wanted, replicas_of(*current)))));
    // Old ones go as far as enough stay available.
    int may_go = recreate ? old_total : available - (wanted - unavailable);
    for (const auto* set : old) {
      const int sick = replicas_of(*set) - status_of(*set, "availableReplicas");
      const int go = std::min(replicas_of(*set), std::max(0, may_go) + std::max(0, sick));
      if (go > 0) scale(plan, deployment, *set, replicas_of(*set) - go);
      may_go -= std::max(0, go - std::max(0, sick));
    }
  }
  if (current != nullptr) {
    number_revision(plan, deployment, *current, revision);
    forget_old(plan, deployment, old);
  }
  auto status = status_or_empty(deployment);
  auto& object = status.as_object();
  object["observedGeneration"] = json::at(deployment, "metadata", "generation");
  object["replicas"] = total;
  object["updatedReplicas"] = updated;
  object["readyReplicas"] = ready;
  object["availableReplicas"] = available;
  object["unavailableReplicas"] = std::max(0, wanted - available);
  const bool enough = available >= wanted - unavailable;
  set_workload_condition(status,
                         "Available",
                         enough,
                         enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                         enough ? "Deployment has minimum availability."
                                : "Deployment does not have minimum availability.",
                         now);
  const bool complete = updated == wanted && available >= wanted && old_total == 0;
  const bool moved = json::int_at(deployment, "status", "updatedReplicas") != updated ||
                     json::int_at(deployment, "status", "readyReplicas") != ready ||
                     json::int_at(deployment, "status", "availableReplicas") != available ||
                     json::int_at(deployment, "status", "replicas") != total;
  report_progress(plan,
                  status,
                  deployment,
                  {complete, moved, paused, fmt::format("{}-{}", name_of(deployment), hash)},
                  now);
  for (auto& condition : array_at(status, {"conditions"})) {
    auto& entry = condition.as_object();
    if (entry.contains("lastProbeTime")) {
      entry["lastUpdateTime"] = entry["lastProbeTime"];
      entry.erase("lastProbeTime");
    }
  }
  plan.status = std::move(status);
  return plan;
}

}  // namespace muster::controllers::deployment
