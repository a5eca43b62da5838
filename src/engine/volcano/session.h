/// One cycle of Volcano: a snapshot of jobs, nodes and queues, the plugins' opinions, and the actions.
///
/// The rules are Volcano's, including those a better scheduler would not have (tiers that fall through, shares
/// as hard caps). Where Volcano draws lots or walks a Go map, this takes the lowest id. Cost is that of Volcano:
/// every cycle looks at everything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/config.h"
#include "engine/plan.h"
#include "engine/state.h"
#include "engine/volcano/amounts.h"

namespace muster::engine::volcano {

using TaskIx = std::size_t;
using JobIx = std::size_t;
using QueueIx = std::size_t;
inline constexpr std::size_t kNoIx = ~std::size_t{0};

enum class Status : std::uint8_t { kPending, kAllocated, kPipelined, kBinding, kRunning, kReleasing, kSucceeded, kFailed };

struct Task {
  PodId pod;
  JobIx job = kNoIx;
  Status status = Status::kPending;
  NodeId node;
  Amounts request;
  std::int64_t index = 0;  ///< Last dash part of the name, for ordering.
  bool fit_failed = false;
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
  std::map<std::string, std::int32_t> failed_roles;

  [[nodiscard]] std::int32_t count(Status s) const { return by_status[static_cast<std::size_t>(s)]; }
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
  kPriority, kGang, kConformance, kDrf, kPredicates, kProportion, kCapacity, kOvercommit, kSla, kBinpack, kPdb, kOther
};

struct Plugin {
  Kind kind = Kind::kOther;
  const VolcanoPlugin* config = nullptr;

  [[nodiscard]] bool on(std::string_view flag) const;
  [[nodiscard]] std::string argument(std::string_view name) const;
};

class Session {
 public:
  Session(State& state, Time now);

  /// Runs the configured actions and writes phases; the plan's binds and evictions are applied to the state.
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
  void update_share(QueueIx queue);

  // Actions.
  void enqueue();
  void allocate();
  void allocate_job(JobIx job, std::vector<TaskIx>& tasks, std::vector<JobIx>& jobs);
  void backfill();
  void preempt();
  bool preempt_for(TaskIx preemptor, bool same_job, std::vector<Op>& ops);
  void reclaim();
  bool reclaim_for(TaskIx task, std::vector<Op>& ops);
  void gang_evict(bool across_queues);
  bool gang_evict_for(JobIx job, bool across_queues);
  void close();

  // Statement: operations that can be undone in reverse.
  void do_allocate(TaskIx task, NodeId node, std::vector<Op>& ops);
  void do_pipeline(TaskIx task, NodeId node, bool eviction, std::vector<Op>& ops);
  void do_evict(TaskIx task, std::vector<Op>& ops);
  void discard(std::vector<Op>& ops);
  void commit(std::vector<Op>& ops, JobIx on_behalf, EvictKind kind);
  void set_status(TaskIx task, Status status);
  void charge(JobIx job, const Amounts& request, bool add);

  // Opinions.
  [[nodiscard]] int queue_order(QueueIx a, QueueIx b) const;
  [[nodiscard]] bool queue_before(QueueIx a, QueueIx b) const;
  [[nodiscard]] bool victim_queue_before(QueueIx a, QueueIx b, QueueIx preemptor) const;
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
  [[nodiscard]] std::vector<TaskIx> victims(TaskIx preemptor, std::vector<TaskIx> candidates, bool reclaiming) const;
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
  [[nodiscard]] std::vector<TaskIx> gang_victims(const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::vector<TaskIx> drf_victims(TaskIx preemptor, const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::vector<TaskIx> proportion_victims(TaskIx preemptor, const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::vector<TaskIx> capacity_victims(TaskIx preemptor, const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::vector<TaskIx> pdb_victims(const std::vector<TaskIx>& candidates) const;
  [[nodiscard]] std::size_t common_level(QueueIx a, QueueIx b) const;
  [[nodiscard]] bool need_continue(const Job& job) const;

  // Nodes.
  [[nodiscard]] bool predicate(TaskIx task, NodeId node, bool preempting) const;
  [[nodiscard]] std::int64_t score(TaskIx task, NodeId node) const;
  [[nodiscard]] NodeId best_node(TaskIx task, bool best_effort, bool& idle) const;
  [[nodiscard]] bool best_effort(const Task& task) const;

  State& state_;
  Time now_;
  Plan plan_;
  std::vector<std::vector<Plugin>> tiers_;
  std::vector<Task> tasks_;
  std::vector<Job> jobs_;
  std::vector<QueueAttr> queues_;     ///< By tenant index.
  std::vector<NodeRoom> rooms_;       ///< By node index.
  std::vector<NodeId> nodes_;
  Amounts total_;
  std::size_t dims_ = 0;
  bool has_enqueue_ = false;
  bool tree_ = false;                 ///< capacity with hierarchy
  bool tree_ready_ = true;
  Amounts overcommit_idle_;
  Amounts overcommit_inqueue_;
  std::vector<TaskIx> bound_now_;
};

}  // namespace muster::engine::volcano
