#include "controllers/framework/plan.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/common/test_world.h"

namespace muster::controllers::framework {
namespace {

using json::at;

struct Policies {
  int workers = 2;
  int min_failed = 1, min_succeeded = 2;
  bool fancy = true, task_fancy = false;
  int retries = 0, task_retries = 0;
  std::string execution = "Start";
  std::string annotations;  // "{a: b}"
};

std::string yaml(const Policies& with) {
  return fmt::format(R"(
apiVersion: frameworkcontroller.microsoft.com/v1
kind: Framework
metadata: {{name: job, annotations: {}}}
spec:
  executionType: {}
  retryPolicy: {{fancyRetryPolicy: {}, maxRetryCount: {}}}
  taskRoles:
  - name: worker
    taskNumber: {}
    frameworkAttemptCompletionPolicy: {{minFailedTaskCount: {}, minSucceededTaskCount: {}}}
    task:
      retryPolicy: {{fancyRetryPolicy: {}, maxRetryCount: {}}}
      podGracefulDeletionTimeoutSec: 600
      pod:
        metadata: {{labels: {{user: alice}}, annotations: {{note: x}}}}
        spec:
          restartPolicy: Never
          containers: [{{name: app, image: i, command: [echo, '{{{{FC_TASK_INDEX}}}}'], env: [{{name: OWN, value: $(FC_TASK_INDEX)}}]}}]
)",
                     with.annotations.empty() ? "{}" : with.annotations,
                     with.execution,
                     with.fancy,
                     with.retries,
                     with.workers,
                     with.min_failed,
                     with.min_succeeded,
                     with.task_fancy,
                     with.task_retries);
}

class World : public testing::TestWorld {
 public:
  explicit World(const Policies& with = {}) : TestWorld(yaml(with)) { settle(); }

  /// Until nothing changes; what is said to go goes when it is told to (vanish_terminating).
  void settle() { TestWorld::settle(plan); }
  void settle_all() {
    for (int i = 0; i < 5; ++i) {
      settle();
      vanish_terminating();
      std::erase_if(objects["ConfigMap"],
                    [](const auto& entry) { return is_deleting(entry.second); });
    }
    settle();
  }
  void run_all() {
    for (auto& [name, pod] : objects["Pod"]) {
      phase(name, "Running");
      json::make_object(pod, {"status"})["podIP"] = "10.0.0.1";
      json::make_object(pod, {"status"})["hostIP"] = "10.0.1.3";
    }
    settle();
  }
  void end(const std::string& pod, int code, std::string_view reason = "") {
    phase(pod, code == 0 ? "Succeeded" : "Failed");
    json::make_object(objects["Pod"].at(pod), {"status"})["containerStatuses"] =
        json::Array{json::Object{{"name", "app"},
                                 {"state",
                                  json::Object{{"terminated",
                                                json::Object{{"exitCode", code},
                                                             {"reason", reason},
                                                             {"finishedAt", format_time(now)}}}}}}};
  }
  [[nodiscard]] std::string state() const { return json::text_at(job, "status", "state"); }
  [[nodiscard]] std::int64_t code() const {
    return json::as_int(at(job, "status", "attemptStatus", "completionStatus", "code"), 999);
  }
  [[nodiscard]] std::int64_t attempt() const {
    return json::int_at(job, "status", "attemptStatus", "id");
  }
  [[nodiscard]] const json::Value& task(std::size_t index) const {
    const auto& roles = json::array_at(job, "status", "attemptStatus", "taskRoleStatuses");
    return json::array_at(roles[0], "taskStatuses")[index];
  }
  [[nodiscard]] std::size_t tasks() const {
    const auto& roles = json::array_at(job, "status", "attemptStatus", "taskRoleStatuses");
    return json::array_at(roles[0], "taskStatuses").size();
  }
  [[nodiscard]] std::int64_t task_code(std::size_t index) const {
    return json::as_int(at(task(index), "attemptStatus", "completionStatus", "code"), 999);
  }
  /// "total/accountable"
  [[nodiscard]] static std::string retries(const json::Value& status) {
    return fmt::format("{}/{}",
                       json::int_at(status, "retryPolicyStatus", "totalRetriedCount"),
                       json::int_at(status, "retryPolicyStatus", "accountableRetriedCount"));
  }
  void set_spec(std::string_view key, json::Value value) {
    json::make_object(job, {"spec"})[key] = std::move(value);
  }
  void set_workers(int number) {
    array_at(job, {"spec", "taskRoles"})[0].as_object()["taskNumber"] = number;
  }
};

TEST(Framework, AnAttemptIsAConfigMapThatOwnsThePodsOfItsTasks) {
  World world;
  EXPECT_EQ(world.names("ConfigMap"), "job-attempt");
  EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1");
  const auto& pod = world.pod("job-worker-1");
  const auto& owner = json::array_at(pod, "metadata", "ownerReferences")[0];
  EXPECT_EQ(json::text_at(owner, "kind"), "ConfigMap");
  EXPECT_EQ(json::text_at(owner, "name"), "job-attempt");
  for (const auto& [key, value] : {std::pair{"FC_FRAMEWORK_NAME", "job"},
                                   std::pair{"FC_TASKROLE_NAME", "worker"},
                                   std::pair{"FC_TASK_INDEX", "1"}}) {
    EXPECT_EQ(label_of(pod, key), value);
    EXPECT_EQ(annotation_of(pod, key), value);
    EXPECT_EQ(testing::env_of(pod, key), value);
  }
  EXPECT_EQ(annotation_of(pod, "FC_FRAMEWORK_ATTEMPT_ID"), "0");
  EXPECT_EQ(annotation_of(pod, "FC_TASK_ATTEMPT_ID"), "0");
  EXPECT_EQ(annotation_of(pod, "note"), "x");
  EXPECT_EQ(label_of(pod, "user"), "alice");
  const auto& container = json::array_at(pod, "spec", "containers")[0];
  EXPECT_EQ(json::dump(at(container, "command")), R"(["echo","1"])");
  EXPECT_EQ(json::string_at(json::array_at(container, "env").back(), "name"), "OWN");
  EXPECT_EQ(world.state(), "AttemptPreparing");
}

TEST(Framework, RunsWithItsFirstTaskAndKnowsWhereTasksAre) {
  World world;
  world.phase("job-worker-0", "Running");
  world.settle();
  EXPECT_EQ(world.state(), "AttemptRunning");
  EXPECT_EQ(json::text_at(world.task(0), "state"), "AttemptRunning");
  EXPECT_EQ(json::text_at(world.task(1), "state"), "AttemptPreparing");
  world.run_all();
  const auto& attempt = at(world.task(1), "attemptStatus");
  const std::string uid = json::text_at(world.pod("job-worker-1"), "metadata", "uid");
  EXPECT_EQ(json::text_at(attempt, "podUID"), uid);
  EXPECT_EQ(json::text_at(attempt, "instanceUID"), "0_" + uid);
  EXPECT_EQ(json::text_at(attempt, "podIP"), "10.0.0.1");
  EXPECT_EQ(json::text_at(attempt, "podHostIP"), "10.0.1.3");
  EXPECT_EQ(json::text_at(attempt, "podNodeName"), "node-1");
  EXPECT_FALSE(at(world.job, "status", "runTime").is_null());
}

TEST(Framework, SucceedsWhenEnoughTasksHave) {
  World world({.min_succeeded = 1});
  world.run_all();
  world.end("job-worker-1", 0);
  world.settle();
  EXPECT_EQ(world.state(), "AttemptDeletionRequested");
  EXPECT_EQ(world.names("Pod"), "job-worker-0(going) job-worker-1");
  world.settle_all();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), 0);
  EXPECT_EQ(world.task_code(0), -220);
  EXPECT_EQ(world.task_code(1), 0);
  EXPECT_EQ(world.names("Pod"), "job-worker-1") << "what ended by itself stays readable";
  const auto& trigger = at(world.job, "status", "attemptStatus", "completionStatus", "trigger");
  EXPECT_EQ(json::text_at(trigger, "taskRoleName"), "worker");
  EXPECT_EQ(json::int_at(trigger, "taskIndex"), 1);
}

TEST(Framework, ATaskThatNeverHadAPodIsStoppedWithoutOne) {
  World world({.min_succeeded = 1});
  world.run_all();
  world.end("job-worker-0", 0);
  world.objects["Pod"].at("job-worker-1");
  world.phase("job-worker-1", "Pending");
  world.settle_all();
  EXPECT_EQ(world.task_code(1), -220);
}

TEST(Framework, FailsWithTheTaskThatFailed) {
  World world;
  world.run_all();
  world.end("job-worker-0", 3);
  world.settle_all();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), 3);
  EXPECT_EQ(world.task_code(1), -220);
  const auto& status = at(world.job, "status", "attemptStatus", "completionStatus");
  EXPECT_EQ(json::text_at(status, "phrase"), "ContainerUnrecognizedFailed");
  EXPECT_EQ(json::text_at(status, "type", "name"), "Failed");
}

TEST(Framework, AnyNumberOfFailuresMayBeTolerated) {
  World world({.workers = 4, .min_failed = 3, .min_succeeded = -1});
  world.run_all();
  world.end("job-worker-0", 1);
  world.end("job-worker-1", 1);
  world.settle_all();
  EXPECT_EQ(world.state(), "AttemptRunning");
  world.end("job-worker-2", 1);
  world.settle_all();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), 1);
  EXPECT_EQ(world.task_code(3), -220);
}

TEST(Framework, MinusOneNeverEndsItEarlyAndAllCompletedSucceeds) {
  World world({.min_failed = -1, .min_succeeded = -1});
  world.run_all();
  world.end("job-worker-0", 1);
  world.settle_all();
  EXPECT_EQ(world.state(), "AttemptRunning");
  world.end("job-worker-1", 0);
  world.settle_all();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), 0);
}

TEST(Framework, APreemptedGangStartsAgainWhole) {
  World world;
  world.run_all();
  const std::string before = json::text_at(world.pod("job-worker-0"), "metadata", "uid");
  world.terminate("job-worker-0");
  world.settle();
  EXPECT_EQ(json::text_at(world.task(0), "state"), "AttemptDeleting");
  world.vanish("job-worker-0");
  world.settle_all();
  EXPECT_EQ(world.attempt(), 1);
  EXPECT_EQ(world.state(), "AttemptPreparing");
  EXPECT_EQ(World::retries(at(world.job, "status")), "1/0");
  EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1");
  EXPECT_NE(json::text_at(world.pod("job-worker-0"), "metadata", "uid"), before);
  EXPECT_EQ(annotation_of(world.pod("job-worker-1"), "FC_FRAMEWORK_ATTEMPT_ID"), "1");
}

/// How a pod ends once it is told to go says nothing about the task.
TEST(Framework, APodThatEndsWhileItIsDeletedWasTakenAway) {
  struct {
    std::string what;
    int code;              // of the container; -1: it never started
    int ended_before_s;    // the deletion
    std::string reason;    // of the pod
    int attempt;           // of the job, afterwards
    std::int64_t counted;  // retries
  } cases[] = {
      {"exits with 0 when told to", 0, 0, "", 1, 0},
      {"fails when told to", 7, 0, "", 1, 0},
      {"was between its containers", -1, 0, "", 1, 0},
      {"had failed by itself", 7, 5, "", 1, 1},
      {"had succeeded by itself", 0, 5, "", 0, 0},
      {"was evicted", -1, 0, "Evicted", 1, 0},
  };
  for (const auto& each : cases) {
    World world({.workers = 1, .min_succeeded = 1, .retries = 1});
    world.run_all();
    if (each.code >= 0) {
      world.end("job-worker-0", each.code);
    } else {
      world.phase("job-worker-0", "Failed");
    }
    json::Object& status = json::make_object(world.objects["Pod"].at("job-worker-0"), {"status"});
    if (!each.reason.empty()) status["reason"] = each.reason;
    world.now = world.now + std::chrono::seconds(each.ended_before_s);
    world.terminate("job-worker-0");
    world.settle_all();
    EXPECT_EQ(world.attempt(), each.attempt) << each.what;
    EXPECT_EQ(json::int_at(world.job, "status", "retryPolicyStatus", "accountableRetriedCount"),
              each.counted)
        << each.what;
  }
}

TEST(Framework, APreemptedTaskOfAnIncrementalJobStartsAgainAlone) {
  World world({.task_fancy = true});
  world.run_all();
  const std::string other = json::text_at(world.pod("job-worker-1"), "metadata", "uid");
  world.terminate("job-worker-0");
  world.settle_all();
  EXPECT_EQ(world.attempt(), 0);
  EXPECT_EQ(World::retries(world.task(0)), "1/0");
  EXPECT_EQ(json::int_at(world.task(0), "attemptStatus", "id"), 1);
  EXPECT_EQ(annotation_of(world.pod("job-worker-0"), "FC_TASK_ATTEMPT_ID"), "1");
  EXPECT_EQ(json::text_at(world.pod("job-worker-1"), "metadata", "uid"), other);
  EXPECT_EQ(world.state(), "AttemptRunning");
}

TEST(Framework, ATaskKeepsWhatBecameOfItsFormerAttempts) {
  World world({.min_failed = -1, .task_fancy = true, .task_retries = 12});
  for (int i = 0; i < 12; ++i) {
    world.run_all();
    world.end("job-worker-0", 40 + i);
    world.settle_all();
  }
  const json::Array& former = json::array_at(world.task(0), "formerAttempts");
  ASSERT_EQ(former.size(), 10U);
  EXPECT_EQ(json::int_at(former.front(), "id"), 2);
  EXPECT_EQ(json::int_at(former.back(), "completionStatus", "code"), 51);
  EXPECT_FALSE(json::string_at(former.back(), "podUID").empty());
  EXPECT_TRUE(json::array_at(world.task(1), "formerAttempts").empty());
}

TEST(Framework, ExitCodesSayWhetherItIsTriedAgain) {
  struct {
    int code;
    std::string reason;
    int retries;       // of the job
    bool tried_again;  // after one such end
    int counted;
  } cases[] = {
      {1, "", 0, false, 0},
      {1, "", 1, true, 1},
      {137, "", 0, true, 0},
      {143, "", 0, true, 0},
      {130, "", 0, true, 0},
      {131, "", 0, true, 0},
      {134, "", 0, false, 0},
      {139, "", 2, true, 1},
      {220, "", 5, false, 0},
      {254, "", 5, false, 0},
      {253, "", 0, true, 0},
      {255, "", 0, false, 0},
      {210, "", 5, false, 0},
      {200, "", 0, true, 0},
      {1, "", -1, true, 1},
      {137, "OOMKilled", 5, false, 0},
  };
  for (const auto& each : cases) {
    World world({.workers = 1, .min_succeeded = 1, .retries = each.retries});
    world.run_all();
    world.end("job-worker-0", each.code, each.reason);
    world.settle_all();
    EXPECT_EQ(world.attempt(), each.tried_again ? 1 : 0) << each.code << each.reason;
    EXPECT_EQ(World::retries(at(world.job, "status")),
              fmt::format("{}/{}", each.tried_again ? 1 : 0, each.counted))
        << each.code;
    if (each.reason == "OOMKilled") EXPECT_EQ(world.code(), -1200);
  }
}

/// The words are those of a kubelet with containerd.
TEST(Framework, AnOpenPaiJobWhoseImageIsNowhereEnds) {
  constexpr std::string_view kAbsent =
      "rpc error: code = NotFound desc = failed to pull and unpack image \"docker.io/library/x:1\": "
      "failed to resolve reference \"docker.io/library/x:1\": docker.io/library/x:1: not found";
  constexpr std::string_view kOutage =
      "rpc error: code = Unavailable desc = failed to pull and unpack image: dial tcp: i/o timeout";
  struct {
    std::string_view annotations, reason, message;
    bool ends;
  } cases[] = {
      {"{muster.dev/pai-runtime: x}", "ErrImagePull", kAbsent, true},
      {"{muster.dev/pai-runtime: x}", "ImagePullBackOff", kAbsent, true},
      {"{muster.dev/pai-runtime: x}", "InvalidImageName", "couldn't parse image name", true},
      {"{muster.dev/pai-runtime: x}", "ErrImagePull", kOutage, false},
      {"{muster.dev/pai-runtime: x}", "ContainerCreating", "", false},
      {"{}", "ErrImagePull", kAbsent, false},  // FrameworkController waits for ever
  };
  for (const auto& each : cases) {
    World world({.workers = 2, .retries = 3, .annotations = std::string(each.annotations)});
    world.phase("job-worker-0", "Pending");
    json::make_object(world.objects["Pod"].at("job-worker-0"), {"status"})["containerStatuses"] =
        json::Array{json::Object{
            {"name", "app"},
            {"state", {{"waiting", {{"reason", each.reason}, {"message", each.message}}}}}}};
    world.settle_all();
    EXPECT_EQ(world.state() == "Completed", each.ends) << each.reason << " " << each.message;
    if (!each.ends) continue;
    EXPECT_EQ(world.code(), 254);
    EXPECT_EQ(World::retries(at(world.job, "status")), "0/0");
    EXPECT_EQ(world.task_code(1), -220);
    EXPECT_TRUE(world.objects["Pod"].empty());
  }
}

TEST(Framework, ReasonsOfThePodHaveCodesOfTheirOwn) {
  for (const auto& [reason, code] : {std::pair{"Evicted", -1000},
                                     std::pair{"NodeLost", -1001},
                                     std::pair{"OutOfcpu", -1002},
                                     std::pair{"Preempting", -1003},
                                     std::pair{"DeadlineExceeded", -1004}}) {
    World world({.workers = 1, .fancy = false});
    world.run_all();
    world.phase("job-worker-0", "Failed");
    json::make_object(world.objects["Pod"].at("job-worker-0"), {"status"})["reason"] = reason;
    world.settle_all();
    EXPECT_EQ(world.code(), code) << reason;
  }
  World world({.workers = 1});
  world.run_all();
  world.phase("job-worker-0", "Failed");
  world.settle_all();
  EXPECT_EQ(world.code(), -300);
}

TEST(Framework, AConflictWaitsBeforeItIsTriedAgain) {
  World world({.workers = 1});
  world.run_all();
  world.end("job-worker-0", 251);
  world.settle_all();
  EXPECT_EQ(world.state(), "AttemptCompleted");
  const auto delay = json::int_at(world.job, "status", "retryPolicyStatus", "retryDelaySec");
  EXPECT_GE(delay, 60);
  EXPECT_LE(delay, 900);
  ASSERT_TRUE(world.last.requeue_after);
  world.now = world.now + std::chrono::seconds(delay - 1);
  world.settle_all();
  EXPECT_EQ(world.attempt(), 0);
  world.now = world.now + std::chrono::seconds(2);
  world.settle_all();
  EXPECT_EQ(world.attempt(), 1);
  EXPECT_TRUE(at(world.job, "status", "retryPolicyStatus", "retryDelaySec").is_null());
}

TEST(Framework, RetriesAreCountedUntilTheyAreUsedUp) {
  World world({.workers = 1, .retries = 2});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(world.attempt(), i);
    world.run_all();
    world.end("job-worker-0", 7);
    world.settle_all();
  }
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), 7);
  EXPECT_EQ(World::retries(at(world.job, "status")), "2/2");
}

TEST(Framework, MinusTwoTriesAgainEvenAfterSuccess) {
  World world({.workers = 1, .min_succeeded = 1, .retries = -2});
  world.run_all();
  world.end("job-worker-0", 0);
  world.settle_all();
  EXPECT_EQ(world.attempt(), 1);
}

TEST(Framework, ATaskIsTriedAgainBeforeItCountsAsFailed) {
  World world({.task_fancy = true, .task_retries = 1});
  world.run_all();
  world.end("job-worker-0", 9);
  world.settle();
  EXPECT_EQ(world.state(), "AttemptRunning");
  world.settle_all();
  EXPECT_EQ(World::retries(world.task(0)), "1/1");
  world.run_all();
  world.end("job-worker-0", 9);
  world.settle_all();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), 9);
}

TEST(Framework, StopEndsEverythingAndIsNeverRetried) {
  World world({.retries = 5});
  world.run_all();
  world.set_spec("executionType", "Stop");
  world.settle();
  EXPECT_EQ(world.names("Pod"), "job-worker-0(going) job-worker-1(going)");
  world.settle_all();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), -210);
  EXPECT_EQ(world.task_code(0), -210);
  EXPECT_EQ(World::retries(at(world.job, "status")), "0/0");
}

TEST(Framework, StopBeforeItStartsNeedsNoPod) {
  World world({.execution = "Create"});
  EXPECT_EQ(world.names("Pod"), "");
  EXPECT_EQ(world.state(), "AttemptCreationPending");
  world.set_spec("executionType", "Stop");
  world.settle_all();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), -210);
}

TEST(Framework, CreateWaitsForStart) {
  World world({.execution = "Create"});
  world.set_spec("executionType", "Start");
  world.settle();
  EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1");
}

TEST(Framework, StopWhileItWaitsToBeTriedAgain) {
  World world({.workers = 1});
  world.run_all();
  world.end("job-worker-0", 251);
  world.settle_all();
  world.set_spec("executionType", "Stop");
  world.settle_all();
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), -210);
}

TEST(Framework, MoreTasksAreAddedToTheRunningAttempt) {
  World world;
  world.run_all();
  world.set_workers(4);
  world.settle();
  EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1 job-worker-2 job-worker-3");
  EXPECT_EQ(world.state(), "AttemptRunning");
  EXPECT_EQ(world.attempt(), 0);
}

TEST(Framework, FewerTasksEndTheLastOnesWithoutFailingTheJob) {
  World world({.workers = 3, .min_succeeded = 3});
  world.run_all();
  world.set_workers(1);
  world.settle();
  EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1(going) job-worker-2(going)");
  EXPECT_EQ(world.task_code(2), -230);
  world.settle_all();
  EXPECT_EQ(world.tasks(), 1U);
  EXPECT_EQ(world.state(), "AttemptRunning");
  world.set_workers(2);
  world.settle();
  EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1");
}

TEST(Framework, APodThatDoesNotGoIsMadeToAfterItsTime) {
  World world;
  world.run_all();
  world.set_spec("executionType", "Stop");
  world.settle();
  world.now = world.now + std::chrono::seconds(599);
  world.settle();
  EXPECT_EQ(world.names("Pod"), "job-worker-0(going) job-worker-1(going)");
  ASSERT_TRUE(world.last.requeue_after);
  world.now = world.now + std::chrono::seconds(2);
  world.settle();
  EXPECT_EQ(world.names("Pod"), "");
  EXPECT_EQ(world.state(), "Completed");
}

TEST(Framework, AnAttemptWhoseConfigMapIsDeletedByOthersIsTriedAgain) {
  World world;
  world.run_all();
  world.objects["ConfigMap"].clear();
  world.pass(plan);  // how it ended is on record first
  world.pass(plan);
  EXPECT_EQ(json::int_at(world.job, "status", "retryPolicyStatus", "totalRetriedCount"), 1);
  world.settle();
  EXPECT_EQ(world.attempt(), 1);
  EXPECT_EQ(world.names("ConfigMap"), "job-attempt");
  EXPECT_EQ(annotation_of(world.pod("job-worker-0"), "FC_FRAMEWORK_ATTEMPT_ID"), "0")
      << "the old pods go first";
  world.objects["Pod"].clear();
  world.settle_all();
  EXPECT_EQ(annotation_of(world.pod("job-worker-0"), "FC_FRAMEWORK_ATTEMPT_ID"), "1");
}

TEST(Framework, HowAnAttemptEndedIsOnRecordBeforeItsPodsAreDeleted) {
  World world({.min_succeeded = 1});
  world.run_all();
  world.end("job-worker-0", 0);
  world.pass(plan);
  EXPECT_EQ(json::int_at(world.job, "status", "attemptStatus", "completionStatus", "code"), 0);
  EXPECT_EQ(json::string_at(world.job, "status", "state"), "AttemptDeletionPending");
  EXPECT_FALSE(is_deleting(world.pod("job-worker-1")));
  world.pass(plan);
  EXPECT_NE(json::string_at(world.job, "status", "state"), "AttemptDeletionPending");
}

/// The first task ends with `code`, the second waits for a node, and the server or the controller dies
/// after the second's pod was deleted, before that was written down.
World crashed_while_it_stopped_a_waiting_task(int code) {
  World world({.min_succeeded = 1});
  world.phase("job-worker-0", "Running");
  world.settle();
  world.end("job-worker-0", code);
  const json::Value before = json::at(world.job, "status");
  world.pass(plan);
  EXPECT_EQ(world.names("Pod"), "job-worker-0") << "nothing is given to a task that is to stop";
  EXPECT_EQ(json::text_at(world.task(1), "attemptStatus", "podNodeName"), "");
  world.job.as_object()["status"] = before;
  world.settle_all();
  EXPECT_EQ(World::retries(at(world.job, "status")), "0/0");
  return world;
}

TEST(Framework, ATaskThatWaitsIsStoppedAtOnceAndASuccessOutlivesACrash) {
  const World world = crashed_while_it_stopped_a_waiting_task(0);
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), 0);
}

TEST(Framework, ATaskThatWaitsIsStoppedAtOnceAndAFailureOutlivesACrash) {
  const World world = crashed_while_it_stopped_a_waiting_task(1);
  EXPECT_EQ(world.state(), "Completed");
  EXPECT_EQ(world.code(), 1) << "not that of the pod that vanished";
}

TEST(Framework, APodThatWasMadeBeforeACrashIsTakenOver) {
  World world;
  // The status that would have told of the pods was never written.
  for (std::size_t i = 0; i < 2; ++i) {
    auto& roles = array_at(world.job, {"status", "attemptStatus", "taskRoleStatuses"});
    array_of(roles[0], "taskStatuses")[i].as_object()["state"] = "AttemptCreationPending";
  }
  world.settle();
  EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1");
  EXPECT_EQ(json::text_at(world.task(0), "state"), "AttemptPreparing");
}

TEST(Framework, APodThatIsHeldBackIsNoneThatWasDeleted) {
  World world;
  world.objects["Pod"].clear();
  for (std::size_t i = 0; i < 2; ++i) {
    auto& roles = array_at(world.job, {"status", "attemptStatus", "taskRoleStatuses"});
    array_of(roles[0], "taskStatuses")[i].as_object()["state"] = "AttemptCreationPending";
  }
  // The frame drops the creates of this look.
  const Plan held = plan(world.job, world, world.settings, world.now);
  EXPECT_EQ(held.actions.size(), 2U);
  world.job.as_object()["status"] = *held.status;
  EXPECT_EQ(json::text_at(world.task(0), "state"), "AttemptCreationPending");
  world.settle();
  EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1");
  EXPECT_EQ(World::retries(at(world.job, "status")), "0/0");
}

TEST(Framework, APodThatTheServerRefusesForEverFailsItsTask) {
  World world;
  world.vanish("job-worker-1");
  auto& roles = array_at(world.job, {"status", "attemptStatus", "taskRoleStatuses"});
  array_of(roles[0], "taskStatuses")[1].as_object()["state"] = "AttemptCreationPending";
  world.error = "Pod \"job-worker-1\" is invalid: spec.containers[0].image: Required value";
  world.settle_all();
  EXPECT_EQ(world.task_code(1), -200);
  EXPECT_EQ(world.code(), -200);
  EXPECT_EQ(world.state(), "Completed");
}

TEST(Framework, AQuotaThatIsUsedUpIsNoFailure) {
  World world;
  world.vanish("job-worker-1");
  auto& roles = array_at(world.job, {"status", "attemptStatus", "taskRoleStatuses"});
  array_of(roles[0], "taskStatuses")[1].as_object()["state"] = "AttemptCreationPending";
  world.error = "pods \"job-worker-1\" is forbidden: exceeded quota: q";
  world.settle();
  EXPECT_EQ(json::text_at(world.task(1), "state"), "AttemptPreparing");
}

TEST(Framework, AStatusThatNobodyHereWroteIsBegunAnew) {
  for (const char* status :
       {"1",
        "[]",
        "{attemptStatus: {}}",
        "{attemptStatus: 1, retryPolicyStatus: {}}",
        "{attemptStatus: {completionStatus: x}, retryPolicyStatus: {}}",
        "{attemptStatus: {taskRoleStatuses: [1]}, retryPolicyStatus: {}}",
        "{attemptStatus: {taskRoleStatuses: [{name: worker, taskStatuses: [1]}]}, "
        "retryPolicyStatus: {}}"}) {
    World world({.execution = "Create"});
    world.job.as_object()["status"] = *json::parse_yaml_one(status);
    world.set_spec("executionType", "Start");
    world.settle();
    EXPECT_EQ(world.names("Pod"), "job-worker-0 job-worker-1") << status;
  }
}

TEST(Framework, WhoAskedIsTold) {
  World world({.workers = 1,
               .min_succeeded = 1,
               .annotations = "{muster.dev/notify: 'running,succeeded'}"});
  world.run_all();
  EXPECT_TRUE(world.recorded("JobRunning"));
  world.end("job-worker-0", 0);
  world.settle_all();
  EXPECT_TRUE(world.recorded("JobSucceeded"));
  World silent;
  silent.run_all();
  EXPECT_FALSE(silent.recorded("JobRunning"));
}

TEST(Framework, AKeyPairIsMadeBeforeThePodsThatMountIt) {
  World world({.annotations = "{muster.dev/ssh-secret: job-ssh}"});
  EXPECT_EQ(world.names("Secret"), "job-ssh");
}

TEST(Framework, APodGroupIsMadeForPodsThatNameOne) {
  World world;
  World gang = [] {
    World made({.execution = "Create"});
    auto& role = array_at(made.job, {"spec", "taskRoles"})[0];
    auto& notes = json::make_object(role, {"task", "pod", "metadata", "annotations"});
    notes["scheduling.k8s.io/group-name"] = "job";
    notes["scheduling.volcano.sh/queue-name"] = "vc1";
    made.set_spec("executionType", "Start");
    return made;
  }();
  gang.settle();
  const auto& spec = at(gang.objects[std::string(kinds::kVolcanoPodGroup)].at("job"), "spec");
  EXPECT_EQ(json::int_at(spec, "minMember"), 2);
  EXPECT_EQ(json::text_at(spec, "queue"), "vc1");
  gang.run_all();
  gang.end("job-worker-0", 0);
  gang.end("job-worker-1", 0);
  gang.settle_all();
  EXPECT_EQ(gang.names(std::string(kinds::kVolcanoPodGroup)), "");
}

}  // namespace
}  // namespace muster::controllers::framework
