#include "controllers/replicaset/plan.h"

#include <algorithm>

#include "controllers/common/workload.h"

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

}  // namespace

Plan plan(const json::Value& set, const View& view, const Settings&, Time now) {
  Plan plan;
  if (is_deleting(set)) return plan;
  const auto wanted = static_cast<int>(json::as_int(json::at(set, "spec", "replicas"), 1));
  Objects active;
  int ready = 0, available = 0;
  for (const auto* pod : view.controlled_by(kinds::kPod, uid_of(set))) {
    if (!is_active(*pod)) continue;
    active.push_back(pod);
    ready += is_ready(*pod);
    available += is_available(*pod, set, now, plan);
  }
  const int have = static_cast<int>(active.size());
  for (int i = have; i < wanted; ++i)
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
  plan.status = std::move(status);
  return plan;
}

}  // namespace muster::controllers::replicaset
