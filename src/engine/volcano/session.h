/// One cycle of Volcano: a snapshot of jobs, nodes and queues, the plugins' opinions, and the
/// actions.
///
/// The rules are Volcano's, including those a better scheduler would not have (tiers that fall
/// through, shares as hard caps). Where Volcano draws lots or walks a Go map, this takes the lowest
/// id. Cost is that of Volcano: every cycle looks at everything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/plan.h"
#include "engine/state/state.h"
#include "engine/volcano/amounts.h"
#include "engine/volcano/hierarchy.h"

namespace muster::engine::volcano {

/// In every dimension, pods too.
inline bool everywhere_less_equal(const Amounts& a, const Amounts& b) {
  for (std::size_t i = 0; i < a.v.size(); ++i) {
    if (!less_equal(a[i], b[i])) return false;
  }
  return true;
}

/// Is there room for the request? Pod slots count.
inline bool fits(const Amounts& request, const Amounts& room) {
  for (std::size_t i = 0; i < request.v.size(); ++i) {
    if (request[i] > 0 && !less_equal(request[i], room[i])) return false;
  }
  return true;
}

using TaskIx = std::size_t;
using JobIx = std::size_t;
using QueueIx = std::size_t;
inline constexpr std::size_t kNoIx = ~std::size_t{0};

enum class Status : std::uint8_t {
  kPending,
  kAllocated,
  kPipelined,
  kBinding,
  kRunning,
  kReleasing,
  kSucceeded,
  kFailed
};

struct Task {
  PodId pod;
  JobIx job = kNoIx;
  Status status = Status::kPending;
  NodeId node;
  Amounts request;
  std::int64_t index = 0;  ///< Last dash part of the name, for ordering; -1 if it has none.
  bool eviction = false;   ///< Pipelined after evictions.
};

struct Job {
  GangId gang;
  QueueIx queue = kNoIx;
  std::vector<TaskIx> tasks;
  std::int32_t min_member = 0;
  std::map<std::string, std::int32_t> role_min;
  std::int32_t role_min_total = 0;
  bool has_min_resources = false;
  Amounts min_resources;
  Amounts gated;      ///< Requests of gated tasks.
  Amounts allocated;  ///< Allocated, binding and running tasks.
  Amounts drf;        ///< The same and pipelined ones.
  GroupPhase phase = GroupPhase::kPending;
  std::array<std::int32_t, 8> by_status{};
  std::set<std::string> failed_roles;  ///< Some task of the role found no node in this session.

  [[nodiscard]] std::int32_t count(Status s) const {
    return by_status[static_cast<std::size_t>(s)];
  }
};

struct QueueAttr {
  TenantId tenant;
  bool used = false;  ///< Has a job in the snapshot (or the tree is built whole).
  QueueIx parent = kNoIx;
  std::vector<QueueIx> children;
  std::vector<QueueIx> ancestors;  ///< Root first.
  Amounts capability;              ///< kInfinite where unlimited.
  Amounts real;
  Amounts guarantee;
  Amounts deserved;
  std::array<bool, ResourceVector::kMax> deserved_named{};
  Amounts allocated;
  Amounts request;
  Amounts inqueue;
  Amounts elastic;
  Share share = 0;
};

struct NodeRoom {
  Amounts allocatable;
  Amounts idle;
  Amounts used;
  Amounts releasing;
  Amounts pipelined;
  std::vector<TaskIx> tasks;

  [[nodiscard]] Amounts future() const { return idle + releasing - pipelined; }
};

enum class Kind : std::uint8_t {
  kPriority,
  kGang,
  kConformance,
  kDrf,
  kPredicates,
  kProportion,
  kCapacity,
  kOvercommit,
  kSla,
  kBinpack,
  kNodeorder,
  kPdb,
  kOther
};

struct Plugin {
  Kind kind = Kind::kOther;
  const VolcanoPlugin* config = nullptr;

  [[nodiscard]] bool on(std::string_view flag) const;
  [[nodiscard]] std::string argument(std::string_view name) const;
};

/// What outlives a session: the reasons that the caller knows.
struct Memory {
  struct Told {
    bool is_pod = false;
    Refusal refusal;
  };
  std::map<std::string, Told> told;  ///< By key of the group or pod.
};

/// Removes and returns the least element by `before`.
template <typename T, typename Before>
T pop_best(std::vector<T>& items, Before before) {
  auto best = items.begin();
  for (auto it = std::next(items.begin()); it != items.end(); ++it) {
    if (before(*it, *best)) best = it;
  }
  const T out = *best;
  items.erase(best);
  return out;
}

class Session {
 public:
  Session(State& state, Memory& memory, Time now);

  /// Runs the configured actions and writes phases; the plan's binds and evictions are applied to
  /// the state.
  Plan run();

 private:
  friend class Statement;
  struct Op {
    enum class What : std::uint8_t { kAllocate, kPipeline, kEvict } what;
    TaskIx task;
  };

  // Opening.
  void load_tasks();
  void load_queues();
  void open_proportion();
  void open_capacity_flat();
  void open_capacity_tree();
  void walk_tree(QueueIx queue);
  void sum_queues(bool tree);
  void open_overcommit();
  void open_hierarchy();
  void update_share(QueueIx queue);

  // Actions.
  void enqueue();
  void allocate();
  enum class Outcome : std::uint8_t { kNothing, kHeld, kReady };
  void allocate_job(JobIx job, std::vector<TaskIx>& tasks, std::vector<JobIx>& jobs);
  Outcome try_tasks(JobIx job, std::vector<TaskIx>& tasks, std::vector<Op>& ops);
  bool choose_domain(JobIx job, const std::vector<TaskIx>& tasks);
  [[nodiscard]] std::vector<std::vector<NodeId>> domains_of(JobIx job,
                                                            const std::string& key) const;
  [[nodiscard]] Wide domain_fill(JobIx job, const std::vector<NodeId>& nodes) const;
  void backfill();
  void preempt();
  bool preempt_for(TaskIx preemptor, bool same_job, std::vector<Op>& ops);
  bool preempt_choosing(TaskIx preemptor, bool same_job, std::vector<Op>& ops);
  [[nodiscard]] std::vector<TaskIx> preemptees(TaskIx preemptor, NodeId node, bool same_job) const;
  [[nodiscard]] bool fits_there(TaskIx preemptor, NodeId node) const;
  [[nodiscard]] bool action_flag(std::string_view action,
                                 std::string_view key,
                                 bool fallback) const;
  [[nodiscard]] bool may_preempt(TaskIx preemptor) const;
  [[nodiscard]] bool in_vain(TaskIx preemptor, const std::vector<Op>& evictions) const;
  [[nodiscard]] std::vector<TaskIx> pending_tasks(JobIx job) const;
  void reclaim();
  bool reclaim_for(TaskIx task, std::vector<Op>& ops);
  struct Bundle {
    bool whole = false;  ///< Breaks its group; otherwise the surplus above the group's minimum.
    JobIx job = kNoIx;
    std::vector<TaskIx> tasks;
  };
  void gang_evict(bool across_queues);
  void gang_evict_for(JobIx job, bool across_queues);
  std::optional<std::size_t> evict_bundles(JobIx job,
                                           const std::vector<TaskIx>& pending,
                                           const Amounts& need,
                                           bool across_queues,
                                           bool carry_out);
  void add_bundles(JobIx victim, std::vector<Bundle>& bundles) const;
  void sort_bundles(std::vector<Bundle>& bundles,
                    const Amounts& need,
                    JobIx preemptor,
                    bool across_queues) const;
  void keep_evictable(std::vector<Bundle>& bundles, TaskIx task, bool across_queues) const;
  bool place_all(JobIx job, const std::vector<TaskIx>& pending, std::vector<Op>& ops);
  void close();

  // Reasons.
  void tell_waits();
  void tell(const std::string& group, const std::string& pod, Refusal refusal);
  [[nodiscard]] Refusal refusal_of(JobIx job, TaskIx task) const;
  [[nodiscard]] Refusal refused_by_queue(const Job& job,
                                         const Amounts& request,
                                         bool admission) const;
  [[nodiscard]] Refusal refused_by_nodes(const Job& job, TaskIx task) const;
  bool over_limit(const Amounts& used,
                  const Amounts& limit,
                  const Amounts& request,
                  Refusal& refusal) const;

  // Statement: operations that can be undone in reverse.
  void do_allocate(TaskIx task, NodeId node, std::vector<Op>& ops);
  void do_pipeline(TaskIx task, NodeId node, bool eviction, std::vector<Op>& ops);
  void do_evict(TaskIx task, std::vector<Op>& ops);
  void discard(std::vector<Op>& ops);
  void commit(std::vector<Op>& ops, JobIx on_behalf, EvictKind kind);
  void commit_evictions(std::vector<Op>& ops, JobIx on_behalf, EvictKind kind);
  void set_status(TaskIx task, Status status);
  void charge(JobIx job, const Amounts& request, bool add);

  // Opinions.
  [[nodiscard]] int queue_order(QueueIx a, QueueIx b) const;
  [[nodiscard]] bool queue_before(QueueIx a, QueueIx b) const;
  [[nodiscard]] bool victim_queue_before(QueueIx a, QueueIx b, QueueIx preemptor) const;
  [[nodiscard]] int job_order(JobIx a, JobIx b) const;
  [[nodiscard]] bool job_before(JobIx a, JobIx b) const;
  [[nodiscard]] bool task_before(TaskIx a, TaskIx b) const;
  [[nodiscard]] bool job_valid(JobIx job) const;
  [[nodiscard]] bool job_ready(JobIx job) const;
  [[nodiscard]] bool job_pipelined(JobIx job) const;
  [[nodiscard]] bool job_starving(JobIx job) const;
  [[nodiscard]] bool job_enqueueable(JobIx job) const;
  [[nodiscard]] bool overused(QueueIx queue) const;
  [[nodiscard]] bool allocatable(QueueIx queue, TaskIx task) const;
  [[nodiscard]] bool preemptive(QueueIx queue, const Amounts& request) const;
  [[nodiscard]] std::vector<TaskIx> victims(TaskIx preemptor,
                                            std::vector<TaskIx> candidates,
                                            bool reclaiming) const;
  [[nodiscard]] std::vector<TaskIx> sort_victims(std::vector<TaskIx> tasks, TaskIx preemptor) const;

  // Parts of opinions.
  [[nodiscard]] bool roles_hold(const Job& job, bool pipelined) const;
  [[nodiscard]] bool gang_ready(const Job& job) const;
  [[nodiscard]] bool gang_pipelined(const Job& job) const;
  [[nodiscard]] std::int32_t ready_tasks(const Job& job) const;
  [[nodiscard]] std::int32_t pending_best_effort(const Job& job) const;
  [[nodiscard]] bool sla_overdue(const Plugin& plugin, const Job& job) const;
  [[nodiscard]] std::int64_t sla_deadline(const Plugin& plugin, const Job& job) const;
  [[nodiscard]] Amounts not_yet_allocated(const Job& job) const;
  [[nodiscard]] bool capacity_enqueueable(const Plugin& plugin, const Job& job) const;
  [[nodiscard]] bool overcommit_enqueueable(const Job& job) const;
  [[nodiscard]] Share drf_share(const Amounts& allocated) const;
  [[nodiscard]] bool lower_priority(TaskIx victim, TaskIx preemptor) const;
  [[nodiscard]] std::vector<TaskIx> spared_last(std::vector<TaskIx> candidates,
                                                TaskIx preemptor,
                                                bool reclaiming) const;
  [[nodiscard]] std::vector<TaskIx> gang_victims(const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::vector<TaskIx> drf_victims(TaskIx preemptor,
                                                const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::vector<TaskIx> hierarchy_victims(TaskIx reclaimer,
                                                      const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::vector<TaskIx> proportion_victims(const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::vector<TaskIx> capacity_victims(const Plugin& plugin,
                                                     TaskIx preemptor,
                                                     const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] bool has_relevant_deserved(const Amounts& request, QueueIx queue) const;
  [[nodiscard]] bool above_deserved(const Amounts& allocated,
                                    const Amounts& request,
                                    QueueIx queue) const;
  [[nodiscard]] QueueIx ancestor_at(QueueIx queue, std::int64_t level) const;
  [[nodiscard]] std::vector<TaskIx> pdb_victims(const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::size_t common_level(QueueIx a, QueueIx b) const;
  [[nodiscard]] bool need_continue(const Job& job) const;

  // Nodes.
  [[nodiscard]] bool predicate(TaskIx task, NodeId node, bool preempting) const;
  [[nodiscard]] std::int64_t score(TaskIx task, NodeId node) const;
  [[nodiscard]] std::int64_t binpack_score(const Plugin& plugin, TaskIx task, NodeId node) const;
  [[nodiscard]] std::int64_t nodeorder_score(const Plugin& plugin, TaskIx task, NodeId node) const;
  [[nodiscard]] NodeId best_node(TaskIx task, bool best_effort, bool& idle) const;
  [[nodiscard]] bool best_effort(const Task& task) const;

  State& state_;
  Memory& memory_;
  Time now_;
  Plan plan_;
  std::vector<std::vector<Plugin>> tiers_;
  std::vector<Task> tasks_;
  std::vector<Job> jobs_;
  std::vector<QueueAttr> queues_;  ///< By tenant index.
  std::vector<NodeRoom> rooms_;    ///< By node index.
  std::vector<NodeId> nodes_;
  std::optional<std::vector<NodeId>>
      within_;  ///< While a group with a topology is placed: its domain.
  Amounts total_;
  std::size_t dims_ = 0;
  bool has_enqueue_ = false;
  bool allocate_follows_ = false;  ///< After the action that runs.
  bool tree_ = false;              ///< capacity with hierarchy
  bool tree_ready_ = true;
  mutable std::optional<Hierarchy>
      hierarchy_;  ///< drf with hierarchy. It weighs itself anew when it is asked.
  Amounts overcommit_idle_;
  Amounts overcommit_inqueue_;
  std::vector<TaskIx> bound_now_;
  std::set<PodId> gone_;  ///< Evicted in this session.
  std::set<std::string> still_waiting_;
};

}  // namespace muster::engine::volcano
