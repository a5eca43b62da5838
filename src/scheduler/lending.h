/// The engine while a worker copies it: the loop goes on, and what it would tell the engine
/// meanwhile is kept and told afterwards, in order.
///
/// A copy takes as long as there are pods and gangs to copy, a tenth of a second and more in a large
/// cluster. Nobody else waits for it: only decisions do. On the loop, but for the copying itself.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/env.h"
#include "base/gate.h"
#include "base/loan.h"
#include "engine/engine.h"

namespace muster::scheduler {

class Lending {
 public:
  Lending(Env& env, const engine::Engine& engine)
      : env_(env), engine_(engine), free_(env.make_signal()), gate_(env) {}

  /// The right to touch the engine, while it lives. False: a copy is being made, or was made and is
  /// not taken yet.
  [[nodiscard]] Loan::Hold try_hold() { return loan_.try_hold(); }
  /// For whoever must change the engine now: waits while it is being copied, and it is copied again.
  void claim() { loan_.claim(); }

  /// Tells the engine so when the copy is taken.
  void keep(const engine::Event& event) { kept_.push_back(event); }
  [[nodiscard]] bool idle() const { return !loan_.offered() && kept_.empty(); }

  struct Back {
    std::function<void(const engine::Event&)> tell;
    std::function<void()> wake;
  };
  /// Copies the engine on a worker and hands the copy to `take`, on the loop. Then the engine is the
  /// loop's again: whatever was kept is told, and it is time to decide.
  Task<void> copy(std::function<void(engine::Engine)> take, Back back);

  Task<void> stop();

 private:
  Env& env_;
  const engine::Engine& engine_;
  Loan loan_;
  std::vector<engine::Event> kept_;
  bool copying_ = false;
  std::unique_ptr<Signal> free_;
  Gate gate_;
};

}  // namespace muster::scheduler
