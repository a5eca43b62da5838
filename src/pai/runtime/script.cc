#include "pai/runtime/script.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "pai/job/ports.h"
#include "pai/protocol/template.h"
#include "pai/runtime/spec.h"

namespace muster::pai {
namespace {

/// For bash, as one word.
std::string quoted(std::string_view text) { return "'" + replace_all(text, "'", "'\\''") + "'"; }

class Script {
 public:
  explicit Script(const Inputs& inputs) : in_(inputs), role_(find_role(inputs.self.role)) {}

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> out;
    out["runtime.env"] = variables();
    out["user.sh"] =
        "set -o errexit -o nounset -o pipefail\n" + commands(json::at(role_, "commands"));
    out[std::string(kRuntimeScript)] = runtime();
    if (!in_.private_key.empty()) {
      out["ssh/id_job"] = in_.private_key;
      out["ssh/authorized_keys"] = authorized_keys();
      out["ssh/config"] = ssh_config();
    }
    return out;
  }

 private:
  [[nodiscard]] const json::Value& find_role(std::string_view in_pods) const {
    for (const json::Value& each : json::array_at(in_.spec, "roles")) {
      if (json::string_at(each, "pods") == in_pods) return each;
    }
    return json::null_value();
  }

  /// One line each, with the job's secrets, which are known in the pod only.
  [[nodiscard]] std::string commands(const json::Value& lines) const {
    const Roots roots{{"secrets", &in_.secrets}};
    std::string out;
    for (const json::Value& line : json::as_array(lines))
      out += render(json::as_string(line), roots) + "\n";
    return out;
  }

  [[nodiscard]] std::string variables() const {
    std::string out;
    const auto set = [&](const std::string& name, std::string_view value) {
      out += fmt::format("export {}={}\n", name, quoted(value));
    };
    std::vector<std::string> instances;
    std::map<std::string, std::vector<std::string>> hosts;
    for (const PlacedTask& task : in_.tasks) {
      const json::Value& role = find_role(task.role);
      const std::string name = json::text_at(role, "name");
      const std::string one = fmt::format("{}_{}", name, task.index);
      set("PAI_HOST_IP_" + one, task.ip);
      for (const auto& port : json::object_at(role, "ports")) {
        const std::string label(port.key());
        const auto text =
            ports_text(task.pod_uid, label, static_cast<int>(json::as_int(port.value())));
        set(fmt::format("PAI_PORT_LIST_{}_{}", one, label), text);
        set(fmt::format("PAI_{}_{}_PORT", one, label), text);
      }
      hosts[name].push_back(fmt::format("{}:{}", task.ip, ports_text(task.pod_uid, "http", 1)));
      instances.push_back(fmt::format("{}:{}", name, task.index));
    }
    for (const auto& [name, list] : hosts)
      set(fmt::format("PAI_TASK_ROLE_{}_HOST_LIST", name), join(list, ","));
    set("PAI_TASK_ROLE_INSTANCES", join(instances, ","));
    return out + own_variables();
  }

  [[nodiscard]] std::string own_variables() const {
    std::string out;
    const auto set = [&](const std::string& name, std::string_view value) {
      out += fmt::format("export {}={}\n", name, quoted(value));
    };
    std::vector<std::string> lists;
    for (const auto& port : json::object_at(role_, "ports")) {
      const std::string label(port.key());
      const auto text =
          ports_text(in_.self.pod_uid, label, static_cast<int>(json::as_int(port.value())));
      set(fmt::format("PAI_CONTAINER_HOST_{}_PORT_LIST", label), text);
      lists.push_back(fmt::format("{}:{}", label, text));
    }
    const std::string http = ports_text(in_.self.pod_uid, "http", 1);
    for (const char* name : {"PAI_CURRENT_CONTAINER_IP", "PAI_CONTAINER_HOST_IP"})
      set(name, in_.self.ip);
    for (const char* name : {"PAI_CURRENT_CONTAINER_PORT", "PAI_CONTAINER_HOST_PORT"})
      set(name, http);
    set("PAI_CONTAINER_SSH_PORT", ports_text(in_.self.pod_uid, "ssh", 1));
    set("PAI_CONTAINER_HOST_PORT_LIST", join(lists, ";"));
    return out;
  }

  [[nodiscard]] std::string authorized_keys() const {
    std::string out = in_.public_key + "\n";
    for (const json::Value& line : json::array_at(in_.spec, "sshKeys"))
      out += json::text(line) + "\n";
    for (const json::Value& plugin : json::array_at(in_.spec, "plugins")) {
      const json::Value& user = json::at(plugin, "parameters", "userssh");
      if (json::string_at(plugin, "plugin") == "ssh" && !json::string_at(user, "value").empty())
        out += json::text_at(user, "value") + "\n";
    }
    return out;
  }

  /// `ssh worker-1` reaches that task.
  [[nodiscard]] std::string ssh_config() const {
    std::string out;
    for (const PlacedTask& task : in_.tasks) {
      out += fmt::format(
          "Host {}-{}\n  HostName {}\n  Port {}\n  User root\n  IdentityFile ~/.ssh/id_job\n"
          "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n",
          json::string_at(find_role(task.role), "name"),
          task.index,
          task.ip,
          ports_text(task.pod_uid, "ssh", 1));
    }
    return out;
  }

  [[nodiscard]] bool applies(const json::Value& plugin) const {
    const json::Value& roles = json::at(plugin, "taskRoles");
    if (!roles.is_array()) return true;
    const json::Array& names = roles.get_array();
    return std::any_of(names.begin(), names.end(), [&](const json::Value& each) {
      return json::string_at(role_, "name") == json::as_string(each);
    });
  }

  /// In a shell of its own, so that it cannot end this one; whether its failure ends the task is the
  /// policy's.
  static std::string step(const std::string& body, bool may_fail) {
    return fmt::format("(\nset -o errexit -o pipefail\n{})\n{}\n",
                       body,
                       may_fail ? "[ $? = 0 ] || echo 'a plugin failed and is ignored' >&2"
                                : "code=$?; [ $code = 0 ] || finish $code");
  }

  [[nodiscard]] std::string plugin_before(const json::Value& plugin) const {
    const auto name = json::string_at(plugin, "plugin");
    const json::Value& with = json::at(plugin, "parameters");
    if (name == "ssh") return ssh(with);
    if (name == "cmd") return commands(json::at(with, "preCommands"));
    if (name == "tensorboard") return tensorboard(with);
    if (name == "git") return git(with);
    return {};
  }

  [[nodiscard]] std::string ssh(const json::Value& with) const {
    std::string out = fmt::format(
        "mkdir -p /run/sshd ~/.ssh\nchmod 700 ~/.ssh\n"
        "cp {0}/ssh/id_job {0}/ssh/config ~/.ssh/\ncat {0}/ssh/authorized_keys >> ~/.ssh/authorized_keys\n"
        "chmod 600 ~/.ssh/*\n"
        "command -v sshd > /dev/null || {{ echo 'ssh: this image has no sshd' >&2; exit 1; }}\n"
        "[ -f /tmp/pai_host_key ] || ssh-keygen -q -N '' -t ecdsa -f /tmp/pai_host_key\n"
        "\"$(command -v sshd)\" -p \"$PAI_CONTAINER_SSH_PORT\" -h /tmp/pai_host_key "
        "-o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes -o PidFile=none "
        "-o AuthorizedKeysFile=.ssh/authorized_keys\n",
        kRuntimeFolder);
    if (!json::bool_at(with, "sshbarrier")) return out;
    const auto minutes = json::as_int(json::at(with, "sshbarrierTimeout"), 30);
    out += fmt::format("until_s=$((SECONDS + {}))\n", minutes * 60);
    for (const PlacedTask& task : in_.tasks)
      out += fmt::format(
          "until ssh -o BatchMode=yes -o ConnectTimeout=5 {0}-{1} true; do\n"
          "  [ $SECONDS -lt $until_s ] || {{ echo 'ssh: {0}-{1} did not answer in time' >&2; exit 1; }}\n"
          "  sleep 1\ndone\n",
          json::string_at(find_role(task.role), "name"),
          task.index);
    return out;
  }

  /// Beside the first task only: one is enough.
  [[nodiscard]] std::string tensorboard(const json::Value& with) const {
    const bool first = in_.self.index == 0 && json::string_at(json::array_at(in_.spec, "roles")[0],
                                                              "pods") == in_.self.role;
    if (!first) return {};
    std::vector<std::string> places;
    const json::Value& folders = json::at(with, "logdir");
    for (const auto& each : json::as_object(folders))
      places.push_back(
          fmt::format("{}:{}", std::string_view(each.key()), json::as_string(each.value())));
    const std::string where = folders.is_string() ? "--logdir=" + json::text(folders)
                                                  : "--logdir_spec=" + join(places, ",");
    const json::Value& port = json::at(with, "port");
    return fmt::format(
        "command -v tensorboard > /dev/null || {{ echo 'tensorboard: this image has none' >&2; exit 1; }}\n"
        "tensorboard {} --host=0.0.0.0 --port={} > /tmp/tensorboard.log 2>&1 &\n",
        quoted(where),
        port.is_null() ? "\"$PAI_CONTAINER_HOST_PORT\""
                       : quoted(port.is_string() ? json::text(port) : json::dump(port)));
  }

  [[nodiscard]] std::string git(const json::Value& with) const {
    std::string out = "git clone";
    for (const json::Value& option : json::array_at(with, "options"))
      out += " " + quoted(json::as_string(option));
    out += " -- " + quoted(json::string_at(with, "repo"));
    if (const auto folder = json::string_at(with, "clone_dir"); !folder.empty())
      out += " " + quoted(folder);
    return out + "\n";
  }

  [[nodiscard]] std::string before() const {
    std::string out;
    for (const json::Value& plugin : json::array_at(in_.spec, "plugins")) {
      if (!applies(plugin)) continue;
      if (const std::string body = plugin_before(plugin); !body.empty())
        out += step(body, json::string_at(plugin, "failurePolicy") == "ignore");
    }
    return out + hooks("starts");
  }

  [[nodiscard]] std::string after() const {
    std::string out;
    for (const json::Value& plugin : json::array_at(in_.spec, "plugins")) {
      if (!applies(plugin) || json::string_at(plugin, "plugin") != "cmd") continue;
      if (const std::string body = commands(json::at(plugin, "parameters", "postCommands"));
          !body.empty())
        out += step(body, json::string_at(plugin, "failurePolicy") == "ignore");
    }
    return out;
  }

  [[nodiscard]] std::string hooks(std::string_view which) const {
    std::string out;
    for (const json::Value& hook : json::array_at(role_, which)) {
      if (const std::string body = commands(json::at(hook, "commands")); !body.empty())
        out += step(body, json::bool_at(hook, "mayFail"));
    }
    return out;
  }

  /// The user's commands get a process group of their own, so that a signal to the container reaches
  /// all of them. A command that is not there (127) is OpenPAI's 220: retrying cannot help.
  [[nodiscard]] std::string runtime() const {
    return fmt::format(
        "source {0}/runtime.env\n"
        "finish() {{\n"
        "  code=$1\n"
        "  [ $code != 127 ] || code=220\n"
        "  echo \"{{\\\"exitCode\\\":$code,\\\"userExitCode\\\":$1}}\" > {1} 2> /dev/null\n"
        "  exit $code\n"
        "}}\n"
        "{2}"
        "set -m\n"
        "bash {0}/user.sh & child=$!\n"
        "set +m\n"
        "trap 'kill -TERM -- -$child 2> /dev/null' TERM INT QUIT\n"
        "wait $child; user_code=$?\n"
        "while kill -0 $child 2> /dev/null; do wait $child; user_code=$?; done\n"
        "trap - TERM INT QUIT\n"
        "{3}"
        "[ $user_code = 0 ] || finish $user_code\n"
        "{4}"
        "finish 0\n",
        kRuntimeFolder,
        kTerminationMessage,
        before(),
        after(),
        hooks("succeeds"));
  }

  const Inputs& in_;
  const json::Value& role_;
};

}  // namespace

std::vector<PlacedTask> placed_tasks(const json::Value& framework,
                                     std::int64_t attempt,
                                     bool& all) {
  std::vector<PlacedTask> out;
  const json::Value& status = json::at(framework, "status", "attemptStatus");
  std::int64_t wanted = 0;
  for (const json::Value& role : json::array_at(framework, "spec", "taskRoles"))
    wanted += json::int_at(role, "taskNumber");
  if (json::int_at(status, "id") == attempt) {
    for (const json::Value& role : json::array_at(status, "taskRoleStatuses")) {
      for (const json::Value& task : json::array_at(role, "taskStatuses")) {
        PlacedTask placed{json::text_at(role, "name"),
                          json::int_at(task, "index"),
                          json::text_at(task, "attemptStatus", "podIP"),
                          json::text_at(task, "attemptStatus", "podUID")};
        if (!placed.ip.empty() && !placed.pod_uid.empty()) out.push_back(std::move(placed));
      }
    }
  }
  all = static_cast<std::int64_t>(out.size()) >= wanted;
  return out;
}

std::vector<int> own_ports(const Inputs& inputs) {
  std::vector<int> out;
  for (const json::Value& role : json::array_at(inputs.spec, "roles")) {
    if (json::string_at(role, "pods") != inputs.self.role) continue;
    for (const auto& port : json::object_at(role, "ports")) {
      const int count = static_cast<int>(json::as_int(port.value()));
      for (const int each : ports_of(inputs.self.pod_uid, port.key(), count)) out.push_back(each);
    }
  }
  return out;
}

std::map<std::string, std::string> make_files(const Inputs& inputs) {
  return Script(inputs).files();
}

}  // namespace muster::pai
