// A table of kinds: where each keeps its roles, times and states, and what people call them.
#include "cli/view/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "base/strings.h"
#include "kube/framework.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "pai/job/job.h"

namespace muster::cli {
namespace {

using json::as_array;
using json::as_bool;
using json::as_int;
using json::as_object;
using json::as_string;
using json::at;

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

Time time_at(const json::Value& value) {
  const std::string_view text = as_string(value);
  if (text.empty()) return {};
  const auto parsed = parse_time(text);
  return parsed ? *parsed : Time{};
}

bool is_v1alpha1(const json::Value& job) { return at(job, "spec", "template").is_object(); }

bool is_chief(const json::Value& pod, const std::string& job) {
  const json::Value& labels = at(pod, "metadata", "labels");
  if (const std::string_view role = json::string_at(labels, kube::names::kubeflow::kJobRole);
      !role.empty())
    return role == "master" || role == "launcher";
  if (json::string_at(labels, kube::names::kubeflow::kMpiRoleType) == "launcher") return true;
  if (json::string_at(labels, kube::names::kubeflow::kReplicaType) == "launcher") return true;
  if (json::string_at(labels, "pytorch-replica-type") == "master") return true;
  const std::string_view name = kube::name_of(pod);
  if (name.size() == job.size() + 9 && name.starts_with(job) && name.ends_with("-launcher"))
    return true;
  return json::string_at(labels, kube::names::t9k::kMpiJobReplica) == "launcher";
}

/// The newest chief pod that is not pending; if all are, the newest.
const json::Value* pick_chief(const std::vector<const json::Value*>& pods, const std::string& job) {
  const json::Value* best = nullptr;
  for (const json::Value* pod : pods) {
    if (!is_chief(*pod, job)) continue;
    if (best == nullptr) {
      best = pod;
      continue;
    }
    const bool pending = json::string_at(*pod, "status", "phase") == "Pending";
    const bool best_pending = json::string_at(*best, "status", "phase") == "Pending";
    const bool newer = kube::creation_time(*pod) > kube::creation_time(*best);
    if (pending == best_pending ? newer : best_pending) best = pod;
  }
  return best;
}

/// When the pod's conditions last changed.
Time newest_transition(const json::Value& pod) {
  Time newest;
  for (const json::Value& condition : json::array_at(pod, "status", "conditions")) {
    newest = std::max(newest, time_at(at(condition, "lastTransitionTime")));
  }
  return newest;
}

std::string v1alpha1_status(const JobParts& parts, const json::Value* chief) {
  const std::string_view launcher = json::string_at(*parts.object, "status", "launcherStatus");
  if (launcher == "Succeeded") return "SUCCEEDED";
  if (launcher == "Failed") return "FAILED";
  const bool runs = parts.launcher_job != nullptr && chief != nullptr &&
                    json::string_at(*chief, "status", "phase") != "Pending";
  return runs ? "RUNNING" : "PENDING";
}

std::string phase_status(std::string_view phase) {
  if (phase == "Succeeded" || phase == "Completed") return "SUCCEEDED";
  if (phase == "Failed" || phase == "Terminated" || phase == "Terminating") return "FAILED";
  if (phase == "Aborted") return "SUSPENDED";  // it can be resumed
  if (phase == "Running" || phase == "Resuming") return "RUNNING";
  if (phase == "Paused" || phase == "Aborting") return "SUSPENDED";
  if (phase == "Inqueue") return "SUBMITTED";
  return "PENDING";
}

std::string condition_status(const json::Value& job) {
  for (const auto& [type, word] : {std::pair{"Succeeded", "SUCCEEDED"},
                                   std::pair{"Failed", "FAILED"},
                                   std::pair{"Running", "RUNNING"},
                                   std::pair{"Queuing", "QUEUING"}}) {
    if (kube::condition_true(job, type)) return word;
  }
  return "PENDING";
}

bool is_suspended(const json::Value& job) {
  return json::bool_at(job, "spec", "runPolicy", "suspend") ||
         json::bool_at(job, "spec", "suspend") ||
         json::bool_at(job, "spec", "runMode", "pause", "enabled") ||
         kube::condition_true(job, "Suspended") ||
         kube::annotation(job, kube::names::kSuspend) == "true";
}

bool is_pai(const JobParts& parts) { return parts.trainer->type == "paijob"; }

/// In arena's words: OpenPAI's WAITING is PENDING, and what was stopped did not come to its end.
std::string pai_status(const json::Value& job) {
  const std::string state = json::text_at(pai::job_summary(job), "state");
  if (state == "WAITING") return "PENDING";
  if (state == "STOPPING") return "RUNNING";
  return state == "STOPPED" || state == "UNKNOWN" ? "FAILED" : state;
}

/// Why a job of OpenPAI's ended as it did, or is tried again.
std::string pai_reason(const json::Value& job) {
  const json::Value& ended = at(job, "status", "attemptStatus", "completionStatus");
  if (!ended.is_object() || json::int_at(ended, "code") == 0) return "";
  return fmt::format("{} (code {})", json::string_at(ended, "phrase"), json::int_at(ended, "code"));
}

std::string status_of(const JobParts& parts, const json::Value* chief) {
  const json::Value& job = *parts.object;
  if (is_pai(parts)) return pai_status(job);
  std::string status;
  if (is_v1alpha1(job)) {
    status = v1alpha1_status(parts, chief);
  } else if (at(job, "status", "phase").is_string()) {
    status = phase_status(json::string_at(job, "status", "phase"));
  } else if (at(job, "status", "state", "phase").is_string()) {
    status = phase_status(json::string_at(job, "status", "state", "phase"));
  } else {
    status = condition_status(job);
  }
  if (status == "RUNNING") {
    // Arena calls a job that lacks an instance pending, whatever its controller says.
    const bool pending =
        std::any_of(parts.pods.begin(), parts.pods.end(), [](const json::Value* pod) {
          return json::string_at(*pod, "status", "phase") == "Pending" && !kube::is_deleting(*pod);
        });
    if (pending) status = "PENDING";
  }
  if ((status == "PENDING" || status == "RUNNING") && is_suspended(job)) status = "SUSPENDED";
  if (status == "PENDING" && kube::condition_true(job, "Queuing")) status = "QUEUING";
  return status;
}

Duration duration_of(const JobParts& parts,
                     const std::string& status,
                     const json::Value* chief,
                     Time now) {
  const json::Value& job = *parts.object;
  const Time created = kube::creation_time(job);
  const auto failed_for = [&]() -> std::optional<Duration> {
    if (status != "FAILED" || chief == nullptr) return std::nullopt;
    const Time last = newest_transition(*chief);
    return last ? std::optional<Duration>(last - created) : std::nullopt;
  };
  if (is_v1alpha1(job)) {
    if (!created) return Duration{0};
    Time completed = parts.launcher_job != nullptr
                         ? time_at(at(*parts.launcher_job, "status", "completionTime"))
                         : Time{};
    if (!completed) completed = time_at(at(job, "status", "completionTime"));
    if (completed) return completed - created;
    if (const auto failed = failed_for()) return *failed;
    return now - created;
  }
  Time started = time_at(at(job, "status", "startTime"));
  Time completed = time_at(at(job, "status", "completionTime"));
  if (const json::Value& state = at(job, "status", "state"); state.is_object()) {
    // Volcano keeps a list of the phases a job went through.
    for (const json::Value& phase : json::array_at(job, "status", "conditions")) {
      if (!started && json::string_at(phase, "status") == "Running")
        started = time_at(at(phase, "lastTransitionTime"));
    }
    if (!started && json::string_at(state, "phase") == "Running")
      started = time_at(at(state, "lastTransitionTime"));
    if (status == "SUCCEEDED" || status == "FAILED")
      completed = time_at(at(state, "lastTransitionTime"));
  }
  if (!started) return Duration{0};
  if (completed) return completed - started;
  if (const auto failed = failed_for()) return *failed;
  return now - started;
}

const json::Value& replica_specs(const json::Value& job) {
  for (const auto& member : json::object_at(job, "spec")) {
    const std::string_view key = member.key();
    if (key.ends_with("ReplicaSpecs")) return member.value();
  }
  return json::null_value();
}

std::string priority_of(const json::Value& job) {
  const auto of_template = [](const json::Value& pod_template) {
    return json::text_at(pod_template, "spec", "priorityClassName");
  };
  std::string priority = of_template(at(job, "spec", "template"));
  for (const auto& member : as_object(replica_specs(job))) {
    if (priority.empty()) priority = of_template(at(member.value(), "template"));
  }
  if (priority.empty())
    priority = json::text_at(job, "spec", "runPolicy", "schedulingPolicy", "priorityClass");
  for (const char* role : {"launcher", "worker"}) {
    if (priority.empty()) priority = of_template(at(job, "spec", role, "template"));
  }
  if (priority.empty()) priority = json::text_at(job, "spec", "priorityClassName");
  return priority.empty() ? "N/A" : priority;
}

std::string queue_of(const json::Value& job) {
  std::string queue = json::text_at(job, "spec", "runPolicy", "schedulingPolicy", "queue");
  if (queue.empty()) queue = std::string(kube::annotation(job, kube::names::volcano::kQueueName));
  if (queue.empty()) queue = json::text_at(job, "spec", "queue");
  if (queue.empty()) queue = json::text_at(job, "spec", "scheduler", "t9kScheduler", "queue");
  return queue;
}

/// The last true condition that explains a state, else nothing.
std::string reason_of_job(const json::Value& job) {
  for (const char* type : {"Failed", "Queuing", "Restarting"}) {
    const json::Value& condition = kube::condition(job, type);
    if (json::string_at(condition, "status") == "True") return json::text_at(condition, "message");
  }
  return "";
}

Instance make_instance(const json::Value& pod, const std::string& chief, Time now) {
  Instance instance;
  instance.name = kube::name_of(pod);
  instance.phase = upper(as_string(at(pod, "status", "phase"), "Pending"));
  instance.status = pod_status_text(pod);
  instance.ip = json::text_at(pod, "status", "podIP");
  instance.node_ip = std::string(json::string_at(pod, "status", "hostIP"));
  if (instance.node_ip.empty()) instance.node_ip = "N/A";
  instance.node = std::string(json::string_at(pod, "spec", "nodeName"));
  if (instance.node.empty()) instance.node = "N/A";
  instance.chief = instance.name == chief;
  instance.gpus = pod_gpus(pod);
  instance.created = kube::creation_time(pod);
  instance.age = now - instance.created;
  instance.pod = &pod;
  return instance;
}

void count_gpus(Job& job, const std::vector<const json::Value*>& pods) {
  // The job says it too, which counts when its pods are gone.
  std::int64_t announced = 0, limits = 0;
  for (const std::string_view key :
       {std::string_view("requestGPUsOfJobOwner"), kube::names::pai::kTotalGpuNumber}) {
    if (announced == 0) announced = parse_int(kube::annotation(*job.object, key)).value_or(0);
  }
  for (const json::Value* pod : pods) {
    if (announced <= 0)
      announced = parse_int(kube::annotation(*pod, "requestGPUsOfJobOwner")).value_or(0);
    const std::int64_t gpus = pod_gpus(*pod);
    limits += gpus;
    const bool holds = at(*pod, "status", "startTime").is_string() && !kube::pod_finished(*pod) &&
                       !kube::is_deleting(*pod);
    if (holds) job.allocated_gpus += gpus;
  }
  job.requested_gpus = announced > 0 ? announced : limits;
}

std::string tensorboard_url(const json::Value& service, const json::Value* node) {
  const json::Array& ports = json::array_at(service, "spec", "ports");
  if (ports.empty()) return "";
  std::string address;
  std::int64_t port = json::int_at(ports[0], "nodePort");
  if (port != 0 && node != nullptr) {
    for (const json::Value& each : json::array_at(*node, "status", "addresses")) {
      if (json::string_at(each, "type") == "InternalIP") address = json::text_at(each, "address");
    }
  }
  if (address.empty()) {
    address = json::text_at(service, "spec", "clusterIP");
    port = json::int_at(ports[0], "port");
  }
  return address.empty() || address == "None" ? "" : fmt::format("http://{}:{}", address, port);
}

/// Empty for a pod whose containers run; else its state, with what its first container said about
/// it.
std::string problem_of_pod(const json::Value& pod) {
  const std::string state = pod_status_text(pod);
  if (state == "Running") return "";
  for (const json::Value& container : json::array_at(pod, "status", "containerStatuses")) {
    // How the last try ended says more than that the next one waits.
    for (const char* part : {"terminated", "waiting"}) {
      for (const json::Value* from :
           {&at(container, "state", part), &at(container, "lastState", part)}) {
        if (const std::string_view message = json::string_at(*from, "message"); !message.empty())
          return fmt::format("{}: {}", state, message);
      }
    }
  }
  return state;
}

}  // namespace

std::int64_t pod_gpus(const json::Value& pod, bool topology) {
  std::int64_t gpus = 0;
  for (const json::Value& container : json::array_at(pod, "spec", "containers")) {
    const json::Value& limits = at(container, "resources", "limits");
    const auto amount = [&](std::string_view name) -> std::int64_t {
      const json::Value& value = at(limits, name);
      if (value.is_number()) return as_int(value);
      const auto parsed = parse_quantity(as_string(value, "0"));
      return parsed ? parsed->units() : 0;
    };
    const std::int64_t nvidia = amount("nvidia.com/gpu");
    gpus += nvidia != 0 ? nvidia : amount(kube::names::kubernetes::kOldGpu);
    if (topology) gpus += amount("aliyun.com/gpu");
  }
  return gpus;
}

std::string pod_status_text(const json::Value& pod) {
  const json::Value& status = at(pod, "status");
  std::string reason = std::string(json::string_at(status, "reason"));
  if (reason.empty()) reason = std::string(as_string(at(status, "phase"), "Pending"));

  const json::Array& init = json::array_at(status, "initContainerStatuses");
  bool initialising = false;
  for (std::size_t i = 0; i < init.size() && !initialising; ++i) {
    const json::Value& terminated = at(init[i], "state", "terminated");
    const json::Value& waiting = at(init[i], "state", "waiting");
    if (terminated.is_object() && json::int_at(terminated, "exitCode") == 0) continue;
    initialising = true;
    if (terminated.is_object()) {
      const std::string_view why = json::string_at(terminated, "reason");
      const std::int64_t signal = json::int_at(terminated, "signal");
      reason = !why.empty() ? fmt::format("Init:{}", why)
               : signal != 0
                   ? fmt::format("Init:Signal:{}", signal)
                   : fmt::format("Init:ExitCode:{}", json::int_at(terminated, "exitCode"));
    } else if (const std::string_view why = json::string_at(waiting, "reason");
               !why.empty() && why != "PodInitializing") {
      reason = fmt::format("Init:{}", why);
    } else {
      reason = fmt::format("Init:{}/{}", i, json::array_at(pod, "spec", "initContainers").size());
    }
  }
  if (!initialising) {
    bool running = false;
    const json::Array& containers = json::array_at(status, "containerStatuses");
    for (std::size_t i = containers.size(); i-- > 0;) {
      const json::Value& state = at(containers[i], "state");
      const std::string_view waiting = json::string_at(state, "waiting", "reason");
      const json::Value& terminated = at(state, "terminated");
      if (!waiting.empty()) {
        reason = waiting;
      } else if (terminated.is_object()) {
        const std::string_view why = json::string_at(terminated, "reason");
        const std::int64_t signal = json::int_at(terminated, "signal");
        reason = !why.empty()  ? std::string(why)
                 : signal != 0 ? fmt::format("Signal:{}", signal)
                               : fmt::format("ExitCode:{}", json::int_at(terminated, "exitCode"));
      } else if (json::bool_at(containers[i], "ready") && at(state, "running").is_object()) {
        running = true;
      }
    }
    if (reason == "Completed" && running) reason = "Running";
  }
  if (kube::is_deleting(pod))
    return json::string_at(status, "reason") == "NodeLost" ? "Unknown" : "Terminating";
  return reason;
}

bool belongs(const json::Value& pod, const json::Value& job, std::string_view type) {
  if (kube::namespace_of(pod) != kube::namespace_of(job)) return false;
  const std::vector<std::string> of_pod = keys_of_pod(pod);
  for (const std::string& key : keys_of_job(job, type)) {
    if (std::find(of_pod.begin(), of_pod.end(), key) != of_pod.end()) return true;
  }
  return false;
}

namespace {

/// Words with blanks between; a list joins thousands of them, so no format string is read.
std::string key_of(std::initializer_list<std::string_view> words) {
  std::string key;
  key.reserve(96);
  for (const std::string_view word : words) {
    if (!key.empty()) key += ' ';
    key.append(word);
  }
  return key;
}

}  // namespace

std::vector<std::string> keys_of_pod(const json::Value& pod) {
  std::vector<std::string> keys;
  const json::Value& metadata = at(pod, "metadata");
  const json::Value& labels = at(metadata, "labels");
  const std::string_view ns = json::string_at(metadata, "namespace");
  if (json::string_at(labels, "role") == "tensorboard") return keys;
  keys.reserve(4);
  const std::string_view app = json::string_at(labels, "app"),
                         release = json::string_at(labels, "release");
  if (!app.empty() && !release.empty()) keys.push_back(key_of({"a", ns, app, release}));
  if (const std::string_view name = json::string_at(labels, kube::names::kubeflow::kJobName);
      !name.empty()) {
    const std::string_view operator_name =
        json::string_at(labels, kube::names::kubeflow::kOperatorName);
    std::string_view type = operator_name == "mpi-operator" ? "mpijob" : operator_name;
    if (type.ends_with("-controller")) type.remove_suffix(11);
    keys.push_back(key_of({"k", ns, type, name}));
  }
  if (const std::string_view mpi = json::string_at(labels, kube::names::kubeflow::kMpiJobName);
      !mpi.empty())
    keys.push_back(key_of({"k", ns, "mpijob", mpi}));
  if (const std::string_view framework =
          json::string_at(labels, kube::names::framework::kFrameworkName);
      !framework.empty())
    keys.push_back(key_of({"k", ns, "paijob", framework}));
  for (const json::Value& owner : json::array_at(metadata, "ownerReferences"))
    keys.push_back(key_of({"u", json::string_at(owner, "uid")}));
  return keys;
}

std::vector<std::string> keys_of_job(const json::Value& job, std::string_view type) {
  const std::string_view ns = kube::namespace_of(job), name = kube::name_of(job);
  std::vector<std::string> keys{key_of({"u", kube::uid_of(job)}), key_of({"k", ns, type, name})};
  const std::string_view app = kube::label(job, "app"), release = kube::label(job, "release");
  if (!app.empty() && !release.empty()) keys.push_back(key_of({"a", ns, app, release}));
  return keys;
}

Job make_job(const JobParts& parts, Time now) {
  const json::Value& object = *parts.object;
  Job job;
  job.name = kube::name_of(object);
  job.ns = kube::namespace_of(object);
  job.uid = kube::uid_of(object);
  job.trainer = parts.trainer;
  job.object = parts.object;
  const json::Value* chief = pick_chief(parts.pods, job.name);
  if (chief == nullptr) {
    // A job of workers only: worker 0 leads it.
    for (const json::Value* pod : parts.pods) {
      if (kube::name_of(*pod) == job.name + "-worker-0") chief = pod;
    }
    if (is_v1alpha1(object)) chief = nullptr;
    // Volcano's tasks have no roles: the first pod of a task speaks for the job.
    for (const json::Value* pod : parts.pods) {
      if (chief == nullptr && (parts.trainer->type == "volcanojob" || is_pai(parts)) &&
          kube::name_of(*pod).ends_with("-0"))
        chief = pod;
    }
  }
  job.chief = chief == nullptr ? "" : std::string(kube::name_of(*chief));
  job.status = status_of(parts, chief);
  job.priority = priority_of(object);
  job.queue = queue_of(object);
  job.reason = reason_of_job(object);
  if (is_pai(parts)) {
    if (const auto name = kube::annotation(object, kube::names::pai::kJobName); !name.empty())
      job.name = name;
    job.queue = kube::annotation(object, kube::names::pai::kVirtualCluster);
    if (const auto word = kube::annotation(object, kube::names::pai::kJobPriority); !word.empty())
      job.priority = word;
    job.reason = pai_reason(object);
  }
  job.created = kube::creation_time(object);
  job.age = now - job.created;
  job.duration = duration_of(parts, job.status, chief, now);
  if (job.finished()) job.ended = job.created + job.duration;
  count_gpus(job, parts.pods);
  for (const json::Value* pod : parts.pods)
    job.instances.push_back(make_instance(*pod, job.chief, now));
  std::sort(job.instances.begin(), job.instances.end(), [](const Instance& a, const Instance& b) {
    return a.name < b.name;
  });
  if (parts.tensorboard_service != nullptr)
    job.tensorboard = tensorboard_url(*parts.tensorboard_service, parts.first_node);
  if (parts.tensorboard_pod != nullptr)
    job.tensorboard_problem = problem_of_pod(*parts.tensorboard_pod);
  job.model_name = kube::label(object, "modelName");
  job.model_version = kube::label(object, "modelVersion");
  return job;
}

Job job_of_pod(const json::Value& pod, Time now) {
  Job job;
  job.name = job.chief = kube::name_of(pod);
  job.ns = kube::namespace_of(pod);
  job.uid = kube::uid_of(pod);
  job.object = &pod;
  const std::string phase = upper(as_string(at(pod, "status", "phase"), "Pending"));
  job.status = phase == "RUNNING" || phase == "SUCCEEDED" || phase == "FAILED" ? phase : "PENDING";
  job.priority = as_string(at(pod, "spec", "priorityClassName"), "N/A");
  for (const std::string_view key :
       {kube::names::volcano::kQueueName, kube::names::volcano::kJobQueue}) {
    if (job.queue.empty()) job.queue = kube::annotation(pod, key);
  }
  if (job.status == "FAILED") job.reason = json::text_at(pod, "status", "message");
  job.created = kube::creation_time(pod);
  job.age = now - job.created;
  const Time started = time_at(at(pod, "status", "startTime"));
  Time ended;
  for (const json::Value& container : json::array_at(pod, "status", "containerStatuses")) {
    ended = std::max(ended, time_at(at(container, "state", "terminated", "finishedAt")));
  }
  if (job.finished() && ended) job.ended = ended;
  if (started) job.duration = (job.ended ? *job.ended : now) - started;
  count_gpus(job, {&pod});
  job.instances.push_back(make_instance(pod, job.chief, now));
  return job;
}

Job job_of_workload(const json::Value& workload,
                    const std::vector<const json::Value*>& pods,
                    Time now) {
  Job job;
  job.name = kube::name_of(workload);
  job.ns = kube::namespace_of(workload);
  job.uid = kube::uid_of(workload);
  job.object = &workload;
  job.created = kube::creation_time(workload);
  job.age = now - job.created;
  job.priority = "N/A";
  const auto holds = [&](std::string_view type) {
    return as_string(at(kube::condition(workload, type), "status")) == "True";
  };
  bool runs = false;
  for (const json::Value* pod : pods) {
    const Job one = job_of_pod(*pod, now);
    runs = runs || one.status == "RUNNING";
    if (job.queue.empty()) job.queue = one.queue;
    if (job.priority == "N/A") job.priority = one.priority;
    job.instances.push_back(one.instances.front());
  }
  job.status = holds("Complete")    ? "SUCCEEDED"
               : holds("Failed")    ? "FAILED"
               : holds("Suspended") ? "SUSPENDED"
               : runs               ? "RUNNING"
                                    : "PENDING";
  if (job.status == "FAILED")
    job.reason = json::text_at(kube::condition(workload, "Failed"), "message");
  const Time ended = time_at(at(workload, "status", "completionTime"));
  if (job.finished() && ended) job.ended = ended;
  const Time started = time_at(at(workload, "status", "startTime"));
  job.duration = (job.ended ? *job.ended : now) - (started ? started : job.created);
  count_gpus(job, pods);
  return job;
}

std::string local_time(Time time) {
  const std::time_t seconds = time.seconds();
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

}  // namespace muster::cli
