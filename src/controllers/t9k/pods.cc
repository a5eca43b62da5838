#include "controllers/t9k/pods.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "controllers/common/objects.h"
#include "controllers/common/training.h"
#include "controllers/t9k/plan.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers::t9k {
namespace {

constexpr std::string_view kHostfile = "/etc/mpi/hostfile";

/// Starts mpirun when every worker answers: a worker that runs is not yet one that lets ssh in.
constexpr std::string_view kWaitForWorkers =
    "for host in $(cut -d' ' -f1 /etc/mpi/hostfile); do "
    "until ssh -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "
    "\"$host\" true </dev/null; do echo \"waiting for $host\"; sleep 1; done; done; exec \"$@\"";

const json::Value& spec_of(const json::Value& job) { return json::at(job, "spec"); }

std::string sshd_of(const json::Value& job) {
  const auto path = json::text_at(spec_of(job), "ssh", "sshdPath");
  return path.empty() ? "/usr/bin/sshd" : path;
}

json::Array strings(const std::vector<std::string>& list) {
  json::Array result;
  for (const auto& text : list) result.push_back(json::Value(text));
  return result;
}

const json::Value& entry_for(const json::Value& list, std::string_view type) {
  for (const auto& entry : json::as_array(list)) {
    if (json::string_at(entry, "type") == type) return entry;
  }
  return json::null_value();
}

/// The processes per worker and the recovery options of manifests older than May 2023.
std::vector<std::string> old_arguments(const json::Value& worker) {
  std::vector<std::string> result;
  if (const auto& n = json::at(worker, "processesPerWorker"); n.is_number()) {
    result.push_back("-N");
    result.push_back(std::to_string(json::as_int(n)));
  }
  if (const auto& recovery = json::at(worker, "processRecovery");
      json::bool_at(recovery, "enable")) {
    result.push_back("--enable-recovery");
    if (json::at(recovery, "limit").is_number()) {
      result.push_back("--max-restarts");
      result.push_back(std::to_string(json::int_at(recovery, "limit")));
    }
  }
  return result;
}

void label_pod(const json::Value& job, json::Value& pod, std::string_view role) {
  const auto name = name_of(job);
  for (const std::string_view key : {std::string_view("app"),
                                     std::string_view("mpi-job"),
                                     std::string_view("mpijob"),
                                     kube::names::t9k::kOwnerName})
    set_label(pod, key, name);
  set_label(pod, "mpijob-replica", name_of(pod));
  set_label(pod, kube::names::t9k::kComponent, "mpijob");
  set_label(pod, kube::names::t9k::kComponentType, "user");
  keep_submission_time(job, pod);
  const auto& scheduler = json::at(spec_of(job), "scheduler", "t9kScheduler");
  if (!scheduler.is_object()) return;
  json::make_object(pod, {"spec"})["schedulerName"] = "t9k-scheduler";
  set_label(pod, kube::names::t9k::kGroupName, name);
  set_label(pod, kube::names::t9k::kQueue, json::string_at(scheduler, "queue"));
  set_label(pod, kube::names::t9k::kRole, role);
}

/// What both roles share: the worker template's pod with names, keys and hostfile in place.
json::Value base_pod(const json::Value& job, const std::string& name) {
  const auto& from = json::at(spec_of(job), "worker", "template");
  auto pod = make_child(job, "v1", "Pod", name);
  for (const std::string_view field : {"labels", "annotations"}) {
    const auto& value = json::at(from, "metadata", field);
    if (!json::is_empty(value)) json::make_object(pod, {"metadata"})[field] = value;
  }
  pod.as_object()["spec"] = json::at(from, "spec");
  auto& spec = json::make_object(pod, {"spec"});
  spec["restartPolicy"] = "Never";  // restarts are the controller's business
  spec["hostname"] = name;
  spec["subdomain"] = name_of(job);
  array_at(pod, {"spec", "dnsConfig", "searches"})
      .push_back(
          json::Value(fmt::format("{}.{}.svc.cluster.local", name_of(job), namespace_of(job))));
  auto& volumes = array_at(pod, {"spec", "volumes"});
  volumes.push_back(json::Object{
      {"name", "ssh-auth"},
      {"secret",
       json::Object{
           {"secretName", name_of(job) + "-ssh"},
           {"defaultMode", 0600},
           {"items",
            json::Array{json::Object{{"key", "ssh-privatekey"}, {"path", "id_rsa"}},
                        json::Object{{"key", "ssh-publickey"}, {"path", "id_rsa.pub"}},
                        json::Object{{"key", "ssh-publickey"}, {"path", "authorized_keys"}}}}}}});
  volumes.push_back(json::Object{{"name", "mpi-config"},
                                 {"configMap", json::Object{{"name", name_of(job) + "-config"}}}});
  return pod;
}

/// The container of the workers' template that stands for the program, by either manual's name; the
/// first when there is none.
int main_container_at(const json::Value& pod_spec) {
  for (const std::string_view name : {"mpi-worker", "worker"}) {
    if (const int at = find_container(pod_spec, name); at >= 0) return at;
  }
  return 0;
}

json::Value& main_container(json::Value& pod) {
  auto& containers = array_at(pod, {"spec", "containers"});
  auto& found = containers[static_cast<std::size_t>(main_container_at(json::at(pod, "spec")))];
  // Why it ended is then in the pod's status, and from there on the job.
  auto& policy = json::make(found, {"terminationMessagePolicy"});
  if (policy.is_null()) policy = "FallbackToLogsOnError";
  return found;
}

void mount_keys(const json::Value& job, json::Value& container) {
  const auto path = json::text_at(spec_of(job), "ssh", "sshAuthMountPath");
  auto& mounts = array_of(container, "volumeMounts");
  mounts.push_back(
      json::Object{{"name", "ssh-auth"}, {"mountPath", path.empty() ? "/root/.ssh" : path}});
  mounts.push_back(json::Object{{"name", "mpi-config"}, {"mountPath", "/etc/mpi"}});
}

/// Debug settings, then those of a resume, on top of what the role runs by itself.
void apply_run_mode(const json::Value& job,
                    json::Value& pod,
                    std::string_view type,
                    const json::Array& debug_command,
                    bool resumed) {
  auto& container = main_container(pod).as_object();
  bool skip_init = false;
  if (const auto& debug = json::at(spec_of(job), "runMode", "debug");
      json::bool_at(debug, "enabled")) {
    const auto& entry = entry_for(json::at(debug, "replicaSpecs"), type);
    const auto& command = json::at(entry, "command");
    container["command"] = command.is_array() ? command : json::Value(debug_command);
    container.erase("args");
    skip_init = json::bool_at(entry, "skipInitContainer");
  }
  if (const auto& entry =
          entry_for(json::at(spec_of(job), "runMode", "pause", "resumeSpecs"), type);
      resumed && entry.is_object()) {
    if (json::at(entry, "command").is_array()) {
      container["command"] = json::at(entry, "command");
      container.erase("args");
    }
    if (json::at(entry, "args").is_array()) container["args"] = json::at(entry, "args");
    skip_init = skip_init || json::bool_at(entry, "skipInitContainer");
  }
  if (skip_init) json::remove(pod, {"spec", "initContainers"});
}

}  // namespace

json::Value usual_shape(const json::Value& job) {
  const auto& config = json::at(job, "spec", "mpiConfig");
  const auto& roles = json::at(job, "spec", "replicaSpecs");
  if (config.is_null() && roles.is_null()) return job;
  json::Value shaped = job;
  auto& spec = json::make_object(shaped, {"spec"});
  spec.erase("mpiConfig");
  spec.erase("replicaSpecs");
  if (const auto& home = json::at(config, "home"); home.is_string()) spec["mpiHome"] = home;
  if (const auto& mca = json::at(config, "mca"); mca.is_object()) spec["mca"] = mca;
  const auto& role = entry_for(roles, "worker");
  json::Object worker;
  for (const std::string_view field : {"replicas", "template"}) {
    if (const auto& value = json::at(role, field); !value.is_null()) worker[field] = value;
  }
  if (const auto& arguments = json::at(config, "extraArgs"); arguments.is_array())
    worker["extraMPIArgs"] = arguments;
  if (const auto& script = json::at(config, "script"); script.is_array()) worker["cmd"] = script;
  spec["worker"] = std::move(worker);
  return shaped;
}

std::string launcher_name(const json::Value& job) { return name_of(job) + "-launcher"; }
std::string worker_name(const json::Value& job, int index) {
  return fmt::format("{}-worker-{}", name_of(job), index);
}
int worker_count(const json::Value& job) {
  return static_cast<int>(json::as_int(json::at(spec_of(job), "worker", "replicas"), 1));
}

std::vector<std::string> mpirun_arguments(const json::Value& job) {
  const auto& spec = spec_of(job);
  const auto home = json::text_at(spec, "mpiHome");
  std::vector<std::string> result{
      home.empty() ? "mpirun" : home + "/bin/mpirun", "--hostfile", std::string(kHostfile)};
  if (!home.empty()) result.insert(result.end(), {"--prefix", home});
  std::map<std::string, std::string> mca;
  for (const auto& [key, value] : json::object_at(spec, "mca"))
    mca[std::string(std::string_view(key))] =
        value.is_string() ? json::text(value) : json::dump(value);
  for (const auto& [key, value] : mca) result.insert(result.end(), {"-mca", key, value});
  std::set<std::string> passed;
  const auto& pod = json::at(spec, "worker", "template", "spec");
  if (const auto& containers = json::array_at(pod, "containers"); !containers.empty()) {
    for (const auto& item :
         json::array_at(containers[static_cast<std::size_t>(main_container_at(pod))], "env")) {
      const auto name = json::text_at(item, "name");
      if (passed.insert(name).second) result.insert(result.end(), {"-x", name});
    }
  }
  for (const std::string name : {"PATH", "LD_LIBRARY_PATH"}) {
    if (passed.insert(name).second) result.insert(result.end(), {"-x", name});
  }
  const auto& worker = json::at(spec, "worker");
  for (const auto& argument : old_arguments(worker)) result.push_back(argument);
  for (const auto& argument : json::array_at(worker, "extraMPIArgs"))
    result.push_back(json::text(argument));
  for (const auto& word : json::array_at(worker, "cmd")) result.push_back(json::text(word));
  return result;
}

int slots_per_worker(const json::Value& job) {
  std::vector<std::string> arguments = old_arguments(json::at(spec_of(job), "worker"));
  for (const auto& argument : json::array_at(spec_of(job), "worker", "extraMPIArgs"))
    arguments.push_back(json::text(argument));
  std::int64_t total = 0;
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    const auto number = parse_int(arguments[i + 1]).value_or(0);
    if (number <= 0) continue;
    const auto& name = arguments[i];
    if (name == "-N" || name == "-npernode" || name == "--npernode")
      return static_cast<int>(number);
    if (name == "-np" || name == "-n" || name == "--np" || name == "-c") total = number;
  }
  const auto workers = std::max(1, worker_count(job));
  return total == 0 ? 1 : static_cast<int>((total + workers - 1) / workers);
}

json::Value launcher_pod(const json::Value& job, bool resumed) {
  auto pod = base_pod(job, launcher_name(job));
  // Only the container that stands for the program: sidecars of the workers have no place beside
  // mpirun.
  json::Value container = main_container(pod);
  auto& object = container.as_object();
  object["command"] = json::Array{"/bin/sh", "-c", json::Value(kWaitForWorkers), "launcher"};
  object["args"] = strings(mpirun_arguments(job));
  object["resources"] =
      json::Object{{"requests", json::Object{{"cpu", "100m"}, {"memory", "100Mi"}}},
                   {"limits", json::Object{{"cpu", "200m"}, {"memory", "200Mi"}}}};
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe", "ports"})
    object.erase(probe);
  if (json::at(spec_of(job), "mca", "plm_rsh_args").is_null() &&
      !has_env(container, "OMPI_MCA_plm_rsh_args")) {
    array_of(container, "env")
        .push_back(env(
            "OMPI_MCA_plm_rsh_args",
            "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectionAttempts=10"));
  }
  mount_keys(job, container);
  json::make(pod, {"spec", "containers"}) = json::Array{std::move(container)};
  apply_run_mode(job, pod, "launcher", json::Array{"sleep", "inf"}, resumed);
  label_pod(job, pod, "launcher");
  return pod;
}

json::Value worker_pod(const json::Value& job, int index, bool resumed) {
  auto pod = base_pod(job, worker_name(job, index));
  auto& container = main_container(pod);
  const json::Array sshd{json::Value(sshd_of(job)), "-D"};
  container.as_object()["command"] = sshd;
  container.as_object().erase("args");
  mount_keys(job, container);
  apply_run_mode(job, pod, "worker", sshd, resumed);
  label_pod(job, pod, "worker");
  return pod;
}

json::Value hostfile_map(const json::Value& job) {
  std::string hostfile;
  const int slots = slots_per_worker(job);
  for (int i = 0; i < worker_count(job); ++i)
    hostfile += fmt::format("{} slots={}\n", worker_name(job, i), slots);
  auto map = make_child(job, "v1", "ConfigMap", name_of(job) + "-config");
  set_label(map, "mpijob", name_of(job));
  map.as_object()["data"] = json::Object{{"hostfile", hostfile}};
  return map;
}

json::Value pod_service(const json::Value& job) {
  auto service = make_child(job, "v1", "Service", name_of(job));
  set_label(service, "mpijob", name_of(job));
  service.as_object()["spec"] = json::Object{{"clusterIP", "None"},
                                             {"publishNotReadyAddresses", true},
                                             {"selector", json::Object{{"mpijob", name_of(job)}}}};
  return service;
}

json::Value ssh_secret(const json::Value& job) {
  auto secret = make_child(job, "v1", "Secret", name_of(job) + "-ssh");
  set_label(secret, "mpijob", name_of(job));
  secret.as_object()["type"] = kube::names::kubernetes::kSshAuth;
  return secret;
}

json::Value pod_group(const json::Value& job) {
  const auto& scheduler = json::at(spec_of(job), "scheduler", "t9kScheduler");
  if (!scheduler.is_object()) return nullptr;
  auto group =
      make_child(job, kube::resources::kT9kPodGroups.api_version(), "PodGroup", name_of(job));
  if (wants_requeue(job)) keep_submission_time(job, group);
  group.as_object()["spec"] = json::Object{{"minMember", worker_count(job) + 1},
                                           {"queue", json::at(scheduler, "queue")},
                                           {"priority", json::int_at(scheduler, "priority")}};
  return group;
}

}  // namespace muster::controllers::t9k
