#include "controllers/replicaset/plan.h"

#include <algorithm>

#include "controllers/common/training.h"
#include "controllers/common/workload.h"
#include "kube/pod_end.h"

namespace muster::controllers::replicaset {
namespace {

/// The ones to lose first: not placed, then not ready, then the youngest.
bool goes_first(const json::Value* a, const json::Value* b) {
  const auto rank = [](const json::Value& pod) {
    return std::make_tuple(!json::string_at(pod, "spec", "nodeName").empty(),
                           phase_of(pod) == "Running",
                           is_ready(pod));
  };
  const auto x = rank(*a), y = rank(*b);
  if (x != y) return x < y;
  const auto first = json::string_at(*a, "metadata", "creationTimestamp"),
             second = json::string_at(*b, "metadata", "creationTimestamp");
  return first != second ? first > second : name_of(*a) > name_of(*b);
}

constexpr Duration kFirst = std::chrono::seconds(10);
constexpr Duration kMost = std::chrono::minutes(5);
constexpr Duration kRemembered = std::chrono::minutes(10);

/// Pods that failed: a node refused them, say. Kubernetes replaces them as fast as they fail.
struct Failures {
  int count = 0;
  Time last;
  std::string how;

  void add(const json::Value& pod, Time now) {
    if (phase_of(pod) != "Failed" || was_preempted(pod)) return;
    const Time ended = std::max(time_at(json::at(pod, "metadata", "creationTimestamp")),
                                time_at(json::at(pod, "status", "startTime")));
    if (now - ended > kRemembered) return;
    ++count;
    if (ended < last) return;
    last = ended;
    how = kube::how_pod_ended(pod);
  }
  /// At once where each replica failed once; then after 10 s, 20 s and so on.
  [[nodiscard]] Time due(int replicas) const {
    const int rounds = count / std::max(1, replicas);
    if (rounds < 2) return last;
    return last + std::min<Duration>(kMost, kFirst * (1 << std::min(rounds - 2, 10)));
  }
  [[nodiscard]] std::string story() const {
    return "pods keep failing" + (how.empty() ? "" : " (" + how + ")") +
           "; new ones are created at increasing intervals";
  }
};

constexpr std::string_view kReplicaFailure = "ReplicaFailure";

void drop_condition(json::Value& status) {
  auto* conditions = status.as_object().if_contains("conditions");
  if (conditions == nullptr || !conditions->is_array()) return;
  auto& list = conditions->get_array();
  for (auto it = list.begin(); it != list.end();)
    it = json::string_at(*it, "type") == kReplicaFailure ? list.erase(it) : it + 1;
  if (list.empty()) status.as_object().erase("conditions");
}

}  // namespace

Plan plan(const json::Value& set, const View& view, const Settings&, Time now) {
  Plan plan;
  if (is_deleting(set)) return plan;
  const auto wanted = static_cast<int>(json::as_int(json::at(set, "spec", "replicas"), 1));
  Objects active;
  Failures failures;
  int ready = 0, available = 0;
  for (const auto* pod : view.controlled_by(kinds::kPod, uid_of(set))) {
    failures.add(*pod, now);
    if (!is_active(*pod)) continue;
    active.push_back(pod);
    ready += is_ready(*pod);
    available += is_available(*pod, set, now, plan);
  }
  const int have = static_cast<int>(active.size());
  const Time due = failures.due(wanted);
  const bool early = have < wanted && now < due;
  if (early) wake_after(plan, due - now);
  for (int i = have; i < wanted && !early; ++i)
    plan.actions.push_back(create_workload_pod(
        pod_from_template(set, json::at(set, "spec", "template"), name_of(set) + "-")));
  if (have > wanted) {
    std::sort(active.begin(), active.end(), goes_first);
    for (int i = 0; i < have - wanted; ++i) {
      auto action = remove(kinds::kPod, *active[static_cast<std::size_t>(i)]);
      action.events.push_back({false, "SuccessfulDelete", "Deleted pod: " + action.name});
      plan.actions.push_back(std::move(action));
    }
  }
  auto status = status_or_empty(set);
  auto& object = status.as_object();
  object["replicas"] = have;
  object["fullyLabeledReplicas"] = have;
  object["readyReplicas"] = ready;
  object["availableReplicas"] = available;
  object["observedGeneration"] = json::at(set, "metadata", "generation");
  if (early)
    set_workload_condition(status, kReplicaFailure, true, "BackOff", failures.story(), now);
  else if (have >= wanted)
    drop_condition(status);
  plan.status = std::move(status);
  return plan;
}

}  // namespace muster::controllers::replicaset
