#include "agent/cri/messages.h"

#include <fmt/core.h>

#include <algorithm>

#include "agent/image/protobuf.h"
#include "base/strings.h"

namespace muster::agent::cri {
namespace {

using image::MessageField;
using image::MessageWriter;
using image::read_message;

// NamespaceMode
constexpr std::uint64_t kPod = 0, kOwn = 1, kNode = 2, kTarget = 3;
// SecurityProfile's types
constexpr std::uint64_t kUnconfined = 1, kLocalhost = 2;
constexpr std::int64_t kCpuPeriod_us = 100'000;
constexpr std::int64_t kCpuQuotaMin_us = 1'000;
constexpr std::int64_t kCpuSharesMin = 2;

/// As a kubelet masks them (1.37).
constexpr const char* kMasked[] = {"/proc/asound",
                                   "/proc/acpi",
                                   "/proc/interrupts",
                                   "/proc/kcore",
                                   "/proc/keys",
                                   "/proc/latency_stats",
                                   "/proc/timer_list",
                                   "/proc/timer_stats",
                                   "/proc/sched_debug",
                                   "/proc/scsi",
                                   "/sys/firmware",
                                   "/sys/devices/virtual/powercap"};
constexpr const char* kReadOnly[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};

tl::unexpected<Error> broken(const char* what) {
  return fail(Code::kInternal,
              fmt::format("the answer of the container runtime is not a {}", what));
}

std::uint64_t as_number(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// Int64Value: nought is said, too.
MessageWriter boxed(std::int64_t value) {
  MessageWriter out;
  out.number(1, as_number(value));
  return out;
}

MessageWriter seccomp(bool unconfined, const std::string& file = "") {
  MessageWriter out;
  if (unconfined) out.number(1, kUnconfined);
  if (!unconfined && !file.empty()) out.number(1, kLocalhost).text(2, file);
  return out;
}

MessageWriter namespaces(const SandboxConfig& config,
                         const UserRange& users,
                         const std::string& joined) {
  MessageWriter out;
  const auto pid = config.host_pid                  ? kNode
                   : !joined.empty()                ? kTarget
                   : config.share_process_namespace ? kPod
                                                    : kOwn;
  out.number(1, config.host_network ? kNode : kPod)
      .number(2, pid)
      .number(3, config.host_ipc ? kNode : kPod)
      .text(4, joined);
  if (users) out.message(5, user_namespace(*users));
  return out;
}

MessageWriter resources(const Limits& limits) {
  MessageWriter out;
  if (limits.cpu_milli > 0)
    out.number(1, as_number(kCpuPeriod_us))
        .number(2, as_number(std::max(limits.cpu_milli * kCpuPeriod_us / 1000, kCpuQuotaMin_us)));
  const auto request = limits.cpu_request_milli > 0 ? limits.cpu_request_milli : limits.cpu_milli;
  out.number(3, as_number(std::max(request * 1024 / 1000, kCpuSharesMin)));
  if (limits.memory_bytes > 0)
    out.number(4, as_number(limits.memory_bytes)).number(10, as_number(limits.memory_bytes));
  return out;
}

/// What a configuration says of rights.
MessageWriter rights(const ContainerWish& wish) {
  const auto& config = wish.config;
  MessageWriter capabilities, out;
  for (const auto& name : config.add_capabilities) capabilities.text(1, name);
  for (const auto& name : config.drop_capabilities) capabilities.text(2, name);
  out.message(1, capabilities)
      .number(2, config.privileged ? 1 : 0)
      .message(3, namespaces(wish.sandbox, wish.users, wish.joined));
  if (config.user) out.message(5, boxed(*config.user));
  out.number(7, config.read_only_root ? 1 : 0);
  for (const auto group : config.groups) out.element(8, as_number(group));
  out.number(11, config.no_new_privileges ? 1 : 0);
  if (config.group) out.message(12, boxed(*config.group));
  if (!config.privileged) {
    for (const auto* path : kMasked) out.text(13, path);
    for (const auto* path : kReadOnly) out.text(14, path);
  }
  return out.message(15, seccomp(config.privileged || config.unconfined, config.seccomp_file));
}

MessageWriter mount(const Mount& one, const UserRange& users) {
  MessageWriter out;
  out.text(1, one.target).text(2, one.source).number(3, one.read_only ? 1 : 0);
  // Whoever owns a file on disk owns it in the pod.
  if (users && !one.as_it_is) out.message(6, id_mapping(*users)).message(7, id_mapping(*users));
  return out;
}

MessageWriter metadata(const std::string& name, int attempt) {
  MessageWriter out;
  out.text(1, name).number(2, static_cast<std::uint64_t>(attempt));
  return out;
}

MessageWriter owner_filter(int field, const std::string& owner) {
  MessageWriter filter, out;
  filter.entry(field, kOwner, owner);
  out.message(1, filter);
  return out;
}

struct Read {
  std::string_view bytes;
  bool good = true;

  /// Every field of a message within it.
  template <typename Each>
  void fields(std::string_view inner, const Each& each) {
    good = read_message(inner, each) && good;
  }
};

Time time_of(std::uint64_t ns) { return Time{static_cast<std::int64_t>(ns / 1000)}; }

/// A map's entry, if it is one of text.
std::pair<std::string, std::string> entry_of(Read& read, std::string_view bytes) {
  std::pair<std::string, std::string> out;
  read.fields(bytes, [&out](const MessageField& field) {
    if (field.number == 1) out.first = std::string(field.bytes);
    if (field.number == 2) out.second = std::string(field.bytes);
  });
  return out;
}

void read_metadata(Read& read, std::string_view bytes, ContainerStatus& out) {
  read.fields(bytes, [&out](const MessageField& field) {
    if (field.number == 1) out.name = std::string(field.bytes);
    if (field.number == 2) out.attempt = static_cast<int>(field.value);
  });
}

ContainerState state_of(std::uint64_t value) {
  return value == 0   ? ContainerState::kCreated
         : value == 1 ? ContainerState::kRunning
                      : ContainerState::kExited;
}

std::uint64_t boxed_number(Read& read, std::string_view bytes) {
  std::uint64_t out = 0;
  read.fields(bytes, [&out](const MessageField& field) {
    if (field.number == 1) out = field.value;
  });
  return out;
}

}  // namespace

std::string sandbox_message(const SandboxWish& wish) {
  const auto& config = wish.config;
  MessageWriter named, security, linux_part, out;
  named.text(1, config.pod_name)
      .text(2, config.id)
      .text(3, config.pod_namespace)
      .number(4, static_cast<std::uint64_t>(wish.attempt));
  security.message(1, namespaces(config, wish.users, "")).message(9, seccomp(/*unconfined=*/false));
  linux_part.text(1, wish.cgroup_parent).message(2, security);
  // The machine's network has the machine's name.
  out.message(1, named)
      .text(2, config.host_network ? "" : config.hostname)
      .text(3, config.directory)
      .entry(6, kPodUid, config.id)
      .entry(6, kPodName, config.pod_name)
      .entry(6, kPodNamespace, config.pod_namespace)
      .entry(6, kOwner, wish.owner)
      .message(8, linux_part);
  return out.bytes();
}

SandboxNamespaces read_namespaces(std::string_view sandbox_message) {
  SandboxNamespaces out;
  Read read{sandbox_message};
  const auto each = [&out](const MessageField& field) {
    if (field.number == 1) out.host_network = field.value == kNode;
    if (field.number == 2) out.host_pid = field.value == kNode;
    if (field.number == 2) out.share_process_namespace = field.value == kPod;
    if (field.number == 3) out.host_ipc = field.value == kNode;
    if (field.number == 5 && field.is_bytes) out.users = read_user_namespace(field.bytes);
  };
  // linux, its security_context, its namespace_options.
  out.share_process_namespace = true;  // nought, which is not written
  read.fields(sandbox_message, [&](const MessageField& top) {
    if (top.number != 8 || !top.is_bytes) return;
    read.fields(top.bytes, [&](const MessageField& part) {
      if (part.number != 2 || !part.is_bytes) return;
      read.fields(part.bytes, [&](const MessageField& field) {
        if (field.number == 1 && field.is_bytes) read.fields(field.bytes, each);
      });
    });
  });
  return out;
}

std::string run_sandbox_request(const std::string& sandbox_message, const std::string& handler) {
  MessageWriter out;
  return out.block_of(1, sandbox_message).text(2, handler).bytes();
}

std::string create_container_request(const ContainerWish& wish) {
  const auto& config = wish.config;
  MessageWriter picture, one, linux_part, out;
  picture.text(1, config.image);
  one.message(1, metadata(config.name, config.attempt)).message(2, picture);
  for (const auto& word : config.args) one.element(3, word);
  one.text(5, config.working_dir);
  for (const auto& item : config.env) {
    const auto equals = item.find('=');
    MessageWriter pair;
    pair.text(1, item.substr(0, equals));
    if (equals != std::string::npos) pair.text(2, item.substr(equals + 1));
    one.message(6, pair);
  }
  for (const auto& item : config.mounts) one.message(7, mount(item, wish.users));
  for (const auto& item : config.devices) {
    MessageWriter device;
    one.message(8,
                device.text(1, item.target)
                    .text(2, item.source)
                    .text(3, item.permissions.empty() ? "rw" : item.permissions));
  }
  one.entry(9, kPodUid, wish.sandbox.id)
      .entry(9, kContainerName, config.name)
      .entry(9, kOwner, wish.owner)
      .text(11, config.log_path.substr(config.log_path.rfind('/') + 1))
      .number(12, config.stdin_open ? 1 : 0)
      .number(13, config.stdin_once ? 1 : 0)
      .number(14, config.tty ? 1 : 0);
  linux_part.message(1, resources(config.limits)).message(2, rights(wish));
  one.message(15, linux_part);
  return out.text(1, wish.sandbox_id).message(2, one).block_of(3, wish.sandbox_message).bytes();
}

std::string update_limits_request(const std::string& container_id, const Limits& limits) {
  MessageWriter out;
  return out.text(1, container_id).message(2, resources(limits)).bytes();
}

std::string stop_container_request(const std::string& container_id, std::int64_t seconds) {
  MessageWriter out;
  return out.text(1, container_id).number(2, as_number(seconds)).bytes();
}

std::string id_request(std::string_view id) {
  MessageWriter out;
  return out.text(1, id).bytes();
}

Result<std::string> read_text(std::string_view message, const char* what) {
  std::string out;
  const bool whole = read_message(message, [&out](const MessageField& field) {
    if (field.number == 1) out = std::string(field.bytes);
  });
  if (!whole || out.empty()) return broken(what);
  return out;
}

std::string list_sandboxes_request(const std::string& owner) {
  return owner_filter(3, owner).bytes();
}

Result<std::vector<Sandbox>> read_sandboxes(std::string_view message) {
  std::vector<Sandbox> out;
  Read read{message};
  read.fields(message, [&](const MessageField& item) {
    if (item.number != 1 || !item.is_bytes) return;
    auto& one = out.emplace_back();
    one.ready = true;  // nought, which is not written
    read.fields(item.bytes, [&](const MessageField& field) {
      if (field.number == 1) one.id = std::string(field.bytes);
      if (field.number == 3) one.ready = field.value == 0;
      if (field.number == 4) one.created_ns = static_cast<std::int64_t>(field.value);
      if (field.number != 5 || !field.is_bytes) return;
      auto [key, value] = entry_of(read, field.bytes);
      if (key == kPodUid) one.uid = std::move(value);
    });
  });
  if (!read.good) return broken("ListPodSandboxResponse");
  std::sort(out.begin(), out.end(), [](const Sandbox& a, const Sandbox& b) {
    return a.created_ns < b.created_ns;
  });
  return out;
}

Result<std::string> read_sandbox_address(std::string_view message) {
  std::string out;
  Read read{message};
  const auto network = [&](const MessageField& field) {
    if (field.number == 1) out = std::string(field.bytes);
  };
  const auto status = [&](const MessageField& field) {
    if (field.number == 5 && field.is_bytes) read.fields(field.bytes, network);
  };
  read.fields(message, [&](const MessageField& field) {
    if (field.number == 1 && field.is_bytes) read.fields(field.bytes, status);
  });
  if (!read.good) return broken("PodSandboxStatusResponse");
  return out;
}

std::string list_containers_request(const std::string& owner) {
  return owner_filter(4, owner).bytes();
}

Result<std::vector<Container>> read_containers(std::string_view message) {
  std::vector<Container> out;
  Read read{message};
  read.fields(message, [&](const MessageField& item) {
    if (item.number != 1 || !item.is_bytes) return;
    auto& one = out.emplace_back();
    read.fields(item.bytes, [&](const MessageField& field) {
      if (field.number == 1) one.status.id = std::string(field.bytes);
      if (field.number == 2) one.sandbox_id = std::string(field.bytes);
      if (field.number == 3) read_metadata(read, field.bytes, one.status);
      if (field.number == 6) one.status.state = state_of(field.value);
    });
  });
  if (!read.good) return broken("ListContainersResponse");
  return out;
}

Result<Container> read_container_status(std::string_view message) {
  Container out;
  auto& status = out.status;
  Read read{message};
  const auto part = [&](const MessageField& field) {
    switch (field.number) {
      case 1:
        status.id = std::string(field.bytes);
        break;
      case 2:
        read_metadata(read, field.bytes, status);
        break;
      case 3:
        status.state = state_of(field.value);
        break;
      case 4:
        status.created = time_of(field.value);
        break;
      case 5:
        status.started = time_of(field.value);
        break;
      case 6:
        status.finished = time_of(field.value);
        break;
      case 7:
        status.exit_code = static_cast<int>(field.value);
        break;
      case 10:
        status.reason = std::string(field.bytes);
        break;
      case 11:
        status.message = std::string(field.bytes);
        break;
      case 15:
        out.log_path = std::string(field.bytes);
        break;
      default:
        break;
    }
  };
  read.fields(message, [&](const MessageField& field) {
    if (field.number == 1 && field.is_bytes) read.fields(field.bytes, part);
  });
  if (!read.good || status.id.empty()) return broken("ContainerStatusResponse");
  return out;
}

std::string exec_request(const std::string& container_id, const ExecConfig& config) {
  MessageWriter out;
  out.text(1, container_id);
  for (const auto& word : config.command) out.element(2, word);
  // A terminal has one stream for both.
  out.number(3, config.tty ? 1 : 0)
      .number(4, config.stdin_open ? 1 : 0)
      .number(5, config.stdout_open ? 1 : 0)
      .number(6, config.stderr_open && !config.tty ? 1 : 0);
  return out.bytes();
}

std::string attach_request(const std::string& container_id, const ExecConfig& config) {
  MessageWriter out;
  out.text(1, container_id)
      .number(2, config.stdin_open ? 1 : 0)
      .number(3, config.tty ? 1 : 0)
      .number(4, config.stdout_open ? 1 : 0)
      .number(5, config.stderr_open && !config.tty ? 1 : 0);
  return out.bytes();
}

std::string port_forward_request(const std::string& sandbox_id, int port) {
  MessageWriter out;
  return out.text(1, sandbox_id).number(2, static_cast<std::uint64_t>(port)).bytes();
}

std::string list_stats_request(const std::string& sandbox_id) {
  MessageWriter filter, out;
  filter.text(2, sandbox_id);
  return out.message(1, filter).bytes();
}

Result<std::map<std::string, Usage>> read_stats(std::string_view message) {
  std::map<std::string, Usage> out;
  Read read{message};
  read.fields(message, [&](const MessageField& item) {
    if (item.number != 1 || !item.is_bytes) return;
    std::string id;
    Usage usage;
    const auto second = [&read](std::string_view bytes) {
      std::uint64_t value = 0;
      read.fields(bytes, [&](const MessageField& field) {
        if (field.number == 2 && field.is_bytes) value = boxed_number(read, field.bytes);
      });
      return static_cast<std::int64_t>(value);
    };
    read.fields(item.bytes, [&](const MessageField& field) {
      if (!field.is_bytes) return;
      if (field.number == 1)
        read.fields(field.bytes, [&id](const MessageField& part) {
          if (part.number == 1) id = std::string(part.bytes);
        });
      if (field.number == 2) usage.cpu_usage_ns = second(field.bytes);
      if (field.number == 3) usage.memory_bytes = second(field.bytes);
    });
    out[id] = usage;
  });
  if (!read.good) return broken("ListContainerStatsResponse");
  return out;
}

std::string subscribe_request() {
  MessageWriter out;
  return out.text(1, "topic==\"/tasks/delete\"").bytes();
}

Result<TaskEvent> read_event(std::string_view message) {
  TaskEvent out;
  Read read{message};
  const auto task = [&](const MessageField& field) {
    if (field.number == 1) out.container_id = std::string(field.bytes);
    if (field.number == 5) out.exec_id = std::string(field.bytes);
  };
  const auto any = [&](const MessageField& field) {
    if (field.number == 2 && field.is_bytes) read.fields(field.bytes, task);
  };
  read.fields(message, [&](const MessageField& field) {
    if (field.number == 4 && field.is_bytes) read.fields(field.bytes, any);
  });
  if (!read.good) return broken("event");
  return out;
}

}  // namespace muster::agent::cri
