#include "controllers/vcjob/plan.h"

#include <gtest/gtest.h>

#include "controllers/common/test_world.h"
#include "controllers/vcjob/pods.h"
#include "controllers/vcjob/spec.h"
#include "controllers/vcjob/validate.h"

namespace muster::controllers::vcjob {
namespace {

using testing::TestWorld;

constexpr std::string_view kJob = R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 3
  queue: research
  priorityClassName: high
  plugins: {env: [], svc: []}
  tasks:
  - name: ps
    replicas: 1
    template: {spec: {containers: [{name: ps, image: x, resources: {requests: {cpu: 1}}}]}}
  - name: worker
    replicas: 2
    template: {spec: {restartPolicy: Never, containers: [{name: w, image: x, resources: {requests: {cpu: 2, nvidia.com/gpu: 1}}}]}}
)";

constexpr const char* kGroup = "PodGroup.scheduling.volcano.sh";
constexpr const char* kGroupName = "train-job-uid";

struct World : TestWorld {
  explicit World(std::string_view yaml = kJob) : TestWorld(yaml) {}
  void settle_all() { settle(plan); }
  void admit() {
    json::make_object(objects[kGroup].at(kGroupName), {"status"})["phase"] = "Inqueue";
  }
  [[nodiscard]] std::string state() const { return json::text_at(job, "status", "state", "phase"); }
  void start() {
    settle_all();
    admit();
    settle_all();
    all_run();
    settle_all();
  }
  /// What the API server and the kubelets do with pods that are deleted.
  void reap() {
    vanish_terminating();
    settle_all();
  }
};

json::Value policies(std::string_view event, std::string_view action) {
  return json::Array{json::Object{{"event", event}, {"action", action}}};
}

TEST(VcJob, PodsComeWhenTheGroupIsAdmitted) {
  World world;
  world.settle_all();
  EXPECT_EQ(world.names(kGroup), kGroupName);
  EXPECT_EQ(world.names("Pod"), "");
  const json::Value& spec = json::at(world.objects[kGroup].at(kGroupName), "spec");
  EXPECT_EQ(json::dump(spec),
            R"({"minMember":3,"minTaskMember":{"ps":1,"worker":2},"queue":"research",)"
            R"("minResources":{"cpu":"5","nvidia.com/gpu":"2"},"priorityClassName":"high"})");
  world.admit();
  world.settle_all();
  EXPECT_EQ(world.names("Pod"), "train-ps-0 train-worker-0 train-worker-1");
  EXPECT_EQ(world.names("Service"), "train");
  const json::Value& pod = world.pod("train-worker-1");
  EXPECT_EQ(annotation_of(pod, "scheduling.k8s.io/group-name"), kGroupName);
  EXPECT_EQ(label_of(pod, "volcano.sh/task-spec"), "worker");
  EXPECT_EQ(json::text_at(pod, "spec", "hostname"), "train-worker-1");
  EXPECT_EQ(json::text_at(pod, "spec", "schedulerName"), "volcano");
  const json::Value& container = json::array_at(pod, "spec", "containers")[0];
  EXPECT_EQ(
      json::dump(json::at(container, "env")),
      R"([{"name":"VK_TASK_INDEX","value":"1"},{"name":"VC_TASK_INDEX","value":"1"},)"
      R"({"name":"VC_PS_HOSTS","value":"train-ps-0.train"},{"name":"VC_PS_NUM","value":"1"},)"
      R"({"name":"VC_WORKER_HOSTS","value":"train-worker-0.train,train-worker-1.train"},{"name":"VC_WORKER_NUM","value":"2"}])");
  EXPECT_EQ(world.state(), "Pending");
  world.all_run();
  world.settle_all();
  EXPECT_EQ(world.state(), "Running");
}

TEST(VcJob, EndsAsItsPodsDo) {
  World good;
  good.start();
  for (const char* pod : {"train-ps-0", "train-worker-0", "train-worker-1"})
    good.phase(pod, "Succeeded");
  good.settle_all();
  EXPECT_EQ(good.state(), "Completed");
  EXPECT_EQ(good.names(kGroup), "");

  World bad;
  bad.start();
  for (const char* pod : {"train-ps-0", "train-worker-0"}) bad.phase(pod, "Succeeded");
  bad.phase("train-worker-1", "Failed");
  bad.settle_all();
  EXPECT_EQ(bad.state(), "Failed");
  EXPECT_EQ(bad.names("Pod"), "train-ps-0 train-worker-0 train-worker-1");
}

TEST(VcJob, APolicyRestartsItUntilTheRetriesAreSpent) {
  World world;
  json::make_object(world.job, {"spec"})["policies"] = policies("PodFailed", "RestartJob");
  json::make_object(world.job, {"spec"})["maxRetry"] = 2;
  world.start();
  world.phase("train-worker-0", "Failed");
  world.settle_all();
  EXPECT_EQ(world.state(), "Restarting");
  world.reap();
  EXPECT_EQ(world.state(), "Pending");
  world.start();
  EXPECT_EQ(world.state(), "Running");
  world.phase("train-worker-0", "Failed");
  world.settle_all();
  world.reap();
  EXPECT_EQ(world.state(), "Failed");
  EXPECT_EQ(json::int_at(world.job, "status", "retryCount"), 2);
  EXPECT_EQ(world.names("Pod"), "train-worker-0") << "the last failure stays readable";
}

TEST(VcJob, ATasksPolicyGoesBeforeTheJobs) {
  World world;
  json::make_object(world.job, {"spec"})["policies"] = policies("*", "RestartJob");
  json::make(world.job, {"spec", "tasks"}).as_array()[0].as_object()["policies"] =
      policies("TaskCompleted", "CompleteJob");
  world.start();
  world.phase("train-ps-0", "Succeeded");
  world.settle_all();
  world.reap();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.names("Pod"), "train-ps-0");
}

TEST(VcJob, TerminateJobIsFinal) {
  World world;
  json::make_object(world.job, {"spec"})["policies"] =
      json::Array{json::Object{{"exitCode", 3}, {"action", "RestartJob"}},
                  json::Object{{"event", "PodFailed"}, {"action", "TerminateJob"}}};
  world.start();
  world.phase("train-worker-1", "Failed");
  world.settle_all();
  EXPECT_EQ(world.state(), "Terminating");
  world.reap();
  EXPECT_EQ(world.state(), "Terminated");
}

TEST(VcJob, SuspendedItGivesEverythingBackAndResumesWithoutARetry) {
  World world;
  world.start();
  set_annotation(world.job, "muster.dev/suspend", "true");
  world.settle_all();
  world.reap();
  EXPECT_EQ(world.state(), "Aborted");
  EXPECT_EQ(world.names("Pod") + world.names(kGroup), "");
  json::remove(world.job, {"metadata", "annotations", "muster.dev/suspend"});
  world.start();
  EXPECT_EQ(world.state(), "Running");
  EXPECT_TRUE(json::at(world.job, "status", "retryCount").is_null());
}

TEST(VcJob, ALostPodIsMadeAgain) {
  World world;
  world.start();
  world.vanish("train-worker-0");
  world.settle_all();
  EXPECT_EQ(world.names("Pod"), "train-ps-0 train-worker-0 train-worker-1");
  EXPECT_EQ(world.state(), "Pending");
}

TEST(VcJob, ALostPodOfAGangWhoseOthersFailedDoesNotWaitForThem) {
  World world;
  world.start();
  world.phase("train-ps-0", "Failed");
  world.phase("train-worker-0", "Failed");
  world.settle_all();
  const auto wanted = [&] {
    return json::int_at(world.objects[kGroup].at(kGroupName), "spec", "minMember");
  };
  EXPECT_EQ(wanted(), 3) << "nobody waits";
  world.vanish("train-worker-1");
  world.settle_all();
  EXPECT_EQ(world.names("Pod"), "train-ps-0 train-worker-0 train-worker-1");
  EXPECT_EQ(wanted(), 1);
}

TEST(VcJob, HostsAreInFilesThatFollowTheJob) {
  World world;
  world.start();
  EXPECT_EQ(json::string_at(world.objects["ConfigMap"].at("train-svc"), "data", "worker.host"),
            "train-worker-0.train\ntrain-worker-1.train");
  const json::Value& mount = json::array_at(
      json::array_at(world.pod("train-ps-0"), "spec", "containers")[0], "volumeMounts")[0];
  EXPECT_EQ(json::string_at(mount, "mountPath"), "/etc/volcano");
  world.job.at("spec").at("tasks").at(1).as_object()["replicas"] = 3;
  world.settle_all();
  EXPECT_EQ(json::string_at(world.objects["ConfigMap"].at("train-svc"), "data", "worker.host"),
            "train-worker-0.train\ntrain-worker-1.train\ntrain-worker-2.train");
}

TEST(VcJob, MadeSmallerItGoesOn) {
  World world;
  world.job.at("spec").as_object()["minAvailable"] = 2;
  world.job.at("spec").at("tasks").at(1).as_object()["minAvailable"] = 1;
  world.job.at("spec").as_object()["policies"] =
      json::Array{json::Object{{"event", "*"}, {"action", "RestartJob"}}};
  world.start();
  world.job.at("spec").at("tasks").at(1).as_object()["replicas"] = 1;
  world.settle_all();
  EXPECT_EQ(world.names("Pod"), "train-ps-0 train-worker-0 train-worker-1(going)");
  EXPECT_EQ(world.state(), "Running");
  world.phase("train-worker-1", "Failed");
  world.reap();
  EXPECT_EQ(world.names("Pod"), "train-ps-0 train-worker-0");
  EXPECT_EQ(world.state(), "Running");
  EXPECT_EQ(json::int_at(world.job, "status", "retryCount"), 0);
}

TEST(VcJob, FrameworksAreToldWhoTakesPart) {
  World world(R"(
metadata: {name: j}
spec:
  plugins: {mpi: [--master=head], tensorflow: [--port=3333]}
  tasks:
  - {name: head, replicas: 1, template: {spec: {containers: [{name: c, image: x}]}}}
  - {name: worker, replicas: 2, template: {spec: {containers: [{name: c, image: x}]}}}
)");
  const JobSpec spec = spec_of(world.job);
  EXPECT_EQ(problem_of(spec), "");
  const json::Value head = pod_of(world.job, spec, spec.tasks[0], 0),
                    worker = pod_of(world.job, spec, spec.tasks[1], 1);
  EXPECT_EQ(testing::env_of(head, "MPI_HOST"), "j-worker-0.j,j-worker-1.j");
  EXPECT_EQ(testing::env_of(worker, "MPI_HOST"), "(none)");
  EXPECT_EQ(
      testing::env_of(worker, "TF_CONFIG"),
      R"({"cluster":{"worker":["j-worker-0.j:3333","j-worker-1.j:3333"]},"task":{"type":"worker","index":1}})");
  EXPECT_TRUE(spec.has_plugin("svc") && spec.has_plugin("ssh")) << "which mpi needs";
}

TEST(VcJob, SaysWhatIsWrongWithIt) {
  const auto problem = [](std::string_view spec) {
    const auto job = json::parse_yaml_one(spec);
    return problem_of(spec_of(*job));
  };
  EXPECT_EQ(problem("spec: {tasks: []}"), "the job has no tasks");
  EXPECT_EQ(problem("spec: {tasks: [{name: a}, {name: a}]}"), "task \"a\" is given twice");
  EXPECT_EQ(problem("spec: {minAvailable: 3, tasks: [{name: a, replicas: 2}]}"),
            "minAvailable 3 is more than the 2 replicas of all tasks");
  EXPECT_EQ(problem("spec: {tasks: [{name: a, dependsOn: {name: [b]}}]}"),
            "task \"a\" depends on \"b\", which is not a task");
  EXPECT_EQ(problem("spec: {plugins: {ray: []}, tasks: [{name: a}]}"),
            "plugin \"ray\" is not known here");
}

TEST(VcJob, ExpiresAfterItsTime) {
  World world;
  json::make_object(world.job, {"spec"})["ttlSecondsAfterFinished"] = 60;
  world.start();
  for (const char* pod : {"train-ps-0", "train-worker-0", "train-worker-1"})
    world.phase(pod, "Succeeded");
  world.settle_all();
  EXPECT_FALSE(world.last.delete_job);
  EXPECT_EQ(world.last.requeue_after, std::optional<Duration>(std::chrono::seconds(60)));
  world.now = world.now + std::chrono::seconds(61);
  world.pass(plan);
  EXPECT_TRUE(world.last.delete_job);
}

TEST(VolcanoJobAdmission, WhatCouldOnlyFailIsRefused) {
  const auto said = [](std::string_view spec, std::string_view old_spec = "") {
    const auto job = [](std::string_view text) {
      return *json::parse_yaml_one("{metadata: {name: j}, spec: " + std::string(text) + "}");
    };
    const json::Value before = old_spec.empty() ? json::Value() : job(old_spec);
    return validate(job(spec), old_spec.empty() ? nullptr : &before).text();
  };
  EXPECT_EQ(said("{tasks: [{name: a, replicas: 2}]}"), "");
  EXPECT_NE(said("{tasks: []}"), "");
  EXPECT_NE(said("{tasks: [{name: a}, {name: a}]}"), "");
  EXPECT_NE(said("{tasks: [{name: A_b}]}"), "");
  EXPECT_NE(said("{minAvailable: 3, tasks: [{name: a, replicas: 2}]}"), "");
  EXPECT_NE(said("{maxRetry: -1, tasks: [{name: a}]}"), "");
  EXPECT_NE(said("{tasks: [{name: a, replicas: -1}]}"), "");
  EXPECT_NE(said("{plugins: {magic: []}, tasks: [{name: a}]}"), "");
  EXPECT_NE(said("{tasks: [{name: a, dependsOn: {name: [b]}}, {name: b, dependsOn: {name: [a]}}]}"),
            "");
  EXPECT_NE(said("{volumes: [{mountPath: /a}], tasks: [{name: a}]}"), "");
  const auto policy = [&](std::string_view text) {
    return said("{policies: [" + std::string(text) + "], tasks: [{name: a}]}");
  };
  EXPECT_EQ(policy("{event: PodFailed, action: RestartJob}, {exitCode: 3, action: AbortJob}"), "");
  EXPECT_NE(policy("{action: RestartJob}"), "");
  EXPECT_NE(policy("{event: PodFailed, exitCode: 3, action: RestartJob}"), "");
  EXPECT_NE(policy("{exitCode: 0, action: RestartJob}"), "");
  EXPECT_NE(policy("{event: PodFailed, action: Explode}"), "");
  EXPECT_NE(policy("{event: PodFailed, action: RestartJob}, {event: PodFailed, action: AbortJob}"),
            "");
  EXPECT_NE(policy("{event: \"*\", action: RestartJob}, {event: PodFailed, action: AbortJob}"), "");
  // Only amounts and the priority of a stored Job may change.
  EXPECT_EQ(said("{minAvailable: 1, tasks: [{name: a, replicas: 3}]}",
                 "{tasks: [{name: a, replicas: 2}]}"),
            "");
  EXPECT_NE(said("{tasks: [{name: b, replicas: 2}]}", "{tasks: [{name: a, replicas: 2}]}"), "");
}

}  // namespace
}  // namespace muster::controllers::vcjob
