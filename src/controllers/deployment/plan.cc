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
    return is_deleting(*set) || json::int_at(*set, "spec", "replicas") != 0 ||
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

/// How many more and how many fewer pods than wanted a rollout may have meanwhile.
struct Strategy {
  bool recreate = false;
  int wanted = 1, surge = 0, unavailable = 0;

  explicit Strategy(const json::Value& spec)
      : recreate(json::string_at(spec, "strategy", "type") == "Recreate"),
        wanted(static_cast<int>(json::as_int(json::at(spec, "replicas"), 1))) {
    const auto& rolling = json::at(spec, "strategy", "rollingUpdate");
    surge = recreate ? 0 : amount(json::at(rolling, "maxSurge"), wanted, 25, true);
    unavailable =
        recreate ? wanted : amount(json::at(rolling, "maxUnavailable"), wanted, 25, false);
    if (surge == 0 && unavailable == 0) unavailable = 1;
  }
};

/// The replica sets of a deployment, and what they count.
struct Sets {
  const json::Value* current = nullptr;
  Objects old;
  std::int64_t revision = 0;  // the highest
  int old_wanted = 0;         // replicas that old ones still ask for
  int total = 0, ready = 0, available = 0, updated = 0;

  Sets(const Objects& sets, const std::string& hash) {
    for (const auto* set : sets) {
      revision = std::max(
          revision,
          parse_int(annotation_of(*set, kube::names::kubernetes::kDeploymentRevision)).value_or(0));
      total += status_of(*set, "replicas");
      ready += status_of(*set, "readyReplicas");
      available += status_of(*set, "availableReplicas");
      if (label_of(*set, kube::names::kubernetes::kPodTemplateHash) == hash) {
        current = set;
        updated = status_of(*set, "replicas");
      } else {
        old.push_back(set);
        old_wanted += replicas_of(*set);
      }
    }
  }

  /// How many the current one may have now.
  [[nodiscard]] int room(const Strategy& strategy) const {
    const bool old_gone = total == updated && old_wanted == 0;
    const int most = strategy.recreate ? (old_gone ? strategy.wanted : 0)
                                       : strategy.wanted + strategy.surge - old_wanted;
    return std::max(0, std::min(strategy.wanted, most));
  }
};

/// Moves replicas from old sets to the current one, as far as the strategy allows.
void roll_out(Plan& plan,
              const json::Value& deployment,
              const Sets& sets,
              const Strategy& strategy) {
  const int room = sets.room(strategy), has = replicas_of(*sets.current);
  if (has > strategy.wanted || room > has)
    scale(plan,
          deployment,
          *sets.current,
          std::min(strategy.wanted, std::max(room, std::min(strategy.wanted, has))));
  // Old ones go as far as enough stay available.
  int may_go = strategy.recreate ? sets.old_wanted
                                 : sets.available - (strategy.wanted - strategy.unavailable);
  for (const auto* set : sets.old) {
    const int sick = replicas_of(*set) - status_of(*set, "availableReplicas");
    const int go = std::min(replicas_of(*set), std::max(0, may_go) + std::max(0, sick));
    if (go > 0) scale(plan, deployment, *set, replicas_of(*set) - go);
    may_go -= std::max(0, go - std::max(0, sick));
  }
}

json::Value counted(const json::Value& deployment,
                    const Sets& sets,
                    const Strategy& strategy,
                    Time now) {
  auto status = status_or_empty(deployment);
  auto& object = status.as_object();
  object["observedGeneration"] = json::at(deployment, "metadata", "generation");
  object["replicas"] = sets.total;
  object["updatedReplicas"] = sets.updated;
  object["readyReplicas"] = sets.ready;
  object["availableReplicas"] = sets.available;
  object["unavailableReplicas"] = std::max(0, strategy.wanted - sets.available);
  const bool enough = sets.available >= strategy.wanted - strategy.unavailable;
  set_workload_condition(status,
                         "Available",
                         enough,
                         enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                         enough ? "Deployment has minimum availability."
                                : "Deployment does not have minimum availability.",
                         now);
  return status;
}

bool has_moved(const json::Value& deployment, const Sets& sets) {
  const auto& before = json::at(deployment, "status");
  return json::int_at(before, "updatedReplicas") != sets.updated ||
         json::int_at(before, "readyReplicas") != sets.ready ||
         json::int_at(before, "availableReplicas") != sets.available ||
         json::int_at(before, "replicas") != sets.total;
}

}  // namespace

Plan plan(const json::Value& deployment, const View& view, const Settings&, Time now) {
  Plan plan;
  if (is_deleting(deployment)) return plan;
  const auto& spec = json::at(deployment, "spec");
  const Strategy strategy(spec);
  const auto hash = template_hash(json::at(spec, "template"));
  const Sets sets(view.controlled_by(kinds::kReplicaSet, uid_of(deployment)), hash);
  const bool paused = json::bool_at(spec, "paused");
  if (sets.current != nullptr) {
    if (!paused) roll_out(plan, deployment, sets, strategy);
    number_revision(plan, deployment, *sets.current, sets.revision);
    forget_old(plan, deployment, sets.old);
  } else if (!paused || sets.old.empty()) {
    const int room = sets.room(strategy);
    auto action = create(kinds::kReplicaSet, new_set(deployment, hash, room, sets.revision + 1));
    action.events.push_back(
        {false,
         "ScalingReplicaSet",
         fmt::format("Scaled up replica set {} from 0 to {}", action.name, room)});
    plan.actions.push_back(std::move(action));
  }
  auto status = counted(deployment, sets, strategy, now);
  const bool complete =
      sets.updated == strategy.wanted && sets.available >= strategy.wanted && sets.old_wanted == 0;
  report_progress(plan,
                  status,
                  deployment,
                  {complete,
                   has_moved(deployment, sets),
                   paused,
                   fmt::format("{}-{}", name_of(deployment), hash)},
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
