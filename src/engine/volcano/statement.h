/// Changes to a session's snapshot that belong together: carried out at once, then kept or taken
/// back as a whole, in reverse.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/plan.h"
#include "engine/volcano/session.h"

namespace muster::engine::volcano {

class Statement {
 public:
  explicit Statement(Session& session) : session_(session), snapshot_(session.snapshot()) {}

  /// The task runs there from now on.
  void allocate(TaskIx task, NodeId node);
  /// The task is to run there once others have left; `eviction`: for it.
  void pipeline(TaskIx task, NodeId node, bool eviction);
  void evict(TaskIx task);

  void discard();
  /// Takes back the eviction of one task.
  void spare(TaskIx task);
  /// Moves what the other has done behind what this one has.
  void take(Statement& other);
  /// Puts evictions and nominations into the plan; what is allocated is bound when the session
  /// closes.
  void commit(JobIx on_behalf, EvictKind kind);
  /// What was found for a starving group stands if the whole group has its room. If nobody had to
  /// go for it and allocate is still to come, the room is left to allocate, which sees waiting
  /// tasks only: held here it would be held in every session.
  void commit_evictions(JobIx on_behalf, EvictKind kind);

  [[nodiscard]] std::vector<TaskIx> evicted() const;
  [[nodiscard]] bool begins_with_eviction() const {
    return !ops_.empty() && ops_.front().what == What::kEvict;
  }

  /// A task that an earlier action pipelined waits again.
  static void unpipeline(Session& session, TaskIx task);

 private:
  enum class What : std::uint8_t { kAllocate, kPipeline, kEvict };
  struct Op {
    What what;
    TaskIx task;
  };

  void charge(const Task& task, bool add);
  void undo(const Op& op);

  Session& session_;
  Snapshot& snapshot_;
  std::vector<Op> ops_;
};

}  // namespace muster::engine::volcano
