#include "pai/job/job.h"

#include <gtest/gtest.h>

#include "pai/job/ports.h"

namespace muster::pai {
namespace {

using json::at;

TEST(PaiJob, StatesAreShownAsOpenPaiShowsThem) {
  struct {
    const char* sub_state;
    json::Value code;
    bool retries;
    const char* want;
  } cases[] = {
      {"AttemptCreationPending", nullptr, false, "WAITING"},
      {"AttemptCreationRequested", nullptr, false, "WAITING"},
      {"AttemptPreparing", nullptr, false, "WAITING"},
      {"AttemptRunning", nullptr, false, "RUNNING"},
      {"AttemptDeletionPending", -210, false, "STOPPING"},
      {"AttemptDeletionRequested", -220, false, "STOPPING"},
      {"AttemptDeleting", -101, false, "RUNNING"},
      {"AttemptDeleting", 0, false, "RUNNING"},
      {"AttemptCompleted", 251, true, "WAITING"},
      {"AttemptCompleted", 1, false, "RUNNING"},
      {"Completed", 0, false, "SUCCEEDED"},
      {"Completed", -210, false, "STOPPED"},
      {"Completed", -220, false, "STOPPED"},
      {"Completed", 1, false, "FAILED"},
      {"Completed", -101, false, "FAILED"},
      {"SomethingElse", nullptr, false, "UNKNOWN"},
  };
  for (const auto& each : cases)
    EXPECT_EQ(shown_state(each.sub_state, each.code, each.retries), each.want) << each.sub_state;
}

TEST(PaiJob, ExitCodesAreExplained) {
  EXPECT_EQ(json::text_at(exit_spec(0), "type"), "USER_SUCCESS");
  EXPECT_EQ(json::text_at(exit_spec(-101), "phrase"), "PodExternalDeleted");
  EXPECT_EQ(json::text_at(exit_spec(-101), "type"), "PLATFORM_FAILURE");
  EXPECT_EQ(json::text_at(exit_spec(-101), "behavior"), "TRANSIENT");
  EXPECT_EQ(json::text_at(exit_spec(-210), "type"), "USER_STOP");
  EXPECT_EQ(json::text_at(exit_spec(251), "type"), "RESOURCE_ALLOCATION_TIMEOUT");
  EXPECT_EQ(json::text_at(exit_spec(220), "behavior"), "PERMANENT");
  EXPECT_EQ(json::int_at(exit_spec(42), "code"), 42);
  EXPECT_EQ(json::text_at(exit_spec(42), "phrase"), json::text_at(exit_spec(256), "phrase"));
  EXPECT_EQ(json::text_at(exit_spec(-7), "phrase"), "UnknownFailure");
}

constexpr std::string_view kFramework = R"(
metadata:
  name: 0cc175b9c0f1b6a831c399e269772661
  creationTimestamp: "2026-11-16T10:00:01Z"
  labels: {userName: alice, virtualCluster: vc1}
  annotations:
    jobName: job-config-1
    muster.dev/submitted-at: "2026-11-16T10:00:00Z"
    totalGpuNumber: "1"
    totalTaskNumber: "1"
    totalTaskRoleNumber: "1"
    jobPriority: test
    tags: a,b
    config: "name: job-config-1\n"
spec:
  executionType: Start
  taskRoles:
  - name: train
    taskNumber: 1
    task:
      pod:
        metadata:
          annotations:
            rest-server/port-scheduling-spec: '{"ssh":1,"http":2}'
            hivedscheduler.microsoft.com/pod-scheduling-spec: |
              affinityGroup: {name: alice~job-config-1/default}
status:
  startTime: "2026-11-16T10:00:01Z"
  runTime: "2026-11-16T10:00:05Z"
  completionTime: null
  state: AttemptRunning
  retryPolicyStatus: {totalRetriedCount: 3, accountableRetriedCount: 1, retryDelaySec: null}
  attemptStatus:
    id: 3
    instanceUID: 3_x
    completionStatus: null
    taskRoleStatuses:
    - name: train
      taskStatuses:
      - index: 0
        state: AttemptRunning
        retryPolicyStatus: {totalRetriedCount: 0, accountableRetriedCount: 0, retryDelaySec: null}
        attemptStatus: {id: 0, podUID: u, podIP: 10.0.0.9, podNodeName: hostname-dan, completionStatus: null}
)";

TEST(PaiJob, ARunningJobInTheListAndWhole) {
  const json::Value framework = *json::parse_yaml_one(kFramework);
  const json::Value summary = job_summary(framework);
  EXPECT_EQ(json::text_at(summary, "name"), "job-config-1");
  EXPECT_EQ(json::text_at(summary, "username"), "alice");
  EXPECT_EQ(json::text_at(summary, "state"), "RUNNING");
  EXPECT_EQ(json::text_at(summary, "subState"), "AttemptRunning");
  EXPECT_EQ(json::dump(at(summary, "retryDetails")), R"({"user":1,"platform":2,"resource":0})");
  EXPECT_EQ(json::int_at(summary, "submissionTime"), 1794823200000);
  EXPECT_EQ(json::int_at(summary, "launchedTime"), 1794823205000);
  EXPECT_TRUE(at(summary, "completedTime").is_null());
  EXPECT_EQ(json::dump(at(summary, "tags")), R"(["a","b"])");
  const json::Value detail = job_detail(framework);
  const json::Value& task = json::array_at(detail, "taskRoles", "train", "taskStatuses")[0];
  EXPECT_EQ(json::text_at(task, "taskState"), "RUNNING");
  EXPECT_EQ(json::text_at(task, "containerIp"), "10.0.0.9");
  EXPECT_EQ(json::text_at(task, "containerNodeName"), "hostname-dan");
  EXPECT_EQ(json::text_at(task, "containerPorts", "http"), ports_text("u", "http", 2));
  EXPECT_EQ(json::text_at(task, "hived", "affinityGroupName"), "alice~job-config-1/default");
  EXPECT_TRUE(at(task, "containerExitSpec").is_null());
  EXPECT_EQ(json::int_at(detail, "jobStatus", "attemptId"), 3);
  EXPECT_EQ(job_config(framework), "name: job-config-1\n");
}

TEST(PaiJob, AFailedJobSaysWhoFailedIt) {
  json::Value framework = *json::parse_yaml_one(kFramework);
  json::make_object(framework, {"status"})["state"] = "Completed";
  json::make_object(framework, {"status", "attemptStatus"})["completionStatus"] = json::Object{
      {"code", 3},
      {"diagnostics", "d"},
      {"trigger", json::Object{{"message", "m"}, {"taskRoleName", "train"}, {"taskIndex", 0}}}};
  const json::Value detail = job_detail(framework);
  const json::Value& status = at(detail, "jobStatus");
  EXPECT_EQ(json::text_at(status, "state"), "FAILED");
  EXPECT_EQ(json::int_at(status, "appExitCode"), 3);
  EXPECT_EQ(json::text_at(status, "appExitTriggerTaskRoleName"), "train");
  EXPECT_EQ(json::text_at(status, "appExitType"), "UNKNOWN_FAILURE");
}

TEST(PaiJob, AJobThatNoControllerHasSeenWaits) {
  const json::Value summary = job_summary(*json::parse_yaml_one("metadata: {name: x}"));
  EXPECT_EQ(json::text_at(summary, "state"), "WAITING");
}

}  // namespace
}  // namespace muster::pai
