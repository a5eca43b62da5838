/// One plugin of Volcano: what it has to say to each of a session's questions.
///
/// A plugin overrides the questions it answers; the rest say "no opinion". How the answers of
/// several plugins combine differs by question and is written at each in session.h. Every question
/// can be switched off in the configuration; Session asks on() first. A table of questions: each is a
/// line that says "no opinion".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/config.h"
#include "engine/volcano/snapshot.h"

namespace muster::engine::volcano {

enum class Vote : std::uint8_t { kNone, kPermit, kReject };

/// Who may go for a task, put to a plugin.
struct VictimQuestion {
  TaskIx preemptor = kNoIx;
  /// Those whom other plugins spare come last.
  const std::vector<TaskIx>& candidates;
  /// The same in the order in which they would go.
  const std::vector<TaskIx>& in_order;
  /// Takes back across queues instead of by priority.
  bool reclaiming = false;
};
using Victims = std::optional<std::vector<TaskIx>>;

/// What is taken of how much, for explanations.
struct Filling {
  Amounts taken;
  Amounts limit;
};

class Plugin {
 public:
  Plugin(const VolcanoPlugin& config, Snapshot& snapshot)
      : config_(config), snapshot_(snapshot), state_(snapshot.state) {}
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  virtual ~Plugin() = default;

  [[nodiscard]] const std::string& name() const { return config_.name; }
  /// The flag ("enableJobOrder" …) has not been set to false.
  [[nodiscard]] bool on(std::string_view flag) const;

  /// Once, when the session opens: plugins of earlier tiers have been opened.
  virtual void open() {}

  // Order: negative, `a` is served first; 0, no opinion between the two.
  [[nodiscard]] virtual int queue_order(QueueIx, QueueIx) { return 0; }
  [[nodiscard]] virtual int job_order(JobIx, JobIx) const { return 0; }
  [[nodiscard]] virtual int task_order(TaskIx, TaskIx) const { return 0; }
  /// Whose tasks go first for one of the third queue.
  [[nodiscard]] virtual int victim_queue_order(QueueIx, QueueIx, QueueIx) const { return 0; }

  // Jobs.
  [[nodiscard]] virtual bool job_valid(const Job&) const { return true; }
  [[nodiscard]] virtual bool job_ready(const Job&) const { return true; }
  [[nodiscard]] virtual Vote job_pipelined(const Job&) const { return Vote::kNone; }
  [[nodiscard]] virtual Vote job_starving(const Job&) const { return Vote::kNone; }
  [[nodiscard]] virtual Vote job_enqueueable(const Job&) const { return Vote::kNone; }
  /// When the job must have been let in, in microseconds; 0: it need not.
  [[nodiscard]] virtual std::int64_t deadline_us(const Job&) const { return 0; }

  // Queues.
  [[nodiscard]] virtual bool overused(QueueIx) const { return false; }
  [[nodiscard]] virtual bool allocatable(QueueIx, const Amounts&) const { return true; }
  /// May the queue start to take back?
  [[nodiscard]] virtual bool preemptive(QueueIx, const Amounts&) const { return true; }
  /// Queues whose limits a job of this one meets, itself first; empty: the plugin knows no limits.
  [[nodiscard]] virtual std::vector<QueueIx> limiting(QueueIx) const { return {}; }
  /// Its limit is what a queue deserves, not what it may have at most.
  [[nodiscard]] virtual bool limits_to_deserved() const { return false; }
  /// How full the cluster counts when jobs are let in, where the plugin has a word on that.
  [[nodiscard]] virtual std::optional<Filling> admission() const { return std::nullopt; }

  // Victims. Nothing: no opinion; an empty answer hands over to the next tier.
  [[nodiscard]] virtual Victims victims(const VictimQuestion&) { return std::nullopt; }
  /// Its answer also says which tasks of a bundle may go (gangpreempt, gangreclaim).
  [[nodiscard]] virtual bool judges_bundles() const { return false; }

  // Nodes.
  [[nodiscard]] virtual bool predicate(TaskIx, NodeId, bool /*preempting*/) const { return true; }
  [[nodiscard]] virtual std::int64_t node_score(TaskIx, NodeId) const { return 0; }

  // What the session did.
  virtual void charged(JobIx, const Amounts&, bool /*add*/) {}
  virtual void enqueued(const Amounts&) {}

 protected:
  [[nodiscard]] std::string argument(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] bool hierarchy() const { return config_.hierarchy; }

  const VolcanoPlugin& config_;
  Snapshot& snapshot_;
  const State& state_;
};

/// The plugin of that name; one without opinions when there is none.
[[nodiscard]] std::unique_ptr<Plugin> make_plugin(const VolcanoPlugin& config, Snapshot& snapshot);

}  // namespace muster::engine::volcano
