#include "controllers/t9k/duration.h"

#include <gtest/gtest.h>

#include "kube/kinds/t9k.h"

namespace muster::controllers::t9k {
namespace {

json::Value yaml(std::string_view text) { return *json::parse_yaml_one(text); }

TEST(T9kDuration, IsReadAsT9kWritesIt) {
  using namespace std::chrono_literals;
  EXPECT_EQ(kube::t9k_duration("3w"), 21 * 24h);
  EXPECT_EQ(kube::t9k_duration("2h45m"), 2h + 45min);
  EXPECT_EQ(kube::t9k_duration("1y1d1s250ms"), 366 * 24h + 1s + 250ms);
  for (const std::string_view none : {"", "0", "h", "5", "5x"})
    EXPECT_EQ(kube::t9k_duration(none), Duration::zero()) << none;
}

// conforms: T9k Queue | maxDuration | from a pod's creation on, waiting included; DaemonSets and PriorityClasses from system-cluster-critical on are exempt | same
TEST(T9kDuration, RunsFromThePodsCreation) {
  const auto queue = yaml("{spec: {maxDuration: 1h}}");
  const auto over = [&](std::string_view pod) {
    const auto at = time_over(yaml(pod), queue);
    return at ? format_time(*at) : "never";
  };
  EXPECT_EQ(
      over("{metadata: {creationTimestamp: '2026-11-15T10:00:00Z'}, status: {phase: Pending}}"),
      "2026-11-15T11:00:00Z");
  EXPECT_EQ(
      over("{metadata: {creationTimestamp: '2026-11-15T10:00:00Z'}, status: {phase: Succeeded}}"),
      "never");
  EXPECT_EQ(
      over(
          "{metadata: {creationTimestamp: '2026-11-15T10:00:00Z', deletionTimestamp: '2026-11-15T10:30:00Z'}}"),
      "never");
  EXPECT_EQ(
      over(
          "{metadata: {creationTimestamp: '2026-11-15T10:00:00Z', ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, controller: true}]}}"),
      "never");
  EXPECT_EQ(
      over("{metadata: {creationTimestamp: '2026-11-15T10:00:00Z'}, spec: {priority: 2000000000}}"),
      "never");
  EXPECT_FALSE(time_over(yaml("{metadata: {creationTimestamp: '2026-11-15T10:00:00Z'}}"),
                         yaml("{spec: {}}")));
}

// conforms: T9k Queue | maxDuration | T9k jobs are paused, Deployments, StatefulSets and ReplicaSets get 0 replicas, Jobs are suspended, other pods deleted; event MaxDurationExceeded | same
TEST(T9kDuration, StopsTheHighestOwnerThatIsKnown) {
  const auto stop = [](std::string_view owner, std::string_view labels = "{}") {
    const auto found = stop_of_owner(
        yaml("{metadata: {labels: " + std::string(labels) +
             ", ownerReferences: [{kind: Other, name: x}, {controller: true, uid: u, " +
             std::string(owner) + "}]}}"));
    return found ? found->kind + " " + found->name + " " + json::dump(found->patch) : "none";
  };
  EXPECT_EQ(stop("apiVersion: batch.tensorstack.dev/v1beta1, kind: MPIJob, name: m"),
            R"(MPIJob m {"spec":{"runMode":{"pause":{"enabled":true}}}})");
  EXPECT_EQ(stop("apiVersion: batch/v1, kind: Job, name: j"), R"(Job j {"spec":{"suspend":true}})");
  EXPECT_EQ(stop("apiVersion: apps/v1, kind: StatefulSet, name: s"),
            R"(StatefulSet s {"spec":{"replicas":0}})");
  EXPECT_EQ(stop("apiVersion: apps/v1, kind: ReplicaSet, name: r"),
            R"(ReplicaSet r {"spec":{"replicas":0}})");
  EXPECT_EQ(
      stop("apiVersion: apps/v1, kind: ReplicaSet, name: d-7f9c", "{pod-template-hash: 7f9c}"),
      R"(Deployment d {"spec":{"replicas":0}})");
  EXPECT_EQ(stop("apiVersion: kubeflow.org/v2beta1, kind: MPIJob, name: m"), "none");
  EXPECT_FALSE(stop_of_owner(yaml("{metadata: {name: bare}}")));
}

}  // namespace
}  // namespace muster::controllers::t9k
