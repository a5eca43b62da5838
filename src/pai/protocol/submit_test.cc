#include "pai/protocol/submit.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/md5.h"
#include "base/strings.h"
#include "lib/data.h"

namespace muster::pai {
namespace {

using json::at;

Facts lab(const std::string& config) {
  const auto parsed = hived::parse_config(tests::read_data("lab6/" + config));
  MUSTER_CHECK(parsed.has_value(), "the lab's configuration");
  Facts facts = facts_of(*parsed);
  facts.now = Time::from_seconds(1'700'000'000);
  facts.storages["nfs"] = {"nfs-claim", true};
  facts.storages["own"] = {"own-claim", false};
  facts.default_storages = {"nfs"};
  return facts;
}

Facts queues() {
  Facts facts;
  facts.virtual_clusters["default"] = {};
  facts.now = Time::from_seconds(1'700'000'000);
  return facts;
}

constexpr std::string_view kTop = R"(
protocolVersion: 2
name: job
type: job
)";
constexpr std::string_view kImage = R"(
prerequisites:
- {name: image, type: dockerimage, uri: 'i:1'}
)";
constexpr std::string_view kRole = R"(
taskRoles:
  train:
    dockerImage: image
    resourcePerInstance: {cpu: 2, memoryMB: 4096, gpu: 1}
    commands: ['true']
)";

std::string job(std::string_view more = "") {
  return fmt::format("{}{}{}{}", kTop, kImage, kRole, more);
}

/// "400 InvalidProtocolError Prerequisite x does not exist."
std::string refusal(std::string_view text, const Facts& facts = lab("hived-config-b.yaml")) {
  const auto answer = submit(text, "alice", facts);
  if (answer) return "accepted";
  return fmt::format(
      "{} {} {}", answer.error().status, answer.error().code, answer.error().message);
}

Submission accepted(std::string_view text, const Facts& facts) {
  auto answer = submit(text, "alice", facts);
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
  return answer ? std::move(*answer) : Submission{};
}

const json::Value& role_of(const Submission& submission, std::size_t index = 0) {
  return json::array_at(submission.framework, "spec", "taskRoles")[index];
}
const json::Value& pod_of(const Submission& submission, std::size_t index = 0) {
  return at(role_of(submission, index), "task", "pod");
}
json::Value cells_of(const Submission& submission, std::size_t index = 0) {
  return *json::parse_yaml_one(json::string_at(pod_of(submission, index),
                                               "metadata",
                                               "annotations",
                                               "hivedscheduler.microsoft.com/pod-scheduling-spec"));
}
json::Value runtime_of(const Submission& submission) {
  return *json::parse(
      json::string_at(submission.framework, "metadata", "annotations", "muster.dev/pai-runtime"));
}
std::string env_of(const Submission& submission, std::string_view name, std::size_t index = 0) {
  const auto& container = json::array_at(pod_of(submission, index), "spec", "containers")[0];
  for (const auto& each : json::array_at(container, "env")) {
    if (json::string_at(each, "name") == name) return json::text_at(each, "value");
  }
  return "(none)";
}

// ---- what is refused, in the order in which it is looked at

TEST(PaiSubmit, ASchemaErrorIsTheListThatAjvWouldGive) {
  EXPECT_EQ(
      refusal("{protocolVersion: 2, name: j, type: job}"),
      R"(400 InvalidProtocolError [{"keyword":"required","dataPath":"","schemaPath":"#/required","params":{"missingProperty":"taskRoles"},"message":"should have required property 'taskRoles'"}])");
  struct {
    std::string text, want;
  } cases[] = {
      {job("nonsense: 1\n"), R"("params":{"additionalProperty":"nonsense"})"},
      {replace_all(job(), "name: job", "name: a/b"), R"re("pattern":"^[a-zA-Z0-9_-]+$")re"},
      {replace_all(job(), "name: job", "name: " + std::string(256, 'a')),
       "should NOT be longer than 255 characters"},
      {replace_all(job(), "protocolVersion: 2", "protocolVersion: 3"),
       "should be equal to one of the allowed values"},
      {replace_all(job(), "gpu: 1", "gpu: one"),
       R"("dataPath":".taskRoles.train.resourcePerInstance.gpu")"},
      {replace_all(job(), "['true']", "[]"), "should NOT have fewer than 1 items"},
      {replace_all(job(), "train:", "1train:"), "property name '1train' is invalid"},
      {job("extras: {hivedScheduler: {jobPriorityClass: high}}\n"), "jobPriorityClass"},
      {job("extras: {hivedScheduler: {taskRoles: {}}}\n"),
       "should NOT have fewer than 1 properties"},
      {replace_all(job(), "dockerImage: image", "dockerImage: image\n    instances: 10001"),
       "should be <= 10000"},
      {replace_all(job(), "uri: 'i:1'", "uri: 'i:1', more: 1"), R"("additionalProperty":"more")"},
      {replace_all(job(), ", uri: 'i:1'", ""), R"("missingProperty":"uri")"},
      {"[1]", R"("message":"should be object")"},
  };
  for (const auto& each : cases) {
    const std::string got = refusal(each.text);
    EXPECT_TRUE(got.starts_with("400 InvalidProtocolError [")) << got;
    EXPECT_NE(got.find(each.want), std::string::npos) << got << "\nwant " << each.want;
  }
}

TEST(PaiSubmit, TextThatIsNoYamlIsToldWithItsPlace) {
  const std::string got = refusal("protocolVersion: 2\nname: [a\ntype: job\n");
  EXPECT_TRUE(got.starts_with("400 InvalidProtocolError ")) << got;
  EXPECT_NE(got.find("line 3, column 5: "), std::string::npos) << got;
  EXPECT_EQ(
      refusal(std::string(1024 * 1024 + 1, '#')),
      "413 InvalidParametersError The job is 1048577 bytes long, at most 1048576 are allowed.");
}

TEST(PaiSubmit, ReferencesThatLeadNowhereAreRefusedInOpenPaisWords) {
  struct {
    std::string text, want;
  } cases[] = {
      {replace_all(job(),
                   std::string(kImage),
                   std::string(kImage) + "- {name: image, type: dockerimage, uri: x}\n"),
       "Duplicate dockerimage prerequisites image."},
      {job("deployments: [{name: d, taskRoles: {train: {preCommands: [a]}}}, {name: d, taskRoles: {train: {preCommands: [a]}}}]\n"),
       "Duplicate deployments d."},
      {replace_all(job(), "dockerImage: image", "dockerImage: nope"),
       "Prerequisite nope does not exist."},
      {replace_all(job(), "dockerImage: image", "dockerImage: image\n    data: nope"),
       "Prerequisite nope does not exist."},
      {replace_all(job(), "dockerImage: image", "dockerImage: image\n    prerequisites: [nope]"),
       "Prerequisite nope does not exist."},
      {job("defaults: {deployment: nope}\n"), "Default deployment nope does not exist."},
      {job("extras: {hivedScheduler: {taskRoles: {nope: {skuType: GPU}}}}\n"),
       "Taskrole nope does not exist."},
      {job("extras: {hivedScheduler: {taskRoles: {train: {skuType: GPU, pinnedCellId: p}}}}\n"),
       "Taskrole train has both skuType and pinnedCellId, only one is allowed."},
      {job("extras: {hivedScheduler: {taskRoles: {train: {skuType: K80}}}}\n"),
       "Taskrole train has unknown skuType K80, allow GPU."},
  };
  for (const auto& each : cases)
    EXPECT_EQ(refusal(each.text), "400 InvalidProtocolError " + each.want);
}

/// OpenPAI looks names of templates up and nothing else: what is not there stays as it is written.
TEST(PaiSubmit, ATemplateThatNamesNothingStays) {
  for (const std::string_view tag : {"$parameters.nope", "$secrets.nope", "$data.uri[7]", "$x"}) {
    const auto made = accepted(replace_all(job("parameters: {a: 1}\nsecrets: {b: c}\n"),
                                           "['true']",
                                           fmt::format("['echo <% {} %>']", tag)),
                               lab("hived-config-b.yaml"));
    EXPECT_EQ(json::dump(at(json::array_at(runtime_of(made), "roles")[0], "commands")),
              fmt::format(R"(["echo <% {} %>"])", tag));
  }
}

TEST(PaiSubmit, MorePortsThanTheRangeHasAreRefused) {
  std::string ports;
  for (int i = 0; i < 25; ++i) ports += fmt::format("p{}: 1000, ", i);
  EXPECT_EQ(
      refusal(replace_all(job(), "gpu: 1", "gpu: 1, ports: {" + ports + "}")),
      "400 InvalidProtocolError Taskrole train requests 25002 ports, but the range from 15000 "
      "to 39999 has 24999.");
  EXPECT_NE(refusal(replace_all(job(), "gpu: 1", "gpu: 1, ports: {p: 1001}")).find("<= 1000"),
            std::string::npos);
}

TEST(PaiSubmit, ATypeOfAnotherVirtualClusterIsForOpportunistsOnly) {
  const Facts facts = lab("hived-config-a.yaml");
  const std::string text = job(
      "defaults: {virtualCluster: vc1}\nextras: {hivedScheduler: {jobPriorityClass: prod, taskRoles: {train: {skuType: GPU-C}}}}\n");
  EXPECT_EQ(refusal(text, facts),
            "400 InvalidProtocolError Taskrole train has skuType GPU-C, VC vc1 only allows GPU-D.");
  EXPECT_EQ(refusal(replace_all(text, "prod", "oppo"), facts), "accepted");
}

TEST(PaiSubmit, RolesOfOneGroupWantTheSameCells) {
  const std::string text = replace_all(job(R"(
extras:
  gangAllocation: false
  hivedScheduler:
    taskRoles:
      train: {skuType: GPU, affinityGroupName: g}
      other: {affinityGroupName: g}
)"),
                                       "taskRoles:\n  train:",
                                       R"(taskRoles:
  other:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 10, gpu: 0}
    commands: ['true']
  train:)");
  EXPECT_EQ(refusal(text),
            "400 InvalidProtocolError AffinityGroup g has inconsistent skuType or pinnedCellId.");
}

TEST(PaiSubmit, AResourceThatNoCellHasIsRefused) {
  Facts facts = lab("hived-config-b.yaml");
  facts.sku_types["GPU"].gpu = 0;
  EXPECT_EQ(
      refusal(job(), facts),
      "400 InvalidProtocolError Taskrole train requests 1 GPU, but SKU does not configure GPU. "
      "Please contact admin if the taskrole needs GPU resource.");
}

TEST(PaiSubmit, AGangLargerThanItsVirtualClusterIsRefused) {
  const Facts facts = lab("hived-config-b.yaml");
  const std::string four = tests::read_data("lab6/x-6-four.yaml");
  EXPECT_EQ(refusal(four, facts),
            "400 InvalidProtocolError Job requests 4 SKUs, exceeds maximum 2 SKUs in VC default.");
  EXPECT_EQ(refusal(replace_all(four, "prod", "oppo"), facts), "accepted");
  EXPECT_EQ(refusal(tests::read_data("lab6/x-7-four.yaml"), facts), "accepted");
  EXPECT_EQ(refusal(tests::read_data("lab6/x-7-wide.yaml"), facts), "accepted");
  const std::string two =
      replace_all(tests::read_data("lab6/job-config-0.yaml"), "instances: 1", "instances: 2");
  EXPECT_EQ(refusal(two, lab("hived-config-a.yaml")),
            "400 InvalidProtocolError Job requests 2 SKUs, exceeds maximum 1 SKUs in VC vc1.");
}

TEST(PaiSubmit, DuplicatesComeBeforeRightsAndRightsBeforeStorages) {
  Facts facts = lab("hived-config-b.yaml");
  const std::string text =
      job("defaults: {virtualCluster: vc1}\nextras: {storages: [{name: nope}]}\n");
  facts.job_exists = [](const std::string& name) { return name == md5_hex("alice~job"); };
  EXPECT_EQ(refusal(text, facts), "409 ConflictJobError Job alice~job already exists.");
  facts.job_exists = {};
  EXPECT_EQ(refusal(text, facts),
            "403 ForbiddenUserError User alice is not allowed to do operation in vc1");
  const std::string here = replace_all(text, "vc1", "default");
  facts.may_use = [](const std::string&) { return false; };
  EXPECT_EQ(refusal(here, facts),
            "403 ForbiddenUserError User alice is not allowed to do operation in default");
  facts.may_use = {};
  EXPECT_EQ(refusal(here, facts), "404 NoStorageError Storage nope is not found.");
}

// ---- what it becomes

TEST(PaiSubmit, TheLabsGangIsOneAffinityGroup) {
  const auto made =
      accepted(tests::read_data("lab6/job-config-6.yaml"), lab("hived-config-b.yaml"));
  EXPECT_EQ(made.framework_name, md5_hex("alice~job-config-6"));
  const json::Value cells = cells_of(made);
  EXPECT_EQ(json::int_at(cells, "priority"), 100);
  EXPECT_TRUE(at(cells, "leafCellType").is_null());
  EXPECT_EQ(json::int_at(cells, "leafCellNumber"), 1);
  EXPECT_EQ(json::text_at(cells, "affinityGroup", "name"), "alice~job-config-6/default");
  const json::Array& members = json::array_at(cells, "affinityGroup", "members");
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(json::int_at(members[0], "podNumber"), 2);
  EXPECT_EQ(json::int_at(members[0], "leafCellNumber"), 1);
  const auto& policy = at(role_of(made), "frameworkAttemptCompletionPolicy");
  EXPECT_EQ(json::int_at(policy, "minFailedTaskCount"), 1);
  EXPECT_EQ(json::int_at(policy, "minSucceededTaskCount"), 1);
  EXPECT_EQ(json::dump(at(role_of(made), "task", "retryPolicy")),
            R"({"fancyRetryPolicy":false,"maxRetryCount":0})");
  const auto& limits =
      at(json::array_at(pod_of(made), "spec", "containers")[0], "resources", "limits");
  EXPECT_EQ(
      json::dump(limits),
      R"({"cpu":"2","memory":"4096Mi","hivedscheduler.microsoft.com/pod-scheduling-enable":"1"})");
}

TEST(PaiSubmit, AnIncrementalJobsPodsAreGroupsOfTheirOwn) {
  const auto made =
      accepted(tests::read_data("lab6/job-config-7.yaml"), lab("hived-config-b.yaml"));
  EXPECT_TRUE(at(cells_of(made), "affinityGroup").is_null());
  EXPECT_EQ(json::dump(at(role_of(made), "task", "retryPolicy")),
            R"({"fancyRetryPolicy":true,"maxRetryCount":0})");
}

TEST(PaiSubmit, ThePriorityClassOrdersByClassThenByTime) {
  Facts facts = lab("hived-config-b.yaml");
  const auto value = [&](const char* name, std::int64_t time) {
    facts.now = Time::from_seconds(time);
    const auto made = accepted(
        job(fmt::format("extras: {{hivedScheduler: {{jobPriorityClass: {}}}}}\n", name)), facts);
    EXPECT_EQ(json::text_at(made.priority_class, "metadata", "name"),
              made.framework_name + "-priority");
    return json::int_at(made.priority_class, "value");
  };
  EXPECT_EQ(value("prod", 5), -((std::int64_t{26} << 23) + 5));
  EXPECT_GT(value("prod", 5), value("prod", 6));
  EXPECT_GT(value("crit", 9), value("prod", 5));
  EXPECT_GT(value("prod", 9), value("test", 5));
  EXPECT_GT(value("test", 9), value("oppo", 5));
}

TEST(PaiSubmit, JobsOfOneSecondKeepTheirOrder) {
  Facts facts = lab("hived-config-b.yaml");
  facts.now = Time{1'700'000'000'000'001};
  const auto made = accepted(job(""), facts);
  for (const json::Value* object : {&made.framework, &pod_of(made)})
    EXPECT_EQ(json::text_at(*object, "metadata", "annotations", "muster.dev/submitted-at"),
              "2023-11-14T22:13:20.000001Z");
}

TEST(PaiSubmit, WithoutCellsAVirtualClusterIsAQueueAndAGangAPodGroup) {
  const auto made = accepted(job("extras: {hivedScheduler: {jobPriorityClass: prod}}\n"), queues());
  const auto& notes = at(pod_of(made), "metadata", "annotations");
  EXPECT_EQ(json::text_at(notes, "scheduling.volcano.sh/queue-name"), "default");
  EXPECT_EQ(json::text_at(notes, "scheduling.k8s.io/group-name"), made.framework_name);
  EXPECT_EQ(json::int_at(made.priority_class, "value"), 100);
  const auto& limits =
      at(json::array_at(pod_of(made), "spec", "containers")[0], "resources", "limits");
  EXPECT_EQ(json::text_at(limits, "nvidia.com/gpu"), "1");
  const auto alone = accepted(job("extras: {gangAllocation: false}\n"), queues());
  EXPECT_TRUE(
      at(pod_of(alone), "metadata", "annotations", "scheduling.k8s.io/group-name").is_null());
}

constexpr std::string_view kWhole = R"(
protocolVersion: "2"
name: Whole_1
type: job
jobRetryCount: 3
parameters: {batch: 64, nested: {rate: 0.1}}
secrets: {token: hush, registry: {user: u, password: p}}
prerequisites:
- {name: image, type: dockerimage, uri: 'tf:1.4', auth: {username: <% $secrets.registry.user %>, password: <% $secrets.registry.password %>, registryuri: r.example}}
- {name: digits, type: data, uri: [/data/mnist, /data/other]}
- {name: code, type: script, uri: https://c.example}
- {name: out, type: output, uri: /out}
- name: prepare
  type: script
  plugin: com.microsoft.pai.runtimeplugin.cmd
  require: [base]
  failurePolicy: ignore
  callbacks:
  - {event: taskStarts, commands: [echo prepare]}
  - {event: taskSucceeds, commands: [echo after-prepare]}
- name: base
  type: script
  plugin: com.microsoft.pai.runtimeplugin.cmd
  callbacks:
  - {event: taskStarts, commands: [echo base]}
  - {event: taskSucceeds, commands: [echo after-base]}
taskRoles:
  Worker:
    instances: 2
    completion: {minFailedInstances: null, minSucceededInstances: 0}
    taskRetryCount: 4
    dockerImage: image
    data: digits
    script: code
    output: out
    prerequisites: [prepare]
    extraContainerOptions: {shmMB: 1024, infiniband: true}
    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 2, ports: {grpc: 2}}
    commands:
    - ' train --batch=<% $parameters.batch %> --rate=<% $parameters.nested.rate %> '
    - echo <% $data.uri[1] %> <% $script.uri %> <% $output.uri %> <% $unknown.x %> <% $secrets.token %>
  ps_1:
    completion: {minFailedInstances: -1, minSucceededInstances: -1}
    dockerImage: image
    resourcePerInstance: {cpu: 2, memoryMB: 4096, gpu: 0}
    commands: [serve]
deployments:
- name: prod
  taskRoles: {Worker: {preCommands: [echo before], postCommands: [echo after]}}
defaults: {virtualCluster: default, deployment: prod}
extras:
  gangAllocation: false
  storages: [{name: nfs}, {name: own, mountPath: /own}]
  jobStatusChangeNotification: {running: true, failed: false, retried: true}
  com.microsoft.pai.runtimeplugin:
  - {plugin: ssh, parameters: {jobssh: true, sshbarrier: true}}
  - {plugin: teamwise_storage, parameters: {storageConfigNames: [nfs]}}
)";

TEST(PaiSubmit, EveryFieldOfTheProtocolArrives) {
  const auto made = accepted(kWhole, lab("hived-config-b.yaml"));
  const json::Value runtime = runtime_of(made);
  const auto& worker = json::array_at(runtime, "roles")[0];
  EXPECT_EQ(
      json::dump(at(worker, "commands")),
      R"(["echo before","train --batch=64 --rate=0.1","echo /data/other https://c.example /out <% $unknown.x %> <% $secrets.token %>","echo after"])");
  EXPECT_EQ(
      json::dump(at(worker, "starts")),
      R"([{"commands":["echo base"],"mayFail":false},{"commands":["echo prepare"],"mayFail":true}])");
  EXPECT_EQ(
      json::dump(at(worker, "succeeds")),
      R"([{"commands":["echo after-prepare"],"mayFail":true},{"commands":["echo after-base"],"mayFail":false}])");
  EXPECT_EQ(json::dump(at(worker, "ports")), R"({"ssh":1,"http":1,"grpc":2})");
  EXPECT_EQ(json::text_at(role_of(made, 0), "name"), "worker");
  EXPECT_EQ(json::text_at(role_of(made, 1), "name"), "ps1");
  const auto& policy = at(role_of(made), "frameworkAttemptCompletionPolicy");
  EXPECT_EQ(json::int_at(policy, "minFailedTaskCount"), 1);
  EXPECT_EQ(json::int_at(policy, "minSucceededTaskCount"), 2);
  EXPECT_EQ(json::int_at(role_of(made), "task", "retryPolicy", "maxRetryCount"), 4);
  EXPECT_EQ(json::int_at(role_of(made), "task", "podGracefulDeletionTimeoutSec"), 600);
  EXPECT_EQ(json::dump(at(made.framework, "spec", "retryPolicy")),
            R"({"fancyRetryPolicy":true,"maxRetryCount":3})");
  EXPECT_EQ(env_of(made, "PAI_JOB_NAME"), "alice~Whole_1");
  EXPECT_EQ(env_of(made, "PAI_TASK_ROLE_LIST"), "Worker,ps_1");
  EXPECT_EQ(env_of(made, "PAI_TASKS_NUM"), "3");
  EXPECT_EQ(env_of(made, "PAI_RESOURCE_Worker"), "2,4,8192,1024");
  EXPECT_EQ(env_of(made, "PAI_MIN_SUCCEEDED_TASK_COUNT_ps_1"), "-1");
  EXPECT_EQ(env_of(made, "NVIDIA_VISIBLE_DEVICES", 1), "none");
  const auto& container = json::array_at(pod_of(made), "spec", "containers")[0];
  EXPECT_EQ(json::text_at(container, "resources", "limits", "rdma/hca"), "1");
  std::map<std::string, std::string> mounts;
  for (const auto& each : json::array_at(container, "volumeMounts"))
    mounts[json::text_at(each, "mountPath")] =
        json::text_at(each, "name") + ":" + json::text_at(each, "subPath");
  EXPECT_EQ(mounts["/mnt/nfs"], "storage-0:");
  EXPECT_EQ(mounts["/own"], "storage-1:alice");
  const auto& notes = at(made.framework, "metadata", "annotations");
  EXPECT_EQ(json::text_at(notes, "totalGpuNumber"), "4");
  EXPECT_EQ(json::text_at(notes, "jobName"), "Whole_1");
  EXPECT_EQ(json::text_at(notes, "muster.dev/notify"), "running,retried");
  EXPECT_EQ(json::text_at(notes, "muster.dev/ssh-secret"), made.framework_name + "-ssh");
  // 2 GPUs of cells with one each, 4 of 2 CPUs, 8192 of 4096 MB: 2 cells.
  EXPECT_EQ(json::int_at(cells_of(made), "leafCellNumber"), 2);
}

TEST(PaiSubmit, SecretsAreInSecretsAndNowhereElse) {
  const auto made = accepted(kWhole, lab("hived-config-b.yaml"));
  EXPECT_EQ(json::dump(made.framework).find("hush"), std::string::npos);
  EXPECT_NE(json::string_at(made.framework, "metadata", "annotations", "config").find("******"),
            std::string::npos);
  ASSERT_EQ(made.owned.size(), 3U);
  EXPECT_EQ(json::text_at(made.owned[0], "data", "secrets.json"),
            base64_encode(R"({"token":"hush","registry":{"user":"u","password":"p"}})"));
  EXPECT_EQ(json::text_at(made.owned[1], "type"), "kubernetes.io/dockerconfigjson");
  EXPECT_EQ(json::text_at(made.owned[1], "data", ".dockerconfigjson"),
            base64_encode(R"({"auths":{"r.example":{"auth":")" + base64_encode("u:p") + R"("}}})"));
  json::Value stored = made.framework;
  json::make_object(stored, {"metadata"})["uid"] = "u-1";
  const json::Value owned = owned_by(made.owned[0], stored);
  EXPECT_EQ(json::text_at(json::array_at(owned, "metadata", "ownerReferences")[0], "uid"), "u-1");
}

/// Everybody may read the configuration of every job.
TEST(PaiSubmit, APasswordOfARegistryIsMaskedUnlessItNamesASecret) {
  const auto config = [](std::string_view password) {
    const auto made =
        accepted(replace_all(std::string(kWhole), "<% $secrets.registry.password %>", password),
                 lab("hived-config-b.yaml"));
    return json::text_at(made.framework, "metadata", "annotations", "config");
  };
  EXPECT_NE(config("<% $secrets.registry.password %>").find("$secrets.registry.password"),
            std::string::npos);
  for (const std::string_view password :
       {"hunter2", "hunter2<% $secrets.registry.password %>", "<% $secrets.token %>hunter2%>"}) {
    const std::string shown = config(password);
    EXPECT_EQ(shown.find("hunter2"), std::string::npos) << shown;
    EXPECT_NE(shown.find("r.example"), std::string::npos) << shown;
  }
}

TEST(PaiSubmit, RolesWhosePodsWouldHaveOneNameAreRefused) {
  const std::string text = replace_all(job(), "taskRoles:\n  train:", R"(taskRoles:
  Train_:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 10, gpu: 0}
    commands: ['true']
  train:)");
  EXPECT_EQ(
      refusal(text),
      "400 InvalidProtocolError Taskroles Train_ and train have the same name but for case and signs.");
}

/// A few kilobytes must not become gigabytes, or keep the server.
TEST(PaiSubmit, WhatAJobBecomesIsBounded) {
  const std::string role =
      ": {dockerImage: image, resourcePerInstance: {cpu: 1, memoryMB: 10, gpu: 0}, commands: [a]";
  std::string roles = "taskRoles:\n";
  for (int i = 0; i < 64; ++i) roles += fmt::format("  r{}{}}}\n", i, role);
  EXPECT_EQ(refusal(replace_all(job(), "taskRoles:\n", roles)),
            "400 InvalidProtocolError The job has 65 taskroles, at most 64 are allowed.");
  const std::string two =
      fmt::format("taskRoles:\n  many{0}, instances: 10000}}\n  one{0}}}\n", role);
  EXPECT_EQ(refusal(replace_all(job(), "taskRoles:\n", two)),
            "400 InvalidProtocolError The job has 10002 instances, at most 10000 are allowed.");
  // 100 KB, named ten thousand times: a gigabyte.
  std::string often;
  for (int i = 0; i < 10'000; ++i) often += "<% $parameters.p %>";
  EXPECT_EQ(refusal(replace_all(job("parameters: {p: " + std::string(100'000, 'x') + "}\n"),
                                "['true']",
                                "['" + often + "']")),
            "400 InvalidProtocolError The job's commands take more than 262144 bytes with their "
            "parameters: move long ones into a script.");
  std::string needs;
  for (int i = 0; i < 1000; ++i)
    needs += fmt::format("- {{type: script, uri: x, name: p{}, require: [p{}]}}\n", i, i + 1);
  EXPECT_EQ(refusal(replace_all(job(), "prerequisites:\n", "prerequisites:\n" + needs)),
            "400 InvalidProtocolError The job has 1001 prerequisites, at most 1000 are allowed.");
}

TEST(PaiSubmit, NamesThatNoLabelHoldsAreDigestsThere) {
  const std::string name = std::string(100, 'j') + "_";
  const auto made = submit(replace_all(job(), "name: job", "name: " + name), "_eve", queues());
  ASSERT_TRUE(made) << made.error().message;
  const auto& metadata = at(made->framework, "metadata");
  EXPECT_EQ(json::text_at(metadata, "labels", "userName"), md5_hex("_eve"));
  EXPECT_EQ(json::text_at(metadata, "labels", "release"), md5_hex(name));
  EXPECT_EQ(json::text_at(metadata, "annotations", "userName"), "_eve");
  EXPECT_EQ(label_value("alice.b-c_d"), "alice.b-c_d");
}

TEST(PaiFacts, CellsOfVirtualClustersAreCountedInLeaves) {
  const auto config = hived::parse_config(R"(
physicalCluster:
  cellTypes:
    V100-NODE: {childCellType: V100, childCellNumber: 8, isNodeLevel: true}
    POOL: {childCellType: V100-NODE, childCellNumber: 3}
  physicalCells:
  - cellType: POOL
    cellChildren: [{cellAddress: a, pinnedCellId: mine}, {cellAddress: b}, {cellAddress: c}]
virtualClusters:
  one: {virtualCells: [{cellType: POOL.V100-NODE, cellNumber: 2}]}
  two: {pinnedCells: [{pinnedCellId: mine}]}
)");
  ASSERT_TRUE(config) << config.error().message;
  const Facts facts = facts_of(*config);
  EXPECT_EQ(facts.virtual_clusters.at("one").quota, 16);
  EXPECT_EQ(facts.virtual_clusters.at("two").quota, 8);
  EXPECT_EQ(facts.virtual_clusters.at("two").sku_types, std::vector<std::string>{"V100"});
  EXPECT_EQ(facts.sku_types.at("V100").gpu, 1);
}

}  // namespace
}  // namespace muster::pai
