/// What the plugins say: each question is put to them, tiers in order, plugins inside a tier in
/// order; how the answers combine differs by question and is written at each.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/volcano/plugin.h"
#include "engine/volcano/snapshot.h"

namespace muster::engine::volcano {

/// The node on which a task should run.
struct BestNode {
  /// Invalid: there is none.
  NodeId node;
  /// The room is there now; otherwise it comes free when others have left.
  bool idle = false;
};

class Opinions {
 public:
  using Tiers = std::vector<std::vector<std::unique_ptr<Plugin>>>;

  /// Makes the plugins of the configuration and opens them.
  explicit Opinions(Snapshot& snapshot);

  [[nodiscard]] const Tiers& tiers() const { return tiers_; }
  /// A plugin of that name is configured.
  [[nodiscard]] bool has(std::string_view plugin) const;

  // Order: the first plugin with an opinion decides, then age.
  [[nodiscard]] bool queue_before(QueueIx a, QueueIx b) const;
  [[nodiscard]] bool victim_queue_before(QueueIx a, QueueIx b, QueueIx preemptor) const;
  /// 0 where the plugins have nothing to say between the two.
  [[nodiscard]] int job_order(JobIx a, JobIx b) const;
  [[nodiscard]] bool job_before(JobIx a, JobIx b) const;
  [[nodiscard]] bool task_before(TaskIx a, TaskIx b) const;
  /// Pending tasks that may be placed, in task order.
  [[nodiscard]] std::vector<TaskIx> pending_tasks(JobIx job) const;
  /// Same job: last task first. Same queue: the job that the plugins would serve last first; where
  /// they do not care, the last task first as if it were one job. Otherwise by queue.
  [[nodiscard]] std::vector<TaskIx> sort_victims(std::vector<TaskIx> tasks, TaskIx preemptor) const;

  // Jobs.
  /// All plugins must agree.
  [[nodiscard]] bool job_valid(JobIx job) const;
  /// All plugins must agree.
  [[nodiscard]] bool job_ready(JobIx job) const;
  /// One reject is a no; a permit ends the evaluation after its own tier.
  [[nodiscard]] bool job_pipelined(JobIx job) const;
  /// The same.
  [[nodiscard]] bool job_enqueueable(JobIx job) const;
  /// The first tier that has such a function decides; all of its plugins must agree.
  [[nodiscard]] bool job_starving(JobIx job) const;

  // Queues.
  /// One plugin suffices.
  [[nodiscard]] bool overused(QueueIx queue) const;
  /// All plugins must agree.
  [[nodiscard]] bool allocatable(TaskIx task) const;
  /// May the queue start to take back? All plugins must agree.
  [[nodiscard]] bool preemptive(QueueIx queue, const Amounts& request) const;

  /// Inside a tier the answers are intersected; the first tier with a non-empty answer decides.
  /// "Nobody" is therefore not a veto but a question to the next: a plugin that names nobody hands
  /// over to the next tier, and where two plugins name nobody in common, the next plugin of their
  /// tier starts anew.
  [[nodiscard]] std::vector<TaskIx> victims(TaskIx preemptor,
                                            std::vector<TaskIx> candidates,
                                            bool reclaiming) const;

  // Nodes.
  /// All plugins must agree.
  [[nodiscard]] bool predicate(TaskIx task, NodeId node, bool preempting) const;
  /// The sum over the plugins.
  [[nodiscard]] std::int64_t score(TaskIx task, NodeId node) const;
  /// Nodes with the room now go before nodes with the room soon; then the best score; then the
  /// lowest id. A best-effort task needs a pod slot that is free now and nothing else.
  [[nodiscard]] BestNode best_node(TaskIx task, bool best_effort) const;

 private:
  [[nodiscard]] int queue_order(QueueIx a, QueueIx b) const;
  [[nodiscard]] std::vector<TaskIx> spared_last(std::vector<TaskIx> candidates,
                                                TaskIx preemptor,
                                                bool reclaiming) const;

  Snapshot& snapshot_;
  State& state_;
  Tiers tiers_;
};

}  // namespace muster::engine::volcano
