/// The messages of CRI's RuntimeService that pods need, and of containerd's Events service. Field
/// numbers are those of the published definitions: k8s.io/cri-api pkg/apis/runtime/v1/api.proto and
/// containerd api/services/events/v1. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cri/users.h"
#include "agent/runtime.h"
#include "base/result.h"

namespace muster::agent::cri {

using Labels = std::map<std::string, std::string>;

/// Labels that kubelets give, and others read.
inline constexpr const char* kPodUid = "io.kubernetes.pod.uid";
inline constexpr const char* kPodName = "io.kubernetes.pod.name";
inline constexpr const char* kPodNamespace = "io.kubernetes.pod.namespace";
inline constexpr const char* kContainerName = "io.kubernetes.container.name";
/// Whose it is: the folder of the agent that made it. Others' are never touched.
inline constexpr const char* kOwner = "muster.owner";

struct SandboxWish {
  SandboxConfig config;
  UserRange users;
  std::string owner;
  std::string cgroup_parent;
  int attempt = 0;
};

/// A PodSandboxConfig, which every container of the sandbox is made with again.
std::string sandbox_message(const SandboxWish& wish);
/// What of such a message a container needs to know of its sandbox, for an agent that did not make it.
struct SandboxNamespaces {
  bool host_network = false, host_pid = false, host_ipc = false, share_process_namespace = false;
  std::optional<std::uint32_t> users;
};
SandboxNamespaces read_namespaces(std::string_view sandbox_message);
std::string run_sandbox_request(const std::string& sandbox_message, const std::string& handler);

/// What a container needs besides its configuration.
struct ContainerWish {
  ContainerConfig config;
  SandboxConfig sandbox;  // as far as the namespaces go
  UserRange users;
  std::string sandbox_id;
  std::string sandbox_message;
  std::string owner;
  std::string joined;  // a container whose processes it shares
};
std::string create_container_request(const ContainerWish& wish);
std::string update_limits_request(const std::string& container_id, const Limits& limits);
std::string stop_container_request(const std::string& container_id, std::int64_t seconds);

/// One id, in the first field: most requests are no more than this.
std::string id_request(std::string_view id);
/// The text of the first field: ids and addresses in answers.
Result<std::string> read_text(std::string_view message, const char* what);

struct Sandbox {
  std::string id;
  std::string uid;  // of the pod
  bool ready = false;
  std::int64_t created_ns = 0;
};
/// Those of this owner; the newest of a pod comes last.
std::string list_sandboxes_request(const std::string& owner);
Result<std::vector<Sandbox>> read_sandboxes(std::string_view message);
/// PodSandboxStatus: its address, empty with the machine's network.
Result<std::string> read_sandbox_address(std::string_view message);

struct Container {
  ContainerStatus status;
  std::string sandbox_id;
  std::string log_path;
};
/// Without times and exit codes: those come with each one's status.
std::string list_containers_request(const std::string& owner);
Result<std::vector<Container>> read_containers(std::string_view message);
Result<Container> read_container_status(std::string_view message);

std::string exec_request(const std::string& container_id, const ExecConfig& config);
std::string attach_request(const std::string& container_id, const ExecConfig& config);
std::string port_forward_request(const std::string& sandbox_id, int port);

std::string list_stats_request(const std::string& sandbox_id);
Result<std::map<std::string, Usage>> read_stats(std::string_view message);

/// What containerd tells when a task is over and gone.
struct TaskEvent {
  std::string container_id;
  std::string exec_id;  // empty: the container's own
};
std::string subscribe_request();
Result<TaskEvent> read_event(std::string_view message);

}  // namespace muster::agent::cri
