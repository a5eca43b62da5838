#include "cli/submit/submit_template.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/md5.h"
#include "base/strings.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::cli {
namespace {

constexpr const char* kGitImage = "git-sync/git-sync:v3.6.9";
constexpr const char* kRsyncImage = "instrumentisto/rsync-ssh:alpine";
constexpr const char* kTensorboardImage = "tensorflow/tensorflow:2.11.0";
constexpr int kTensorboardPort = 6006;

/// Fetches with git itself, so that it works in the git-sync image and in any other that has git.
/// The variables are git-sync's; a restarted container starts over. A repository that lies on the
/// machine belongs to somebody whom the pod does not know, which git asks about.
constexpr const char* kGitScript = R"(set -e
target="$GIT_SYNC_ROOT/$GIT_SYNC_DEST"
if [ -z "$GIT_CONFIG_GLOBAL" ]; then
  export GIT_CONFIG_GLOBAL="$GIT_SYNC_ROOT/.gitconfig"
  printf '[include]\n\tpath = ~/.gitconfig\n[safe]\n\tdirectory = *\n' >"$GIT_CONFIG_GLOBAL"
fi
rm -rf "$target"
set -- clone
[ -z "$GIT_SYNC_BRANCH" ] || set -- "$@" --branch "$GIT_SYNC_BRANCH"
[ -z "$GIT_SYNC_DEPTH" ] || set -- "$@" --depth "$GIT_SYNC_DEPTH"
if [ -n "$GIT_SYNC_USERNAME" ]; then
  git -c credential.helper='!f() { echo "username=$GIT_SYNC_USERNAME"; echo "password=$GIT_SYNC_PASSWORD"; }; f' "$@" "$GIT_SYNC_REPO" "$target"
else
  git "$@" "$GIT_SYNC_REPO" "$target"
fi
[ -z "$GIT_SYNC_REV" ] || git -C "$target" checkout "$GIT_SYNC_REV"
)";

/// "https://x/y/mnist-pytorch.git" -> "mnist-pytorch".
std::string project_of(std::string source) {
  while (!source.empty() && source.back() == '/') source.pop_back();
  std::string last = source.substr(
      source.find_last_of("/:") == std::string::npos ? 0 : source.find_last_of("/:") + 1);
  if (last.ends_with(".git")) last.resize(last.size() - 4);
  return last.empty() ? "code" : last;
}

json::Array env_of(const SubmitValues& values, const TemplateOptions& options) {
  std::map<std::string, std::string> env;
  env["workers"] = std::to_string(values.workers);
  env["gpus"] = std::to_string(options.gpus);
  const bool other_gpus =
      std::any_of(values.labels.begin(),
                  values.labels.end(),
                  [](const auto& pair) { return pair.first == "aliyun.com/gpu-count"; }) ||
      std::any_of(values.devices.begin(), values.devices.end(), [](const auto& pair) {
        return pair.first == "aliyun.com/gpu-mem";
      });
  if (options.gpus == 0 && !other_gpus) env["NVIDIA_VISIBLE_DEVICES"] = "void";
  for (const auto& [name, value] : options.extra_env) env[name] = value;
  for (const auto& [name, value] : values.env) env[name] = value;
  json::Array array;
  for (const auto& [name, value] : env)
    array.push_back(json::Object{{"name", name}, {"value", value}});
  return array;
}

json::Object resources_of(const SubmitValues& values, const TemplateOptions& options) {
  json::Object requests, limits;
  if (options.gpus > 0) {
    const std::string name = values.gpu_topology ? "aliyun.com/gpu" : "nvidia.com/gpu";
    requests[name] = std::to_string(options.gpus);
    limits[name] = std::to_string(options.gpus);
  }
  for (const auto& [name, amount] : values.devices) requests[name] = amount, limits[name] = amount;
  if (values.rdma) requests["rdma/hca"] = "1", limits["rdma/hca"] = "1";
  if (!options.cpu.empty()) requests["cpu"] = options.cpu;
  if (!options.memory.empty()) requests["memory"] = options.memory;
  if (!options.cpu_limit.empty()) limits["cpu"] = options.cpu_limit;
  if (!options.memory_limit.empty()) limits["memory"] = options.memory_limit;
  json::Object resources;
  if (!requests.empty()) resources["requests"] = std::move(requests);
  if (!limits.empty()) resources["limits"] = std::move(limits);
  return resources;
}

/// The logs of a tensorboard lie under a claim of the job, or in a directory of the host.
bool logs_on_host(const SubmitValues& values) {
  if (!values.logdir.starts_with("/")) return false;
  return std::none_of(values.claims.begin(), values.claims.end(), [&](const Mount& mount) {
    return values.logdir == mount.path || values.logdir.starts_with(mount.path + "/");
  });
}

std::string config_map_name(const SubmitValues& values, const std::string& directory) {
  return fmt::format("{}-{}", values.name, md5_hex(directory).substr(0, 15));
}

struct Volumes {
  json::Array volumes, mounts;
  void add(json::Object volume, const std::string& path) {
    mounts.push_back(json::Object{{"name", volume.at("name")}, {"mountPath", path}});
    volumes.push_back(std::move(volume));
  }
};

Volumes volumes_of(const SubmitValues& values,
                   const TemplateOptions& options,
                   const std::string& logs_name) {
  Volumes all;
  if (options.shared_memory && !values.share_memory.empty() && !values.gpu_topology) {
    all.add({{"name", "dshm"},
             {"emptyDir", json::Object{{"medium", "Memory"}, {"sizeLimit", values.share_memory}}}},
            "/dev/shm");
  }
  if (!values.sync_mode.empty())
    all.add({{"name", "code-sync"}, {"emptyDir", json::Object{}}}, values.working_dir + "/code");
  for (const Mount& mount : values.claims) {
    all.add({{"name", mount.volume},
             {"persistentVolumeClaim", json::Object{{"claimName", mount.source}}}},
            mount.path);
  }
  for (const Mount& mount : values.host_paths) {
    all.add({{"name", mount.volume}, {"hostPath", json::Object{{"path", mount.source}}}},
            mount.path);
  }
  if (values.tensorboard && logs_on_host(values)) {
    all.add({{"name", "training-logs-volume"},
             {"hostPath",
              json::Object{{"path", "/arena_logs/" + logs_name}, {"type", "DirectoryOrCreate"}}}},
            values.logdir);
  }
  std::map<std::string, int> directories;
  for (const ConfigFile& file : values.files) directories.emplace(file.directory, 0);
  int index = 0;
  for (const auto& [directory, unused] : directories) {
    (void)unused;
    all.add({{"name", fmt::format("config-files-{}", index++)},
             {"configMap", json::Object{{"name", config_map_name(values, directory)}}}},
            directory);
  }
  return all;
}

json::Object code_container(const SubmitValues& values, const TemplateOptions& options) {
  json::Array env = env_of(values, options);
  json::Object container{{"name", "init-code"}, {"imagePullPolicy", values.pull_policy}};
  if (values.sync_mode == "git") {
    container["image"] = values.sync_image.empty() ? kGitImage : values.sync_image;
    container["command"] = json::Array{"sh", "-c", kGitScript};
    for (const auto& [name, value] : Pairs{{"GIT_SYNC_REPO", values.sync_source},
                                           {"GIT_SYNC_DEST", project_of(values.sync_source)},
                                           {"GIT_SYNC_ROOT", "/code"},
                                           {"GIT_SYNC_ONE_TIME", "true"}}) {
      env.push_back(json::Object{{"name", name}, {"value", value}});
    }
  } else {
    container["image"] = values.sync_image.empty() ? kRsyncImage : values.sync_image;
    container["command"] = json::Array{"rsync", "-avP", values.sync_source, "/code"};
  }
  container["env"] = std::move(env);
  json::Object amounts;
  if (!options.cpu.empty()) amounts["cpu"] = options.cpu;
  if (!options.memory.empty()) amounts["memory"] = options.memory;
  if (!amounts.empty())
    container["resources"] = json::Object{{"requests", amounts}, {"limits", amounts}};
  container["volumeMounts"] =
      json::Array{json::Object{{"name", "code-sync"}, {"mountPath", "/code"}}};
  return container;
}

void add_placement(json::Object& spec, const SubmitValues& values, const TemplateOptions& options) {
  if (!values.priority.empty()) spec["priorityClassName"] = values.priority;
  if (!values.scheduler.empty()) spec["schedulerName"] = values.scheduler;
  if ((values.host_network || values.gpu_topology) && !values.eni) {
    spec["hostNetwork"] = true;
    spec["dnsPolicy"] = "ClusterFirstWithHostNet";
  }
  if (values.host_ipc) spec["hostIPC"] = true;
  if (values.host_pid) spec["hostPID"] = true;
  if (!options.selectors.empty()) {
    json::Object selector;
    for (const auto& [key, value] : options.selectors) selector[key] = value;
    spec["nodeSelector"] = std::move(selector);
  }
  if (!values.tolerations.empty()) spec["tolerations"] = values.tolerations;
  if (!values.pull_secrets.empty()) {
    json::Array secrets;
    for (const std::string& secret : values.pull_secrets)
      secrets.push_back(json::Object{{"name", secret}});
    spec["imagePullSecrets"] = std::move(secrets);
  }
}

std::string logs_name_of(const SubmitValues& values) { return "training-" + values.name; }

}  // namespace

json::Object labels_of(const SubmitValues& values, const TemplateOptions& options) {
  json::Object labels{{"app", options.type},
                      {"release", values.name},
                      {"chart", options.chart},
                      {"heritage", "Helm"},
                      {"createdBy", options.created_by}};
  labels[kube::names::kubeflow::kArenaUid] = md5_hex(options.user);
  if (!values.model_name.empty()) labels["modelName"] = values.model_name;
  for (const auto& [key, value] : values.labels) labels[key] = value;
  return labels;
}

json::Object annotations_of(const SubmitValues& values, const TemplateOptions& options) {
  json::Object annotations{{kube::names::kubeflow::kArenaUsername, options.user},
                           {"requestGPUsOfJobOwner", std::to_string(options.owner_gpus)}};
  if (values.queued) annotations[kube::names::plugins::kSuspend] = "true";
  if (!values.queue.empty()) annotations[kube::names::volcano::kQueueName] = values.queue;
  if (!values.on_preempt.empty()) annotations[kube::names::kOnPreempt] = values.on_preempt;
  for (const auto& [key, value] : values.annotations) annotations[key] = value;
  return annotations;
}

json::Value pod_template(const SubmitValues& values, const TemplateOptions& options) {
  json::Object labels = labels_of(values, options);
  if (values.gang) {
    labels[kube::names::plugins::kOldGroupName] = gang_name(values, options);
    labels[kube::names::plugins::kOldMinAvailable] = std::to_string(options.gang_members);
  }
  for (const auto& [key, value] : options.extra_labels) labels[key] = value;
  json::Object annotations = annotations_of(values, options);
  if (needs_gang_object(values, options))
    annotations[kube::names::volcano::kGroupName] = gang_name(values, options);

  Volumes volumes = volumes_of(values, options, logs_name_of(values));
  json::Object container{{"name", options.container},
                         {"image", options.image},
                         {"imagePullPolicy", values.pull_policy},
                         {"workingDir", values.working_dir},
                         {"command", json::Array{values.shell, "-c", values.command}},
                         {"env", env_of(values, options)}};
  if (json::Object resources = resources_of(values, options); !resources.empty())
    container["resources"] = std::move(resources);
  if (values.rdma)
    container["securityContext"] =
        json::Object{{"capabilities", json::Object{{"add", json::Array{"IPC_LOCK"}}}}};
  if (!volumes.mounts.empty()) container["volumeMounts"] = std::move(volumes.mounts);

  json::Object spec;
  if (!options.restart_policy.empty()) spec["restartPolicy"] = options.restart_policy;
  add_placement(spec, values, options);
  if (!values.sync_mode.empty())
    spec["initContainers"] = json::Array{code_container(values, options)};
  spec["containers"] = json::Array{std::move(container)};
  if (!volumes.volumes.empty()) spec["volumes"] = std::move(volumes.volumes);
  return json::Object{
      {"metadata",
       json::Object{{"labels", std::move(labels)}, {"annotations", std::move(annotations)}}},
      {"spec", std::move(spec)}};
}

bool needs_gang_object(const SubmitValues& values, const TemplateOptions& options) {
  return values.gang && options.type == "mpijob";
}

std::string gang_name(const SubmitValues& values, const TemplateOptions& options) {
  return fmt::format("{}-{}", options.type, values.name);
}

json::Value gang_object(const SubmitValues& values,
                        const TemplateOptions& options,
                        const std::string& ns) {
  json::Object spec{{"minMember", options.gang_members}};
  if (!values.queue.empty()) spec["queue"] = values.queue;
  if (!values.priority.empty()) spec["priorityClassName"] = values.priority;
  return json::Object{{"apiVersion", kube::resources::kPodGroups.api_version()},
                      {"kind", "PodGroup"},
                      {"metadata",
                       json::Object{{"name", gang_name(values, options)},
                                    {"namespace", ns},
                                    {"labels", labels_of(values, options)}}},
                      {"spec", std::move(spec)}};
}

std::vector<json::Value> config_file_maps(const SubmitValues& values,
                                          const TemplateOptions& options,
                                          const std::string& ns) {
  std::map<std::string, json::Object> data;
  for (const ConfigFile& file : values.files) data[file.directory][file.file] = file.content;
  std::vector<json::Value> maps;
  for (auto& [directory, files] : data) {
    maps.emplace_back(json::Object{{"apiVersion", "v1"},
                                   {"kind", "ConfigMap"},
                                   {"metadata",
                                    json::Object{{"name", config_map_name(values, directory)},
                                                 {"namespace", ns},
                                                 {"labels", labels_of(values, options)}}},
                                   {"data", std::move(files)}});
  }
  return maps;
}

std::vector<json::Value> tensorboard_objects(const SubmitValues& values,
                                             const TemplateOptions& options,
                                             const std::string& ns) {
  if (!values.tensorboard) return {};
  const std::string name = values.name + "-tensorboard";
  const json::Object labels{{"app", options.type},
                            {"chart", options.chart},
                            {"release", values.name},
                            {"role", "tensorboard"}};
  Volumes volumes;
  std::string logs = values.logdir;
  if (logs_on_host(values)) {
    logs = "/output/training_logs";
    volumes.add({{"name", "training-logs-volume"},
                 {"hostPath",
                  json::Object{{"path", "/arena_logs/" + logs_name_of(values)},
                               {"type", "DirectoryOrCreate"}}}},
                logs);
  } else {
    for (const Mount& mount : values.claims) {
      volumes.add({{"name", mount.volume},
                   {"persistentVolumeClaim", json::Object{{"claimName", mount.source}}}},
                  mount.path);
    }
  }
  const json::Object near =
      options.type == "pytorchjob"
          ? json::Object{{"master-pod-name", values.name + "-master-0"}}
          : json::Object{{kube::names::kubeflow::kMpiJobName, values.name},
                         {kube::names::kubernetes::kStatefulPodName, values.name + "-worker-0"}};
  json::Object affinity{
      {"podAffinity",
       json::Object{
           {"requiredDuringSchedulingIgnoredDuringExecution",
            json::Array{json::Object{{"labelSelector", json::Object{{"matchLabels", near}}},
                                     {"topologyKey", kube::names::kubernetes::kHostname}}}}}}};
  json::Object container{
      {"name", "tensorboard"},
      {"image", values.tensorboard_image.empty() ? kTensorboardImage : values.tensorboard_image},
      {"command",
       json::Array{"tensorboard",
                   "--logdir",
                   logs,
                   "--host",
                   "0.0.0.0",
                   "--port",
                   std::to_string(kTensorboardPort)}},
      {"ports", json::Array{json::Object{{"name", "http"}, {"containerPort", kTensorboardPort}}}}};
  if (!volumes.mounts.empty()) container["volumeMounts"] = std::move(volumes.mounts);
  json::Object spec{{"affinity", std::move(affinity)},
                    {"containers", json::Array{std::move(container)}}};
  if (!values.priority.empty()) spec["priorityClassName"] = values.priority;
  if (!values.tolerations.empty()) spec["tolerations"] = values.tolerations;
  if (!volumes.volumes.empty()) spec["volumes"] = std::move(volumes.volumes);
  json::Value service = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", json::Object{{"name", name}, {"namespace", ns}, {"labels", labels}}},
      {"spec",
       json::Object{{"type", "NodePort"},
                    {"ports",
                     json::Array{json::Object{{"name", "tensorboard"},
                                              {"port", kTensorboardPort},
                                              {"targetPort", kTensorboardPort}}}},
                    {"selector", labels}}}};
  json::Value deployment = json::Object{
      {"apiVersion", "apps/v1"},
      {"kind", "Deployment"},
      {"metadata", json::Object{{"name", name}, {"namespace", ns}, {"labels", labels}}},
      {"spec",
       json::Object{{"replicas", 1},
                    {"selector", json::Object{{"matchLabels", labels}}},
                    {"template",
                     json::Object{{"metadata", json::Object{{"labels", labels}}},
                                  {"spec", std::move(spec)}}}}}};
  return {std::move(service), std::move(deployment)};
}

}  // namespace muster::cli
