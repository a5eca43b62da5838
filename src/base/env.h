/// Env: the outside world as the loop's rooms see it: clock, timers, random numbers, workers.
///
/// One thread, the loop, owns every mutable state. All callbacks and coroutines run on it; only
/// `offload`'s work runs elsewhere, and it receives values and gives values back. Production's Env
/// is net::Loop (Asio and the kernel); a simulation's is a heap of timers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/task.h"
#include "base/time.h"

namespace muster {

/// Cancels its timer when destroyed or reset.
class Timer {
 public:
  virtual ~Timer() = default;
};

/// A wake-up call between coroutines of the loop: wait() returns at once if notify() came since the
/// last wait. Several may wait; all are woken. Not thread-safe.
class Signal {
 public:
  virtual ~Signal() = default;
  virtual void notify() = 0;
  /// Waits until notified; `timeout` zero means for ever. True if notified.
  virtual Task<bool> wait(Duration timeout) = 0;
};

class Env {
 public:
  virtual ~Env() = default;

  [[nodiscard]] virtual Time now() = 0;
  /// Never goes back; for measuring.
  [[nodiscard]] virtual Duration monotonic() = 0;
  virtual std::uint64_t random() = 0;

  /// Runs `fn` on the loop soon. May be called from any thread.
  virtual void post(std::function<void()> fn) = 0;
  /// Runs `fn` on the loop after `delay`, unless the Timer is destroyed first.
  [[nodiscard]] virtual std::unique_ptr<Timer> after(Duration delay, std::function<void()> fn) = 0;
  /// Runs blocking `work` on a worker thread, then `done` on the loop.
  virtual void offload(std::function<void()> work, std::function<void()> done) = 0;
  /// Starts a coroutine on the loop. An exception that leaves it is a bug and aborts.
  virtual void spawn(Task<void> task) = 0;

  /// Calls each(0) … each(count - 1), on this thread and on idle workers together, and returns when
  /// all are done. For many short calls that touch nothing in common. By default this thread does
  /// it alone.
  virtual void spread(std::size_t count, const std::function<void(std::size_t)>& each) {
    for (std::size_t i = 0; i < count; ++i) each(i);
  }

  /// Awaitable forms of the above.
  virtual Task<void> sleep(Duration delay) = 0;
  virtual Task<void> run_on_worker(std::function<void()> work) = 0;
  [[nodiscard]] virtual std::unique_ptr<Signal> make_signal() = 0;
};

}  // namespace muster
