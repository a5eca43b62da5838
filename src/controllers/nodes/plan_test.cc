#include "controllers/nodes/plan.h"

#include <gtest/gtest.h>

namespace muster::controllers::nodes {
namespace {

json::Value yaml(std::string_view text) { return json::parse(text).value(); }

const Time kNow = *parse_time("2026-11-15T10:00:00Z");

TEST(NodePlan, ASilentNodeBecomesUnknownAndTainted) {
  const auto node = yaml(R"({"spec":{"taints":[{"key":"mine","effect":"NoSchedule"}]},
                             "status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"},{"type":"Special","status":"True"}]}})");
  const auto plan = plan_node(node, true, kNow);
  EXPECT_EQ(
      json::dump(json::at(plan.status, "status", "conditions")),
      R"([{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status.","lastTransitionTime":"2026-11-15T10:00:00Z"},{"type":"Special","status":"True"}])");
  EXPECT_EQ(
      json::dump(json::at(plan.spec, "spec", "taints")),
      R"([{"key":"mine","effect":"NoSchedule"},{"key":"node.kubernetes.io/unreachable","effect":"NoSchedule","timeAdded":"2026-11-15T10:00:00Z"},{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"2026-11-15T10:00:00Z"}])");
}

TEST(NodePlan, AReadyNodeLosesItsTaints) {
  const auto node = yaml(
      R"({"spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  const auto plan = plan_node(node, false, kNow);
  EXPECT_TRUE(plan.status.is_null());
  EXPECT_EQ(json::dump(plan.spec), R"({"spec":{"taints":null}})");
}

TEST(NodePlan, ACordonedNodeIsTainted) {
  const auto node = yaml(
      R"({"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_EQ(
      json::text_at(json::array_at(plan_node(node, false, kNow).spec, "spec", "taints")[0], "key"),
      "node.kubernetes.io/unschedulable");
}

TEST(NodePlan, ANodeThatNobodyTendsIsLeftAlone) {
  const auto plan = plan_node(yaml(R"({"spec":{"unschedulable":true}})"), true, kNow);
  EXPECT_TRUE(plan.status.is_null() && plan.spec.is_null());
}

TEST(Eviction, FollowsTolerations) {
  const auto node = yaml(
      R"({"spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"2026-11-15T09:59:00Z"},{"key":"x","effect":"NoSchedule"}]}})");
  const auto at_time = [&](std::string_view tolerations) {
    return eviction_time(
        node,
        yaml(std::string(R"({"spec":{"tolerations":)") + std::string(tolerations) + "}}"),
        kNow);
  };
  EXPECT_EQ(at_time("[]"), kNow);
  EXPECT_EQ(
      at_time(
          R"([{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}])"),
      *parse_time("2026-11-15T10:04:00Z"));
  EXPECT_EQ(at_time(R"([{"key":"node.kubernetes.io/unreachable","operator":"Exists"}])"),
            std::nullopt);
  EXPECT_EQ(at_time(R"([{"operator":"Exists"}])"), std::nullopt);
  EXPECT_EQ(
      at_time(R"([{"key":"node.kubernetes.io/unreachable","value":"other","effect":"NoExecute"}])"),
      kNow);
}

}  // namespace
}  // namespace muster::controllers::nodes
