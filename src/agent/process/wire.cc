#include "agent/process/wire.h"

#include "agent/process/user_range.h"

namespace muster::agent::process {
namespace {

using json::as_bool;
using json::as_int;
using json::at;
using json::text;

json::Array strings(const std::vector<std::string>& values) {
  json::Array out;
  for (const auto& value : values) out.emplace_back(value);
  return out;
}
std::vector<std::string> strings_from(const json::Value& value) {
  std::vector<std::string> out;
  for (const auto& item : json::as_array(value)) out.push_back(text(item));
  return out;
}

}  // namespace

uid_t first_id_of(const ShimConfig& config) {
  return first_id(config.home - config.gateway - 1, config.gateway >> 16);
}

json::Value to_json(const ShimConfig& config) {
  json::Array volumes;
  for (const auto& volume : config.sandbox.memory_volumes)
    volumes.push_back(
        json::Object{{"path", volume.path}, {"size", volume.size_bytes}, {"group", volume.group}});
  const auto& tree = config.cgroups;
  return json::Object{
      {"id", config.sandbox.id},
      {"namespace", config.sandbox.pod_namespace},
      {"name", config.sandbox.pod_name},
      {"directory", config.sandbox.directory},
      {"runDirectory", config.sandbox.run_directory},
      {"hostname", config.sandbox.hostname},
      {"hosts", config.sandbox.hosts_file},
      {"resolv", config.sandbox.resolv_conf_file},
      {"hostNetwork", config.sandbox.host_network},
      {"hostPid", config.sandbox.host_pid},
      {"hostIpc", config.sandbox.host_ipc},
      {"sharePid", config.sandbox.share_process_namespace},
      {"hostUsers", config.sandbox.host_users},
      {"ownUsers", config.sandbox.own_users},
      {"memoryVolumes", volumes},
      {"isolate", config.isolate},
      {"mapsUsers", config.maps_users},
      {"bridge", config.bridge},
      {"address", config.address},
      {"home", config.home},
      {"gateway", config.gateway},
      {"prefix", config.prefix},
      {"isolatedPort", config.isolated_port},
      {"hairpinPort", config.hairpin_port},
      {"closed", config.closed},
      {"key", config.key},
      {"roots",
       json::Object{{"bound", config.roots.bound},
                    {"covered", strings(config.roots.covered)},
                    {"place", config.roots.place},
                    {"mask", config.roots.mask},
                    {"places", config.roots.places},
                    {"floor", config.roots.floor},
                    {"ahead", config.roots.ahead},
                    {"images", config.roots.for_images},
                    {"hidden", config.roots.hidden},
                    {"show", strings(config.roots.show)}}},
      {"cgroups",
       json::Object{{"version", static_cast<int>(tree.version)},
                    {"cpu", tree.cpu},
                    {"cpuacct", tree.cpuacct},
                    {"memory", tree.memory},
                    {"pids", tree.pids}}},
  };
}

ShimConfig shim_config_from_json(const json::Value& value) {
  ShimConfig config;
  auto& sandbox = config.sandbox;
  sandbox.id = text(at(value, "id"));
  sandbox.pod_namespace = text(at(value, "namespace"));
  sandbox.pod_name = text(at(value, "name"));
  sandbox.directory = text(at(value, "directory"));
  sandbox.run_directory = text(at(value, "runDirectory"));
  sandbox.hostname = text(at(value, "hostname"));
  sandbox.hosts_file = text(at(value, "hosts"));
  sandbox.resolv_conf_file = text(at(value, "resolv"));
  sandbox.host_network = json::bool_at(value, "hostNetwork");
  sandbox.host_pid = json::bool_at(value, "hostPid");
  sandbox.host_ipc = json::bool_at(value, "hostIpc");
  sandbox.share_process_namespace = json::bool_at(value, "sharePid");
  sandbox.host_users = json::bool_at(value, "hostUsers");
  sandbox.own_users = json::bool_at(value, "ownUsers");
  for (const auto& volume : json::array_at(value, "memoryVolumes"))
    sandbox.memory_volumes.push_back(
        {text(at(volume, "path")), json::int_at(volume, "size"), json::int_at(volume, "group")});
  config.isolate = json::bool_at(value, "isolate");
  config.maps_users = json::bool_at(value, "mapsUsers");
  config.bridge = text(at(value, "bridge"));
  config.address = static_cast<std::uint32_t>(json::int_at(value, "address"));
  config.home = static_cast<std::uint32_t>(json::int_at(value, "home"));
  config.gateway = static_cast<std::uint32_t>(json::int_at(value, "gateway"));
  config.prefix = static_cast<int>(as_int(at(value, "prefix"), 16));
  config.isolated_port = json::bool_at(value, "isolatedPort");
  config.hairpin_port = json::bool_at(value, "hairpinPort");
  config.closed = text(at(value, "closed"));
  config.key = text(at(value, "key"));
  const auto& roots = at(value, "roots");
  config.roots.bound = json::bool_at(roots, "bound");
  config.roots.covered = strings_from(at(roots, "covered"));
  config.roots.place = text(at(roots, "place"));
  config.roots.mask = text(at(roots, "mask"));
  config.roots.places = text(at(roots, "places"));
  config.roots.floor = text(at(roots, "floor"));
  config.roots.ahead = text(at(roots, "ahead"));
  config.roots.for_images = json::bool_at(roots, "images");
  config.roots.hidden = text(at(roots, "hidden"));
  config.roots.show = strings_from(at(roots, "show"));
  const auto& tree = at(value, "cgroups");
  config.cgroups.version = static_cast<cgroup::Version>(json::int_at(tree, "version"));
  config.cgroups.cpu = text(at(tree, "cpu"));
  config.cgroups.cpuacct = text(at(tree, "cpuacct"));
  config.cgroups.memory = text(at(tree, "memory"));
  config.cgroups.pids = text(at(tree, "pids"));
  return config;
}

json::Value to_json(const Limits& limits) {
  return json::Object{{"cpu", limits.cpu_milli},
                      {"cpuRequest", limits.cpu_request_milli},
                      {"memory", limits.memory_bytes},
                      {"pids", limits.pids}};
}

Limits limits_from_json(const json::Value& value) {
  return Limits{json::int_at(value, "cpu"),
                json::int_at(value, "cpuRequest"),
                json::int_at(value, "memory"),
                json::int_at(value, "pids")};
}

json::Value to_json(const ContainerConfig& config) {
  json::Array mounts;
  for (const auto& mount : config.mounts)
    mounts.push_back(json::Object{{"source", mount.source},
                                  {"target", mount.target},
                                  {"readOnly", mount.read_only},
                                  {"subPath", mount.sub_path},
                                  {"hostType", mount.host_type},
                                  {"ofHost", mount.of_host},
                                  {"asItIs", mount.as_it_is}});
  json::Array groups;
  for (const auto group : config.groups) groups.emplace_back(group);
  json::Array devices;
  for (const auto& device : config.devices)
    devices.push_back(json::Object{{"source", device.source}, {"target", device.target}});
  json::Object out{
      {"id", config.id},
      {"name", config.name},
      {"attempt", config.attempt},
      {"image", config.image},
      {"layers", strings(config.layers)},
      {"args", strings(config.args)},
      {"env", strings(config.env)},
      {"workingDir", config.working_dir},
      {"mounts", mounts},
      {"log", config.log_path},
      {"terminationFile", config.termination_message_file},
      {"terminationPath", config.termination_message_path},
      {"stdin", config.stdin_open},
      {"stdinOnce", config.stdin_once},
      {"tty", config.tty},
      {"readOnlyRoot", config.read_only_root},
      {"noNewPrivileges", config.no_new_privileges},
      {"unconfined", config.unconfined},
      {"seccompProfile", config.seccomp_profile},
      {"groups", groups},
      {"privileged", config.privileged},
      {"addCapabilities", strings(config.add_capabilities)},
      {"dropCapabilities", strings(config.drop_capabilities)},
      {"devices", devices},
      {"joins", config.joins_processes_of},
      {"limits", to_json(config.limits)},
  };
  if (config.user) out["user"] = *config.user;
  if (config.image_user) out["imageUser"] = *config.image_user;
  if (config.group) out["group"] = *config.group;
  return out;
}

ContainerConfig container_config_from_json(const json::Value& value) {
  ContainerConfig config;
  config.id = text(at(value, "id"));
  config.name = text(at(value, "name"));
  config.attempt = static_cast<int>(json::int_at(value, "attempt"));
  config.image = text(at(value, "image"));
  config.layers = strings_from(at(value, "layers"));
  config.args = strings_from(at(value, "args"));
  config.env = strings_from(at(value, "env"));
  config.working_dir = text(at(value, "workingDir"));
  for (const auto& mount : json::array_at(value, "mounts")) {
    config.mounts.push_back({text(at(mount, "source")),
                             text(at(mount, "target")),
                             json::bool_at(mount, "readOnly"),
                             text(at(mount, "subPath")),
                             text(at(mount, "hostType")),
                             json::bool_at(mount, "ofHost"),
                             json::bool_at(mount, "asItIs")});
  }
  config.log_path = text(at(value, "log"));
  config.termination_message_file = text(at(value, "terminationFile"));
  config.termination_message_path = text(at(value, "terminationPath"));
  config.stdin_open = json::bool_at(value, "stdin");
  config.stdin_once = json::bool_at(value, "stdinOnce");
  config.tty = json::bool_at(value, "tty");
  config.read_only_root = json::bool_at(value, "readOnlyRoot");
  config.no_new_privileges = json::bool_at(value, "noNewPrivileges");
  config.unconfined = json::bool_at(value, "unconfined");
  config.seccomp_profile = text(at(value, "seccompProfile"));
  if (!at(value, "imageUser").is_null()) config.image_user = text(at(value, "imageUser"));
  if (!at(value, "user").is_null()) config.user = json::int_at(value, "user");
  if (!at(value, "group").is_null()) config.group = json::int_at(value, "group");
  for (const auto& group : json::array_at(value, "groups")) config.groups.push_back(as_int(group));
  config.privileged = json::bool_at(value, "privileged");
  config.add_capabilities = strings_from(at(value, "addCapabilities"));
  config.drop_capabilities = strings_from(at(value, "dropCapabilities"));
  for (const auto& device : json::array_at(value, "devices"))
    config.devices.push_back({text(at(device, "source")), text(at(device, "target")), ""});
  config.joins_processes_of = text(at(value, "joins"));
  config.limits = limits_from_json(at(value, "limits"));
  return config;
}

json::Value to_json(const ContainerStatus& status) {
  return json::Object{{"id", status.id},
                      {"name", status.name},
                      {"attempt", status.attempt},
                      {"state", static_cast<int>(status.state)},
                      {"created", status.created.us},
                      {"started", status.started.us},
                      {"finished", status.finished.us},
                      {"exitCode", status.exit_code},
                      {"reason", status.reason},
                      {"message", status.message},
                      {"ownersHidden", strings(status.owners_hidden)}};
}

ContainerStatus container_status_from_json(const json::Value& value) {
  ContainerStatus status;
  status.id = text(at(value, "id"));
  status.name = text(at(value, "name"));
  status.attempt = static_cast<int>(json::int_at(value, "attempt"));
  status.state = static_cast<ContainerState>(json::int_at(value, "state"));
  status.created = Time{json::int_at(value, "created")};
  status.started = Time{json::int_at(value, "started")};
  status.finished = Time{json::int_at(value, "finished")};
  status.exit_code = static_cast<int>(json::int_at(value, "exitCode"));
  status.reason = text(at(value, "reason"));
  status.message = text(at(value, "message"));
  status.owners_hidden = strings_from(at(value, "ownersHidden"));
  return status;
}

}  // namespace muster::agent::process
