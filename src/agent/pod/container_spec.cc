#include "agent/pod/container_spec.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/beneath.h"
#include "agent/files.h"
#include "agent/pod/names.h"
#include "agent/process/seccomp_profile.h"
#include "agent/streams/log_reader.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "kube/meta.h"

namespace muster::agent {
namespace {

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

/// As this machine's users have it; "/" for one it does not know.
std::string home_of(std::int64_t user) {
  if (user == 0) return "/root";
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  if (getpwuid_r(static_cast<uid_t>(user), &entry, buffer, sizeof buffer, &found) != 0 ||
      found == nullptr)
    return "/";
  return found->pw_dir;
}

/// What speaks against running a container that must not be root.
std::string non_root_refusal(const json::Value& pod,
                             const json::Value& container,
                             const Image& image,
                             std::optional<std::int64_t> user) {
  const auto& own = at(container, "securityContext", "runAsNonRoot");
  const auto& wanted = own.is_null() ? at(pod, "spec", "securityContext", "runAsNonRoot") : own;
  std::string problem =
      user ? "'s runAsUser breaks non-root policy" : " has runAsNonRoot and image will run as root";
  if (!user && !image.user.empty()) {
    const auto name = image.user.substr(0, image.user.find(':'));
    user = parse_int(name);
    if (!user)
      problem = fmt::format(
          " has runAsNonRoot and image has non-numeric user ({}), cannot verify user is non-root",
          name);
  }
  if (!json::as_bool(wanted) || (user && *user != 0)) return "";
  return fmt::format("container{} (pod: \"{}_{}({})\", container: {})",
                     problem,
                     kube::name_of(pod),
                     kube::namespace_of(pod),
                     kube::uid_of(pod),
                     text(at(container, "name")));
}

const json::Value& seccomp_profile(const json::Value& pod, const json::Value& container) {
  for (const auto* holder : {&container, &at(pod, "spec")}) {
    const auto& profile = at(*holder, "securityContext", "seccompProfile");
    if (!profile.is_null()) return profile;
  }
  return json::null_value();
}

std::string termination_file(const PodDirectories& places, const std::string& name) {
  return fmt::format("{}/termination-{}", places.run, name);
}

}  // namespace

std::string log_path(const std::string& pod_directory, const std::string& container, int attempt) {
  return fmt::format("{}/{}_{}.log", pod_directory, container, attempt);
}

PodDirectories pod_directories(const std::string& agent_directory, std::string_view uid) {
  return {fmt::format("{}/pods/{}", agent_directory, uid),
          fmt::format("{}/run/{}", agent_directory, uid)};
}

std::string gpu_file(const PodDirectories& places) { return places.run + "/gpus"; }

SandboxConfig sandbox_config(const json::Value& pod, const PodDirectories& places) {
  SandboxConfig config;
  const auto& spec = at(pod, "spec");
  config.id = std::string(kube::uid_of(pod));
  config.pod_namespace = std::string(kube::namespace_of(pod));
  config.pod_name = std::string(kube::name_of(pod));
  config.directory = places.disk;
  config.run_directory = places.run;
  config.hostname = pod_hostname(pod);
  config.hosts_file = places.run + "/hosts";
  config.resolv_conf_file = places.run + "/resolv.conf";
  config.host_network = json::bool_at(spec, "hostNetwork");
  config.host_pid = json::bool_at(spec, "hostPID");
  config.host_ipc = json::bool_at(spec, "hostIPC");
  config.share_process_namespace = json::bool_at(spec, "shareProcessNamespace");
  // Whoever shares a namespace of the machine's is somebody in it.
  const auto& host_users = at(spec, "hostUsers");
  config.own_users = host_users.is_bool() && !host_users.get_bool();
  config.host_users =
      json::as_bool(host_users) || config.host_network || config.host_pid || config.host_ipc;
  return config;
}

EnvList default_env(const Context& context,
                    const json::Value& pod,
                    const json::Value& container,
                    const Image& image) {
  EnvList env{{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
              {"HOSTNAME", pod_hostname(pod)}};
  if (!image.pulled)
    env.emplace_back("HOME", home_of(number(pod, container, "runAsUser").value_or(0)));
  if (!context.api_host.empty()) {
    const auto port = std::to_string(context.api_port);
    env.emplace_back("KUBERNETES_SERVICE_HOST", context.api_host);
    env.emplace_back("KUBERNETES_SERVICE_PORT", port);
    env.emplace_back("KUBERNETES_SERVICE_PORT_HTTPS", port);
  }
  return env;
}

std::vector<int> gpu_share(const std::vector<int>& of_pod,
                           const json::Value& pod,
                           const json::Value& container) {
  const auto wanted_by = [](const json::Value& one) {
    return static_cast<std::size_t>(
        std::max<std::int64_t>(0, amount(at(one, "resources", "limits", kGpu), false)));
  };
  const auto name = json::string_at(container, "name");
  std::size_t total = 0, before = 0;
  bool asked = false;
  // Sidecars run beside the containers, other init containers before them.
  for (const auto* list : {"containers", "initContainers"}) {
    for (const auto& one : json::array_at(pod, "spec", list)) {
      const bool beside = list[0] == 'c' || json::string_at(one, "restartPolicy") == "Always";
      if (beside && json::string_at(one, "name") == name) before = total;
      if (beside) total += wanted_by(one);
      asked = asked || wanted_by(one) > 0;
    }
  }
  // A share of a GPU, or HiveD's cells, belong to the pod as a whole.
  if (!asked) return of_pod;
  const auto own = wanted_by(container);
  std::vector<int> share;
  for (std::size_t i = before; i < before + own && i < of_pod.size(); ++i)
    share.push_back(of_pod[i]);
  return share;
}

EnvList gpu_env(const std::vector<int>& share, bool only_these_exist) {
  std::vector<int> seen = share;
  if (only_these_exist) {
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = static_cast<int>(i);
  }
  return EnvList{
      {"NVIDIA_VISIBLE_DEVICES", share.empty() ? "void" : fmt::format("{}", fmt::join(share, ","))},
      {"CUDA_VISIBLE_DEVICES", fmt::format("{}", fmt::join(seen, ","))}};
}

Limits container_limits(const json::Value& container, std::int64_t pids_max) {
  const auto& resources = at(container, "resources");
  Limits limits;
  limits.cpu_milli = amount(at(resources, "limits", "cpu"), true);
  limits.memory_bytes = amount(at(resources, "limits", "memory"), false);
  limits.cpu_request_milli = amount(at(resources, "requests", "cpu"), true);
  limits.pids = pids_max;
  return limits;
}

Result<ContainerConfig> make_container_config(const json::Value& pod,
                                              const json::Value& container,
                                              const Image& image,
                                              const EnvList& env,
                                              const PodDirectories& places,
                                              int attempt) {
  ContainerConfig config;
  config.name = text(at(container, "name"));
  config.attempt = attempt;
  config.image = text(at(container, "image"));
  config.layers = image.layers;
  if (image.pulled) config.image_user = image.user;
  const std::map<std::string, std::string> values(env.begin(), env.end());
  for (const auto& [name, value] : env) config.env.push_back(name + "=" + value);
  // Kubernetes' table of command and args against ENTRYPOINT and CMD.
  const auto command = words(at(container, "command"), values);
  const auto args = words(at(container, "args"), values);
  config.args = command.empty() ? image.entrypoint : command;
  const auto& rest = !args.empty() ? args : command.empty() ? image.command : args;
  config.args.insert(config.args.end(), rest.begin(), rest.end());
  if (config.args.empty()) {
    if (image.pulled) return fail(Code::kInvalid, "no command specified");
    return fail(Code::kInvalid,
                fmt::format("no command specified: image \"{}\" is not pulled, so the container "
                            "needs a command (or an entrypoint in the image file)",
                            config.image));
  }
  config.working_dir = text(at(container, "workingDir"));
  if (config.working_dir.empty()) config.working_dir = image.working_dir;
  if (config.working_dir.empty() && image.pulled) config.working_dir = "/";
  config.log_path = log_path(places.disk, config.name, attempt);
  config.termination_message_path = text(at(container, "terminationMessagePath"));
  config.termination_message_file = termination_file(places, config.name);
  (void)write_file(config.termination_message_file, "", 0666);
  config.stdin_open = json::bool_at(container, "stdin");
  config.stdin_once = json::bool_at(container, "stdinOnce");
  config.tty = json::bool_at(container, "tty");
  const auto& security = at(container, "securityContext");
  config.read_only_root = json::bool_at(security, "readOnlyRootFilesystem");
  config.no_new_privileges = !at(security, "allowPrivilegeEscalation").is_null() &&
                             !json::bool_at(security, "allowPrivilegeEscalation");
  config.privileged = json::bool_at(security, "privileged");
  const auto& profile = seccomp_profile(pod, container);
  config.unconfined = json::string_at(profile, "type") == "Unconfined";
  if (json::string_at(profile, "type") == "Localhost")
    config.seccomp_file = text(at(profile, "localhostProfile"));
  for (const auto& name : json::array_at(security, "capabilities", "add"))
    config.add_capabilities.push_back(text(name));
  for (const auto& name : json::array_at(security, "capabilities", "drop"))
    config.drop_capabilities.push_back(text(name));
  config.user = number(pod, container, "runAsUser");
  const auto refused = non_root_refusal(pod, container, image, config.user);
  if (!refused.empty()) return fail(Code::kInvalid, refused);
  config.group = number(pod, container, "runAsGroup");
  if (config.user && !config.group && !image.pulled) config.group = 0;
  for (const auto& group : json::array_at(pod, "spec", "securityContext", "supplementalGroups"))
    config.groups.push_back(json::as_int(group));
  if (const auto& group = at(pod, "spec", "securityContext", "fsGroup"); !group.is_null())
    config.groups.push_back(json::as_int(group));
  return config;
}

Result<void> read_seccomp_profile(const std::string& folder, ContainerConfig& config) {
  if (config.seccomp_file.empty()) return {};
  const auto path = fmt::format("{}/{}", folder, config.seccomp_file);
  const auto wrong = [&](std::string_view problem) {
    return fail(
        Code::kInvalid,
        fmt::format(
            "seccompProfile Localhost: the profile \"{}\" of this node: {}", path, problem));
  };
  constexpr std::size_t kBytesMax = 1024 * 1024;
  if (!stays_beneath(config.seccomp_file)) return wrong("it leads out of the folder of profiles");
  if (access(path.c_str(), R_OK) != 0) return wrong(std::strerror(errno));
  config.seccomp_profile = read_file(path, kBytesMax);
  const auto filter = process::filter_of_profile(config.seccomp_profile);
  if (!filter) return wrong(filter.error().message);
  config.seccomp_file = path;
  return {};
}

std::string termination_message(const json::Value& container,
                                const PodDirectories& places,
                                const std::string& name,
                                const std::string& log_file,
                                int exit_code) {
  auto message = read_file(termination_file(places, name), 4096);
  if (!message.empty() || exit_code == 0 ||
      json::string_at(container, "terminationMessagePolicy") != "FallbackToLogsOnError")
    return message;
  LogOptions options;
  options.tail_lines = 80;
  message = read_log(log_file, options);
  return message.size() > 2048 ? message.substr(message.size() - 2048) : message;
}

}  // namespace muster::agent
