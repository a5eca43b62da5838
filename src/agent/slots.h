/// At most so many at a time; the others wait, first come, first served. On the loop.
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "base/env.h"

namespace muster::agent {

class Slots {
 public:
  Slots(Env& loop, int count) : loop_(loop), free_(count) {}

  /// Given back when destroyed, or after a while, should its holder hang.
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
    friend class Slots;
    struct Held {
      Slots* from = nullptr;  // null: given back
      std::unique_ptr<Timer> patience;
    };
    std::shared_ptr<Held> held_;
  };

  Task<Slot> take();
  /// Whoever waits goes on, as does whoever comes later: the end is near, and they will notice.
  void close();

 private:
  struct Waiter {
    std::unique_ptr<Signal> woken;
    bool served = false;
  };
  Slot hold();
  static void give_back(Slot::Held& held);

  Env& loop_;
  int free_;
  bool closed_ = false;
  std::deque<std::shared_ptr<Waiter>> waiting_;
};

}  // namespace muster::agent
