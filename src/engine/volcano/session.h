/// One cycle of Volcano: a snapshot of jobs, nodes and queues, the plugins by tiers, and the
/// actions.
///
/// The rules are Volcano's, including those a better scheduler would not have (tiers that fall
/// through, shares as hard caps). Where Volcano draws lots or walks a Go map, this takes the lowest
/// id. Cost is that of Volcano: every cycle looks at everything.
///
/// The actions (actions/) ask what the plugins say (opinions.h) and change the snapshot through a
/// Statement that can be taken back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engine/model/plan.h"
#include "engine/state/state.h"
#include "engine/volcano/opinions.h"
#include "engine/volcano/snapshot.h"

namespace muster::engine::volcano {

/// What outlives a session: the reasons that the caller knows.
struct Memory {
  struct Told {
    bool is_pod = false;
    Refusal refusal;
  };
  /// By key of the group or pod.
  std::map<std::string, Told> told;
};

class Session {
 public:
  Session(State& state, Memory& memory, Time now);

  /// Runs the configured actions and writes phases; the plan's binds and evictions are applied to
  /// the state.
  [[nodiscard]] Plan run();

  // What the actions work on.
  [[nodiscard]] Snapshot& snapshot() { return snapshot_; }
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
  /// What the plugins say.
  [[nodiscard]] const Opinions& ask() const { return opinions_; }
  [[nodiscard]] Plan& plan() { return plan_; }
  /// An argument of the action in the configuration.
  [[nodiscard]] bool action_flag(std::string_view action,
                                 std::string_view key,
                                 bool fallback) const;
  [[nodiscard]] bool has_enqueue() const { return has_enqueue_; }
  /// After the action that runs.
  [[nodiscard]] bool allocate_follows() const { return allocate_follows_; }
  /// The task is bound when the session closes.
  void bind_at_end(TaskIx task) { bound_.push_back(task); }

 private:
  void close();
  void tell_binds();
  void write_phase(const Job& job, bool gangs_whole);
  void wake_for(const Job& job);

  State& state_;
  Memory& memory_;
  Snapshot snapshot_;
  Opinions opinions_;
  Plan plan_;
  bool has_enqueue_ = false;
  bool allocate_follows_ = false;
  std::vector<TaskIx> bound_;
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

}  // namespace muster::engine::volcano
