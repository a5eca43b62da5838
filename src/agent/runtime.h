/// Runtime: how a sandbox (what the containers of a pod share) and a container start, stop, report
/// and stream.
///
/// The shape is CRI's, cut to what the agent needs. One implementation runs processes of this
/// machine (process/), another speaks to containerd (cri/), and a third leads each pod to one of
/// them (runtimes.h); nothing outside an implementation may assume a process of ours, a path below
/// its state directory or a namespace. Everything runs on the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "net/http/http.h"

namespace muster::agent {

/// Zero means: no limit.
struct Limits {
  std::int64_t cpu_milli = 0;
  std::int64_t cpu_request_milli = 0;  // relative weight
  std::int64_t memory_bytes = 0;
  std::int64_t pids = 0;
};

struct Mount {
  std::string source;  // absolute, on this machine
  std::string target;  // absolute, in the container
  bool read_only = false;
  /// Set: what lies at this path below `source`, made if it is missing. Containers may write below
  /// `source`, so nothing on the way is allowed to lead out of it.
  std::string sub_path;
  std::string host_type;  // what `source` must be: hostPath's type, "" for anything
  bool of_host = false;   // a hostPath: the machine's, not made for the pod
  bool as_it_is = false;  // a program's or library's file: shown whoever its owner is
};

/// A device file of the machine's, or a folder of them.
struct Device {
  std::string source;       // absolute, on this machine
  std::string target;       // in the container, below /dev
  std::string permissions;  // some of "rwm"; empty: to be read and written
};

/// A tmpfs that the containers of the pod share; `path` is where it is mounted for mounts' sources.
struct MemoryVolume {
  std::string path;
  std::int64_t size_bytes = 0;
  std::int64_t group = -1;  // who may write; -1: all
};

struct HostPort {
  int host_port = 0;
  int container_port = 0;
  std::string protocol;  // TCP or UDP
};

/// An address and port that only exist in pods' eyes: a connection to it ends at one of the
/// targets.
struct VirtualPort {
  struct Target {
    std::string address;
    int port = 0;
    auto operator<=>(const Target&) const = default;
  };
  std::string address;
  int port = 0;
  std::string protocol;  // TCP, UDP or SCTP
  std::vector<Target> targets;
  auto operator<=>(const VirtualPort&) const = default;
};

/// Traffic of some pods in one direction: what goes one of these ways passes, nothing else does.
struct Fence {
  struct Ports {
    std::string protocol;  // TCP, UDP or SCTP
    int first = 0;         // 0: every port
    int last = 0;
    auto operator<=>(const Ports&) const = default;
  };
  struct Way {
    std::vector<std::string> peers;  // networks, "10.0.0.0/8"
    std::vector<Ports> ports;        // none: whatever the protocol
    auto operator<=>(const Way&) const = default;
  };
  bool inbound = false;
  std::vector<Way> ways;
  std::vector<std::string> pods;  // addresses
  auto operator<=>(const Fence&) const = default;
};

struct SandboxConfig {
  std::string id;  // the pod's uid
  std::string pod_namespace;
  std::string pod_name;
  std::string directory;      // the pod's own, on disk; made when something is to be put there
  std::string run_directory;  // the same for small files, in memory where possible; exists
  std::string hostname;
  std::string hosts_file;        // shown as /etc/hosts; rewritten in place later
  std::string resolv_conf_file;  // shown as /etc/resolv.conf
  bool host_network = false;
  bool host_pid = false;
  bool host_ipc = false;
  bool share_process_namespace = false;
  bool host_users = false;  // root is the machine's
  bool own_users = false;   // root must not be the machine's: no sandbox rather than such a one
  std::vector<MemoryVolume> memory_volumes;
  std::vector<HostPort> host_ports;
  bool under_cri = false;  // by a container runtime, not by processes of ours
  std::string handler;     // which of its handlers; empty: its default
};

/// What a container's root has of its own on disk. It lies beside the pod's directory, so that a pod that
/// leaves nothing there, no line of a log either, needs none: making and removing it would be most of what
/// the disk has to do for such a pod.
inline std::string root_folder(const std::string& pod_directory, const std::string& container) {
  return pod_directory + "." + container;
}

struct ContainerConfig {
  std::string id;
  std::string name;
  int attempt = 0;
  std::string image;
  /// Directories that are the container's root, uppermost first; none: the machine's own files.
  std::vector<std::string> layers;
  /// Set with an image that was pulled: who runs it unless `user` is set. Names and groups are
  /// looked up in the image's own files.
  std::optional<std::string> image_user;
  std::vector<std::string> args;
  std::vector<std::string> env;  // "NAME=value"
  std::string working_dir;
  std::vector<Mount> mounts;
  std::string log_path;
  std::string termination_message_file;  // shown at termination_message_path
  std::string termination_message_path;
  bool stdin_open = false;
  bool stdin_once = false;
  bool tty = false;
  bool read_only_root = false;
  bool no_new_privileges = false;
  bool unconfined = false;      // every system call
  std::string seccomp_file;     // a profile of the machine's; empty: the usual calls
  std::string seccomp_profile;  // what is in it
  std::optional<std::int64_t> user;
  std::optional<std::int64_t> group;
  std::vector<std::int64_t> groups;
  bool privileged = false;                     // every capability and device
  std::vector<std::string> add_capabilities;   // to the usual set; without "CAP_"; "ALL"
  std::vector<std::string> drop_capabilities;  // from it
  std::vector<Device> devices;                 // beside those that all have
  std::string joins_processes_of;  // a container of the pod whose process namespace this one shares
  Limits limits;
};

enum class ContainerState { kCreated, kRunning, kExited };

struct ContainerStatus {
  std::string id;
  std::string name;
  int attempt = 0;
  ContainerState state = ContainerState::kCreated;
  Time created;
  Time started;
  Time finished;
  int exit_code = 0;
  std::string reason;   // Completed, Error, OOMKilled, StartError
  std::string message;  // of a StartError
  /// Paths that are mounted without the owners that their files have: the file system cannot.
  std::vector<std::string> owners_hidden;
};

struct SandboxStatus {
  std::string id;
  std::string address;  // empty with host_network: the node's
  bool alive = true;
  std::vector<ContainerStatus> containers;
};

struct ExecConfig {
  std::vector<std::string> command;
  bool stdin_open = false;
  bool stdout_open = true;
  bool stderr_open = true;
  bool tty = false;
};

/// A running exec or attach. Streams that were not asked for are null. Destroying it lets go of the
/// streams.
class Session {
 public:
  virtual ~Session() = default;
  virtual net::ByteStream* stdin_stream() = 0;
  virtual net::ByteStream* stdout_stream() = 0;
  virtual net::ByteStream* stderr_stream() = 0;
  virtual void close_stdin() = 0;
  virtual void resize(int columns, int rows) = 0;
  /// The exit code of the command (exec) or of the container (attach).
  virtual Task<Result<int>> wait() = 0;
  /// Ends the command of an exec that nobody reads any more.
  virtual void abandon() = 0;
};

struct Usage {
  std::int64_t cpu_usage_ns = 0;  // since start
  std::int64_t memory_bytes = 0;  // working set
};

/// A container changed state, or a sandbox was lost (container_id empty).
struct RuntimeEvent {
  std::string sandbox_id;
  std::string container_id;
  ContainerStatus status;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  /// Name and version for nodeInfo.containerRuntimeVersion, e.g. "process://0.1.0".
  [[nodiscard]] virtual std::string version() const = 0;
  /// What goes before the ids of a sandbox's containers in a pod's status, e.g. "process".
  [[nodiscard]] virtual std::string id_scheme(const std::string& sandbox_id) const = 0;
  /// One line for each thing that this runtime cannot do here, e.g. because it is not root.
  [[nodiscard]] virtual std::vector<std::string> shortcomings() const = 0;

  /// Connects, finds what still runs from before, and reports events from then on. Called once.
  virtual Task<Result<std::vector<SandboxStatus>>> start(
      std::function<void(RuntimeEvent)> on_event) = 0;
  /// Lets go of what runs without stopping it. `clean`: nothing runs any more; what was set up on
  /// this machine is removed (bridge, control groups, helper processes).
  virtual Task<void> stop(bool clean) = 0;

  virtual Task<Result<SandboxStatus>> run_sandbox(SandboxConfig config) = 0;
  /// Kills what runs in it and removes it. An unknown id is fine.
  virtual Task<Result<void>> remove_sandbox(std::string sandbox_id) = 0;

  virtual Task<Result<ContainerStatus>> start_container(std::string sandbox_id,
                                                        ContainerConfig config) = 0;
  /// SIGTERM, then SIGKILL after `grace`; returns when told, the end comes as an event.
  virtual Task<Result<void>> stop_container(std::string sandbox_id,
                                            std::string container_id,
                                            Duration grace) = 0;
  virtual Task<Result<void>> update_limits(std::string sandbox_id,
                                           std::string container_id,
                                           Limits limits) = 0;

  virtual Task<Result<std::unique_ptr<Session>>> exec(std::string sandbox_id,
                                                      std::string container_id,
                                                      ExecConfig config) = 0;
  virtual Task<Result<std::unique_ptr<Session>>> attach(std::string sandbox_id,
                                                        std::string container_id,
                                                        ExecConfig config) = 0;
  /// A connection to a port as the pod's own loopback sees it.
  virtual Task<Result<std::unique_ptr<net::ByteStream>>> connect(std::string sandbox_id,
                                                                 int port) = 0;

  /// Container id -> usage.
  virtual Task<Result<std::map<std::string, Usage>>> usage(std::string sandbox_id) = 0;

  /// The address through which pods reach this machine; empty when they share its network.
  [[nodiscard]] virtual std::string gateway() const = 0;
  /// Containers see only the GPUs of their configuration.
  [[nodiscard]] virtual bool hides_devices() const = 0;
  /// Pods can be given virtual ports, and reach what this machine reaches.
  [[nodiscard]] virtual bool translates_addresses() const = 0;
  /// These and no others, from now on. Rules that are there already stay as they are until both,
  /// ports and fences, were said once.
  virtual Task<Result<void>> set_virtual_ports(std::vector<VirtualPort> ports) = 0;
  virtual Task<Result<void>> set_fences(std::vector<Fence> fences) = 0;
};

}  // namespace muster::agent
