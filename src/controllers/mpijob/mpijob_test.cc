#include <gtest/gtest.h>

#include "controllers/common/test_world.h"
#include "controllers/mpijob/v1alpha1.h"
#include "controllers/mpijob/v2beta1.h"
#include "controllers/mpijob/version.h"

namespace muster::controllers::mpijob {
namespace {

using testing::TestWorld;

TEST(MPIJobVersion, TheVersionOfCreationDecides) {
  struct Case {
    const char* yaml;
    const char* version;
  };
  for (
      const auto& [yaml, version] : std::initializer_list<Case>{
          {"{apiVersion: kubeflow.org/v2beta1, spec: {replicas: 1, template: {spec: {}}}}",
           "v1alpha1"},
          {"{apiVersion: kubeflow.org/v1, spec: {mpiReplicaSpecs: {}, sshAuthMountPath: /root/.ssh}}",
           "v2beta1"},
          {"{apiVersion: kubeflow.org/v2beta1, spec: {mpiReplicaSpecs: {}, mainContainer: mpi}}",
           "v1"},
          {"{apiVersion: kubeflow.org/v1, spec: {mpiReplicaSpecs: {}}}", "v1"},
          {"{apiVersion: kubeflow.org/v2beta1, spec: {mpiReplicaSpecs: {}}}", "v2beta1"},
          {"{apiVersion: kubeflow.org/v1, metadata: {managedFields: [{apiVersion: kubeflow.org/v2beta1, time: '2'}, {apiVersion: kubeflow.org/v1alpha1, time: '1'}]}}",
           "v1alpha1"},
          {"{apiVersion: kubeflow.org/v1, metadata: {managedFields: [{apiVersion: kubeflow.org/v1, time: '1', subresource: status}, {apiVersion: kubeflow.org/v2beta1, time: '2'}]}}",
           "v2beta1"},
          {"{apiVersion: kubeflow.org/v1, metadata: {annotations: {muster.dev/mpi-version: v2beta1}}, spec: {mainContainer: x}}",
           "v2beta1"},
      }) {
    EXPECT_EQ(version_of(*json::parse_yaml_one(yaml)), version) << yaml;
  }
}

constexpr std::string_view kV2 = R"(
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: m, annotations: {muster.dev/on-preempt: requeue}}
spec:
  runLauncherAsWorker: true
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: main, image: i}]}}}
    Worker: {replicas: 3, template: {spec: {containers: [{name: main, image: i}]}}}
)";

TEST(MPIJobV2, ScalingDownKeepsTheWantedWorkersThoughLabelsAreShifted) {
  TestWorld world(kV2);
  world.settle(v2beta1::plan);
  EXPECT_EQ(world.names("Pod"), "m-worker-0 m-worker-1 m-worker-2");
  EXPECT_EQ(label_of(world.pod("m-worker-0"), "training.kubeflow.org/replica-index"), "1");
  const auto uid = uid_of(world.pod("m-worker-1"));
  json::make(world.job, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}) = 2;
  world.settle(v2beta1::plan);
  EXPECT_EQ(world.names("Pod"), "m-worker-0 m-worker-1");
  EXPECT_EQ(uid_of(world.pod("m-worker-1")), uid) << "a wanted worker was replaced";
}

// conforms: MPIJob v2beta1 | the secret NAME-ssh | exactly the key pair; what somebody added or took away is put right | same
TEST(MPIJobV2, AKeyTooManyInItsSecretIsTakenOutOnce) {
  TestWorld world(kV2);
  world.settle(v2beta1::plan);
  auto& secret = world.objects["Secret"].at("m-ssh");
  json::make(secret, {"data", "extra"}) = "eA==";
  world.settle(v2beta1::plan);  // comes to rest
  EXPECT_EQ(json::dump(json::at(secret, "data")), R"({"ssh-privatekey":"k","ssh-publickey":"k"})");
  json::remove(secret, {"data", "ssh-publickey"});
  world.settle(v2beta1::plan);
  EXPECT_EQ(json::object_at(secret, "data").size(), 2U);
}

TEST(MPIJobV2, APreemptedJobThatAsksForItStartsAgainAsAWhole) {
  TestWorld world(kV2);
  world.settle(v2beta1::plan);
  world.all_run();
  world.settle(v2beta1::plan);
  world.terminate("m-worker-2");
  world.settle(v2beta1::plan);
  EXPECT_EQ(world.names("Job"), "");
  EXPECT_EQ(world.names("Pod"), "m-worker-0(going) m-worker-1(going) m-worker-2(going)");
  EXPECT_EQ(world.conditions(), "Created=True Restarting=True");
  world.vanish_terminating();
  world.settle(v2beta1::plan);
  EXPECT_EQ(world.names("Job"), "m-launcher");
  EXPECT_EQ(world.names("Pod"), "m-worker-0 m-worker-1 m-worker-2");
}

TEST(MPIJobV2, WorkersDoNotWaitForALauncherThatWaitsForThem) {
  TestWorld world(kV2);
  world.settings.gang = Gang::kVolcano;
  world.settle(v2beta1::plan);
  EXPECT_EQ(
      json::int_at(world.objects["PodGroup.scheduling.volcano.sh"].at("m"), "spec", "minMember"),
      4);
  json::make(world.job, {"spec", "launcherCreationPolicy"}) = "WaitForWorkersReady";
  world.settle(v2beta1::plan);
  EXPECT_EQ(
      json::int_at(world.objects["PodGroup.scheduling.volcano.sh"].at("m"), "spec", "minMember"),
      3);
}

// conforms: MPIJob v2beta1 | a worker that has failed when the launcher starts again | stays failed | the same; with gang scheduling it is replaced, as the gang would wait for it for ever
TEST(MPIJobV2, AFailedWorkerIsReplacedWhenItsGangHasToStartAgain) {
  TestWorld world(kV2);
  world.settings.gang = Gang::kVolcano;
  json::remove(world.job, {"metadata", "annotations"});
  world.settle(v2beta1::plan);
  world.all_run();
  const auto uid = uid_of(world.pod("m-worker-1"));
  world.phase("m-worker-1", "Failed");
  world.settle(v2beta1::plan);
  EXPECT_EQ(uid_of(world.pod("m-worker-1")), uid) << "the launcher still runs";
  json::Value launcher = world.pod("m-worker-0");
  json::make(launcher, {"metadata", "name"}) = "m-launcher-2";
  json::make(launcher, {"metadata", "labels", "training.kubeflow.org/job-role"}) = "launcher";
  json::remove(launcher, {"spec", "nodeName"});
  json::make(launcher, {"status"}) = json::Object{{"phase", "Pending"}};
  world.objects["Pod"]["m-launcher-2"] = launcher;
  world.settle(v2beta1::plan);
  world.vanish_terminating();
  world.settle(v2beta1::plan);
  EXPECT_NE(uid_of(world.pod("m-worker-1")), uid);
  EXPECT_EQ(world.names("Pod"), "m-launcher-2 m-worker-0 m-worker-1 m-worker-2");
}

TEST(MPIJobV1Alpha1, UnitsAreSpreadOverNodes) {
  TestWorld world(R"(
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: u}
spec: {gpus: 8, gpusPerNode: 4, template: {spec: {containers: [{name: mpi, image: i}]}}}
)");
  world.settle(v1alpha1::plan);
  const auto& set = world.objects["StatefulSet"].at("u-worker");
  EXPECT_EQ(json::int_at(set, "spec", "replicas"), 2);
  EXPECT_EQ(json::string_at(world.objects["ConfigMap"].at("u-config"), "data", "hostfile"),
            "u-worker-0 slots=4\nu-worker-1 slots=4\n");
  json::make(world.job, {"spec", "gpus"}) = 9;
  world.settle(v1alpha1::plan);
  EXPECT_TRUE(world.recorded("MPIJobFailedValidation"));
}

TEST(MPIJobV1Alpha1, TheOperatorsSettingSaysHowManyUnitsANodeHas) {
  const auto workers = [](std::int64_t per_node) {
    TestWorld world(R"(
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: u}
spec: {gpus: 16, template: {spec: {containers: [{name: mpi, image: i}]}}}
)");
    if (per_node > 0) world.settings.gpus_per_node = per_node;
    world.settle(v1alpha1::plan);
    return json::int_at(world.objects["StatefulSet"].at("u-worker"), "spec", "replicas");
  };
  EXPECT_EQ(workers(0), 2);
  EXPECT_EQ(workers(4), 4);
  EXPECT_EQ(workers(1), 16);
}

}  // namespace
}  // namespace muster::controllers::mpijob
