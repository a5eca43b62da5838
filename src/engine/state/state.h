/// The world as the engine knows it: tables of nodes, classes, pods, gangs and tenants. Policies
/// read it and decide. One piece, with one writer (State::apply and the bind/evict operations
/// below): a bind changes a pod, its node, gang and class and every tenant above in one step, and
/// no step may be seen half done. What only asks about it is a free function elsewhere.
///
/// Changes to what a node can take go to a log of ids; indexes read it from where they stopped, so
/// a change costs each index a constant, and only when the index is used again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "engine/model/config.h"
#include "engine/model/event.h"
#include "engine/model/history.h"
#include "engine/model/ids.h"
#include "engine/model/model.h"
#include "engine/model/plan.h"
#include "engine/model/resources.h"
#include "engine/model/shared.h"
#include "engine/state/id_table.h"
#include "engine/state/pages.h"
#include "engine/state/positions.h"

namespace muster::engine {

class Digest;

struct DeviceState {
  static constexpr std::int32_t kUnusable = -1'000'000;  ///< Stays so, whatever leaves it.

  std::int32_t index = 0;
  std::int32_t free_milli = 1000;
  std::uint16_t model = 0;  ///< In the state's table of models; 0: none.
  bool healthy = true;
  /// Kept for nominated pods, of what is free or of what is about to be.
  std::int32_t held_milli = 0;

  /// What pods that are nominated nowhere may have of it. Below zero while those it is held for
  /// wait for somebody to leave.
  [[nodiscard]] std::int32_t open_milli() const {
    return healthy ? free_milli - held_milli : kUnusable;
  }
};

/// What indexes ask of a node most often, in one cache line: the rest of a node is far too large
/// for thousands of them to stay near the processor.
struct alignas(64) NodeRow {
  std::array<std::int64_t, 4> free{};  ///< cpu, memory, pods, devices: the first of every vector.
  std::int64_t cpu_all = 0;
  std::int32_t devices_whole = 0;
  std::uint32_t spec_changed = 0;
};

/// Everything about pods that matters for where they may go. Pods alike share one class.
struct TaskClass {
  Pod spec;  ///< Only the placement fields are meaningful (requests, selectors, terms …).
  ResourceVector request;        ///< Inner amounts, with the pod slot and the device share.
  std::int32_t devices = 0;      ///< Whole devices.
  std::int32_t share_milli = 0;  ///< Or a share of one.
  bool best_effort = false;      ///< Asks for nothing but a slot.
  bool between_pods = false;  ///< Has pod (anti-)affinity or spread terms: depends on other nodes.
  bool unknown_resource = false;         ///< Names a resource beyond the table's bound; never fits.
  std::optional<Selector> tenant_nodes;  ///< The queue's own node selector.
  std::vector<std::uint16_t> models;     ///< Allowed device models; empty = any.
  std::uint64_t models_hash = 0;         ///< For RunKind.
  /// Only cpu, memory, a slot and whole devices of any model: a NodeRow says all about its room.
  bool plain = false;

  [[nodiscard]] bool allows(const DeviceState& device) const {
    return models.empty() || std::find(models.begin(), models.end(), device.model) != models.end();
  }
  /// What it takes of each of so many devices.
  [[nodiscard]] std::int32_t device_milli() const { return share_milli > 0 ? share_milli : 1000; }
  [[nodiscard]] std::size_t device_count() const {
    return share_milli > 0 ? 1 : static_cast<std::size_t>(devices);
  }
};

/// Which devices a pod of the class gets where `free_of(position)` says what each has left: the
/// fullest that takes the share, so that shares gather and whole devices stay whole, or the first
/// whole ones. Fewer than wanted: there are no more.
template <typename FreeOf>
Positions pick_devices(const TaskClass& cls,
                       const std::vector<DeviceState>& devices,
                       FreeOf&& free_of) {
  Positions out;
  if (cls.device_count() == 0) return out;
  if (cls.share_milli > 0) {
    std::size_t best = devices.size();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (free_of(i) < cls.share_milli || !cls.allows(devices[i])) continue;
      if (best == devices.size() || free_of(i) < free_of(best)) best = i;
    }
    if (best < devices.size()) out.push_back(static_cast<std::uint16_t>(best));
    return out;
  }
  for (std::size_t i = 0; i < devices.size() && out.size() < cls.device_count(); ++i) {
    if (free_of(i) == 1000 && cls.allows(devices[i])) out.push_back(static_cast<std::uint16_t>(i));
  }
  return out;
}

struct NodeState {
  bool live = false;
  ResourceVector allocatable;
  ResourceVector used;       ///< By every pod here that is not finished, the leaving ones included.
  ResourceVector releasing;  ///< Part of `used` that is on its way out.
  ResourceVector held;       ///< Kept for nominated pods.
  /// unheld(), less nothing for devices that are held but not left yet; kept in step by State.
  ResourceVector free;
  std::vector<DeviceState> devices;
  std::int32_t devices_whole = 0;  ///< Wholly open.
  bool shared = false;             ///< A device is partly taken or held.
  std::int32_t share_max = 0;      ///< Largest open part of a device.
  std::vector<PodId> pods;
  /// Waiting pods for which `held` and the devices' held parts are kept.
  std::vector<PodId> nominees;
  /// When the last pod here is expected to end; zero: none runs; kNever: not known.
  Time busy_until;
  std::uint32_t changed = 0;       ///< Bumped with every log entry.
  std::uint32_t spec_changed = 0;  ///< Bumped when labels, taints or readiness may have changed.
  Shared<Node> spec;               ///< As last told.

  /// With those that leave still here, and those for whom their room is held here as well.
  [[nodiscard]] ResourceVector unheld() const { return allocatable - used - held; }
};

/// The end of what nobody knows the end of.
inline constexpr Time kNever{std::numeric_limits<std::int64_t>::max()};

enum class PodPhase : std::uint8_t { kPending, kBound, kReleasing, kFinished };

struct PodState {
  bool live = false;
  Name key;
  Name uid;
  Name ns;
  Shared<Labels> labels;
  Name role;
  ClassId cls;
  GangId gang;
  PodPhase phase = PodPhase::kPending;
  NodeId node;
  /// Of its node; while it waits, those held for it on the node it is nominated to.
  Positions devices;
  std::int32_t priority = 0;
  PreemptionPolicy preemption_policy = PreemptionPolicy::kPreemptLowerPriority;
  bool preemptable = true;
  bool critical = false;
  /// Not for the nodes' policies to place: its owner holds it back, or cells place it.
  bool gated = false;
  bool held_back = false;  ///< By scheduling gates.
  bool by_cells = false;   ///< The cluster has cells, and it asks for devices or names cells.
  bool ours = true;
  bool succeeded = false;
  bool evicting = false;  ///< Evicted by our plan, still there.
  NodeId nominated;       ///< Its room is part of that node's `held`.
  Name nominated_hint;
  Time created;
  Time started;
  Time ends;  ///< While bound: when it is expected to end; kNever: not known.
  std::int32_t counted_priority = 0;  ///< As entered in the table of evictable priorities.
  bool counted = false;
  Time leaves;  ///< terminating_until
  Duration expected_duration{};
  Duration limit{};
  std::shared_ptr<const cells::PodNote> cells;  ///< As in Pod.
  std::uint64_t seq = 0;                        ///< Order of first sight; the last tie-break.
  std::uint64_t bound_epoch = 0;
  std::uint32_t in_gang = 0;  ///< Position in the gang's list.
  std::uint32_t in_node = 0;
};

/// How a gang stands, as queues count it.
enum class Standing : std::uint8_t {
  kNone,
  kWaiting,  ///< Below its minimum, and a member of it is to be placed by us.
  kRunning,  ///< Its minimum runs.
};

struct GangState {
  bool live = false;
  Name key;  ///< Group key, or the pod's key for a gang of one.
  bool has_group = false;
  bool described = false;  ///< Its group, or its only pod, has said what `spec` says.
  Shared<Group> spec;      ///< Gangs of one pod each mostly say the same, and share it.
  TenantId tenant;
  std::vector<PodId> pods;
  std::int32_t pending = 0;
  std::int32_t bound = 0;
  std::int32_t releasing = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  std::int32_t gated = 0;
  std::int32_t wanted = 0;               ///< Pending ones that are ours to place, not held back.
  Standing standing = Standing::kNone;   ///< As counted in its tenant.
  ResourceVector allocated;              ///< Of bound pods.
  std::shared_ptr<const Origin> origin;  ///< As one of its pods says; null: not known.
  GroupPhase phase = GroupPhase::kPending;
  Time created;
  Time started;  ///< When the first of its bound members started.
  /// Of the run that goes on: devices it held at most, as seen when members leave, whether one of
  /// them was sent away, and whether one has finished.
  std::int64_t run_milli = 0;
  bool cut_off = false;
  bool finished = false;
  std::uint64_t user = 0, stem = 0, team = 0;  ///< Names of its origin, hashed; 0: not said.
  std::uint64_t seq = 0;                       ///< Order of first sight; the last tie-break.
  bool dirty = false;
  bool ends_dirty = false;  ///< Listed among those whose ends may have changed.
};

struct TenantState {
  std::string name;
  std::uint64_t name_hash = 0;
  bool live = false;  ///< A QueueUpsert was seen.
  Queue spec;
  TenantId parent;
  std::vector<TenantId> children;
  ResourceVector capability;
  std::uint32_t capability_mask = 0;  ///< Bit i: resource i is limited.
  ResourceVector guarantee;
  ResourceVector deserved;
  ResourceVector allocated;  ///< Of bound pods, children's included.
  ResourceVector held;     ///< Of nominated pods, likewise: their part of the limits is spoken for.
  ResourceVector pending;  ///< Of waiting pods of its own gangs.
  std::int64_t created = 0;        ///< Order of first sight.
  std::uint64_t released = 0;      ///< Grows whenever it (or a child) gave something back.
  std::uint64_t charged = 0;       ///< Grows whenever `allocated` or `held` changes.
  std::int32_t gangs_waiting = 0;  ///< Of its own gangs, those that stand so.
  std::int32_t gangs_running = 0;
};

/// A run that is over; how long it took is known with the clock value of the next decision.
struct Completion {
  RunKind kind;
  Time started;
  bool ended = true;  ///< False: it was cut off.
  Duration declared{};
  bool stopped = false;  ///< It was deleted; no member had finished.
};

class State {
 public:
  explicit State(Config config);

  void apply(const Event& event);

  // What policies do to the world. All keep every table and the log in step.
  /// A share of a device goes to the one at `device`, when given.
  void bind(PodId pod, NodeId node, Time now, std::int32_t device = -1);
  void bind_nominated(PodId pod, Time now);  ///< To the room held for it, on the very devices.
  /// On the devices with these indexes.
  void bind_at(PodId pod, NodeId node, Time now, const std::vector<std::int32_t>& devices);
  void unbind(PodId pod);  ///< A bind that did not happen after all.
  void evict(PodId pod);   ///< Marks it leaving; its room comes free when it is gone.
  void nominate(
      PodId pod,
      NodeId node,
      Positions devices);  ///< Holds room: on these devices, once whoever is there has left.
  void give_up_nomination(PodId pod);

  /// From now on pods that ask for devices, or name cells, are placed by cells.
  void use_cells();

  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const ResourceNames& names() const { return names_; }
  [[nodiscard]] const ResourceVector& total() const {
    return total_;
  }  ///< Over live, usable nodes.

  [[nodiscard]] const NodeState& node(NodeId id) const { return nodes_[id.index()]; }
  [[nodiscard]] const NodeRow& row(std::uint32_t node) const { return rows_[node]; }
  [[nodiscard]] const PodState& pod(PodId id) const { return pods_[id.index()]; }
  [[nodiscard]] const GangState& gang(GangId id) const { return gangs_[id.index()]; }
  [[nodiscard]] GangState& gang(GangId id) { return gangs_[id.index()]; }
  [[nodiscard]] const TenantState& tenant(TenantId id) const { return tenants_[id.index()]; }
  [[nodiscard]] const TaskClass& cls(ClassId id) const { return classes_[id.index()]; }
  [[nodiscard]] const TaskClass& cls_of(PodId id) const {
    return classes_[pods_[id.index()].cls.index()];
  }

  [[nodiscard]] std::uint32_t node_count() const {
    return static_cast<std::uint32_t>(nodes_.size());
  }
  [[nodiscard]] std::uint32_t pod_count() const { return static_cast<std::uint32_t>(pods_.size()); }
  [[nodiscard]] std::uint32_t gang_count() const {
    return static_cast<std::uint32_t>(gangs_.size());
  }
  [[nodiscard]] std::uint32_t tenant_count() const {
    return static_cast<std::uint32_t>(tenants_.size());
  }
  [[nodiscard]] std::uint32_t class_count() const {
    return static_cast<std::uint32_t>(classes_.size());
  }
  [[nodiscard]] std::int64_t live_nodes() const { return live_nodes_; }
  [[nodiscard]] std::int64_t live_pods() const { return live_pods_; }
  [[nodiscard]] std::int64_t gangs_waiting() const { return gangs_waiting_; }  ///< In all queues.

  [[nodiscard]] NodeId find_node(std::string_view name) const;
  [[nodiscard]] PodId find_pod(std::string_view key) const;
  [[nodiscard]] GangId find_gang(std::string_view key) const;
  [[nodiscard]] TenantId find_tenant(std::string_view name) const;

  // Groups of groups. A key may have children before its group is known.
  [[nodiscard]] const std::vector<GangId>& children_of(const std::string& key) const;
  [[nodiscard]] GangId parent_of(GangId id) const;  ///< Invalid: it has none, or it is not known.
  [[nodiscard]] GangId root_of(GangId id) const;    ///< Itself when it has no parent.
  /// The gangs with pods below it, or itself.
  [[nodiscard]] std::vector<GangId> leaves_of(GangId id) const;

  [[nodiscard]] const std::map<std::string, DisruptionBudget>& budgets() const { return budgets_; }
  [[nodiscard]] const Labels& namespace_labels(const std::string& ns) const;
  /// Priorities of running pods that may be evicted, with their number; the lowest says whether to
  /// look at all.
  [[nodiscard]] const std::map<std::int32_t, std::int64_t>& evictable_priorities() const {
    return evictable_;
  }
  /// A gang member ranks by its gang.
  [[nodiscard]] std::int32_t rank_priority(const PodState& pod) const {
    const GangState& gang = gangs_[pod.gang.index()];
    return gang.has_group ? gang.spec->priority : pod.priority;
  }
  /// When a pod of the queue, created then, is gone at the latest; kNever when the queue has no
  /// bound.
  [[nodiscard]] Time latest_end(TenantId tenant, Time created) const;
  /// Pods anywhere that carry required anti-affinity, so that arrivals must be checked against
  /// them.
  [[nodiscard]] const std::vector<PodId>& anti_affinity_pods() const { return anti_pods_; }

  /// Inner vector of a named list. With `mask`, also which resources it names.
  ResourceVector vector_of(const ResourceList& list, std::uint32_t* mask = nullptr);
  [[nodiscard]] ResourceList list_of(const ResourceVector& vector) const;

  // Change logs, read by policies.
  [[nodiscard]] std::uint64_t log_end() const { return log_base_ + log_.size(); }
  [[nodiscard]] std::uint64_t log_begin() const { return log_base_; }
  [[nodiscard]] NodeId log_at(std::uint64_t i) const {
    return log_[static_cast<std::size_t>(i - log_base_)];
  }
  /// Gangs of which a member came to run or stopped, or whose rules changed: what their members
  /// cost as victims did, too.
  [[nodiscard]] std::uint64_t gang_log_begin() const { return gang_log_base_; }
  [[nodiscard]] std::uint64_t gang_log_end() const { return gang_log_base_ + gang_log_.size(); }
  [[nodiscard]] GangId gang_log_at(std::uint64_t i) const {
    return gang_log_[static_cast<std::size_t>(i - gang_log_base_)];
  }
  /// Grows when who may be evicted for whom changed at large: budgets, queues, configuration.
  [[nodiscard]] std::uint64_t victims_version() const { return victims_version_; }
  std::vector<GangId> take_dirty_gangs();
  /// The same into a list whose memory is used again, one of the caller's.
  void take_dirty_gangs(std::vector<GangId>& into);
  void forget_dirty_gangs();
  /// Gangs that something was told of, or done to, since the last call: their members may be expected
  /// to end at another time.
  std::vector<GangId> take_changed_ends();
  /// What the runs that ended have taught.
  [[nodiscard]] const History& history() const { return history_.get(); }
  [[nodiscard]] std::shared_ptr<const History> shared_history() const { return history_.share(); }
  /// Takes the runs that ended since the last decision into the history.
  void learn(Time now);
  /// What the gang has in common with others: as it runs, or as it asks to run.
  [[nodiscard]] RunKind kind_of(const GangState& gang) const;
  [[nodiscard]] std::uint64_t tenants_version() const {
    return tenants_version_;
  }  ///< Specs or totals changed.
  [[nodiscard]] bool config_changed() const { return config_changed_; }
  void clear_config_changed() { config_changed_ = false; }

  /// Nobody will read reasons, and what happens from here on teaches nothing.
  [[nodiscard]] bool rehearses() const { return rehearsal_; }
  void rehearse() {
    rehearsal_ = true;
    config_.reason_limit = 0;
    config_.check_tables = false;
  }

  std::int64_t attempts = 0;  ///< Gangs that a policy tried to place.
  std::int64_t binds = 0;
  std::int64_t evictions = 0;
  /// Number of the decision being made, counted by the engine; what it binds it does not evict.
  std::uint64_t epoch = 0;

  /// Stops the program when tables disagree: what nodes and gangs count against their pods. Walks
  /// all of them, so for tests only.
  void check() const;

 private:
  void check_node(NodeId id) const;
  void check_gang(GangId id) const;

  void on(const NodeUpsert& e);
  void on(const NodeRemove& e);
  void on(const PodUpsert& e);
  void on(const PodRemove& e);
  void on(const GroupUpsert& e);
  void on(const GroupRemove& e);
  void on(const QueueUpsert& e);
  void on(const QueueRemove& e);
  void on(const BudgetUpsert& e);
  void on(const BudgetRemove& e);
  void on(const NamespaceUpsert& e);
  void on(const NamespaceRemove& e);
  void on(const BindResult& e);
  void on(const EvictResult& e);
  void on(const ConfigChange& e);
  void on(const PastRun& e);

  [[nodiscard]] auto name_of_nodes() const {
    return [this](NodeId id) -> const std::string& { return nodes_[id.index()].spec->name; };
  }
  [[nodiscard]] auto key_of_pods() const {
    return [this](PodId id) -> const std::string& { return pods_[id.index()].key; };
  }
  [[nodiscard]] auto key_of_gangs() const {
    return [this](GangId id) -> const std::string& { return gangs_[id.index()].key; };
  }
  NodeId intern_node(const std::string& name);
  GangId intern_gang(const std::string& key, std::uint32_t hash);
  TenantId intern_tenant(const std::string& name);
  ClassId class_of(const Pod& pod, TenantId tenant);
  [[nodiscard]] bool wants_cells(const PodState& pod) const;
  void set_gates(PodState& pod, bool held_back) const;
  Positions devices_told(PodId id, const NodeState& node, const std::vector<std::int32_t>& indexes);
  std::size_t intern_resource(std::string_view name);
  void refresh_allocatable(NodeState& node);
  void rebuild_devices(NodeState& node);
  std::uint16_t intern_model(const std::string& model);
  [[nodiscard]] Time expected_end(const PodState& pod) const;
  void note_end(PodId id, bool leaves);
  void refresh_free(NodeId id);
  void touch(NodeId id);
  void touch_gang(GangId id);
  void leave_family(GangId id);
  void mark(GangId id) { mark(id, gangs_[id.index()]); }
  void mark_ends(GangId id) { mark_ends(id, gangs_[id.index()]); }
  // Where the gang is at hand: most are listed already.
  void mark(GangId id, GangState& gang) {
    if (!gang.dirty) list_dirty(id, gang);
  }
  void mark_ends(GangId id, GangState& gang) {
    if (!gang.ends_dirty) list_ends(id, gang);
  }
  void list_dirty(GangId id, GangState& gang);
  void list_ends(GangId id, GangState& gang);
  void mark_gangs_of(TenantId id);

  // `hash` is that of the pod's key.
  [[nodiscard]] PodId find_pod(std::string_view key, std::uint32_t hash) const;
  [[nodiscard]] const Shared<Group>& lone_spec(const Pod& pod);
  [[nodiscard]] GangId gang_for(const Pod& spec, std::uint32_t hash);
  [[nodiscard]] PodId add_pod(const Pod& spec, std::uint32_t hash, GangId gang, ClassId cls);
  void rejoin(PodId id, const Pod& spec, GangId gang, ClassId cls);
  void note_facts(PodId id, const Pod& spec);
  void finish(PodId id, bool succeeded);
  void follow(PodId id, const Pod& spec);
  void join_gang(PodId id, GangId gang);
  void leave_gang(PodId id);
  void drop_pod(PodId id, std::uint32_t hash);
  void note_leaving(const PodState& pod, PodPhase next);
  void bind_on(PodId id, NodeId node, Time now, const Positions& devices);
  void place(PodId id, NodeId node, const Positions& devices);
  void lift(PodId id);  ///< Takes it off its node.
  void count(const PodState& pod, std::int32_t sign);
  void restand(GangState& gang);
  void count_standing(const GangState& gang, std::int32_t sign);
  void count_evictable(PodState& pod);
  void charge(const GangState& gang, const ResourceVector& request, bool add);
  void charge_held(const GangState& gang, const ResourceVector& request, bool add);
  void set_phase(PodId id, PodPhase phase);
  [[nodiscard]] Positions choose_devices(const TaskClass& cls, const NodeState& node) const;
  [[nodiscard]] static Positions devices_at(const NodeState& node,
                                            const std::vector<std::int32_t>& indexes);
  void take_devices(PodState& pod, NodeState& node, const Positions& devices);
  void give_devices(PodState& pod, NodeState& node);
  void move_gang_tenant(GangId id, TenantId tenant);
  void add_total(const NodeState& node, std::int64_t sign);
  void relink_tenant(TenantId id, const std::string& parent);

  Config config_;
  bool config_changed_ = true;
  bool cells_ = false;      ///< The cluster has cells.
  bool rehearsal_ = false;  ///< A copy that is only played forward.
  ResourceNames names_;
  ResourceVector total_;

  Pages<NodeState> nodes_;
  std::vector<NodeRow> rows_;  ///< By node; kept in step by refresh_free().
  std::vector<std::string> models_ = {""};
  Pages<PodState> pods_;
  std::vector<PodId> free_pods_;
  Pages<GangState> gangs_;
  std::vector<GangId> free_gangs_;
  // Pods mostly come after others like them, and share what they have in common with the last.
  Shared<Group> lone_spec_;  ///< Of a gang of one pod.
  Name ns_;
  TenantId last_tenant_;  ///< The last that was named.
  std::vector<TenantState> tenants_;
  std::vector<TaskClass> classes_;
  IdTable<NodeId> node_ids_;
  IdTable<PodId> pod_ids_;
  IdTable<GangId> gang_ids_;
  std::unordered_map<std::string, TenantId> tenant_ids_;               // looked up, never iterated
  std::unordered_map<std::uint64_t, std::vector<ClassId>> class_ids_;  // looked up, never iterated
  std::map<std::string, DisruptionBudget> budgets_;
  std::map<std::string, Labels> namespaces_;
  std::vector<PodId> anti_pods_;
  std::map<std::int32_t, std::int64_t> evictable_;

  std::vector<NodeId> log_;
  std::uint64_t log_base_ = 0;
  std::vector<GangId> gang_log_;
  std::uint64_t gang_log_base_ = 0;
  std::uint64_t victims_version_ = 1;
  /// Parent key -> child groups, in order of their ids.
  std::map<std::string, std::vector<GangId>> families_;
  std::vector<GangId> dirty_gangs_;
  std::vector<GangId> ends_changed_;
  std::vector<Completion> completions_;
  SharedHistory history_;
  std::uint64_t tenants_version_ = 1;
  std::int64_t live_nodes_ = 0;
  std::int64_t live_pods_ = 0;
  std::int64_t gangs_waiting_ = 0;
  std::uint64_t next_seq_ = 1;
  /// By pod: the devices it is said to have, where its node is not known to have them (yet).
  std::map<std::uint32_t, std::vector<std::int32_t>> devices_told_;
};

}  // namespace muster::engine
