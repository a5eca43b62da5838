/// What a controller sees and what it decides.
///
/// Every kind has one pure function, plan(): from its object, the objects around it (View), the
/// operator's settings and the time it makes a Plan: what to create, patch and delete, the whole
/// new status, events, and when to look again. It does no I/O and asks no clock, so tests and the
/// recorded scenarios run it directly; the frame (frame.h) is the only place that applies plans to
/// a cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/json.h"
#include "kube/resources.h"

namespace muster::controllers {

/// Names for the kinds that plans touch. PodGroup exists in three groups, so it carries its group.
namespace kinds {
inline constexpr std::string_view kPod = "Pod";
inline constexpr std::string_view kService = "Service";
inline constexpr std::string_view kEndpoints = "Endpoints";
inline constexpr std::string_view kNode = "Node";
inline constexpr std::string_view kPersistentVolumeClaim = "PersistentVolumeClaim";
inline constexpr std::string_view kConfigMap = "ConfigMap";
inline constexpr std::string_view kSecret = "Secret";
inline constexpr std::string_view kServiceAccount = "ServiceAccount";
inline constexpr std::string_view kRole = "Role";
inline constexpr std::string_view kRoleBinding = "RoleBinding";
inline constexpr std::string_view kJob = "Job";
inline constexpr std::string_view kStatefulSet = "StatefulSet";
inline constexpr std::string_view kReplicaSet = "ReplicaSet";
inline constexpr std::string_view kHorizontalPodAutoscaler = "HorizontalPodAutoscaler";
inline constexpr std::string_view kVolcanoPodGroup = kube::kind_groups::kPodGroup;
inline constexpr std::string_view kPluginsPodGroup = kube::kind_groups::kPluginsPodGroup;
inline constexpr std::string_view kT9kPodGroup = kube::kind_groups::kT9kPodGroup;
}  // namespace kinds

/// A Kubernetes Event about the job.
struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
};

struct Action {
  enum class Verb {
    kCreate,  // body: the whole object
    kPatch,   // body: a JSON merge patch
    kStatus,  // body: a JSON merge patch of the status subresource
    kDelete,
  };
  Verb verb = Verb::kCreate;
  std::string kind;
  std::string name;  // empty for a create with metadata.generateName
  json::Value body;
  std::string uid;   // delete only this very object, when set
  int grace_s = -1;  // delete with this grace period; -1: the object's own
  /// The frame puts a fresh SSH key pair into `data` before creating the object.
  bool with_ssh_key = false;
  /// Recorded once the server has accepted it.
  std::vector<Event> events;
  /// Reason and beginning of the message of the Warning recorded when the server refuses. Empty:
  /// none.
  std::string failed_reason;
  std::string failed_prefix;
};

struct Plan {
  /// Applied in order; the first failure ends the pass, the status is not written.
  std::vector<Action> actions;
  std::vector<Event> events;
  std::optional<json::Value> status;     // the whole new status; written only if it differs
  bool status_anyway = false;            // also when an action failed
  std::optional<json::Value> job_patch;  // merge patch of the job's metadata or spec
  bool delete_job = false;
  std::optional<Duration> requeue_after;
  /// Not empty: nothing is written after the actions, the pass is repeated with back-off.
  std::string error;
};

/// The objects of the job's namespace, as the caches have them.
class View {
 public:
  virtual ~View() = default;
  /// Objects of `kind` whose controlling owner has this uid, ordered by name.
  [[nodiscard]] virtual std::vector<const json::Value*> controlled_by(
      std::string_view kind, std::string_view uid) const = 0;
  /// All objects of `kind` in the namespace, ordered by name.
  [[nodiscard]] virtual std::vector<const json::Value*> all(std::string_view kind) const = 0;
  /// nullptr if there is none of that name.
  [[nodiscard]] virtual const json::Value* find(std::string_view kind,
                                                std::string_view name) const = 0;
  /// The value of a PriorityClass.
  [[nodiscard]] virtual std::optional<std::int64_t> priority_of(
      std::string_view priority_class) const = 0;
  /// What the server answered when the previous pass over this job failed; empty after a pass that
  /// went well.
  [[nodiscard]] virtual std::string last_error() const { return {}; }
};

enum class Gang { kNone, kVolcano, kSchedulerPlugins };

/// The operators' flags.
struct Settings {
  Gang gang = Gang::kNone;
  /// schedulerName of the pods of a gang.
  std::string gang_scheduler = "volcano";
  std::string cluster_domain;  // empty: host names end in ".svc"
  std::string pytorch_init_image = "alpine:3.10";
  int pytorch_init_tries = 100;
  /// How workers ask for their master's name. Pods that are processes of this machine have `getent
  /// hosts` for sure.
  std::string pytorch_init_lookup = "nslookup";
  std::string kubectl_delivery_image = "kubeflow/kubectl-delivery:latest";
  /// Launchers that exec into their workers may do so by GET too: that is how a kubectl from 1.31
  /// on opens a WebSocket.
  bool exec_over_websocket = false;
  /// Of an MPIJob v1alpha1 that says only how many GPUs (`gpus`) or other units it needs in all. Arena
  /// deploys the operator with 8 GPUs a node.
  std::int64_t gpus_per_node = 8;
  std::int64_t processing_units_per_node = 1;
  /// A pod that still terminates this long after its grace period is deleted by force, so that a
  /// dead node cannot hold up a restart for ever. Zero: never.
  Duration force_delete_after = Duration{0};
};

}  // namespace muster::controllers
