#include "cli/submit/pai.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace muster::cli {
namespace {

using json::at;

// Two roles of the protocol's own examples: a parameter server and workers that know each other.
constexpr std::string_view kJob = R"(
protocolVersion: 2
name: Mnist_Dist
type: job
jobRetryCount: 1
parameters: {batch: 64, nested: {rate: 0.1}}
prerequisites:
- {protocolVersion: 2, name: image, type: dockerimage, uri: tf:1.4}
- {name: digits, type: data, uri: [/data/mnist, /data/other]}
taskRoles:
  Worker:
    instances: 2
    completion: {minFailedInstances: 1, minSucceededInstances: 2}
    dockerImage: image
    data: digits
    extraContainerOptions: {shmMB: 1024}
    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 2, ports: {grpc: 2}}
    commands:
    - python train.py --batch=<% $parameters.batch %> --rate=<% $parameters.nested.rate %>
    - echo <% $data.uri[0] %> <% $unknown.x %>
  ps_server:
    completion: {minFailedInstances: -1, minSucceededInstances: -1}
    dockerImage: image
    resourcePerInstance: {cpu: 2, memoryMB: 4096, gpu: 0}
    commands: [python ps.py]
deployments:
- name: prod
  taskRoles: {Worker: {preCommands: [echo before], postCommands: [echo after]}}
defaults: {virtualCluster: vc1, deployment: prod}
extras:
  hivedScheduler:
    jobPriorityClass: prod
    taskRoles: {Worker: {skuType: V100}}
)";

json::Value read(std::string_view yaml) { return *json::parse_yaml_one(yaml); }

Result<PaiJob> translated(const json::Value& protocol) {
  static const PaiContext kContext{"default", "alice"};
  return translate_pai(protocol, kContext);
}

TEST(Pai, RolesBecomeTasksOfAGang) {
  const auto job = translated(read(kJob));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->name, "mnist-dist");
  EXPECT_EQ(job->priority_class, "prod");
  const json::Value& spec = at(job->job, "spec");
  EXPECT_EQ(json::int_at(spec, "minAvailable"), 3);
  EXPECT_EQ(json::int_at(spec, "maxRetry"), 2);
  EXPECT_EQ(json::text_at(spec, "queue"), "vc1");
  EXPECT_EQ(json::text_at(spec, "priorityClassName"), "pai-prod");
  const json::Array& tasks = json::array_at(spec, "tasks");
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(json::text_at(tasks[0], "name"), "worker");
  EXPECT_EQ(json::text_at(tasks[1], "name"), "psserver");
  EXPECT_EQ(
      json::dump(at(tasks[0], "policies")),
      R"([{"event":"PodFailed","action":"RestartJob"},{"event":"TaskCompleted","action":"CompleteJob"}])");
  EXPECT_TRUE(at(tasks[1], "policies").is_null());
  const json::Value& container = json::array_at(tasks[0], "template", "spec", "containers")[0];
  EXPECT_EQ(json::text_at(container, "image"), "tf:1.4");
  EXPECT_EQ(json::dump(at(container, "resources", "limits")),
            R"({"cpu":"4","memory":"8192Mi","nvidia.com/gpu":"2"})");
  const std::string command = json::text(json::array_at(container, "command")[2]);
  EXPECT_TRUE(command.ends_with(
      "echo before\npython train.py --batch=64 --rate=0.1\necho /data/mnist <% $unknown.x %>\necho after"))
      << command;
  EXPECT_NE(command.find("getent hosts mnist-dist-psserver-0.mnist-dist"), std::string::npos)
      << command;
}

TEST(Pai, HivedSeesOneGroupOfAllRoles) {
  const auto job = translated(read(kJob));
  ASSERT_TRUE(job);
  const json::Value& worker = json::array_at(job->job, "spec", "tasks")[0];
  const auto cells =
      json::parse_yaml_one(json::string_at(worker,
                                           "template",
                                           "metadata",
                                           "annotations",
                                           "hivedscheduler.microsoft.com/pod-scheduling-spec"));
  ASSERT_TRUE(cells);
  EXPECT_EQ(json::text_at(*cells, "virtualCluster"), "vc1");
  EXPECT_EQ(json::int_at(*cells, "priority"), 100);
  EXPECT_EQ(json::text_at(*cells, "leafCellType"), "V100");
  EXPECT_EQ(json::text_at(*cells, "affinityGroup", "name"), "alice~Mnist_Dist/default");
  EXPECT_EQ(json::array_at(*cells, "affinityGroup", "members").size(), 2U);
}

TEST(Pai, RefusesInTheProtocolsWords) {
  const auto with = [](std::string_view from, std::string_view to) {
    return translated(read(replace_all(kJob, from, to)));
  };
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"protocolVersion: 2\nname", "protocolVersion: 1\nname", "protocolVersion 1: want 2"},
      {"type: job\n", "type: task\n", "type \"task\": want job"},
      {"jobRetryCount", "retries", "job: unknown key \"retries\""},
      {"    instances: 2", "    count: 2", "taskRoles.Worker: unknown key \"count\""},
      {"dockerImage: image\n    data",
       "dockerImage: nothing\n    data",
       "Prerequisite nothing does not exist."},
      {"name: digits, type: data",
       "name: image, type: dockerimage",
       "Duplicate dockerimage prerequisites image."},
      {"deployment: prod}", "deployment: test}", "Default deployment test does not exist."},
      {"{Worker: {skuType: V100}}", "{Nobody: {skuType: V100}}", "Taskrole Nobody does not exist."},
      {"{skuType: V100}",
       "{skuType: V100, pinnedCellId: x}",
       "Taskrole Worker has both skuType and pinnedCellId, only one is allowed."},
      {"gpu: 2,", "", "taskRoles.Worker.resourcePerInstance.gpu: want a number"},
      {"jobPriorityClass: prod",
       "jobPriorityClass: high",
       "extras.hivedScheduler.jobPriorityClass high: want oppo, test, prod or crit"},
      {"[python ps.py]", "[]", "taskRoles.ps_server.commands: want at least one"},
      {"[python ps.py]",
       "[\"run <% $secrets.key %>\"]",
       "taskRoles.ps_server.commands use $secrets, which would end up in the job's object: mount a Secret of the cluster instead"},
  };
  for (const auto& [from, to, message] : cases) {
    const auto job = with(from, to);
    ASSERT_FALSE(job) << message;
    EXPECT_EQ(job.error().message, message);
  }
}

TEST(Pai, WithoutAGangEachInstanceStartsByItself) {
  json::Value protocol = read(kJob);
  json::make(protocol, {"extras", "gangAllocation"}) = false;
  const auto job = translated(protocol);
  ASSERT_TRUE(job);
  EXPECT_EQ(json::int_at(job->job, "spec", "minAvailable"), 1);
  const json::Value& worker = json::array_at(job->job, "spec", "tasks")[0];
  EXPECT_EQ(json::int_at(worker, "minAvailable"), 0);
  EXPECT_TRUE(json::string_at(worker,
                              "template",
                              "metadata",
                              "annotations",
                              "hivedscheduler.microsoft.com/pod-scheduling-spec")
                  .find("affinityGroup") == std::string_view::npos);
}

}  // namespace
}  // namespace muster::cli
