
#include <gtest/gtest.h>

#include "controllers/common/test_world.h"
#include "controllers/common/training_kinds.h"
#include "controllers/pytorchjob/validate.h"

namespace muster::controllers::pytorchjob {
namespace {

const auto plan = plan_with(kind());

using testing::env_of;
using testing::TestWorld;

constexpr std::string_view kJob = R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: j, annotations: {muster.dev/on-preempt: requeue}}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: i}]}}}
    Worker: {replicas: 2, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: i}]}}}
)";

// conforms: PyTorchJob | annotation muster.dev/on-preempt: requeue | not known | a preempted job goes and comes back as a whole with its submission time
TEST(PyTorchJob, APreemptedJobThatAsksForItComesBackWhole) {
  TestWorld world(kJob);
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "Created=True Running=True");
  EXPECT_EQ(annotation_of(world.pod("j-worker-1"), "muster.dev/submitted-at"),
            json::string_at(world.job, "metadata", "creationTimestamp"));

  world.terminate("j-worker-1");
  world.settle(plan);
  EXPECT_EQ(world.names("Pod"), "j-master-0(going) j-worker-0(going) j-worker-1(going)");
  EXPECT_EQ(world.conditions(), "Created=True Restarting=True");
  EXPECT_TRUE(world.recorded("PyTorchJobRequeued"));

  world.vanish("j-worker-1");
  world.settle(plan);
  EXPECT_EQ(world.names("Pod"), "j-master-0(going) j-worker-0(going)")
      << "nothing is made until all of it is gone";
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(world.names("Pod"), "j-master-0 j-worker-0 j-worker-1");
  world.all_run();
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "Created=True Running=True");
}

TEST(PyTorchJob, APodThatSucceededBeforeItWasTakenAwayKeepsNobodyWaiting) {
  TestWorld world(kJob);
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  // Marked by a scheduler that died before it deleted it.
  world.phase("j-worker-0", "Succeeded");
  json::make_object(world.objects["Pod"].at("j-worker-0"), {"status"})["conditions"] =
      json::Array{json::Object{{"type", "DisruptionTarget"}, {"status", "True"}}};
  world.terminate("j-master-0");
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(world.names("Pod"), "j-master-0 j-worker-0 j-worker-1");
  world.phase("j-master-0", "Running");
  world.phase("j-worker-1", "Running");
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "Created=True Running=True");
}

TEST(PyTorchJob, WithoutTheAnnotationAPreemptedNeverJobFails) {
  TestWorld world(kJob);
  json::remove(world.job, {"metadata", "annotations"});
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  world.terminate("j-worker-1");
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "Created=True Running=False Failed=True");
  EXPECT_EQ(world.names("Pod"), "j-master-0 j-worker-0 j-worker-1(going)");
}

TEST(PyTorchJob, TheDeadlineHasATimer) {
  TestWorld world(kJob);
  json::make(world.job, {"spec", "runPolicy", "activeDeadlineSeconds"}) = 60;
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  ASSERT_TRUE(world.last.requeue_after);
  EXPECT_EQ(*world.last.requeue_after, std::chrono::seconds(60));
  world.now = world.now + std::chrono::seconds(60);
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "Created=True Running=False Failed=True");
  EXPECT_EQ(world.names("Pod"), "");
}

TEST(PyTorchJob, APermanentExitCodeEndsTheJobWithATimeSoThatItsTtlWorks) {
  TestWorld world(kJob);
  json::remove(world.job, {"metadata", "annotations"});
  json::make(world.job, {"spec", "pytorchReplicaSpecs", "Worker", "restartPolicy"}) = "ExitCode";
  json::make(world.job, {"spec", "runPolicy", "ttlSecondsAfterFinished"}) = 10;
  world.settle(plan);
  world.all_run();
  world.phase("j-worker-0", "Failed");
  json::make_object(world.objects["Pod"]["j-worker-0"],
                    {"status"})["containerStatuses"] = json::Array{json::Object{
      {"name", "pytorch"}, {"state", json::Object{{"terminated", json::Object{{"exitCode", 1}}}}}}};
  world.settle(plan);
  EXPECT_EQ(json::as_bool(json::at(world.job, "status", "completionTime").is_string()), true);
  world.now = world.now + std::chrono::seconds(10);
  world.pass(plan);
  EXPECT_TRUE(world.last.delete_job);
}

TEST(PyTorchJob, AReplicaThatFailsAtOnceIsNotMadeAgainManyTimesASecond) {
  TestWorld world(kJob);
  json::remove(world.job, {"metadata", "annotations"});
  json::make(world.job, {"spec", "pytorchReplicaSpecs", "Worker", "restartPolicy"}) = "ExitCode";
  world.settle(plan);
  world.all_run();
  world.phase("j-worker-0", "Failed");
  const auto now = format_time(world.now);
  json::make_object(world.objects["Pod"]["j-worker-0"],
                    {"status"})["containerStatuses"] = json::Array{json::Object{
      {"name", "pytorch"},
      {"state",
       json::Object{{"terminated",
                     json::Object{{"exitCode", 137}, {"startedAt", now}, {"finishedAt", now}}}}}}};
  world.settle(plan);
  EXPECT_EQ(phase_of(world.pod("j-worker-0")), "Failed");
  EXPECT_TRUE(world.recorded("PyTorchJobRestarting"));
  ASSERT_TRUE(world.last.requeue_after);
  EXPECT_EQ(*world.last.requeue_after, std::chrono::seconds(10));
  world.now = world.now + *world.last.requeue_after;
  world.settle(plan);
  EXPECT_EQ(phase_of(world.pod("j-worker-0")), "Pending") << "made anew";
}

TEST(PyTorchJob, ElasticEnvironment) {
  TestWorld world(R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: e}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 3, maxRestarts: 5, rdzvId: x, rdzvConf: [{key: a, value: b}, {key: c, value: d}], metrics: []}
  pytorchReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}
)");
  world.settle(plan);
  const auto& pod = world.pod("e-worker-0");
  EXPECT_EQ(env_of(pod, "PET_RDZV_ENDPOINT"), "e-worker-0:23456");
  EXPECT_EQ(env_of(pod, "PET_RDZV_BACKEND"), "c10d");
  EXPECT_EQ(env_of(pod, "PET_NNODES"), "1:3");
  EXPECT_EQ(env_of(pod, "PET_MAX_RESTARTS"), "5");
  EXPECT_EQ(env_of(pod, "PET_RDZV_CONF"), "a=b,c=d");
  EXPECT_EQ(env_of(pod, "MASTER_ADDR"), "(none)");
  EXPECT_EQ(label_of(pod, "training.kubeflow.org/job-role"), "master");
  EXPECT_EQ(world.names("HorizontalPodAutoscaler"), "e");
  json::make(world.job, {"spec", "runPolicy", "suspend"}) = true;
  world.settle(plan);
  EXPECT_EQ(world.names("HorizontalPodAutoscaler"), "");
}

TEST(PyTorchJob, AdmissionNamesEveryField) {
  const auto job = json::parse_yaml_one(R"(
metadata: {name: Bad}
spec:
  runPolicy: {managedBy: me}
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: other}]}}}
)");
  const auto text = validate(*job, nullptr).text();
  for (const std::string_view part : {"metadata.name: Invalid value",
                                      "spec.runPolicy.managedBy: Unsupported value",
                                      "containers[0].image: Required value",
                                      "[Master].template.spec.containers: Required value",
                                      "[Master].replicas: Forbidden: must be 1"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

}  // namespace
}  // namespace muster::controllers::pytorchjob
