#include "controllers/daemonset/plan.h"

#include <gtest/gtest.h>

#include "controllers/common/test_world.h"

namespace muster::controllers::daemonset {
namespace {

using testing::TestWorld;

constexpr std::string_view kSet = R"(
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: d}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {gpu: "yes"}, containers: [{name: c, image: i}]}}}
)";

void add_node(TestWorld& world, const std::string& name, std::string_view rest) {
  auto node = *json::parse_yaml_one(rest);
  json::make(node, {"metadata", "name"}) = name;
  world.objects["Node"][name] = std::move(node);
}

TestWorld three_nodes() {
  TestWorld world(kSet);
  for (const char* name : {"n1", "n2", "n3"})
    add_node(world, name, "{metadata: {labels: {gpu: 'yes'}}}");
  return world;
}

/// The pods run where they are meant to.
void run_all(TestWorld& world) {
  for (auto& [name, pod] : world.objects["Pod"]) {
    const std::string node = json::text(json::array_at(
        json::array_at(json::array_at(pod,
                                      "spec",
                                      "affinity",
                                      "nodeAffinity",
                                      "requiredDuringSchedulingIgnoredDuringExecution",
                                      "nodeSelectorTerms")[0],
                       "matchFields")[0],
        "values")[0]);
    if (is_deleting(pod)) continue;
    world.phase(name, "Running");
    json::make_object(pod, {"spec"})["nodeName"] = node;
  }
}

std::string counts(const TestWorld& world) {
  std::string text;
  for (const std::string_view field : {"desiredNumberScheduled",
                                       "currentNumberScheduled",
                                       "numberReady",
                                       "numberAvailable",
                                       "updatedNumberScheduled",
                                       "numberMisscheduled"}) {
    text += std::to_string(json::int_at(world.job, "status", field)) + " ";
  }
  return text;
}

// conforms: DaemonSet | nodeSelector, affinity, taints | one pod on each node that it fits and whose taints it tolerates | same
TEST(DaemonSet, OnePodOnEachNodeThatTakesIt) {
  TestWorld world = three_nodes();
  add_node(world, "plain", "{}");
  add_node(
      world,
      "tainted",
      "{metadata: {labels: {gpu: 'yes'}}, spec: {taints: [{key: k, value: v, effect: NoSchedule}]}}");
  add_node(
      world,
      "cordoned",
      "{metadata: {labels: {gpu: 'yes'}}, spec: {taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}");
  world.settle(plan);
  EXPECT_EQ(world.all("Pod").size(), 4U) << "n1, n2, n3 and the cordoned one";
  run_all(world);
  world.settle(plan);
  EXPECT_EQ(counts(world), "4 4 4 4 4 0 ");
  EXPECT_EQ(world.all("ControllerRevision").size(), 1U);
  // A node that stops to match loses its pod; one that is tainted later keeps it, unless the taint
  // says NoExecute.
  world.objects["Node"]["n1"] = *json::parse_yaml_one("{metadata: {name: n1}}");
  json::make(world.objects["Node"]["n2"], {"spec", "taints"}) =
      json::Array{json::Object{{"key", "k"}, {"effect", "NoSchedule"}}};
  json::make(world.objects["Node"]["n3"], {"spec", "taints"}) =
      json::Array{json::Object{{"key", "k"}, {"effect", "NoExecute"}}};
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(world.all("Pod").size(), 2U);
  EXPECT_EQ(counts(world), "1 1 1 1 1 1 ")
      << "the pod on n2 stays, though it would not be put there now";
}

// conforms: DaemonSet | updateStrategy RollingUpdate, maxUnavailable | old pods go one at a time, the next when the new one is available; OnDelete: only when the user deletes them | same
TEST(DaemonSet, RollsOneNodeAtATime) {
  TestWorld world = three_nodes();
  world.settle(plan);
  run_all(world);
  world.settle(plan);
  json::make(world.job, {"spec", "template", "metadata", "labels", "v"}) = "2";
  world.settle(plan);
  EXPECT_EQ(json::int_at(world.job, "status", "updatedNumberScheduled"), 0);
  int passes = 0;
  while (json::int_at(world.job, "status", "updatedNumberScheduled") < 3 && ++passes < 10) {
    world.settle(plan);
    int going = 0;
    for (const auto* pod : world.all("Pod")) going += is_deleting(*pod);
    EXPECT_LE(going, 1);
    world.vanish_terminating();
    world.settle(plan);
    run_all(world);
    world.settle(plan);
  }
  EXPECT_EQ(counts(world), "3 3 3 3 3 0 ");
  EXPECT_EQ(world.all("ControllerRevision").size(), 2U);
  json::make(world.job, {"spec", "updateStrategy", "type"}) = "OnDelete";
  json::make(world.job, {"spec", "template", "metadata", "labels", "v"}) = "3";
  world.settle(plan);
  EXPECT_EQ(counts(world), "3 3 3 3 0 0 ");
}

// conforms: DaemonSet | updateStrategy maxSurge | the new pod starts beside the old one, which goes when the new one is available | same
TEST(DaemonSet, SurgesBeforeItDeletes) {
  TestWorld world = three_nodes();
  json::make(world.job, {"spec", "updateStrategy", "rollingUpdate"}) =
      json::Object{{"maxSurge", 1}, {"maxUnavailable", 0}};
  world.settle(plan);
  run_all(world);
  world.settle(plan);
  json::make(world.job, {"spec", "template", "metadata", "labels", "v"}) = "2";
  world.settle(plan);
  EXPECT_EQ(world.all("Pod").size(), 4U);
  run_all(world);
  EXPECT_TRUE(world.pass(plan));
  int going = 0;
  for (const auto* pod : world.all("Pod")) going += is_deleting(*pod);
  EXPECT_EQ(going, 1);
}

// conforms: DaemonSet | a failed pod | FailedDaemonPod, deleted and made anew | same, not before 10 s have passed since it was made
TEST(DaemonSet, ReplacesAFailedPodAfterARest) {
  TestWorld world = three_nodes();
  world.settle(plan);
  run_all(world);
  world.phase(name_of(*world.all("Pod")[0]), "Failed");
  world.settle(plan);
  EXPECT_FALSE(world.recorded("FailedDaemonPod"));
  ASSERT_TRUE(world.last.requeue_after);
  world.now = world.now + *world.last.requeue_after;
  world.settle(plan);
  EXPECT_TRUE(world.recorded("FailedDaemonPod"));
  EXPECT_EQ(world.all("Pod").size(), 3U);
}

}  // namespace
}  // namespace muster::controllers::daemonset
