#include "controllers/podgc/plan.h"

#include "controllers/common/objects.h"

namespace muster::controllers::podgc {

namespace {

constexpr std::string_view kReason = "DeletionByPodGC";

}  // namespace

bool is_lost(const json::Value& pod) {
  for (const auto& condition : json::array_at(pod, "status", "conditions")) {
    if (json::string_at(condition, "type") == "DisruptionTarget")
      return json::string_at(condition, "reason") == kReason;
  }
  return false;
}

bool goes_with(const json::Value& pod, std::string_view node, bool node_is_there) {
  return json::string_at(pod, "spec", "nodeName") == node && (!node_is_there || is_lost(pod));
}

json::Value lost_status(const json::Value& pod, Time now) {
  json::Array conditions;
  for (const auto& condition : json::array_at(pod, "status", "conditions")) {
    const auto type = json::string_at(condition, "type");
    if (type == "DisruptionTarget") continue;
    json::Value kept = condition;
    if (type == "Ready" || type == "ContainersReady") kept.as_object()["status"] = "False";
    conditions.push_back(std::move(kept));
  }
  conditions.push_back(json::Object{{"type", "DisruptionTarget"},
                                    {"status", "True"},
                                    {"reason", kReason},
                                    {"message", "PodGC: node no longer exists"},
                                    {"lastTransitionTime", time_value(now)}});
  json::Object status{{"conditions", std::move(conditions)}};
  const auto phase = phase_of(pod);
  if (phase != "Succeeded" && phase != "Failed") status["phase"] = "Failed";
  return json::Object{{"metadata", json::Object{{"uid", uid_of(pod)}}},
                      {"status", std::move(status)}};
}

}  // namespace muster::controllers::podgc
