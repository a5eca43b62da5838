#include "answers/jobs/facts.h"

#include <algorithm>
#include <array>

#include "base/quantity.h"
#include "base/strings.h"
#include "base/time.h"
#include "hived/annotations.h"
#include "kube/framework.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/portal_names.h"

namespace muster::answers {
namespace {

namespace names = kube::names;
using json::at;

std::int64_t amount(const json::Value& value) {
  if (value.is_int64()) return value.get_int64();
  return parse_int(json::as_string(value)).value_or(0);
}

bool is_gpu(std::string_view resource) { return resource.ends_with("/gpu"); }

std::int32_t gpus_of_container(const json::Value& container) {
  for (const char* list : {"limits", "requests"}) {
    for (const auto& [name, value] : json::object_at(container, "resources", list)) {
      if (is_gpu(name)) return static_cast<std::int32_t>(amount(value));
    }
  }
  return 0;
}

/// What a pod asks of HiveD's cells, if it does: then GPUs are cells, and no resource of containers.
std::optional<engine::cells::PodSpec> cells_of(const json::Value& pod) {
  const std::string_view text = kube::annotation(pod, hived::kSchedulingSpec);
  if (text.empty()) return std::nullopt;
  auto spec = hived::parse_scheduling_spec(
      text, std::string(kube::namespace_of(pod)), std::string(kube::name_of(pod)));
  return spec ? std::optional(std::move(*spec)) : std::nullopt;
}

/// Adds replicas of one pod template to what the job asks for.
void add_template(JobFacts& facts, const json::Value& pod_template, std::int64_t replicas) {
  replicas = std::clamp<std::int64_t>(replicas, 0, 1'000'000);
  const json::Value& spec = at(pod_template, "spec");
  facts.tasks += static_cast<std::int32_t>(replicas);
  const auto cells = cells_of(pod_template);
  facts.gpus +=
      static_cast<std::int32_t>(replicas * (cells ? cells->leaves : gpus_of_pod_spec(spec)));
  if (cells) facts.cell_priority = cells->priority;
  if (facts.prio_class.empty()) facts.prio_class = json::text_at(spec, "priorityClassName");
}

std::int64_t replicas_of(const json::Value& role, std::int64_t otherwise) {
  const json::Value& replicas = at(role, "replicas");
  return replicas.is_null() ? otherwise : json::as_int(replicas);
}

void read_templates(JobFacts& facts, const json::Value& job) {
  const json::Value& spec = at(job, "spec");
  for (const auto& [field, roles] : json::as_object(spec)) {
    if (!field.ends_with("ReplicaSpecs")) continue;
    for (const auto& [role, value] : json::as_object(roles))
      add_template(facts, at(value, "template"), replicas_of(value, 1));
  }
  for (const char* list : {"tasks", "taskRoles"}) {  // Volcano's, and OpenPAI's frameworks
    for (const json::Value& task : json::array_at(spec, list)) {
      const json::Value& own = at(task, "task", "pod");
      const std::int64_t count =
          list[4] == 's' ? replicas_of(task, 1) : json::int_at(task, "taskNumber");
      add_template(facts, own.is_object() ? own : at(task, "template"), count);
    }
  }
  for (const char* role : {"launcher", "worker"}) {  // T9k's
    if (const json::Value& value = at(spec, role); value.is_object())
      add_template(facts, at(value, "template"), replicas_of(value, 1));
  }
  if (facts.tasks == 0 && at(spec, "template").is_object()) {
    const json::Value& parallel = at(spec, "parallelism");
    add_template(facts,
                 at(spec, "template"),
                 parallel.is_null() ? replicas_of(spec, 1) : json::as_int(parallel));
  }
}

bool says_suspended(const json::Value& job) {
  return json::bool_at(job, "spec", "runPolicy", "suspend") ||
         json::bool_at(job, "spec", "suspend") ||
         json::bool_at(job, "spec", "runMode", "pause", "enabled") ||
         kube::condition_true(job, "Suspended") || kube::annotation(job, names::kSuspend) == "true";
}

std::optional<JobState> state_of_phase(std::string_view phase) {
  if (phase == "Completed" || phase == "Succeeded") return JobState::kSucceeded;
  if (phase == "Failed") return JobState::kFailed;
  if (phase == "Aborted" || phase == "Aborting" || phase == "Paused") return JobState::kSuspended;
  if (phase == "Terminating") return JobState::kStopping;
  if (phase == "Terminated") return JobState::kStopped;
  return std::nullopt;
}

void read_conditions(JobFacts& facts, const json::Value& job) {
  for (const json::Value& condition : json::array_at(job, "status", "conditions")) {
    const std::string_view type = json::string_at(condition, "type");
    if (json::string_at(condition, "status") != "True") continue;
    const bool failed = type == "Failed";
    if (!failed && type != "Succeeded" && type != "Complete") continue;
    facts.final_state = failed ? JobState::kFailed : JobState::kSucceeded;
    if (failed) facts.failure = json::text_at(condition, "message");
    if (facts.ended == 0) facts.ended = millis_at(at(condition, "lastTransitionTime"));
  }
}

/// OpenPAI's Framework: its own state machine, with codes and retries.
void read_framework(JobFacts& facts, const json::Value& job) {
  const json::Value& status = at(job, "status");
  const std::string_view state = json::string_at(status, "state");
  const json::Value& attempt = at(status, "attemptStatus");
  facts.started = millis_at(at(attempt, "runTime"));
  facts.ended = millis_at(at(status, "completionTime"));
  facts.run_ended = millis_at(at(attempt, "completionTime"));
  facts.retries_platform =
      static_cast<std::int32_t>(json::int_at(status, "retryPolicyStatus", "totalRetriedCount"));
  facts.retries_user = static_cast<std::int32_t>(
      json::int_at(status, "retryPolicyStatus", "accountableRetriedCount"));
  facts.retries_platform -= facts.retries_user;
  const json::Value& completion = at(attempt, "completionStatus");
  if (completion.is_object()) {
    facts.has_exit = true;
    facts.exit_code = static_cast<std::int32_t>(json::int_at(completion, "code"));
    facts.exit_phrase = json::text_at(completion, "phrase");
    facts.failure = json::text_at(completion, "diagnostics").substr(0, 500);
  }
  const bool stop = json::string_at(job, "spec", "executionType") == "Stop";
  if (state == "Completed") {
    const bool well = json::string_at(completion, "type", "name") == "Succeeded";
    facts.final_state = well ? JobState::kSucceeded : stop ? JobState::kStopped : JobState::kFailed;
  } else if (stop || state.starts_with("AttemptDeleti")) {
    if (stop) facts.final_state = JobState::kStopping;
  }
}

void read_times(JobFacts& facts, const json::Value& job) {
  const json::Value& status = at(job, "status");
  facts.started = millis_at(at(status, "startTime"));
  facts.ended = millis_at(at(status, "completionTime"));
  const Millis kept = millis_at(at(job, "metadata", "annotations", names::kSubmittedAt));
  facts.submitted = kept != 0 ? kept : millis_at(at(job, "metadata", "creationTimestamp"));
}

void read_volcano(JobFacts& facts, const json::Value& job) {
  const json::Value& state = at(job, "status", "state");
  facts.final_state = state_of_phase(json::string_at(state, "phase"));
  facts.retries_user = static_cast<std::int32_t>(json::int_at(job, "status", "retryCount"));
  facts.failure = json::text_at(state, "message");
  facts.started = 0;
  for (const json::Value& condition : json::array_at(job, "status", "conditions")) {
    if (json::string_at(condition, "status") == "Running" && facts.started == 0)
      facts.started = millis_at(at(condition, "lastTransitionTime"));
  }
  if (facts.final_state) facts.ended = millis_at(at(state, "lastTransitionTime"));
}

void read_owner(JobFacts& facts, const json::Value& job) {
  const json::Value& labels = at(job, "metadata", "labels");
  for (const json::Value* where : {&labels, &at(job, "metadata", "annotations")}) {
    for (const std::string_view key : {names::pai::kUserName,
                                       names::portal::kSubmittedBy,
                                       names::kubeflow::kArenaUsername,
                                       std::string_view("user")}) {
      if (facts.user.empty()) facts.user = json::text_at(*where, key);
    }
    if (facts.vc.empty()) facts.vc = json::text_at(*where, names::pai::kVirtualCluster);
  }
  facts.queue = json::text_at(job, "spec", "runPolicy", "schedulingPolicy", "queue");
  if (facts.queue.empty())
    facts.queue = json::text_at(job, "metadata", "annotations", names::volcano::kQueueName);
  if (facts.queue.empty()) facts.queue = json::text_at(labels, names::volcano::kQueueName);
  if (facts.queue.empty()) facts.queue = json::text_at(job, "spec", "queue");
  if (facts.queue.empty())
    facts.queue = json::text_at(job, "spec", "scheduler", "t9kScheduler", "queue");
  facts.prio_class = json::text_at(job, "spec", "runPolicy", "schedulingPolicy", "priorityClass");
  if (facts.prio_class.empty()) facts.prio_class = json::text_at(job, "spec", "priorityClassName");
  if (facts.prio_class.empty())
    facts.prio_class = json::text_at(job, "metadata", "annotations", names::pai::kJobPriority);
  for (const std::string_view key : {names::portal::kTags, names::pai::kTags}) {
    for (const std::string& tag :
         split_nonempty(json::string_at(job, "metadata", "annotations", key), ','))
      facts.tags.push_back(tag);
  }
}

}  // namespace

std::string_view state_name(JobState state) {
  static constexpr std::array<std::string_view, kStates> kNames{
      "WAITING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED", "STOPPED", "SUSPENDED"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view kind_name(JobKind kind) {
  static constexpr std::array<std::string_view, kJobKinds> kNames{"openpai",
                                                                  "pytorchjob",
                                                                  "tfjob",
                                                                  "xgboostjob",
                                                                  "paddlejob",
                                                                  "jaxjob",
                                                                  "mpijob",
                                                                  "t9kmpijob",
                                                                  "vcjob",
                                                                  "job",
                                                                  "gang",
                                                                  "pod"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view task_state_name(TaskState state) {
  static constexpr std::array<std::string_view, kTaskStates> kNames{
      "WAITING", "STARTING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED"};
  return kNames[static_cast<std::size_t>(state)];
}

std::int32_t gpus_of_pod_spec(const json::Value& spec) {
  std::int32_t sum = 0;
  for (const json::Value& container : json::array_at(spec, "containers"))
    sum += gpus_of_container(container);
  return sum;
}

Millis millis_at(const json::Value& value) {
  const std::string_view text = json::as_string(value);
  if (text.empty()) return 0;
  const auto time = parse_time(text);
  return time ? time->us / 1000 : 0;
}

std::string job_id(std::string_view ns, JobKind kind, std::string_view name) {
  std::string id;
  const std::string_view word = kind_name(kind);
  id.reserve(ns.size() + word.size() + name.size() + 2);
  id.append(ns).append("/").append(word).append("/").append(name);
  return id;
}

std::optional<JobKind> kind_of_owner(std::string_view api_version, std::string_view kind) {
  const std::string_view group = api_version.substr(0, api_version.find('/'));
  if (kind == "Job")
    return group == kube::groups::kVolcanoBatch ? JobKind::kVcJob
           : group == "batch"                   ? std::optional(JobKind::kJob)
                                                : std::nullopt;
  if (kind == "MPIJob")
    return group == kube::groups::kT9kBatch ? JobKind::kT9kMpiJob : JobKind::kMpiJob;
  if (kind == "PyTorchJob") return JobKind::kPyTorchJob;
  if (kind == "TFJob") return JobKind::kTFJob;
  if (kind == "XGBoostJob") return JobKind::kXGBoostJob;
  if (kind == "PaddleJob") return JobKind::kPaddleJob;
  if (kind == "JAXJob") return JobKind::kJAXJob;
  if (kind == "Framework") return JobKind::kOpenPai;
  if (kind == "PodGroup") return JobKind::kPodGroup;
  return std::nullopt;
}

std::string_view group_of_pod(const json::Value& pod) {
  const json::Value& annotations = at(pod, "metadata", "annotations");
  const json::Value& labels = at(pod, "metadata", "labels");
  for (const std::string_view key :
       {names::volcano::kGroupName, names::volcano::kNewGroupName, names::t9k::kGroupName}) {
    if (const std::string_view name = json::string_at(annotations, key); !name.empty()) return name;
  }
  for (const std::string_view key : {names::plugins::kPodGroup, names::t9k::kGroupName}) {
    if (const std::string_view name = json::string_at(labels, key); !name.empty()) return name;
  }
  return "";
}

JobFacts job_facts(JobKind kind, const json::Value& object) {
  JobFacts facts;
  facts.kind = kind;
  facts.name = kube::name_of(object);
  facts.ns = kube::namespace_of(object);
  facts.uid = kube::uid_of(object);
  facts.deleting = kube::is_deleting(object);
  facts.suspended = says_suspended(object);
  read_times(facts, object);
  read_owner(facts, object);
  read_templates(facts, object);
  if (kind == JobKind::kVcJob) {
    read_volcano(facts, object);
    if (const std::string pai = json::text_at(object, "metadata", "annotations", names::kPaiName);
        !pai.empty()) {
      facts.kind = JobKind::kOpenPai;
      const auto parts = pai.find('~');
      facts.name = parts == std::string::npos ? pai : pai.substr(parts + 1);
      if (facts.user.empty() && parts != std::string::npos) facts.user = pai.substr(0, parts);
    }
  } else if (kind == JobKind::kOpenPai) {
    read_framework(facts, object);
    if (const std::string shown =
            json::text_at(object, "metadata", "annotations", names::pai::kJobName);
        !shown.empty()) {
      const auto parts = shown.find('~');
      facts.name = parts == std::string::npos ? shown : shown.substr(parts + 1);
    }
  } else if (kind == JobKind::kT9kMpiJob) {
    facts.final_state = state_of_phase(json::string_at(object, "status", "phase"));
  } else if (kind == JobKind::kMpiJob && at(object, "status", "launcherStatus").is_string()) {
    const std::string_view launcher = json::string_at(object, "status", "launcherStatus");
    if (launcher == "Succeeded") facts.final_state = JobState::kSucceeded;
    if (launcher == "Failed") facts.final_state = JobState::kFailed;
  } else if (kind != JobKind::kPodGroup) {
    read_conditions(facts, object);
  }
  if (kind == JobKind::kPodGroup) {
    facts.tasks = static_cast<std::int32_t>(json::int_at(object, "spec", "minMember"));
    facts.started = facts.ended = 0;
  }
  facts.id = facts.kind == JobKind::kOpenPai && !facts.user.empty()
                 ? facts.user + "~" + facts.name
                 : job_id(facts.ns, facts.kind, facts.name);
  return facts;
}

namespace {

/// "worker" and 3 of a pod, from whichever labels its controller writes.
void read_role(TaskFacts& facts, const json::Value& pod) {
  const json::Value& labels = at(pod, "metadata", "labels");
  const json::Value& annotations = at(pod, "metadata", "annotations");
  for (const std::string_view key : {names::kubeflow::kReplicaType,
                                     names::kubeflow::kMpiRoleType,
                                     names::t9k::kMpiJobReplica,
                                     names::framework::kTaskRoleName}) {
    if (facts.role.empty()) facts.role = json::text_at(labels, key);
  }
  if (facts.role.empty()) facts.role = json::text_at(annotations, names::volcano::kTaskSpec);
  for (const std::string_view key : {names::kubeflow::kReplicaIndex,
                                     names::volcano::kTaskIndex,
                                     names::framework::kTaskIndex,
                                     names::kubernetes::kCompletionIndex}) {
    for (const json::Value* where : {&labels, &annotations}) {
      if (const auto index = parse_int(json::string_at(*where, key)); index) {
        facts.index = static_cast<std::int32_t>(std::clamp<std::int64_t>(*index, 0, 10'000'000));
        return;
      }
    }
  }
  const auto dash = facts.pod.rfind('-');
  if (dash == std::string::npos) return;
  if (const auto index = parse_int(facts.pod.substr(dash + 1));
      index && *index >= 0 && *index < 10'000'000)
    facts.index = static_cast<std::int32_t>(*index);
}

void read_containers(TaskFacts& facts, const json::Value& pod) {
  for (const json::Value& status : json::array_at(pod, "status", "containerStatuses")) {
    facts.restarts += static_cast<std::int32_t>(json::int_at(status, "restartCount"));
    if (const json::Value& ended = at(status, "state", "terminated"); ended.is_object()) {
      const auto code = static_cast<std::int32_t>(json::int_at(ended, "exitCode"));
      if (!facts.has_exit || (facts.exit_code == 0 && code != 0)) {
        facts.exit_code = code;
        facts.exit_phrase = json::text_at(ended, "reason");
      }
      facts.has_exit = true;
      facts.ended = std::max(facts.ended, millis_at(at(ended, "finishedAt")));
      if (facts.started == 0) facts.started = millis_at(at(ended, "startedAt"));
    } else if (const json::Value& runs = at(status, "state", "running"); runs.is_object()) {
      if (facts.started == 0) facts.started = millis_at(at(runs, "startedAt"));
    } else if (const json::Value& waits = at(status, "state", "waiting"); waits.is_object()) {
      const std::string_view why = json::string_at(waits, "reason");
      if (why != "ContainerCreating" && why != "PodInitializing") {
        facts.reason = why;
        if (const std::string_view more = json::string_at(waits, "message"); !more.empty())
          facts.reason += ": " + std::string(more.substr(0, 300));
      }
    }
  }
}

void read_task_state(TaskFacts& facts, const json::Value& pod) {
  const std::string_view phase = json::string_at(pod, "status", "phase");
  const json::Value& scheduled = kube::condition(pod, "PodScheduled");
  if (json::string_at(scheduled, "status") == "True")
    facts.scheduled = millis_at(at(scheduled, "lastTransitionTime"));
  if (phase == "Succeeded")
    facts.state = TaskState::kSucceeded;
  else if (phase == "Failed")
    facts.state = TaskState::kFailed;
  else if (kube::is_deleting(pod))
    facts.state = TaskState::kStopping;
  else if (phase == "Running")
    facts.state = TaskState::kRunning;
  else if (!facts.node.empty())
    facts.state = TaskState::kStarting;
  if (facts.state == TaskState::kWaiting) facts.reason = json::text_at(scheduled, "message");
  if (facts.state == TaskState::kFailed && facts.reason.empty()) {
    facts.reason = json::text_at(pod, "status", "reason");
    if (const std::string_view more = json::string_at(pod, "status", "message"); !more.empty())
      facts.reason += (facts.reason.empty() ? "" : ": ") + std::string(more.substr(0, 300));
  }
  if (facts.started == 0 && facts.state != TaskState::kWaiting &&
      facts.state != TaskState::kStarting)
    facts.started = millis_at(at(pod, "status", "startTime"));
}

void read_cells(TaskFacts& facts, const json::Value& pod) {
  const auto cells = cells_of(pod);
  if (!cells) return;
  facts.gpus = cells->leaves;
  facts.prio = cells->priority;
  facts.opportunistic = cells->priority < 0;
  const auto bind = hived::parse_bind_info(kube::annotation(pod, hived::kBindInfo));
  if (!bind) return;
  facts.devices.clear();
  for (const std::int32_t leaf : bind->leaves) {
    if (leaf >= 0 && leaf < 4096) facts.devices.push_back(static_cast<std::int16_t>(leaf));
  }
}

}  // namespace

TaskFacts task_facts(const json::Value& pod) {
  TaskFacts facts;
  facts.pod = kube::name_of(pod);
  facts.uid = kube::uid_of(pod);
  facts.node = json::text_at(pod, "spec", "nodeName");
  facts.ip = json::text_at(pod, "status", "podIP");
  facts.group = group_of_pod(pod);
  facts.prio_class = json::text_at(pod, "spec", "priorityClassName");
  facts.prio = static_cast<std::int32_t>(json::int_at(pod, "spec", "priority"));
  facts.created = millis_at(at(pod, "metadata", "creationTimestamp"));
  facts.nominated = !json::string_at(pod, "status", "nominatedNodeName").empty();
  facts.gpus = gpus_of_pod_spec(at(pod, "spec"));
  for (const std::string& one : split_nonempty(kube::annotation(pod, names::kGpuIndices), ',')) {
    if (const auto index = parse_int(one); index && *index >= 0 && *index < 4096)
      facts.devices.push_back(static_cast<std::int16_t>(*index));
  }
  for (const auto& [name, value] : kube::pod_requests(pod)) {
    if (name == "cpu") facts.cpu_milli = value;
    if (name == "memory") facts.memory = value;
  }
  for (const json::Value& container : json::array_at(pod, "spec", "containers"))
    facts.containers.push_back(json::text_at(container, "name"));
  read_role(facts, pod);
  read_containers(facts, pod);
  read_task_state(facts, pod);
  if (facts.state != TaskState::kSucceeded && facts.state != TaskState::kFailed) {
    facts.ended = 0;
    if (const auto lasts = parse_duration(kube::annotation(pod, names::kExpectedDuration));
        lasts && facts.started != 0)
      facts.expected_end = facts.started + lasts->count() / 1000;
  }
  read_cells(facts, pod);
  return facts;
}

std::int64_t gpu_milli_of_pod(const json::Value& pod) {
  if (!kube::annotation(pod, names::hived::kSchedulingSpec).empty())
    return std::int64_t{1000} * task_facts(pod).gpus;
  if (const auto share = parse_int(kube::annotation(pod, names::kGpuMilli));
      share && *share > 0 && *share < 1000)
    return *share;
  return std::int64_t{1000} * gpus_of_pod_spec(at(pod, "spec"));
}

}  // namespace muster::answers
