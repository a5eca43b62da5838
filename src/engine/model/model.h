/// What callers tell the engine about the world: nodes, pods, gangs, queues. Plain values named by
/// strings.
///
/// Everything a real scheduler must honour is here already resolved: priorities are numbers,
/// requests are the pod's effective request (containers, init containers and overhead), selectors
/// are requirement lists.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/model/cell_request.h"
#include "engine/model/resources.h"

namespace muster::engine {

using Labels = std::vector<std::pair<std::string, std::string>>;  ///< Any order; keys unique.

// --------------------------------------------------------------------------------------- selectors

enum class Operator : std::uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

struct Requirement {
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values;

  auto operator<=>(const Requirement&) const = default;
};

/// All requirements must hold. An empty one matches everything. (LabelSelector: matchLabels become
/// kIn.)
struct Selector {
  std::vector<Requirement> all;

  auto operator<=>(const Selector&) const = default;
};

/// One nodeSelectorTerm: labels and fields (metadata.name) ANDed. A term with neither matches
/// nothing.
struct NodeTerm {
  std::vector<Requirement> labels;
  std::vector<Requirement> fields;

  auto operator<=>(const NodeTerm&) const = default;
};

struct PreferredNodeTerm {
  NodeTerm term;
  std::int32_t weight = 1;

  auto operator<=>(const PreferredNodeTerm&) const = default;
};

/// A required or preferred (weight > 0) pod (anti-)affinity term.
struct PodTerm {
  std::optional<Selector> selector;  ///< Absent matches no pod.
  /// Caller fills in the pod's own where the API defaults to it.
  std::vector<std::string> namespaces;
  /// In addition to `namespaces`; empty = all namespaces.
  std::optional<Selector> namespace_selector;
  std::string topology_key;
  std::int32_t weight = 0;

  auto operator<=>(const PodTerm&) const = default;
};

enum class TaintEffect : std::uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;

  auto operator<=>(const Taint&) const = default;
};

struct Toleration {
  std::string key;  ///< Empty with `exists` tolerates everything.
  std::string value;
  bool exists = false;                ///< operator Exists; otherwise Equal
  std::optional<TaintEffect> effect;  ///< Absent = every effect.

  auto operator<=>(const Toleration&) const = default;
};

struct TopologySpread {
  std::int32_t max_skew = 1;
  std::string topology_key;
  bool required = true;  ///< DoNotSchedule; otherwise ScheduleAnyway (scores only)
  std::optional<Selector> selector;
  std::int32_t min_domains = 1;
  bool honor_node_affinity = true;
  bool honor_taints = false;

  auto operator<=>(const TopologySpread&) const = default;
};

struct HostPort {
  std::string ip;  ///< Empty or 0.0.0.0 conflicts with every address.
  std::string protocol = "TCP";
  std::int32_t port = 0;

  auto operator<=>(const HostPort&) const = default;
};

// ------------------------------------------------------------------------------------------- nodes

struct Device {
  std::int32_t index = 0;
  std::string model;
  bool healthy = true;

  auto operator<=>(const Device&) const = default;
};

struct Node {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;
  bool ready = true;  ///< Not ready: nothing new goes there; what runs there keeps its room.
  ResourceList allocatable;
  /// Individual devices of the device resource. Empty: the count in `allocatable` is all that is
  /// known, and the engine numbers them 0..n-1.
  std::vector<Device> devices;

  bool operator==(const Node&) const = default;
};

// -------------------------------------------------------------------------------------------- pods

/// Whose work a pod is and what it is called: runs that have this in common last alike.
struct Origin {
  std::string user;
  std::string stem;  ///< Its workload's name without numbers and the like.
  std::string team;  ///< Empty: its queue.

  bool operator==(const Origin&) const = default;
};

enum class PreemptionPolicy : std::uint8_t { kPreemptLowerPriority, kNever };

struct Pod {
  std::string key;  ///< "namespace/name"
  std::string uid;  ///< A new uid under an old key is a new pod: the old one counts as removed.
  std::string ns;
  Labels labels;

  /// Key of its gang ("namespace/name", or any text unique among gangs); empty: a gang of one.
  std::string group;
  std::string role;   ///< Task role inside the gang (minTaskMember); may be empty.
  std::string queue;  ///< Used when it has no group; empty: the configured default queue.

  std::int32_t priority = 0;
  PreemptionPolicy preemption_policy = PreemptionPolicy::kPreemptLowerPriority;
  bool preemptable = true;  ///< May be evicted for others.
  bool critical = false;    ///< System pods (kube-system, system-*-critical): never victims.

  ResourceList requests;  ///< Effective request; the pod slot ("pods": 1) is added by the engine.
  /// 1..999: a share of exactly one device; then `requests` must not name the device resource.
  std::int32_t device_share_milli = 0;
  std::vector<std::string> device_models;  ///< Allowed models; empty = any.

  Labels node_selector;
  std::vector<NodeTerm> node_affinity;  ///< Required; ORed. Empty = no requirement.
  std::vector<PreferredNodeTerm> preferred_node_affinity;
  std::vector<PodTerm> pod_affinity;
  std::vector<PodTerm> pod_anti_affinity;
  std::vector<PodTerm> preferred_pod_affinity;
  std::vector<PodTerm> preferred_pod_anti_affinity;
  std::vector<Toleration> tolerations;
  std::vector<TopologySpread> topology_spread;
  std::vector<HostPort> host_ports;
  /// Nodes it may use by reasons the engine does not model (volumes, claims): absent = all.
  std::optional<std::vector<std::string>> allowed_nodes;

  /// What it says about HiveD's cells, where the cluster has them; null: nothing.
  std::shared_ptr<const cells::PodNote> cells;

  bool gated = false;  ///< Scheduling gates present.
  bool ours = true;    ///< False: counts on its node, but is not ours to place or evict.

  std::string node;                          ///< Bound there; empty = waits.
  std::vector<std::int32_t> device_indexes;  ///< Assigned devices of a bound pod, when known.
  std::string nominated_node;
  bool terminating = false;  ///< Being deleted; its room comes free with PodRemove (or `finished`).
  Time terminating_until;    ///< When its grace period ends, if known.
  bool finished = false;     ///< Succeeded or Failed: holds nothing any more.
  bool succeeded = false;    ///< With `finished`.

  Time created;
  Time started;                          ///< When it began to run (or was bound).
  Duration expected_duration{};          ///< As its owner declared it; zero = unknown.
  Duration limit{};                      ///< It is ended when it has run for so long; zero = never.
  std::shared_ptr<const Origin> origin;  ///< Null: not known.
};

// ------------------------------------------------------------------------------------------- gangs

enum class DisruptionMode : std::uint8_t {
  kGang,    ///< Surplus pods singly, below the minimum only as a whole (the default for gangs).
  kSingle,  ///< Any pod by itself (Kubernetes' `single`, pods without a group).
  kWhole,   ///< Only all together (Kubernetes' `all`).
};

/// Members share one value of `key`. Levels go from wide to narrow; a hard level must hold, a
/// preferred one is tried first and given up when it cannot hold.
struct TopologyLevel {
  std::string key;
  bool required = true;

  auto operator<=>(const TopologyLevel&) const = default;
};

struct Group {
  std::string key;
  std::string queue;  ///< Empty: the configured default queue.
  std::int32_t min_member = 1;
  std::vector<std::pair<std::string, std::int32_t>> min_task_member;  ///< role -> least number
  std::optional<ResourceList> min_resources;  ///< Absent: admitted without a check.
  std::int32_t priority = 0;
  PreemptionPolicy preemption_policy = PreemptionPolicy::kPreemptLowerPriority;
  Time created;
  std::vector<TopologyLevel> topology;
  DisruptionMode disruption = DisruptionMode::kGang;
  bool preemptable = true;
  std::string parent;  ///< Key of the group of groups it belongs to; empty = none.
  /// For a group of groups: least number of children that must start together.
  std::int32_t min_groups = 0;
  bool is_parent = false;  ///< A group of groups: has children, no pods of its own.
  std::optional<Duration> sla_waiting_time;
  Duration expected_duration{};  ///< Zero = unknown.
  bool admitted = false;         ///< Already Inqueue or beyond, as recorded in its status.
  bool hold = false;             ///< Suspended by its owner: nothing of it starts.

  bool operator==(const Group&) const = default;
};

// ------------------------------------------------------------------------------------------ queues

enum class QueueState : std::uint8_t { kOpen, kClosing, kClosed };

/// What later work of a queue may do while an earlier gang is blocked.
enum class BackfillMode : std::uint8_t {
  kReservation,  ///< Pass only if it cannot delay the reservation of those ahead.
  kSkip,         ///< Pass freely (Volcano's way).
  kFifo,         ///< Nobody passes inside the queue.
};

/// A tenant. Limits name only what they limit.
struct Queue {
  std::string name;
  std::string parent;  ///< Empty: child of the root.
  std::int32_t weight = 1;
  std::int32_t priority = 0;
  bool reclaimable = true;
  QueueState state = QueueState::kOpen;
  ResourceList capability;        ///< Upper bound for the resources named. (T9k: quota.requests)
  ResourceList guarantee;         ///< Withheld from all others even while unused.
  ResourceList deserved;          ///< What it may always get back by reclaim.
  std::string hierarchy;          ///< Volcano's annotations for hierarchical DRF: "root/eng/dev" …
  std::string hierarchy_weights;  ///< … and "1/4/2".
  BackfillMode backfill = BackfillMode::kReservation;

  /// T9k queues: higher-priority queues take from preemptible lower-priority ones; never inside a
  /// queue.
  bool t9k = false;
  bool preemptible = true;
  /// Zero = none. Pods older than this are ended by others; the engine counts on it.
  Duration max_duration{};
  std::optional<Selector> node_selector;  ///< Nodes the queue may use.

  /// Virtual cluster whose cells back this queue's guarantee; empty = amounts only.
  std::string virtual_cluster;
};

struct DisruptionBudget {
  std::string key;  ///< "namespace/name"
  std::string ns;
  std::optional<Selector> selector;  ///< Absent matches none.
  std::int32_t disruptions_allowed = 0;
};

struct Namespace {
  std::string name;
  Labels labels;
};

}  // namespace muster::engine
