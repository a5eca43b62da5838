#include "cli/view/job.h"

#include <gtest/gtest.h>

#include "base/md5.h"

namespace muster::cli {
namespace {

const Time kNow = *parse_time("2026-11-15T02:42:10Z");

json::Value yaml(const std::string& text) { return json::parse_yaml_one(text).value(); }

json::Value mpi_job(const std::string& status) {
  return yaml(
      "{apiVersion: kubeflow.org/v1alpha1, kind: MPIJob, metadata: {name: a, namespace: d, uid: u, creationTimestamp: \"2026-11-15T02:22:10Z\"}, spec: {template: {spec: {}}}, status: " +
      status + "}");
}
json::Value pytorch_job(const std::string& conditions, const std::string& more = "") {
  return yaml(
      "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: a, namespace: d, uid: u, creationTimestamp: \"2026-11-15T02:22:10Z\"}, spec: {pytorchReplicaSpecs: {}}, status: {conditions: [" +
      conditions + "]" + more + "}}");
}
json::Value pod(const std::string& name,
                const std::string& phase,
                const std::string& labels,
                const std::string& status = "") {
  return yaml("{metadata: {name: " + name +
              ", namespace: d, creationTimestamp: \"2026-11-15T02:22:20Z\", labels: {" + labels +
              "}}, spec: {containers: [{name: c}]}, status: {phase: " + phase + status + "}}");
}

struct Given {
  std::string type;
  json::Value job;
  std::vector<json::Value> pods;
  bool launcher_job = false;
};

Job compute(const Given& given) {
  static const json::Value kLauncher = yaml("{metadata: {name: a-launcher}, status: {}}");
  JobParts parts;
  parts.trainer = find_trainer(given.type);
  parts.object = &given.job;
  for (const json::Value& each : given.pods) parts.pods.push_back(&each);
  parts.launcher_job = given.launcher_job ? &kLauncher : nullptr;
  return make_job(parts, kNow);
}

const std::string kLauncherLabels = "mpi_role_type: launcher";
const std::string kMasterLabels = "training.kubeflow.org/job-role: master";

TEST(Job, StatusIsArenas) {
  const std::string running = "{type: Running, status: \"True\"}";
  struct Case {
    std::string name;
    Given given;
    std::string want;
  };
  const std::vector<Case> cases{
      {"mpi without a launcher waits",
       {"mpijob", mpi_job("{}"), {pod("a-worker-0", "Running", "x: y")}},
       "PENDING"},
      {"mpi needs the launcher's Job",
       {"mpijob", mpi_job("{}"), {pod("a-launcher-x", "Running", kLauncherLabels)}},
       "PENDING"},
      {"mpi with a running launcher",
       {"mpijob", mpi_job("{}"), {pod("a-launcher-x", "Running", kLauncherLabels)}, true},
       "RUNNING"},
      {"mpi with a pending launcher",
       {"mpijob", mpi_job("{}"), {pod("a-launcher-x", "Pending", kLauncherLabels)}, true},
       "PENDING"},
      {"one pending worker makes it pending",
       {"mpijob",
        mpi_job("{launcherStatus: Active}"),
        {pod("a-launcher-x", "Running", kLauncherLabels), pod("a-worker-0", "Pending", "x: y")},
        true},
       "PENDING"},
      {"mpi failed", {"mpijob", mpi_job("{launcherStatus: Failed}"), {}, true}, "FAILED"},
      {"mpi succeeded", {"mpijob", mpi_job("{launcherStatus: Succeeded}"), {}, true}, "SUCCEEDED"},
      {"pytorch created only",
       {"pytorchjob", pytorch_job("{type: Created, status: \"True\"}"), {}},
       "PENDING"},
      {"pytorch running", {"pytorchjob", pytorch_job(running), {}}, "RUNNING"},
      {"pytorch running but one pod waits",
       {"pytorchjob", pytorch_job(running), {pod("a-worker-0", "Pending", "x: y")}},
       "PENDING"},
      {"failed beats running",
       {"pytorchjob", pytorch_job(running + ", {type: Failed, status: \"True\"}"), {}},
       "FAILED"},
      {"a condition that is false does not count",
       {"pytorchjob", pytorch_job("{type: Running, status: \"False\"}"), {}},
       "PENDING"},
      {"queuing", {"pytorchjob", pytorch_job("{type: Queuing, status: \"True\"}"), {}}, "QUEUING"},
      {"suspended",
       {"pytorchjob", pytorch_job("{type: Suspended, status: \"True\"}"), {}},
       "SUSPENDED"},
      {"restarting is pending",
       {"pytorchjob", pytorch_job("{type: Restarting, status: \"True\"}"), {}},
       "PENDING"},
  };
  for (const Case& c : cases) EXPECT_EQ(compute(c.given).status, c.want) << c.name;
}

TEST(Job, DurationStopsWhereTheJobDid) {
  const std::string changed =
      ", conditions: [{type: Ready, lastTransitionTime: \"2026-11-15T02:34:15Z\"}]";
  const Job failed = compute({"mpijob",
                              mpi_job("{launcherStatus: Failed}"),
                              {pod("a-launcher-x", "Failed", kLauncherLabels, changed)},
                              true});
  EXPECT_EQ(short_human_duration(failed.duration), "12m");
  EXPECT_EQ(short_human_duration(failed.age), "20m");
  EXPECT_EQ(local_time(*failed.ended).size(), 19U);

  EXPECT_EQ(compute({"pytorchjob", pytorch_job(""), {}}).duration, Duration{0}) << "not started";
  const Job done = compute(
      {"pytorchjob",
       pytorch_job(
           "{type: Succeeded, status: \"True\"}",
           ", startTime: \"2026-11-15T02:30:00Z\", completionTime: \"2026-11-15T02:31:05Z\""),
       {}});
  EXPECT_EQ(short_human_duration(done.duration), "1m");
}

TEST(Job, TheNewestChiefThatRunsLeads) {
  json::Value first = pod("a-launcher-1", "Failed", kLauncherLabels);
  json::Value second = pod("a-launcher-2", "Running", kLauncherLabels);
  json::make(second, {"metadata", "creationTimestamp"}) = "2026-11-15T02:25:00Z";
  json::Value third = pod("a-launcher-3", "Pending", kLauncherLabels);
  json::make(third, {"metadata", "creationTimestamp"}) = "2026-11-15T02:26:00Z";
  EXPECT_EQ(compute({"mpijob", mpi_job("{}"), {first, second, third}, true}).chief, "a-launcher-2");
}

TEST(Job, PodStatusTextIsKubectls) {
  const std::pair<std::string, std::string> cases[] = {
      {"{phase: Running, containerStatuses: [{ready: true, state: {running: {}}}]}", "Running"},
      {"{phase: Failed, containerStatuses: [{state: {terminated: {exitCode: 1, reason: Error}}}]}",
       "Error"},
      {"{phase: Failed, containerStatuses: [{state: {terminated: {exitCode: 3}}}]}", "ExitCode:3"},
      {"{phase: Failed, containerStatuses: [{state: {terminated: {exitCode: 137, signal: 9}}}]}",
       "Signal:9"},
      {"{phase: Pending, containerStatuses: [{state: {waiting: {reason: ContainerCreating}}}]}",
       "ContainerCreating"},
      {"{phase: Pending, initContainerStatuses: [{state: {running: {}}}]}", "Init:0/1"},
      {"{phase: Pending, initContainerStatuses: [{state: {terminated: {exitCode: 2, reason: Error}}}]}",
       "Init:Error"},
      {"{phase: Failed, reason: Evicted}", "Evicted"},
      {"{phase: Pending}", "Pending"},
  };
  for (const auto& [status, want] : cases) {
    EXPECT_EQ(
        pod_status_text(yaml(
            "{metadata: {name: p}, spec: {initContainers: [{name: i}]}, status: " + status + "}")),
        want)
        << status;
  }
  EXPECT_EQ(
      pod_status_text(yaml(
          "{metadata: {name: p, deletionTimestamp: \"2026-11-15T02:34:15Z\"}, status: {phase: Running}}")),
      "Terminating");
}

TEST(Job, PodsAreFoundByLabelsOrOwner) {
  const json::Value job = mpi_job("{}");
  EXPECT_TRUE(
      belongs(yaml("{metadata: {namespace: d, ownerReferences: [{uid: u}]}}"), job, "mpijob"));
  EXPECT_TRUE(
      belongs(yaml("{metadata: {namespace: d, labels: {mpi_job_name: a}}}"), job, "mpijob"));
  EXPECT_FALSE(
      belongs(yaml("{metadata: {namespace: e, labels: {mpi_job_name: a}}}"), job, "mpijob"));
  EXPECT_FALSE(
      belongs(yaml("{metadata: {namespace: d, labels: {mpi_job_name: b}}}"), job, "mpijob"));
}

TEST(Md5, KnownAnswers) {
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_hex(std::string(64, 'a')), "014842d480b571495a4a0363793f7367");
}

}  // namespace
}  // namespace muster::cli
