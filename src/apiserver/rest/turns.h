/// Who goes first when the server is busy.
///
/// Status writes and events of this process's own components wait while other writes are under way:
/// a pod that is bound a moment earlier is worth more than a line of history written a moment
/// earlier, and it is the status writes that follow a burst of creations. They are never starved:
/// one goes for every `kShare` of the others, and all go as soon as nobody else writes. When
/// somebody has been waiting without a break for as long as `patience`, it is no burst any more:
/// then one goes for each of the others, until none waits. Those that wait are requests under way
/// of the components, and as many. Everything runs on the loop.
#pragma once

#include <deque>
#include <memory>

#include "base/env.h"

namespace muster::apiserver {

class Turns {
 public:
  explicit Turns(Env& env, Duration patience = std::chrono::seconds(5))
      : env_(env), patience_(patience) {}
  Turns(const Turns&) = delete;

  /// Returns when it is the turn of a write that can wait.
  Task<void> wait();

  /// Held by a write that goes first.
  class First {
   public:
    explicit First(Turns& turns) : turns_(turns) { ++turns_.first_; }
    First(const First&) = delete;
    ~First() { turns_.leave(); }

   private:
    Turns& turns_;
  };

 private:
  static constexpr int kShare = 64;

  void leave();

  Env& env_;
  const Duration patience_;
  int first_ = 0;  // writes under way that go first
  int since_ = 0;  // how many of them ended since one that waited was let go
  std::deque<std::shared_ptr<Signal>> waiting_;
  Duration crowded_since_ = Duration::zero();  // when the first came to wait where nobody waited
};

}  // namespace muster::apiserver
