/// How many pods are being started at a time; the others wait, first come, first served.
///
/// More at once would make none of them start sooner, as a start is work for processors, and would
/// make sandboxes for all of them where those of pods that end meanwhile can be used again. On the
/// loop.
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "net/loop.h"

namespace muster::agent {

class StartSlots {
 public:
  StartSlots(net::Loop& loop, int count) : loop_(loop), free_(count) {}

  /// Held while a pod is being started: given back when destroyed, or after a while, should a start
  /// hang.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept = default;
    Slot& operator=(Slot&& other) noexcept {
      release();
      held_ = std::move(other.held_);
      return *this;
    }
    ~Slot() { release(); }
    void release();

   private:
    friend class StartSlots;
    struct Held {
      StartSlots* from = nullptr;  // null: given back
      std::unique_ptr<Timer> patience;
    };
    std::shared_ptr<Held> held_;
  };

  Task<Slot> take();
  /// Whoever waits goes on, as does whoever comes later: there is nothing to start any more.
  void close();

 private:
  struct Waiter {
    std::unique_ptr<Signal> woken;
    bool served = false;
  };
  Slot hold();
  static void give_back(Slot::Held& held);

  net::Loop& loop_;
  int free_;
  bool closed_ = false;
  std::deque<std::shared_ptr<Waiter>> waiting_;
};

}  // namespace muster::agent
