/// What one session of Volcano works on: the jobs, tasks, queues and nodes as they stand, and what
/// the session has promised of them so far.
///
/// Always: `by_status` of a job counts its tasks by their status, `allocated` is the sum over those
/// that are allocated, binding or running, and `drf` adds the pipelined ones.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/model/plan.h"
#include "engine/state/state.h"
#include "engine/volcano/amounts.h"

namespace muster::engine::volcano {

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

/// Holds room on its node: allocated, binding or running.
[[nodiscard]] inline bool is_allocated(Status s) {
  return s == Status::kAllocated || s == Status::kBinding || s == Status::kRunning;
}

struct Task {
  PodId pod;
  JobIx job = kNoIx;
  Status status = Status::kPending;
  NodeId node;
  Amounts request;
  /// Last dash part of the name, for ordering; -1 if it has none.
  std::int64_t index = 0;
  /// Pipelined after evictions.
  bool eviction = false;
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
  /// Requests of gated tasks.
  Amounts gated;
  /// Allocated, binding and running tasks.
  Amounts allocated;
  /// The same and pipelined ones.
  Amounts drf;
  GroupPhase phase = GroupPhase::kPending;
  std::array<std::int32_t, 8> by_status{};
  /// Some task of the role found no node in this session.
  std::set<std::string> failed_roles;

  [[nodiscard]] std::int32_t count(Status s) const {
    return by_status[static_cast<std::size_t>(s)];
  }
  [[nodiscard]] std::int32_t allocated_tasks() const {
    return count(Status::kAllocated) + count(Status::kBinding) + count(Status::kRunning);
  }
  [[nodiscard]] std::int32_t ready_tasks() const {
    return allocated_tasks() + count(Status::kSucceeded);
  }
};

struct QueueAttr {
  TenantId tenant;
  /// Has a job in the snapshot (or the tree is built whole).
  bool used = false;
  QueueIx parent = kNoIx;
  std::vector<QueueIx> children;
  /// Root first.
  std::vector<QueueIx> ancestors;
  /// kInfinite where unlimited.
  Amounts capability;
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

struct Snapshot {
  Snapshot(State& world, Time at);

  State& state;
  Time now;
  std::size_t dims = 0;
  Amounts total;
  std::vector<Task> tasks;
  std::vector<Job> jobs;
  /// By tenant index.
  std::vector<QueueAttr> queues;
  /// By node index.
  std::vector<NodeRoom> rooms;
  /// Those that are ready.
  std::vector<NodeId> nodes;
  /// While a group with a topology is placed: its domain.
  std::optional<std::vector<NodeId>> within;
  /// Evicted in this session.
  std::set<PodId> gone;
  /// A queue's share is that of what it deserves by weight (proportion), even of nothing.
  bool by_weight = false;
  /// Queues form a tree (capacity with hierarchy): amounts count for ancestors as well.
  bool tree = false;

  [[nodiscard]] const PodState& pod_of(TaskIx task) const { return state.pod(tasks[task].pod); }
  [[nodiscard]] QueueIx queue_of(TaskIx task) const { return jobs[tasks[task].job].queue; }
  [[nodiscard]] const std::vector<NodeId>& open_nodes() const { return within ? *within : nodes; }
  [[nodiscard]] bool queue_open(QueueIx queue) const {
    return state.tenant(queues[queue].tenant).spec.state == QueueState::kOpen;
  }
  /// Asks for nothing but a slot.
  [[nodiscard]] bool best_effort(TaskIx task) const {
    return state.cls_of(tasks[task].pod).best_effort;
  }
  [[nodiscard]] std::int32_t pending_best_effort(const Job& job) const;
  /// What its group must have and does not hold yet, gated tasks apart.
  [[nodiscard]] Amounts not_yet_allocated(const Job& job) const;
  /// Its group has been admitted and does not have its minimum's resources yet.
  [[nodiscard]] bool counts_as_inqueue(const Job& job) const;
  /// The queue, then with `up` all above it, root first.
  [[nodiscard]] std::vector<QueueIx> chain(QueueIx queue, bool up) const;
  /// How far down the two queues have the same ancestors.
  [[nodiscard]] std::size_t common_level(QueueIx a, QueueIx b) const;
  /// Pending tasks that may be placed, in no order of the plugins.
  [[nodiscard]] std::vector<TaskIx> placeable_tasks(JobIx job) const;

  /// Adds what the jobs hold, ask for and have been admitted with to their queues.
  void sum_queues(bool up);
  void update_share(QueueIx queue);
  /// Books an amount for the job, its queue and, in a tree, those above.
  void charge(JobIx job, const Amounts& request, bool add);
  void set_status(TaskIx task, Status status);

 private:
  void load_nodes();
  void load_queues();
  void load_jobs();
  void load_job(GangId id);
  void load_task(PodId id, JobIx job);
};

}  // namespace muster::engine::volcano
