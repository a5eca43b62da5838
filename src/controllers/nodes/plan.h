/// What becomes of a node that has fallen silent, and of the pods on a tainted one: the rules of
/// kube-controller-manager's node lifecycle and taint eviction controllers. Pure.
#pragma once

#include <optional>

#include "base/time.h"
#include "json/json.h"

namespace muster::controllers::nodes {

/// Merge patches; null: nothing to do.
struct NodePlan {
  json::Value status;
  json::Value spec;
};

/// `silent`: its lease has not been renewed for the grace period. Conditions become Unknown, and
/// taints follow conditions and spec.unschedulable. Taints of other keys are left alone; so is a
/// node without a Ready condition, which nobody tends.
NodePlan plan_node(const json::Value& node, bool silent, Time now);

/// When the NoExecute taints of its node end the pod; nullopt: they do not.
std::optional<Time> eviction_time(const json::Value& node, const json::Value& pod, Time now);

}  // namespace muster::controllers::nodes
