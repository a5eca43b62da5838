#include <gtest/gtest.h>

#include "controllers/common/test_world.h"
#include "controllers/deployment/plan.h"
#include "controllers/endpoints/plan.h"
#include "controllers/endpoints/slices.h"
#include "controllers/replicaset/plan.h"
#include "controllers/statefulset/plan.h"

namespace muster::controllers {
namespace {

using testing::TestWorld;

constexpr std::string_view kSet = R"(
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec: {replicas: 3, serviceName: svc, podManagementPolicy: OrderedReady, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
)";

// conforms: StatefulSet | podManagementPolicy OrderedReady | one after the other when the one before is ready | same
TEST(StatefulSet, StartsInOrderAndReplacesByName) {
  TestWorld world(kSet);
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("Pod"), "s-0");
  world.all_run();
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("Pod"), "s-0 s-1");
  world.all_run();
  world.settle(statefulset::plan);
  world.all_run();
  world.settle(statefulset::plan);
  EXPECT_EQ(json::int_at(world.job, "status", "readyReplicas"), 3);
  world.vanish("s-1");
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("Pod"), "s-0 s-1 s-2");
  EXPECT_EQ(json::string_at(world.pod("s-1"), "spec", "subdomain"), "svc");
}

// conforms: StatefulSet | podManagementPolicy Parallel, spec.replicas | all at once; the highest go first | same
TEST(StatefulSet, ScalesDownFromTheTop) {
  TestWorld world(kSet);
  json::make(world.job, {"spec", "podManagementPolicy"}) = "Parallel";
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("Pod"), "s-0 s-1 s-2");
  json::make(world.job, {"spec", "replicas"}) = 1;
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("Pod"), "s-0");
}

// conforms: StatefulSet | volumeClaimTemplates, persistentVolumeClaimRetentionPolicy | a claim for each pod, kept when the pod goes; owned by the set under whenDeleted Delete | same
TEST(StatefulSet, EachPodHasItsClaims) {
  TestWorld world(kSet);
  json::make(world.job, {"spec", "podManagementPolicy"}) = "Parallel";
  json::make(world.job, {"spec", "replicas"}) = 2;
  json::make(world.job, {"spec", "selector"}) =
      json::Object{{"matchLabels", json::Object{{"a", "b"}}}};
  json::make(world.job, {"spec", "volumeClaimTemplates"}) = json::Array{
      json::Object{{"metadata", json::Object{{"name", "data"}}},
                   {"spec", json::Object{{"accessModes", json::Array{"ReadWriteOnce"}}}}}};
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("PersistentVolumeClaim"), "data-s-0 data-s-1");
  const auto& claim = *world.find("PersistentVolumeClaim", "data-s-1");
  EXPECT_EQ(label_of(claim, "a"), "b");
  EXPECT_TRUE(json::at(claim, "metadata", "ownerReferences").is_null());
  EXPECT_EQ(json::string_at(json::array_at(world.pod("s-1"), "spec", "volumes")[0],
                            "persistentVolumeClaim",
                            "claimName"),
            "data-s-1");
  world.vanish("s-1");
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("PersistentVolumeClaim"), "data-s-0 data-s-1")
      << "the claim is there already";
}

// conforms: StatefulSet | updateStrategy RollingUpdate, partition | from the top, one at a time, down to the partition | same
TEST(StatefulSet, UpdatesFromTheTopDownToThePartition) {
  TestWorld world(kSet);
  json::make(world.job, {"spec", "podManagementPolicy"}) = "Parallel";
  world.settle(statefulset::plan);
  world.all_run();
  world.settle(statefulset::plan);
  json::make(world.job, {"spec", "updateStrategy", "rollingUpdate", "partition"}) = 2;
  json::make(world.job, {"spec", "template", "metadata", "labels", "a"}) = "c";
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("Pod"), "s-0 s-1 s-2(going)");
  world.vanish("s-2");
  world.settle(statefulset::plan);
  world.all_run();
  world.settle(statefulset::plan);
  EXPECT_EQ(world.names("Pod"), "s-0 s-1 s-2") << "those below the partition stay";
  EXPECT_EQ(label_of(world.pod("s-2"), "a"), "c");
  EXPECT_EQ(label_of(world.pod("s-1"), "a"), "b");
}

TEST(ReplicaSet, KeepsTheNumber) {
  TestWorld world(
      "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: 3, template: {spec: {containers: [{name: c, image: i}]}}}}");
  world.settle(replicaset::plan);
  EXPECT_EQ(world.all("Pod").size(), 3U);
  world.phase(name_of(*world.all("Pod")[0]), "Failed");
  world.settle(replicaset::plan);
  EXPECT_EQ(json::int_at(world.job, "status", "replicas"), 3);
  json::make(world.job, {"spec", "replicas"}) = 1;
  world.settle(replicaset::plan);
  EXPECT_EQ(json::int_at(world.job, "status", "replicas"), 1);
}

// conforms: ReplicaSet, StatefulSet | minReadySeconds | a pod counts as available once it has been ready for so long | same
TEST(ReplicaSet, APodIsAvailableOnceItHasBeenReadyForLongEnough) {
  const auto ready_since = [](TestWorld& world) {
    world.all_run();
    for (auto& [name, pod] : world.objects["Pod"]) {
      for (auto& condition : json::make_object(pod, {"status"})["conditions"].as_array())
        condition.as_object()["lastTransitionTime"] = format_time(world.now);
    }
  };
  const auto available = [](const TestWorld& world) {
    return json::int_at(world.job, "status", "availableReplicas");
  };
  TestWorld set(
      "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: 2, minReadySeconds: 10, template: {spec: {containers: [{name: c, image: i}]}}}}");
  set.settle(replicaset::plan);
  ready_since(set);
  set.settle(replicaset::plan);
  EXPECT_EQ(json::int_at(set.job, "status", "readyReplicas"), 2);
  EXPECT_EQ(available(set), 0);
  ASSERT_TRUE(set.last.requeue_after);
  set.now = set.now + *set.last.requeue_after;
  set.settle(replicaset::plan);
  EXPECT_EQ(available(set), 2);

  TestWorld stateful(
      "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 2, minReadySeconds: 10, template: {spec: {containers: [{name: c, image: i}]}}}}");
  stateful.settle(statefulset::plan);
  ready_since(stateful);
  stateful.settle(statefulset::plan);
  EXPECT_EQ(stateful.all("Pod").size(), 1U) << "the second waits until the first is available";
  ASSERT_TRUE(stateful.last.requeue_after);
  stateful.now = stateful.now + *stateful.last.requeue_after;
  stateful.settle(statefulset::plan);
  EXPECT_EQ(stateful.all("Pod").size(), 2U);
}

TEST(Deployment, RollsOverToANewTemplate) {
  TestWorld world(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}");
  const auto all_available = [&] {
    for (auto& [name, set] : world.objects["ReplicaSet"]) {
      const auto n = json::at(set, "spec", "replicas");
      set.as_object()["status"] =
          json::Object{{"replicas", n}, {"readyReplicas", n}, {"availableReplicas", n}};
    }
  };
  for (int i = 0; i < 3; ++i) {
    world.settle(deployment::plan);
    all_available();
  }
  world.settle(deployment::plan);
  ASSERT_EQ(world.all("ReplicaSet").size(), 1U);
  EXPECT_EQ(json::int_at(world.job, "status", "availableReplicas"), 2);
  json::make(world.job, {"spec", "template", "spec", "containers"}) =
      json::Array{json::Object{{"name", "c"}, {"image", "new"}}};
  for (int i = 0; i < 8; ++i) {
    world.settle(deployment::plan);
    all_available();
    int available = 0;
    for (const auto* set : world.all("ReplicaSet"))
      available += static_cast<int>(json::int_at(*set, "status", "availableReplicas"));
    EXPECT_GE(available, 1);
  }
  int total = 0;
  for (const auto* set : world.all("ReplicaSet")) {
    const auto n = json::int_at(*set, "spec", "replicas");
    total += static_cast<int>(n);
    const bool is_new =
        json::string_at(json::array_at(*set, "spec", "template", "spec", "containers")[0],
                        "image") == "new";
    EXPECT_EQ(n, is_new ? 2 : 0);
  }
  EXPECT_EQ(total, 2);
}

// conforms: Deployment | kubectl rollout undo, history | an old template that comes back is the newest revision; the deployment names it; old sets beyond revisionHistoryLimit go | same
TEST(Deployment, AnOldTemplateThatComesBackIsTheNewestRevision) {
  TestWorld world(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 1, revisionHistoryLimit: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: one}]}}}}");
  const auto roll_to = [&](std::string_view image) {
    json::make(world.job, {"spec", "template", "spec", "containers"}) =
        json::Array{json::Object{{"name", "c"}, {"image", image}}};
    for (int i = 0; i < 6; ++i) {
      world.settle(deployment::plan);
      if (world.last.job_patch) json::merge_patch(world.job, *world.last.job_patch);
      for (auto& [name, set] : world.objects["ReplicaSet"]) {
        const auto n = json::at(set, "spec", "replicas");
        set.as_object()["status"] =
            json::Object{{"replicas", n}, {"readyReplicas", n}, {"availableReplicas", n}};
      }
    }
    return annotation_of(world.job, "deployment.kubernetes.io/revision");
  };
  EXPECT_EQ(roll_to("one"), "1");
  EXPECT_EQ(roll_to("two"), "2");
  EXPECT_EQ(roll_to("one"), "3");
  ASSERT_EQ(world.all("ReplicaSet").size(), 2U);
  EXPECT_EQ(roll_to("three"), "4");
  EXPECT_EQ(world.all("ReplicaSet").size(), 2U) << "the present one and one of the past";
}

// conforms: Deployment | progressDeadlineSeconds | Progressing=False, ProgressDeadlineExceeded when nothing moved for so long | same
TEST(Deployment, SaysThatItIsStuck) {
  TestWorld world(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 1, progressDeadlineSeconds: 60, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: one}]}}}}");
  world.settle(deployment::plan);
  EXPECT_NE(world.conditions().find("Progressing=True"), std::string::npos);
  world.now = world.now + std::chrono::seconds(61);
  world.settle(deployment::plan);
  EXPECT_NE(world.conditions().find("Progressing=False"), std::string::npos);
}

// conforms: EndpointSlice | labels, conditions, ports, 100 endpoints a slice | as kube-controller-manager writes them | same, without the trigger-time annotation; names are made of the service's uid, so a restart finds them
TEST(EndpointSlices, HoldAHundredEach) {
  const auto service = *json::parse_yaml_one(
      "{metadata: {name: svc, namespace: n, uid: u, labels: {x: z}}, spec: {clusterIP: None, selector: {a: b}, ports: [{name: p, port: 80}]}}");
  std::vector<json::Value> pods;
  for (int i = 0; i < 150; ++i) {
    pods.push_back(json::Object{
        {"metadata",
         json::Object{
             {"name", "p" + std::to_string(i)}, {"namespace", "n"}, {"uid", std::to_string(i)}}},
        {"status",
         json::Object{{"podIP", "10.0.0." + std::to_string(i)},
                      {"phase", "Running"},
                      {"conditions",
                       json::Array{json::Object{{"type", "Ready"},
                                                {"status", i == 1 ? "False" : "True"}}}}}}});
  }
  json::make(pods[2], {"metadata", "deletionTimestamp"}) = "2026-11-15T00:00:00Z";
  Objects all;
  for (const auto& pod : pods) all.push_back(&pod);
  const auto plan = endpoints::plan_slices(service, all, {});
  ASSERT_EQ(plan.actions.size(), 2U);
  const auto size = [&](int i) {
    return json::array_at(plan.actions[static_cast<std::size_t>(i)].body, "endpoints").size();
  };
  EXPECT_EQ(size(0) + size(1), 150U);
  const auto& full = plan.actions[size(0) == 100 ? 0 : 1].body;
  EXPECT_EQ(
      json::dump(json::at(full, "metadata", "labels")),
      R"({"x":"z","kubernetes.io/service-name":"svc","endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","service.kubernetes.io/headless":""})");
  const auto conditions = [&](std::size_t i) {
    return json::dump(json::at(json::array_at(full, "endpoints")[i], "conditions"));
  };
  EXPECT_EQ(conditions(0), R"({"ready":true,"serving":true,"terminating":false})");
  EXPECT_EQ(conditions(1), R"({"ready":false,"serving":false,"terminating":false})");
  EXPECT_EQ(conditions(2), R"({"ready":false,"serving":true,"terminating":true})");
  // As it should be: nothing to do. Fewer pods: the second slice goes, the first is changed.
  const Objects found{&plan.actions[0].body, &plan.actions[1].body};
  EXPECT_TRUE(endpoints::plan_slices(service, all, found).actions.empty());
  const auto fewer = endpoints::plan_slices(service, Objects{all[0]}, found);
  ASSERT_EQ(fewer.actions.size(), 2U);
  // Nobody there: one slice that says so.
  const auto none = endpoints::plan_slices(service, {}, {});
  ASSERT_EQ(none.actions.size(), 1U);
  EXPECT_TRUE(json::array_at(none.actions[0].body, "endpoints").empty());
}

TEST(Endpoints, ReadyAndUnreadyApartWithHostNames) {
  const auto service = *json::parse_yaml_one(
      "{metadata: {name: svc, namespace: n}, spec: {selector: {a: b}, ports: [{name: p, port: 80, targetPort: web}]}}");
  const auto pod = [](const char* ip, bool ready) {
    return json::Value(json::Object{
        {"metadata", json::Object{{"name", ip}, {"namespace", "n"}, {"uid", ip}}},
        {"spec",
         json::Object{
             {"hostname", "h"},
             {"subdomain", "svc"},
             {"containers",
              json::Array{json::Object{
                  {"ports",
                   json::Array{json::Object{{"name", "web"}, {"containerPort", 8080}}}}}}}}},
        {"status",
         json::Object{{"podIP", ip},
                      {"phase", "Running"},
                      {"conditions",
                       json::Array{json::Object{{"type", "Ready"},
                                                {"status", ready ? "True" : "False"}}}}}}});
  };
  const auto one = pod("10.0.0.1", true), two = pod("10.0.0.2", false);
  const auto plan = endpoints::plan(service, {&one, &two}, nullptr);
  ASSERT_EQ(plan.actions.size(), 1U);
  const auto& subset = json::array_at(plan.actions[0].body, "subsets")[0];
  EXPECT_EQ(json::string_at(json::array_at(subset, "addresses")[0], "hostname"), "h");
  EXPECT_EQ(json::array_at(subset, "notReadyAddresses").size(), 1U);
  EXPECT_EQ(json::int_at(json::array_at(subset, "ports")[0], "port"), 8080);
  EXPECT_TRUE(endpoints::plan(service, {&one, &two}, &plan.actions[0].body).actions.empty());
}

}  // namespace
}  // namespace muster::controllers
