#include "controllers/common/hpa.h"

#include <string_view>
#include <utility>

namespace muster::controllers {

namespace {

/// A target is of the type whose amount it gives; one that says otherwise would compare with nothing.
json::Value with_target_types(const json::Value& metrics) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"averageUtilization", "Utilization"}, {"averageValue", "AverageValue"}, {"value", "Value"}};
  json::Value out = metrics;
  for (auto& metric : out.as_array()) {
    if (!metric.is_object()) continue;
    for (auto& [source, body] : metric.get_object()) {
      if (!json::at(body, "target").is_object()) continue;
      auto& target = json::make_object(body, {"target"});
      for (const auto& [field, type] : kTypes) {
        if (!target.contains(field)) continue;
        target["type"] = type;
        break;
      }
    }
  }
  return out;
}

}  // namespace

void sync_autoscaler(Pass& pass, bool suspended) {
  const auto& policy = json::at(pass.job, "spec", "elasticPolicy");
  if (!json::at(policy, "metrics").is_array()) return;
  const auto* found = pass.view.find(kinds::kHorizontalPodAutoscaler, pass.name());
  if (suspended) {
    if (found != nullptr && is_controlled_by(*found, pass.job) && !is_deleting(*found)) {
      pass.plan.actions.push_back(remove(kinds::kHorizontalPodAutoscaler, *found));
    }
    return;
  }
  const json::Value spec =
      json::Object{{"scaleTargetRef",
                    json::Object{{"kind", json::at(pass.job, "kind")},
                                 {"name", pass.name()},
                                 {"apiVersion", json::at(pass.job, "apiVersion")}}},
                   {"minReplicas", json::at(policy, "minReplicas")},
                   {"maxReplicas", json::at(policy, "maxReplicas")},
                   {"metrics", with_target_types(json::at(policy, "metrics"))}};
  if (found == nullptr) {
    if (pass.conditions.finished()) return;
    auto autoscaler =
        make_child(pass.job, "autoscaling/v2", "HorizontalPodAutoscaler", pass.name());
    autoscaler.as_object()["spec"] = spec;
    pass.plan.actions.push_back(create(kinds::kHorizontalPodAutoscaler, std::move(autoscaler)));
  } else if (!contains(json::at(*found, "spec"), spec)) {
    pass.plan.actions.push_back(
        patch(kinds::kHorizontalPodAutoscaler, pass.name(), json::Object{{"spec", spec}}));
  }
}

}  // namespace muster::controllers
