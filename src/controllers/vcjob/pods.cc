#include "controllers/vcjob/pods.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/common/objects.h"
#include "controllers/common/training.h"

namespace muster::controllers::vcjob {
namespace {

constexpr int kPytorchPort = 23456;

std::string ssh_secret(const json::Value& job) { return name_of(job) + "-ssh"; }

std::string host_of(const json::Value& job, const TaskSpec& task, int index) {
  return fmt::format("{}.{}", pod_name(job, task, index), name_of(job));
}

/// "--master=head" -> "head".
std::string argument(const JobSpec& spec, const std::string& plugin, std::string_view name, std::string otherwise) {
  const std::string prefix = fmt::format("--{}=", name);
  for (const std::string& each : spec.plugins.at(plugin)) {
    if (each.starts_with(prefix)) return each.substr(prefix.size());
  }
  return otherwise;
}

/// VC_WORKER_HOSTS and VC_WORKER_NUM for each task.
void add_hosts(const json::Value& job, const JobSpec& spec, json::Array& added) {
  for (const TaskSpec& task : spec.tasks) {
    std::vector<std::string> hosts;
    for (int i = 0; i < task.replicas; ++i) hosts.push_back(host_of(job, task, i));
    std::string word;
    for (const char c : task.name) word += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    added.push_back(env(fmt::format("VC_{}_HOSTS", word), join(hosts, ",")));
    added.push_back(env(fmt::format("VC_{}_NUM", word), std::to_string(task.replicas)));
  }
}

void add_pytorch(const json::Value& job, const JobSpec& spec, const TaskSpec& task, int index, json::Array& added) {
  const TaskSpec* master = spec.find(argument(spec, "pytorch", "master", "master"));
  const TaskSpec* worker = spec.find(argument(spec, "pytorch", "worker", "worker"));
  const int masters = master == nullptr ? 0 : master->replicas;
  const int world = masters + (worker == nullptr ? 0 : worker->replicas);
  const TaskSpec* first = master == nullptr ? worker : master;
  if (first == nullptr || (&task != master && &task != worker)) return;
  added.push_back(env("MASTER_ADDR", host_of(job, *first, 0)));
  added.push_back(env("MASTER_PORT", argument(spec, "pytorch", "port", std::to_string(kPytorchPort))));
  added.push_back(env("WORLD_SIZE", std::to_string(world)));
  added.push_back(env("RANK", std::to_string(&task == master ? index : masters + index)));
}

void mount_ssh_key(const json::Value& job, const JobSpec& spec, json::Value& pod) {
  const std::string path = argument(spec, "ssh", "ssh-key-file-path", "/root/.ssh");
  const auto item = [](const char* key, const char* file) {
    return json::Object{{"key", key}, {"path", file}, {"mode", 0600}};
  };
  array_at(pod, {"spec", "volumes"})
      .push_back(json::Object{{"name", "ssh-key"},
                              {"secret", json::Object{{"secretName", ssh_secret(job)},
                                                      {"items", json::Array{item("ssh-privatekey", "id_rsa"),
                                                                            item("ssh-publickey", "id_rsa.pub"),
                                                                            item("ssh-publickey", "authorized_keys")}}}}});
  for (json::Value& container : array_at(pod, {"spec", "containers"})) {
    array_of(container, "volumeMounts").push_back(json::Object{{"name", "ssh-key"}, {"mountPath", path}});
  }
}

}  // namespace

std::string group_name(const json::Value& job) { return fmt::format("{}-{}", name_of(job), uid_of(job)); }

std::string pod_name(const json::Value& job, const TaskSpec& task, int index) {
  return fmt::format("{}-{}-{}", name_of(job), task.name, index);
}

json::Value pod_of(const json::Value& job, const JobSpec& spec, const TaskSpec& task, int index) {
  json::Value pod = make_child(job, "v1", "Pod", pod_name(job, task, index));
  for (const char* part : {"labels", "annotations"}) {
    for (const auto& [key, value] : json::as_object(json::at(*task.pod_template, "metadata", part))) {
      json::make_object(pod, {"metadata", part})[key] = value;
    }
  }
  const std::pair<std::string_view, std::string> names[] = {{"volcano.sh/job-name", name_of(job)},
                                                            {"volcano.sh/queue-name", spec.queue},
                                                            {"volcano.sh/task-spec", task.name}};
  for (const auto& [key, value] : names) {
    set_label(pod, key, value);
    set_annotation(pod, key, value);
  }
  set_label(pod, "volcano.sh/job-namespace", namespace_of(job));
  set_label(pod, "volcano.sh/task-index", std::to_string(index));
  set_annotation(pod, "volcano.sh/task-index", std::to_string(index));
  set_annotation(pod, "scheduling.k8s.io/group-name", group_name(job));
  keep_submission_time(job, pod);

  pod.as_object()["spec"] = json::at(*task.pod_template, "spec");
  json::Object& pod_spec = json::make_object(pod, {"spec"});
  if (json::as_string(json::at(pod, "spec", "schedulerName")).empty()) pod_spec["schedulerName"] = spec.scheduler;
  if (!spec.priority_class.empty()) pod_spec["priorityClassName"] = spec.priority_class;
  if (json::as_string(json::at(pod, "spec", "restartPolicy")).empty()) pod_spec["restartPolicy"] = "OnFailure";

  json::Array added;
  if (spec.has_plugin("env")) {
    added.push_back(env("VK_TASK_INDEX", std::to_string(index)));
    added.push_back(env("VC_TASK_INDEX", std::to_string(index)));
  }
  if (spec.has_plugin("svc")) {
    pod_spec["hostname"] = pod_name(job, task, index);
    pod_spec["subdomain"] = name_of(job);
    add_hosts(job, spec, added);
  }
  if (spec.has_plugin("pytorch")) add_pytorch(job, spec, task, index, added);
  if (!added.empty()) add_env(pod, added);
  if (spec.has_plugin("ssh")) mount_ssh_key(job, spec, pod);
  return pod;
}

void add_plugin_objects(Plan& plan, const json::Value& job, const JobSpec& spec, const View& view) {
  if (spec.has_plugin("svc") && view.find(kinds::kService, name_of(job)) == nullptr) {
    json::Value service = make_child(job, "v1", "Service", name_of(job));
    service.as_object()["spec"] = json::Object{{"clusterIP", "None"},
                                               {"publishNotReadyAddresses", true},
                                               {"selector", json::Object{{"volcano.sh/job-name", name_of(job)},
                                                                         {"volcano.sh/job-namespace", namespace_of(job)}}}};
    plan.actions.push_back(create(kinds::kService, std::move(service)));
  }
  if (spec.has_plugin("ssh") && view.find(kinds::kSecret, ssh_secret(job)) == nullptr) {
    json::Value secret = make_child(job, "v1", "Secret", ssh_secret(job));
    secret.as_object()["type"] = "kubernetes.io/ssh-auth";
    Action action = create(kinds::kSecret, std::move(secret));
    action.with_ssh_key = true;
    plan.actions.push_back(std::move(action));
  }
}

}  // namespace muster::controllers::vcjob
