#include "controllers/batchjob/plan.h"

#include <gtest/gtest.h>

#include "controllers/batchjob/failure_policy.h"
#include "controllers/common/test_world.h"

namespace muster::controllers::batchjob {
namespace {

using testing::TestWorld;

TestWorld make(std::string_view spec) {
  TestWorld world("{apiVersion: batch/v1, kind: Job, metadata: {name: j}}");
  auto parsed = json::parse_yaml_one(spec);
  world.job.as_object()["spec"] = *parsed;
  json::make(world.job, {"spec", "template", "spec", "containers"}) =
      json::Array{json::Object{{"name", "c"}, {"image", "i"}}};
  return world;
}

std::string pod_of(const TestWorld& world, std::string_view index, bool at_work = true) {
  for (const auto* pod : world.all("Pod")) {
    const bool ended = phase_of(*pod) == "Failed" || phase_of(*pod) == "Succeeded";
    if (annotation_of(*pod, "batch.kubernetes.io/job-completion-index") == index &&
        ended != at_work)
      return name_of(*pod);
  }
  return "(none)";
}

int pods(const TestWorld& world) { return static_cast<int>(world.all("Pod").size()); }

// conforms: Job | spec.completions, spec.parallelism | Complete when that many pods have succeeded | same
TEST(BatchJob, RunsToCompletion) {
  auto world = make("{parallelism: 2, completions: 3}");
  world.settle(plan);
  EXPECT_EQ(pods(world), 2);
  world.phase(name_of(*world.all("Pod")[0]), "Succeeded");
  world.settle(plan);
  EXPECT_EQ(pods(world), 3);
  for (const auto* pod : world.all("Pod")) world.phase(name_of(*pod), "Succeeded");
  world.settle(plan);
  EXPECT_EQ(json::int_at(world.job, "status", "succeeded"), 3);
  EXPECT_NE(world.conditions().find("Complete=True"), std::string::npos);
}

// conforms: Job | spec.backoffLimit | BackoffLimitExceeded; deleted pods stay counted | same, by status.uncountedTerminatedPods instead of finalizers
TEST(BatchJob, ADeletedPodStaysCountedAndTheLimitEndsTheJob) {
  auto world = make("{backoffLimit: 0, completions: 1, parallelism: 1}");
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  world.terminate(name_of(*world.all("Pod")[0]));
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(json::int_at(world.job, "status", "failed"), 1);
  EXPECT_NE(world.conditions().find("Failed=True"), std::string::npos);
  EXPECT_TRUE(world.recorded("BackoffLimitExceeded"));
}

// conforms: Job | pod back-off | 10 s, 20 s, 40 s … up to 6 min | same
TEST(BatchJob, AReplacementWaits) {
  auto world = make("{backoffLimit: 6, completions: 1, parallelism: 1}");
  world.settle(plan);
  world.phase(name_of(*world.all("Pod")[0]), "Failed");
  world.settle(plan);
  EXPECT_EQ(pods(world), 1);
  ASSERT_TRUE(world.last.requeue_after);
  world.now = world.now + *world.last.requeue_after;
  world.settle(plan);
  EXPECT_EQ(pods(world), 2);
}

// conforms: Job | spec.completionMode Indexed | one success an index, JOB_COMPLETION_INDEX, completedIndexes | same
TEST(BatchJob, IndexesEachSucceedOnce) {
  auto world = make("{completionMode: Indexed, completions: 4, parallelism: 4}");
  world.settle(plan);
  ASSERT_EQ(pods(world), 4);
  for (const auto* pod : world.all("Pod")) {
    if (annotation_of(*pod, "batch.kubernetes.io/job-completion-index") != "1")
      world.phase(name_of(*pod), "Succeeded");
  }
  world.settle(plan);
  EXPECT_EQ(json::string_at(world.job, "status", "completedIndexes"), "0,2,3");
}

// conforms: Job | spec.suspend | pods go and are no failures, startTime is cleared | same
TEST(BatchJob, SuspendTakesThePodsAndResumeBringsThemBack) {
  auto world = make("{completions: 1, parallelism: 1}");
  world.settle(plan);
  world.all_run();
  json::make(world.job, {"spec", "suspend"}) = true;
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(pods(world), 0);
  EXPECT_EQ(json::int_at(world.job, "status", "failed"), 0) << "a pod told to go did not fail";
  json::make(world.job, {"spec", "suspend"}) = false;
  world.settle(plan);
  EXPECT_EQ(pods(world), 1);
  EXPECT_EQ(world.conditions(), "Suspended=False");
}

TEST(BatchJob, AGangHasItsGroupBeforeItsPods) {
  auto world = make(
      "{parallelism: 4, completions: 4, scheduling: {schedulingPolicy: {gang: {}}, disruptionMode: {all: {}}}}");
  json::make(world.job, {"metadata", "name"}) = "train";
  json::make(world.job, {"metadata", "uid"}) = "dc67adf6-e366-47b6-8f9b-f3b1cfc35dcc";
  world.pass(plan);
  EXPECT_EQ(world.names("Workload"), "train-557ffdbf5b");
  EXPECT_EQ(pods(world), 0);
  world.pass(plan);
  const std::string group = "train-557ffdbf5b-train-pgt-0-7bcd54676c";
  ASSERT_EQ(world.names("PodGroup.scheduling.k8s.io"), group);
  EXPECT_EQ(pods(world), 0);
  const auto& made = world.objects["PodGroup.scheduling.k8s.io"][group];
  EXPECT_EQ(json::int_at(made, "spec", "schedulingPolicy", "gang", "minCount"), 4);
  EXPECT_TRUE(json::at(made, "spec", "disruptionMode", "all").is_object());
  EXPECT_EQ(json::array_at(made, "metadata", "ownerReferences").size(), 2U);
  world.settle(plan);
  ASSERT_EQ(pods(world), 4);
  EXPECT_EQ(json::string_at(*world.all("Pod")[0], "spec", "schedulingGroup", "podGroupName"),
            group);
  EXPECT_TRUE(world.recorded("WorkloadCreated"));
  EXPECT_TRUE(world.recorded("PodGroupCreated"));
  json::make(world.job, {"spec", "parallelism"}) = 5;
  world.settle(plan);
  EXPECT_EQ(json::int_at(world.objects["PodGroup.scheduling.k8s.io"][group],
                         "spec",
                         "schedulingPolicy",
                         "gang",
                         "minCount"),
            5);
}

TEST(BatchJob, ASuspendedGangHasItsGroupAtOnce) {
  auto world = make(
      "{parallelism: 2, completions: 2, suspend: true, scheduling: {schedulingPolicy: {gang: {minCount: 2}}}}");
  world.settle(plan);
  EXPECT_EQ(world.all("Workload").size(), 1U);
  EXPECT_EQ(world.all("PodGroup.scheduling.k8s.io").size(), 1U);
  EXPECT_EQ(pods(world), 0);
  json::make(world.job, {"spec", "suspend"}) = false;
  world.settle(plan);
  EXPECT_EQ(pods(world), 2);
}

TEST(BatchJob, ATemplateThatNamesAGroupIsLeftAlone) {
  auto world = make("{parallelism: 1, completions: 1, scheduling: {schedulingPolicy: {gang: {}}}}");
  json::make(world.job, {"spec", "template", "spec", "schedulingGroup", "podGroupName"}) = "mine";
  world.settle(plan);
  EXPECT_EQ(world.all("Workload").size(), 0U);
  ASSERT_EQ(pods(world), 1);
  EXPECT_EQ(json::string_at(*world.all("Pod")[0], "spec", "schedulingGroup", "podGroupName"),
            "mine");
}

TEST(BatchJob, APlainJobIsNoGroup) {
  auto world = make("{parallelism: 1, completions: 1}");
  world.settle(plan);
  EXPECT_EQ(pods(world), 1);
  EXPECT_EQ(world.all("Workload").size() + world.all("PodGroup.scheduling.k8s.io").size(), 0U);
}

TEST(BatchJob, AnOwnedJobUsesItsParentsTemplate) {
  auto world = make("{parallelism: 2, completions: 2}");
  json::make(world.job, {"metadata", "annotations", "scheduling.k8s.io/group-template-name"}) =
      "workers";
  json::make(world.job, {"metadata", "ownerReferences"}) =
      json::Array{json::Object{{"apiVersion", "x/v1"},
                               {"kind", "JobSet"},
                               {"name", "set"},
                               {"uid", "u"},
                               {"controller", true}}};
  auto workload = json::parse_yaml_one(
      "{metadata: {name: w, uid: wu}, spec: {controllerRef: {kind: JobSet, name: set}, podGroupTemplates: [{name: workers, schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: null}]}}");
  world.objects["Workload"]["w"] = *workload;
  world.settle(plan);
  ASSERT_EQ(world.all("PodGroup.scheduling.k8s.io").size(), 1U);
  const auto& group = *world.all("PodGroup.scheduling.k8s.io")[0];
  EXPECT_EQ(json::string_at(group, "spec", "workloadRef", "templateName"), "workers");
  ASSERT_EQ(pods(world), 2);
  EXPECT_EQ(json::string_at(*world.all("Pod")[0], "spec", "schedulingGroup", "podGroupName"),
            name_of(group));
}

// conforms: Job | spec.parallelism lowered | the pods too many go, those that run least first, and are no failures | same
TEST(BatchJob, FewerAtATimeIsNoFailure) {
  auto world = make(
      "{completions: 3, parallelism: 3, backoffLimit: 0, podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: NotIn, values: [0]}}]}}");
  world.settle(plan);
  world.all_run();
  for (const auto* pod : world.all("Pod"))
    json::make(world.objects["Pod"].at(name_of(*pod)), {"spec", "nodeName"}) = "n";
  const auto least = name_of(*world.all("Pod")[1]);
  json::make(world.objects["Pod"].at(least), {"spec", "nodeName"}) = "";
  json::make(world.job, {"spec", "parallelism"}) = 2;
  world.settle(plan);
  ASSERT_TRUE(is_deleting(world.pod(least)));
  world.phase(least, "Failed");
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(pods(world), 2);
  EXPECT_EQ(json::int_at(world.job, "status", "failed"), 0);
  EXPECT_EQ(world.conditions(), "");
}

// conforms: Job | completions and parallelism of an Indexed Job lowered together | the highest indexes go | same
TEST(BatchJob, AnElasticJobLosesItsHighestIndexes) {
  auto world = make(
      "{completionMode: Indexed, completions: 11, parallelism: 11, backoffLimitPerIndex: 0, backoffLimit: 1000}");
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  json::make(world.job, {"spec", "parallelism"}) = 9;
  json::make(world.job, {"spec", "completions"}) = 9;
  world.settle(plan);
  EXPECT_TRUE(is_deleting(world.pod(pod_of(world, "10"))));
  EXPECT_TRUE(is_deleting(world.pod(pod_of(world, "9"))));
  world.vanish_terminating();
  for (const auto* pod : world.all("Pod")) world.phase(name_of(*pod), "Succeeded");
  world.settle(plan);
  EXPECT_EQ(json::string_at(world.job, "status", "completedIndexes"), "0-8");
  EXPECT_EQ(world.conditions(), "SuccessCriteriaMet=True Complete=True");
}

// conforms: Job | Failed, Complete | said when the last pod has ended; what was decided stands in FailureTarget, SuccessCriteriaMet | same
TEST(BatchJob, AJobIsOverWhenItsLastPodHasEnded) {
  auto world = make("{completions: 2, parallelism: 2, backoffLimit: 0}");
  world.settle(plan);
  world.all_run();
  world.phase(name_of(*world.all("Pod")[0]), "Failed");
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "FailureTarget=True");
  EXPECT_EQ(json::int_at(world.job, "status", "terminating"), 1);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "FailureTarget=True Failed=True");
  EXPECT_EQ(json::int_at(world.job, "status", "failed"), 2);
  EXPECT_TRUE(world.recorded("BackoffLimitExceeded"));
}

// conforms: Job | spec.activeDeadlineSeconds, spec.ttlSecondsAfterFinished | DeadlineExceeded; deleted after the TTL | same
TEST(BatchJob, DeadlineAndTtl) {
  auto world = make(
      "{completions: 1, parallelism: 1, activeDeadlineSeconds: 30, ttlSecondsAfterFinished: 5}");
  world.settle(plan);
  world.now = world.now + std::chrono::seconds(30);
  world.settle(plan);
  EXPECT_TRUE(world.recorded("DeadlineExceeded"));
  world.now = world.now + std::chrono::seconds(5);
  world.pass(plan);
  EXPECT_TRUE(world.last.delete_job);
}

void fail_with(TestWorld& world, const std::string& pod, int code) {
  world.phase(pod, "Failed");
  json::make(world.objects["Pod"].at(pod),
             {"status", "containerStatuses"}) = json::Array{json::Object{
      {"name", "c"}, {"state", json::Object{{"terminated", json::Object{{"exitCode", code}}}}}}};
}

constexpr std::string_view kPolicy =
    R"({backoffLimit: 1, completions: 1, parallelism: 1, podReplacementPolicy: Failed, podFailurePolicy: {rules: [
  {action: FailJob, onExitCodes: {containerName: c, operator: In, values: [42]}},
  {action: Ignore, onPodConditions: [{type: DisruptionTarget}]},
  {action: Count, onExitCodes: {operator: NotIn, values: [0]}}]}})";

// conforms: Job | spec.podFailurePolicy FailJob | ends at once with the rule in the message | same
TEST(BatchJob, AFailurePolicyEndsTheJobAtOnce) {
  auto world = make(kPolicy);
  world.settle(plan);
  const auto pod = name_of(*world.all("Pod")[0]);
  fail_with(world, pod, 42);
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "FailureTarget=True Failed=True");
  EXPECT_EQ(json::string_at(json::array_at(world.job, "status", "conditions")[1], "message"),
            "Container c for pod default/" + pod +
                " failed with exit code 42 matching FailJob rule at index 0");
}

// conforms: Job | spec.podFailurePolicy Ignore, Count | not counted; pods are judged when they have ended | same
TEST(BatchJob, AFailurePolicyForgivesDisruptions) {
  auto world = make(kPolicy);
  world.settle(plan);
  for (int i = 0; i < 3; ++i) {
    const auto pod = name_of(*world.all("Pod").back());
    world.phase(pod, "Failed");
    json::make(world.objects["Pod"].at(pod), {"status", "conditions"}) =
        json::Array{json::Object{{"type", "DisruptionTarget"}, {"status", "True"}}};
    world.settle(plan);
    world.vanish(pod);
    world.settle(plan);
  }
  EXPECT_EQ(json::int_at(world.job, "status", "failed"), 0);
  EXPECT_EQ(world.conditions(), "");
  EXPECT_EQ(pods(world), 1);
}

// conforms: Job | spec.backoffLimitPerIndex, FailIndex | failedIndexes; the others go on; Failed at the end | same
TEST(BatchJob, IndexesHaveLimitsOfTheirOwn) {
  auto world = make(
      "{completionMode: Indexed, completions: 2, parallelism: 2, backoffLimitPerIndex: 1, backoffLimit: 1000}");
  world.settle(plan);
  fail_with(world, pod_of(world, "0"), 1);
  world.settle(plan);
  ASSERT_TRUE(world.last.requeue_after) << "the index waits before it is tried again";
  world.now = world.now + *world.last.requeue_after;
  world.settle(plan);
  const auto again = pod_of(world, "0");
  EXPECT_EQ(annotation_of(world.pod(again), "batch.kubernetes.io/job-index-failure-count"), "1");
  fail_with(world, again, 1);
  world.settle(plan);
  EXPECT_EQ(json::string_at(world.job, "status", "failedIndexes"), "0");
  EXPECT_EQ(world.conditions(), "") << "the other index goes on";
  world.phase(pod_of(world, "1"), "Succeeded");
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "FailureTarget=True Failed=True");
  EXPECT_TRUE(world.recorded("FailedIndexes"));
}

// conforms: Job | spec.maxFailedIndexes | MaxFailedIndexesExceeded | same
TEST(BatchJob, TooManyFailedIndexesEndIt) {
  auto world = make(
      "{completionMode: Indexed, completions: 3, parallelism: 3, backoffLimitPerIndex: 0, maxFailedIndexes: 1, backoffLimit: 1000}");
  world.settle(plan);
  fail_with(world, pod_of(world, "0"), 1);
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "");
  fail_with(world, pod_of(world, "2"), 1);
  world.settle(plan);
  EXPECT_TRUE(world.recorded("MaxFailedIndexesExceeded"));
  EXPECT_EQ(json::string_at(world.job, "status", "failedIndexes"), "0,2");
}

// conforms: Job | spec.successPolicy | SuccessCriteriaMet and Complete by the first rule that holds | same
TEST(BatchJob, ASuccessPolicyEndsItEarly) {
  auto world = make(
      "{completionMode: Indexed, completions: 5, parallelism: 5, successPolicy: {rules: [{succeededIndexes: '0', succeededCount: 1}, {succeededIndexes: '1-3', succeededCount: 2}]}}");
  world.settle(plan);
  world.phase(pod_of(world, "4"), "Succeeded");
  world.phase(pod_of(world, "1"), "Succeeded");
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "");
  world.phase(pod_of(world, "3"), "Succeeded");
  world.settle(plan);
  EXPECT_EQ(world.conditions(), "SuccessCriteriaMet=True Complete=True");
  EXPECT_EQ(json::string_at(json::array_at(world.job, "status", "conditions")[1], "message"),
            "Matched rules at index 1");
  EXPECT_EQ(pods(world), 3) << "the rest is not needed";
}

TEST(BatchJob, AFewLettersDoNotNameBillionsOfIndexes) {
  EXPECT_EQ(format_indexes(parse_indexes("0,2-4,7-6,x,8")), "0,2-4,8");
  EXPECT_EQ(format_indexes(parse_indexes("3,4294967296,4294967297-4294967299")), "3");
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += std::to_string(i) + "000000-" + std::to_string(i) + "999999,";
  EXPECT_EQ(format_indexes(parse_indexes(text)), "0-999999");
}

// conforms: Job | spec.managedBy | another manager's Job is not touched | same
TEST(BatchJob, AnotherManagersJobIsLeftAlone) {
  auto world = make("{completions: 1, parallelism: 1, managedBy: example.com/mine}");
  world.settle(plan);
  EXPECT_EQ(pods(world), 0);
  EXPECT_FALSE(world.last.status);
}

}  // namespace
}  // namespace muster::controllers::batchjob
