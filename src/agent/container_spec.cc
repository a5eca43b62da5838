#include "agent/container_spec.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/log_reader.h"
#include "agent/names.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using json::at;
using json::text;

constexpr const char* kGpu = "nvidia.com/gpu";

std::vector<std::string> words(const json::Value& value,
                               const std::map<std::string, std::string>& env) {
  std::vector<std::string> out;
  for (const auto& item : json::as_array(value)) out.push_back(expand(json::as_string(item), env));
  return out;
}

std::int64_t amount(const json::Value& value, bool milli) {
  if (value.is_null()) return 0;
  const auto parsed = parse_quantity(json::as_string(value));
  return !parsed ? 0 : milli ? parsed->milli() : parsed->units();
}

std::optional<std::int64_t> number(const json::Value& pod,
                                   const json::Value& container,
                                   const char* field) {
  for (const auto* holder :
       {&at(container, "securityContext", field), &at(pod, "spec", "securityContext", field)}) {
    if (!holder->is_null()) return json::as_int(*holder);
  }
  return std::nullopt;
}

std::string termination_file(const std::string& pod_directory, const std::string& name) {
  return fmt::format("{}/termination-{}", pod_directory, name);
}

}  // namespace

std::string log_path(const std::string& pod_directory, const std::string& container, int attempt) {
  return fmt::format("{}/logs/{}/{}.log", pod_directory, container, attempt);
}

SandboxConfig sandbox_config(const json::Value& pod, const std::string& directory) {
  SandboxConfig config;
  const auto& spec = at(pod, "spec");
  config.id = std::string(kube::uid_of(pod));
  config.pod_namespace = std::string(kube::namespace_of(pod));
  config.pod_name = std::string(kube::name_of(pod));
  config.directory = directory;
  config.hostname = pod_hostname(pod);
  config.hosts_file = directory + "/hosts";
  config.resolv_conf_file = directory + "/resolv.conf";
  config.host_network = json::as_bool(at(spec, "hostNetwork"));
  config.host_pid = json::as_bool(at(spec, "hostPID"));
  config.host_ipc = json::as_bool(at(spec, "hostIPC"));
  config.share_process_namespace = json::as_bool(at(spec, "shareProcessNamespace"));
  return config;
}

EnvList default_env(const Context& context, const json::Value& pod) {
  EnvList env{{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
              {"HOSTNAME", pod_hostname(pod)},
              {"HOME", "/root"}};
  if (!context.api_host.empty()) {
    const auto port = std::to_string(context.api_port);
    env.emplace_back("KUBERNETES_SERVICE_HOST", context.api_host);
    env.emplace_back("KUBERNETES_SERVICE_PORT", port);
    env.emplace_back("KUBERNETES_SERVICE_PORT_HTTPS", port);
  }
  return env;
}

Result<EnvList> gpu_env(GpuLedger& ledger, const json::Value& pod, const json::Value& container) {
  const auto wanted_by = [](const json::Value& one) {
    return amount(at(one, "resources", "limits", kGpu), false);
  };
  std::int64_t total = 0, before = 0;
  const auto own = wanted_by(container);
  for (const auto& one : json::as_array(at(pod, "spec", "containers"))) {
    if (json::as_string(at(one, "name")) == json::as_string(at(container, "name"))) before = total;
    total += wanted_by(one);
  }
  total = std::max(total, own);  // an init container may ask for more than all others
  // A pod that asks for none sees none; one with a share of a GPU (muster.dev/gpu-milli) sees that one.
  if (total == 0) {
    const auto share = std::string(kube::annotation(pod, "muster.dev/gpu-indices"));
    return EnvList{{"NVIDIA_VISIBLE_DEVICES", share.empty() ? "void" : share}, {"CUDA_VISIBLE_DEVICES", share}};
  }
  const auto indices = ledger.take(text(at(pod, "spec", "nodeName")),
                                   std::string(kube::uid_of(pod)),
                                   static_cast<int>(total),
                                   std::string(kube::annotation(pod, "muster.dev/gpu-indices")));
  if (!indices) return fail(indices.error());
  std::string list;
  for (std::int64_t i = before; i < before + own && i < static_cast<std::int64_t>(indices->size());
       ++i) {
    list += fmt::format("{}{}", list.empty() ? "" : ",", (*indices)[static_cast<std::size_t>(i)]);
  }
  return EnvList{{"NVIDIA_VISIBLE_DEVICES", list.empty() ? "void" : list},
                 {"CUDA_VISIBLE_DEVICES", list}};
}

Limits container_limits(const json::Value& container) {
  const auto& resources = at(container, "resources");
  Limits limits;
  limits.cpu_milli = amount(at(resources, "limits", "cpu"), true);
  limits.memory_bytes = amount(at(resources, "limits", "memory"), false);
  limits.cpu_request_milli = amount(at(resources, "requests", "cpu"), true);
  return limits;
}

Result<ContainerConfig> make_container_config(const json::Value& pod,
                                              const json::Value& container,
                                              const Image& image,
                                              const EnvList& env,
                                              const std::string& directory,
                                              int attempt) {
  ContainerConfig config;
  config.name = text(at(container, "name"));
  config.attempt = attempt;
  config.image = text(at(container, "image"));
  config.root = image.root;
  const std::map<std::string, std::string> values(env.begin(), env.end());
  for (const auto& [name, value] : env) config.env.push_back(name + "=" + value);
  // Kubernetes' table of command and args against ENTRYPOINT and CMD.
  const auto command = words(at(container, "command"), values);
  const auto args = words(at(container, "args"), values);
  config.args = command.empty() ? image.entrypoint : command;
  const auto& rest = !args.empty() ? args : command.empty() ? image.command : args;
  config.args.insert(config.args.end(), rest.begin(), rest.end());
  if (config.args.empty()) {
    return fail(Code::kInvalid,
                fmt::format("no command specified: image \"{}\" is not pulled, so the container "
                            "needs a command (or an entrypoint in the image map)",
                            config.image));
  }
  config.working_dir = text(at(container, "workingDir"));
  if (config.working_dir.empty()) config.working_dir = image.working_dir;
  config.log_path = log_path(directory, config.name, attempt);
  std::error_code error;
  fs::create_directories(fs::path(config.log_path).parent_path(), error);
  config.termination_message_path = text(at(container, "terminationMessagePath"));
  config.termination_message_file = termination_file(directory, config.name);
  std::ofstream(config.termination_message_file).flush();
  fs::permissions(config.termination_message_file, fs::perms(0666), error);
  config.stdin_open = json::as_bool(at(container, "stdin"));
  config.stdin_once = json::as_bool(at(container, "stdinOnce"));
  config.tty = json::as_bool(at(container, "tty"));
  const auto& security = at(container, "securityContext");
  config.read_only_root = json::as_bool(at(security, "readOnlyRootFilesystem"));
  config.no_new_privileges = !at(security, "allowPrivilegeEscalation").is_null() &&
                             !json::as_bool(at(security, "allowPrivilegeEscalation"));
  config.user = number(pod, container, "runAsUser");
  config.group = number(pod, container, "runAsGroup");
  if (config.user && !config.group) config.group = 0;
  for (const auto& group : json::as_array(at(pod, "spec", "securityContext", "supplementalGroups")))
    config.groups.push_back(json::as_int(group));
  if (const auto& group = at(pod, "spec", "securityContext", "fsGroup"); !group.is_null())
    config.groups.push_back(json::as_int(group));
  config.limits = container_limits(container);
  return config;
}

std::string termination_message(const json::Value& container,
                                const std::string& pod_directory,
                                const std::string& name,
                                const std::string& log_file,
                                int exit_code) {
  std::ifstream file(termination_file(pod_directory, name), std::ios::binary);
  std::string message(4096, '\0');
  file.read(message.data(), static_cast<std::streamsize>(message.size()));
  message.resize(static_cast<std::size_t>(file.gcount()));
  if (!message.empty() || exit_code == 0 ||
      json::as_string(at(container, "terminationMessagePolicy")) != "FallbackToLogsOnError")
    return message;
  LogOptions options;
  options.tail_lines = 80;
  message = read_log(log_file, options);
  return message.size() > 2048 ? message.substr(message.size() - 2048) : message;
}

}  // namespace muster::agent
