#include "controllers/vcjob/pods.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/common/objects.h"
#include "controllers/common/training.h"
#include "kube/names.h"

namespace muster::controllers::vcjob {
namespace {

constexpr int kPytorchPort = 23456;
constexpr int kTensorflowPort = 2222;
constexpr int kSshPort = 22;

std::string ssh_secret(const json::Value& job) { return name_of(job) + "-ssh"; }
std::string hosts_map(const json::Value& job) { return name_of(job) + "-svc"; }

std::string host_of(const json::Value& job, const TaskSpec& task, int index) {
  return fmt::format("{}.{}", pod_name(job, task, index), name_of(job));
}

/// "--master=head" -> "head".
std::string argument(const JobSpec& spec,
                     const std::string& plugin,
                     std::string_view name,
                     std::string otherwise) {
  const std::string prefix = fmt::format("--{}=", name);
  for (const std::string& each : spec.plugins.at(plugin)) {
    if (each.starts_with(prefix)) return each.substr(prefix.size());
  }
  return otherwise;
}

std::vector<std::string> hosts_of(const json::Value& job, const TaskSpec& task) {
  std::vector<std::string> hosts;
  for (int i = 0; i < task.replicas; ++i) hosts.push_back(host_of(job, task, i));
  return hosts;
}

/// VC_WORKER_HOSTS and VC_WORKER_NUM for each task.
void add_hosts(const json::Value& job, const JobSpec& spec, json::Array& added) {
  for (const TaskSpec& task : spec.tasks) {
    std::string word;
    for (const char c : task.name)
      word += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    added.push_back(env(fmt::format("VC_{}_HOSTS", word), join(hosts_of(job, task), ",")));
    added.push_back(env(fmt::format("VC_{}_NUM", word), std::to_string(task.replicas)));
  }
}

void mount_everywhere(json::Value& pod, json::Object volume, const std::string& path) {
  for (const char* list : {"containers", "initContainers"}) {
    if (!json::at(pod, "spec", list).is_array()) continue;
    for (json::Value& container : array_at(pod, {"spec", list})) {
      array_of(container, "volumeMounts")
          .push_back(json::Object{{"name", volume["name"]}, {"mountPath", path}});
    }
  }
  array_at(pod, {"spec", "volumes"}).push_back(std::move(volume));
}

/// The hosts as they are now, also for pods that started when there were more or fewer.
void mount_hosts(const json::Value& job, json::Value& pod) {
  mount_everywhere(
      pod,
      json::Object{{"name", hosts_map(job)}, {"configMap", json::Object{{"name", hosts_map(job)}}}},
      "/etc/volcano");
}

/// MPI_HOST tells the master its workers.
void add_mpi(const json::Value& job,
             const JobSpec& spec,
             const TaskSpec& task,
             json::Value& pod,
             json::Array& added) {
  const TaskSpec* worker = spec.find(argument(spec, "mpi", "worker", "worker"));
  if (task.name == argument(spec, "mpi", "master", "master") && worker != nullptr)
    added.push_back(env("MPI_HOST", join(hosts_of(job, *worker), ",")));
  const auto port = parse_int(argument(spec, "mpi", "port", "")).value_or(kSshPort);
  for (json::Value& container : array_at(pod, {"spec", "containers"})) {
    array_of(container, "ports")
        .push_back(json::Object{{"name", "mpijob-port"}, {"containerPort", port}});
  }
}

/// TF_CONFIG: who takes part, and who of them this pod is. A job of one pod needs none.
void add_tensorflow(const json::Value& job,
                    const JobSpec& spec,
                    const TaskSpec& task,
                    int index,
                    json::Array& added) {
  if (spec.tasks.size() == 1 && task.replicas == 1) return;
  const std::string port = argument(spec, "tensorflow", "port", std::to_string(kTensorflowPort));
  json::Object cluster;
  std::string own;
  for (const char* role : {"ps", "worker", "chief", "evaluator"}) {
    const TaskSpec* found = spec.find(argument(spec, "tensorflow", role, role));
    if (found == nullptr) continue;
    if (found == &task) own = role;
    json::Array hosts;
    for (const std::string& host : hosts_of(job, *found))
      hosts.push_back(json::Value(fmt::format("{}:{}", host, port)));
    cluster[role] = std::move(hosts);
  }
  if (own.empty()) return;
  added.push_back(
      env("TF_CONFIG",
          json::dump(json::Object{{"cluster", std::move(cluster)},
                                  {"task", json::Object{{"type", own}, {"index", index}}}})));
}

void add_pytorch(const json::Value& job,
                 const JobSpec& spec,
                 const TaskSpec& task,
                 int index,
                 json::Array& added) {
  const TaskSpec* master = spec.find(argument(spec, "pytorch", "master", "master"));
  const TaskSpec* worker = spec.find(argument(spec, "pytorch", "worker", "worker"));
  const int masters = master == nullptr ? 0 : master->replicas;
  const int world = masters + (worker == nullptr ? 0 : worker->replicas);
  const TaskSpec* first = master == nullptr ? worker : master;
  if (first == nullptr || (&task != master && &task != worker)) return;
  added.push_back(env("MASTER_ADDR", host_of(job, *first, 0)));
  added.push_back(
      env("MASTER_PORT", argument(spec, "pytorch", "port", std::to_string(kPytorchPort))));
  added.push_back(env("WORLD_SIZE", std::to_string(world)));
  added.push_back(env("RANK", std::to_string(&task == master ? index : masters + index)));
}

void mount_ssh_key(const json::Value& job, const JobSpec& spec, json::Value& pod) {
  const std::string path = argument(spec, "ssh", "ssh-key-file-path", "/root/.ssh");
  const auto item = [](const char* key, const char* file) {
    return json::Object{{"key", key}, {"path", file}, {"mode", 0600}};
  };
  mount_everywhere(
      pod,
      json::Object{{"name", "ssh-key"},
                   {"secret",
                    json::Object{{"secretName", ssh_secret(job)},
                                 {"items",
                                  json::Array{item("ssh-privatekey", "id_rsa"),
                                              item("ssh-publickey", "id_rsa.pub"),
                                              item("ssh-publickey", "authorized_keys")}}}}},
      path);
}

}  // namespace

std::string group_name(const json::Value& job) {
  return fmt::format("{}-{}", name_of(job), uid_of(job));
}

std::string pod_name(const json::Value& job, const TaskSpec& task, int index) {
  return fmt::format("{}-{}-{}", name_of(job), task.name, index);
}

json::Value pod_of(const json::Value& job, const JobSpec& spec, const TaskSpec& task, int index) {
  json::Value pod = make_child(job, "v1", "Pod", pod_name(job, task, index));
  for (const char* part : {"labels", "annotations"}) {
    for (const auto& [key, value] : json::object_at(*task.pod_template, "metadata", part)) {
      json::make_object(pod, {"metadata", part})[key] = value;
    }
  }
  const std::pair<std::string_view, std::string> names[] = {
      {kube::names::volcano::kJobName, name_of(job)},
      {kube::names::volcano::kJobQueue, spec.queue},
      {kube::names::volcano::kTaskSpec, task.name}};
  for (const auto& [key, value] : names) {
    set_label(pod, key, value);
    set_annotation(pod, key, value);
  }
  set_label(pod, kube::names::volcano::kJobNamespace, namespace_of(job));
  set_label(pod, kube::names::volcano::kTaskIndex, std::to_string(index));
  set_annotation(pod, kube::names::volcano::kTaskIndex, std::to_string(index));
  set_annotation(pod, kube::names::volcano::kGroupName, group_name(job));
  keep_submission_time(job, pod);

  pod.as_object()["spec"] = json::at(*task.pod_template, "spec");
  json::Object& pod_spec = json::make_object(pod, {"spec"});
  if (json::string_at(pod, "spec", "schedulerName").empty())
    pod_spec["schedulerName"] = spec.scheduler;
  if (!spec.priority_class.empty()) pod_spec["priorityClassName"] = spec.priority_class;
  if (json::string_at(pod, "spec", "restartPolicy").empty())
    pod_spec["restartPolicy"] = "OnFailure";

  json::Array added;
  if (spec.has_plugin("env")) {
    added.push_back(env("VK_TASK_INDEX", std::to_string(index)));
    added.push_back(env("VC_TASK_INDEX", std::to_string(index)));
  }
  if (spec.has_plugin("svc")) {
    pod_spec["hostname"] = pod_name(job, task, index);
    pod_spec["subdomain"] = name_of(job);
    add_hosts(job, spec, added);
    mount_hosts(job, pod);
  }
  if (spec.has_plugin("pytorch")) add_pytorch(job, spec, task, index, added);
  if (spec.has_plugin("tensorflow")) add_tensorflow(job, spec, task, index, added);
  if (spec.has_plugin("mpi")) add_mpi(job, spec, task, pod, added);
  if (!added.empty()) add_env(pod, added);
  if (spec.has_plugin("ssh")) mount_ssh_key(job, spec, pod);
  return pod;
}

void add_plugin_objects(Plan& plan, const json::Value& job, const JobSpec& spec, const View& view) {
  if (spec.has_plugin("svc") && view.find(kinds::kService, name_of(job)) == nullptr) {
    json::Value service = make_child(job, "v1", "Service", name_of(job));
    service.as_object()["spec"] =
        json::Object{{"clusterIP", "None"},
                     {"publishNotReadyAddresses", true},
                     {"selector",
                      json::Object{{kube::names::volcano::kJobName, name_of(job)},
                                   {kube::names::volcano::kJobNamespace, namespace_of(job)}}}};
    plan.actions.push_back(create(kinds::kService, std::move(service)));
  }
  if (spec.has_plugin("svc")) {
    json::Object files;
    for (const TaskSpec& task : spec.tasks)
      files[task.name + ".host"] = join(hosts_of(job, task), "\n");
    const json::Value* known = view.find(kinds::kConfigMap, hosts_map(job));
    if (known == nullptr) {
      json::Value map = make_child(job, "v1", "ConfigMap", hosts_map(job));
      map.as_object()["data"] = std::move(files);
      plan.actions.push_back(create(kinds::kConfigMap, std::move(map)));
    } else if (is_controlled_by(*known, job) &&
               !contains(json::at(*known, "data"), json::Value(files))) {
      plan.actions.push_back(
          patch(kinds::kConfigMap, hosts_map(job), json::Object{{"data", std::move(files)}}));
    }
  }
  if (spec.has_plugin("ssh") && view.find(kinds::kSecret, ssh_secret(job)) == nullptr) {
    json::Value secret = make_child(job, "v1", "Secret", ssh_secret(job));
    secret.as_object()["type"] = kube::names::kubernetes::kSshAuth;
    Action action = create(kinds::kSecret, std::move(secret));
    action.with_ssh_key = true;
    plan.actions.push_back(std::move(action));
  }
}

}  // namespace muster::controllers::vcjob
