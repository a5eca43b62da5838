#include "controllers/batchjob/plan.h"

#include <gtest/gtest.h>

#include "controllers/common/test_world.h"

namespace muster::controllers::batchjob {
namespace {

using testing::TestWorld;

TestWorld make(std::string_view spec) {
  TestWorld world("{apiVersion: batch/v1, kind: Job, metadata: {name: j}}");
  auto parsed = json::parse_yaml_one(spec);
  world.job.as_object()["spec"] = *parsed;
  json::make(world.job, {"spec", "template", "spec", "containers"}) = json::Array{json::Object{{"name", "c"}, {"image", "i"}}};
  return world;
}

int pods(const TestWorld& world) { return static_cast<int>(world.all("Pod").size()); }

TEST(BatchJob, RunsToCompletion) {
  auto world = make("{parallelism: 2, completions: 3}");
  world.settle(plan);
  EXPECT_EQ(pods(world), 2);
  world.phase(name_of(*world.all("Pod")[0]), "Succeeded");
  world.settle(plan);
  EXPECT_EQ(pods(world), 3);
  for (const auto* pod : world.all("Pod")) world.phase(name_of(*pod), "Succeeded");
  world.settle(plan);
  EXPECT_EQ(json::as_int(json::at(world.job, "status", "succeeded")), 3);
  EXPECT_NE(world.conditions().find("Complete=True"), std::string::npos);
}

TEST(BatchJob, ADeletedPodStaysCountedAndTheLimitEndsTheJob) {
  auto world = make("{backoffLimit: 0, completions: 1, parallelism: 1}");
  world.settle(plan);
  world.all_run();
  world.settle(plan);
  world.terminate(name_of(*world.all("Pod")[0]));
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(json::as_int(json::at(world.job, "status", "failed")), 1);
  EXPECT_NE(world.conditions().find("Failed=True"), std::string::npos);
  EXPECT_TRUE(world.recorded("BackoffLimitExceeded"));
}

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

TEST(BatchJob, IndexesEachSucceedOnce) {
  auto world = make("{completionMode: Indexed, completions: 4, parallelism: 4}");
  world.settle(plan);
  ASSERT_EQ(pods(world), 4);
  for (const auto* pod : world.all("Pod")) {
    if (annotation_of(*pod, "batch.kubernetes.io/job-completion-index") != "1") world.phase(name_of(*pod), "Succeeded");
  }
  world.settle(plan);
  EXPECT_EQ(json::as_string(json::at(world.job, "status", "completedIndexes")), "0,2,3");
}

TEST(BatchJob, SuspendTakesThePodsAndResumeBringsThemBack) {
  auto world = make("{completions: 1, parallelism: 1}");
  world.settle(plan);
  world.all_run();
  json::make(world.job, {"spec", "suspend"}) = true;
  world.settle(plan);
  world.vanish_terminating();
  world.settle(plan);
  EXPECT_EQ(pods(world), 0);
  EXPECT_EQ(json::as_int(json::at(world.job, "status", "failed")), 0) << "a pod told to go did not fail";
  json::make(world.job, {"spec", "suspend"}) = false;
  world.settle(plan);
  EXPECT_EQ(pods(world), 1);
  EXPECT_EQ(world.conditions(), "Suspended=False");
}

TEST(BatchJob, DeadlineAndTtl) {
  auto world = make("{completions: 1, parallelism: 1, activeDeadlineSeconds: 30, ttlSecondsAfterFinished: 5}");
  world.settle(plan);
  world.now = world.now + std::chrono::seconds(30);
  world.settle(plan);
  EXPECT_TRUE(world.recorded("DeadlineExceeded"));
  world.now = world.now + std::chrono::seconds(5);
  world.pass(plan);
  EXPECT_TRUE(world.last.delete_job);
}

}  // namespace
}  // namespace muster::controllers::batchjob
