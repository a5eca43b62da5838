/// Loan: something of the loop's is lent to a worker for a while, and the loop goes on without it.
///
///   loan.offer();
///   co_await env.run_on_worker([turn = loan.turn(), &thing] { turn([&] { look_at(thing); }); });
///   const bool seen = loan.take_back();
///
/// From offer() to take_back() whoever touches the thing on the loop holds it (try_hold), and leaves
/// it alone once the worker has begun. On the loop, but for what turn() returns.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

namespace muster {

class Loan {
 public:
  /// The right to touch the thing, while it lives. False: a worker looks at it, or has looked and the
  /// loop does not know yet.
  class Hold {
   public:
    Hold() = default;
    Hold(std::unique_lock<std::mutex> lock, bool mine) : lock_(std::move(lock)), mine_(mine) {}
    explicit operator bool() const { return mine_; }

   private:
    std::unique_lock<std::mutex> lock_;
    bool mine_ = true;
  };
  [[nodiscard]] Hold try_hold();
  /// For whoever must change it now: waits for the worker, and what that has seen counts for nothing;
  /// one that has not begun does not begin.
  void claim();

  void offer();
  /// For the worker: does its work, unless the thing was claimed.
  [[nodiscard]] std::function<void(const std::function<void()>& work)> turn();
  /// The worker has left. True: it did its work, and what it saw counts.
  bool take_back();
  [[nodiscard]] bool offered() const { return round_ != nullptr; }

 private:
  struct Round {
    std::mutex free;
    bool used = false, claimed = false;  // under the lock
  };
  std::shared_ptr<Round> round_;  // null: the thing is the loop's
};

}  // namespace muster
