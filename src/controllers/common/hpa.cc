#include "controllers/common/hpa.h"

namespace muster::controllers {

void sync_autoscaler(Pass& pass, bool suspended) {
  const auto& policy = json::at(pass.job, "spec", "elasticPolicy");
  if (!json::at(policy, "metrics").is_array()) return;
  const auto* found = pass.view.find(kinds::kHorizontalPodAutoscaler, pass.name());
  if (suspended) {
    if (found != nullptr && is_controlled_by(*found, pass.job) && !is_terminating(*found)) {
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
                   {"metrics", json::at(policy, "metrics")}};
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
