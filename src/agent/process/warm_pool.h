/// Sandboxes made ahead: supervisors that are in a network namespace of their own already, with an
/// address, and wait for a pod.
///
/// Most of the time a pod takes to start goes to its network, and the kernel makes others wait
/// while it removes the networks of pods that ended. A pod that takes a waiting supervisor has
/// neither before it. The pool is filled up only while no pod is being started, one at a time, so
/// that it takes nothing from pods, and to a small number; supervisors whose pods ended come back
/// to it, so that a burst of short pods needs few more. A pod that finds it empty waits a moment for
/// one that is about to come back, which is less work than another; if none is, it starts as if there
/// were no pool. On the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "net/loop/descriptor.h"
#include "net/loop/loop.h"

namespace muster::agent::process {

struct WarmSandbox {
  std::unique_ptr<net::Descriptor> socket;
  std::uint32_t address = 0;
  std::uint32_t home = 0;  // see ShimConfig
};

class WarmPool {
 public:
  /// `begin` asks for one more; it says "warm" on its socket when it is ready. `on_lost`: one that
  /// served a pod ended instead.
  WarmPool(net::Loop& loop,
           std::function<Result<WarmSandbox>()> begin,
           std::function<void(const WarmSandbox&)> on_lost);
  ~WarmPool();

  /// `size` are made; at most `kept_max` wait.
  void start(std::size_t size, std::size_t kept_max);
  /// Lets go of those that wait: they end when their socket is closed.
  void stop();
  Task<std::optional<WarmSandbox>> take();
  /// Whether one that served a pod may come back.
  [[nodiscard]] bool has_room() const {
    return !*stopped_ && size_ > 0 && ready_.size() + resting_ < kept_max_;
  }
  /// One that served a pod; it is used again once it says that it is "warm".
  void rest(WarmSandbox one);
  /// While one of these lives, a supervisor is asked to end its pod and to come back.
  class Ending {
   public:
    explicit Ending(WarmPool& pool) : pool_(&pool) { ++pool_->ending_; }
    ~Ending() { --pool_->ending_; }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;

   private:
    WarmPool* pool_;
  };

  /// While one of these lives, nothing is made.
  class Busy {
   public:
    explicit Busy(WarmPool& pool) : pool_(&pool) { ++pool_->busy_; }
    ~Busy() {
      if (--pool_->busy_ == 0) pool_->wanted_->notify();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    WarmPool* pool_;
  };

 private:
  Task<void> top_up();
  Task<void> wait_for(WarmSandbox one);

  net::Loop& loop_;
  std::function<Result<WarmSandbox>()> begin_;
  std::function<void(const WarmSandbox&)> on_lost_;
  std::size_t size_ = 0, kept_max_ = 0;
  int busy_ = 0;
  std::shared_ptr<bool> stopped_;  // coroutines hold it: they may outlive the pool
  std::size_t resting_ = 0, ending_ = 0;
  std::deque<WarmSandbox> ready_;
  std::deque<std::shared_ptr<Signal>> waiting_;  // for one that rests
  std::unique_ptr<Signal> wanted_;
};

}  // namespace muster::agent::process
