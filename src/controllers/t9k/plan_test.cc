#include "controllers/t9k/plan.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/common/test_world.h"
#include "controllers/t9k/validate.h"

namespace muster::controllers::t9k {
namespace {

using testing::TestWorld;

// The example of T9k's manual.
constexpr std::string_view kJob = R"(
apiVersion: batch.tensorstack.dev/v1beta1
kind: MPIJob
metadata: {name: mpi-example}
spec:
  worker:
    replicas: 2
    extraMPIArgs: [-N, "3", --enable-recovery, --max-restarts, "100", --allow-run-as-root, -bind-to, none]
    cmd: [./random_walk, "20", "40", "2"]
    template:
      spec:
        containers:
        - name: mpi-worker
          image: t9kpublic/mpi-tutorial:2021022-2
          command: [ignored]
          env: [{name: NCCL_DEBUG, value: INFO}]
          resources: {limits: {cpu: 100m}, requests: {cpu: 50m}}
          workingDir: /usr/local/code
  mca: {pml: ob1, btl: ^openib}
  runPolicy: {cleanUpWorkers: true}
  ssh: {sshdPath: /usr/sbin/sshd}
  mpiHome: /usr/local
  scheduler: {t9kScheduler: {queue: default, priority: 50}}
)";

std::string words(const json::Value& container, std::string_view field) {
  std::vector<std::string> list;
  for (const auto& word : json::array_at(container, field)) list.push_back(json::text(word));
  return join(list, " ");
}
const json::Value& container(const json::Value& pod) {
  return json::array_at(pod, "spec", "containers")[0];
}

// conforms: MPIJob batch.tensorstack.dev/v1beta1 | worker.cmd, extraMPIArgs, mca, mpiHome, ssh | one mpirun made of all of them; workers run sshd; the template's command is ignored | same, the order of the arguments is ours
// conforms: MPIJob batch.tensorstack.dev/v1beta1 | scheduler.t9kScheduler | PodGroup of all pods with queue and priority; labels group-name, queue, role | same
TEST(T9kMPIJob, OneMpirunFromAllFields) {
  TestWorld world(kJob);
  world.settle(plan);
  EXPECT_EQ(world.names("Pod"), "mpi-example-launcher mpi-example-worker-0 mpi-example-worker-1");
  EXPECT_EQ(
      words(container(world.pod("mpi-example-launcher")), "args"),
      "/usr/local/bin/mpirun --hostfile /etc/mpi/hostfile --prefix /usr/local -mca btl ^openib -mca pml ob1 -x NCCL_DEBUG -x PATH -x LD_LIBRARY_PATH "
      "-N 3 --enable-recovery --max-restarts 100 --allow-run-as-root -bind-to none ./random_walk 20 40 2");
  EXPECT_EQ(words(container(world.pod("mpi-example-worker-0")), "command"), "/usr/sbin/sshd -D");
  EXPECT_EQ(
      json::string_at(world.objects["ConfigMap"].at("mpi-example-config"), "data", "hostfile"),
      "mpi-example-worker-0 slots=3\nmpi-example-worker-1 slots=3\n");
  const auto& group = world.objects["PodGroup.scheduler.tensorstack.dev"].at("mpi-example");
  EXPECT_EQ(json::dump(json::at(group, "spec")),
            R"({"minMember":3,"queue":"default","priority":50})");
  EXPECT_EQ(label_of(world.pod("mpi-example-worker-1"), "scheduler.tensorstack.dev/role"),
            "worker");
}

// conforms: MPIJob batch.tensorstack.dev/v1beta1 | status.phase, conditions | Pending, Running, Succeeded with the manual's conditions | same; Running is False after the end
// conforms: MPIJob batch.tensorstack.dev/v1beta1 | runPolicy.cleanUpWorkers | workers go at the end, the launcher stays | same
TEST(T9kMPIJob, LifeAndEnd) {
  TestWorld world(kJob);
  world.settle(plan);
  EXPECT_EQ(world.phase(), "Pending");
  EXPECT_EQ(world.conditions(), "ReplicaFailure=False Initialized=True");
  world.all_run();
  world.settle(plan);
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(json::int_at(world.job, "status", "aggregate", "running"), 3);
  world.phase("mpi-example-launcher", "Succeeded");
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(world.phase(), "Succeeded");
  EXPECT_EQ(world.conditions(),
            "ReplicaFailure=False Initialized=True Running=False Completed=True Failed=False");
  EXPECT_EQ(world.names("Pod"), "mpi-example-launcher")
      << "cleanUpWorkers keeps the launcher and its log";
  EXPECT_EQ(json::int_at(world.job, "status", "aggregate", "deleted"), 2);
}

// conforms: MPIJob batch.tensorstack.dev/v1beta1 | launcher exit code | not 0: Failed | same
TEST(T9kMPIJob, ALauncherThatFailsFailsTheJob) {
  TestWorld world(kJob);
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  world.phase("mpi-example-launcher", "Failed");
  world.settle(plan);
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.conditions(),
            "ReplicaFailure=False Initialized=True Running=False Completed=False Failed=True");
}

// conforms: MPIJob batch.tensorstack.dev/v1beta1 | a worker is lost | the parent makes it again | same, counted in restartCount, ReplicaFailure meanwhile
TEST(T9kMPIJob, ALostWorkerIsMadeAgainAndCounted) {
  TestWorld world(kJob);
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  world.terminate("mpi-example-worker-1");
  world.settle(plan);
  EXPECT_NE(world.conditions().find("ReplicaFailure=True"), std::string::npos);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(world.names("Pod"), "mpi-example-launcher mpi-example-worker-0 mpi-example-worker-1");
  EXPECT_EQ(json::int_at(json::array_at(world.job, "status", "tasks")[1], "restartCount"), 1);
  EXPECT_EQ(world.phase(), "Running") << "the launcher goes on";
  world.all_run();
  world.settle(plan);
  EXPECT_NE(world.conditions().find("ReplicaFailure=False"), std::string::npos);
}

// conforms: MPIJob batch.tensorstack.dev/v1beta1 | runMode.pause, resumeSpecs | pods go, Paused; Resuming with the resume settings, Running | same
TEST(T9kMPIJob, PauseAndResume) {
  TestWorld world(kJob);
  json::make(world.job, {"spec", "runMode", "pause", "resumeSpecs"}) = json::Array{json::Object{
      {"type", "worker"}, {"skipInitContainer", true}, {"command", json::Array{"/usr/bin/sshd"}}}};
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  json::make(world.job, {"spec", "runMode", "pause", "enabled"}) = true;
  world.settle(plan);
  EXPECT_EQ(world.phase(), "Paused");
  EXPECT_NE(world.conditions().find("Paused=True"), std::string::npos);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(world.names("Pod"), "");
  json::make(world.job, {"spec", "runMode", "pause", "enabled"}) = false;
  world.settle(plan);
  EXPECT_EQ(world.phase(), "Resuming");
  EXPECT_EQ(words(container(world.pod("mpi-example-worker-0")), "command"), "/usr/bin/sshd");
  EXPECT_EQ(json::int_at(json::array_at(world.job, "status", "tasks")[0], "restartCount"), 0)
      << "a pause is no restart";
  world.all_run();
  world.settle(plan);
  EXPECT_EQ(world.phase(), "Running");
}

// conforms: MPIJob batch.tensorstack.dev/v1beta1 | runMode.debug | sleep and sshd, nothing is trained | same
TEST(T9kMPIJob, DebugNeverTrains) {
  TestWorld world(kJob);
  json::make(world.job, {"spec", "runMode", "debug", "enabled"}) = true;
  world.settle(plan);
  EXPECT_EQ(words(container(world.pod("mpi-example-launcher")), "command"), "sleep inf");
  EXPECT_EQ(words(container(world.pod("mpi-example-launcher")), "args"), "");
  EXPECT_EQ(words(container(world.pod("mpi-example-worker-0")), "command"), "/usr/sbin/sshd -D");
}

// conforms: MPIJob batch.tensorstack.dev/v1beta1 | updates | resumeSpecs are immutable | same, and so is all but pause.enabled
TEST(T9kMPIJob, OnlyThePauseSwitchMayChange) {
  TestWorld world(kJob);
  auto changed = world.job;
  json::make(changed, {"spec", "runMode", "pause", "enabled"}) = true;
  EXPECT_EQ(validate(changed, &world.job).text(), "");
  json::make(changed, {"spec", "runMode", "pause", "resumeSpecs"}) =
      json::Array{json::Object{{"type", "worker"}}};
  EXPECT_NE(validate(changed, &world.job).text().find("spec.runMode.pause.resumeSpecs"),
            std::string::npos);
  auto other = world.job;
  json::make(other, {"spec", "worker", "replicas"}) = 9;
  EXPECT_NE(validate(other, &world.job).text(), "");
  auto unknown = world.job;
  json::make(unknown, {"spec", "wrkr"}) = 1;
  EXPECT_NE(validate(unknown, nullptr).text().find("spec.wrkr"), std::string::npos);
}

// conforms: MPIJob batch.tensorstack.dev/v1beta1 | mpiConfig, replicaSpecs (the later manual) | home, mca, extraArgs, script and the worker's template | taken apart into the usual fields; restartPolicy and the launcher's template are accepted without effect
TEST(T9kMPIJob, TakesTheLaterShape) {
  TestWorld world(R"(
apiVersion: batch.tensorstack.dev/v1beta1
kind: MPIJob
metadata: {name: later}
spec:
  mpiConfig: {home: /usr/local, mca: {pml: ob1}, extraArgs: [-N, "2"], script: [./run, x]}
  replicaSpecs:
  - type: worker
    replicas: 2
    restartPolicy: {policy: OnFailure, limit: 1}
    template: {spec: {containers: [{name: worker, image: i, env: [{name: A, value: b}]}]}}
  - {type: launcher, template: {}}
)");
  world.settle(plan);
  EXPECT_EQ(world.names("Pod"), "later-launcher later-worker-0 later-worker-1");
  EXPECT_EQ(
      words(container(world.pod("later-launcher")), "args"),
      "/usr/local/bin/mpirun --hostfile /etc/mpi/hostfile --prefix /usr/local -mca pml ob1 -x A -x PATH -x LD_LIBRARY_PATH -N 2 ./run x");
  EXPECT_EQ(json::string_at(world.objects["ConfigMap"].at("later-config"), "data", "hostfile"),
            "later-worker-0 slots=2\nlater-worker-1 slots=2\n");
  EXPECT_EQ(json::string_at(container(world.pod("later-worker-0")), "name"), "worker");
  auto mixed = world.job;
  json::make(mixed, {"spec", "worker"}) = json::Object{};
  EXPECT_NE(validate(mixed, nullptr).text().find("spec.worker: Forbidden"), std::string::npos);
  auto nameless = world.job;
  json::make(nameless, {"spec", "replicaSpecs"}) =
      json::Array{json::Object{{"type", "worker"}, {"template", json::Object{}}}};
  EXPECT_NE(validate(nameless, nullptr).text().find("must have a container named worker"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::controllers::t9k
