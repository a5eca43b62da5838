/// Gate: counts what is under way, wakes what sleeps when it is closed, and lets its owner wait
/// until the last piece of work has left. Shutdown is a wait, not a poll.
///
///   Task<void> Collector::work() {
///     const Gate::Pass pass(gate_);
///     const Gate::Sleeper sleeper(gate_, *wake_);
///     while (!gate_.closed()) {
///       …
///       co_await wake_->wait(Duration::zero());
///     }
///   }
///   …
///   gate_.close();
///   const bool empty = co_await gate_.wait_empty(std::chrono::seconds(2));
///
/// On the loop. Outlives its passes and sleepers.
#pragma once

#include <cstddef>
#include <memory>
#include <set>

#include "base/env.h"

namespace muster {

class Gate {
 public:
  explicit Gate(Env& env);

  /// One piece of work, from its construction to its end. A closed gate still counts: what the
  /// last ones begin is waited for, too.
  class Pass {
   public:
    explicit Pass(Gate& gate) : gate_(gate) { gate_.enter(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() { gate_.leave(); }

   private:
    Gate& gate_;
  };

  /// While it lives, close() notifies the signal; at once, if the gate is closed already.
  class Sleeper {
   public:
    Sleeper(Gate& gate, Signal& signal);
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper() { gate_.sleepers_.erase(&signal_); }

   private:
    Gate& gate_;
    Signal& signal_;
  };

  /// For work that begins in one call and ends in another; a Pass is better wherever one scope
  /// holds it.
  void enter() { ++inside_; }
  void leave();

  void close();
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] std::size_t inside() const { return inside_; }

  /// Until nothing is inside, for `most` at the longest (zero: for ever). False if the time ran
  /// out. One caller at a time.
  Task<bool> wait_empty(Duration most);

 private:
  Env& env_;
  std::unique_ptr<Signal> emptied_;
  std::set<Signal*> sleepers_;
  std::size_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace muster
