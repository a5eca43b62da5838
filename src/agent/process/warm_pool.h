/// Sandboxes made ahead: supervisors that are in a network namespace of their own already, with an
/// address, and wait for a pod.
///
/// Most of the time a pod takes to start goes to its network, and the kernel makes others wait while
/// it removes the networks of pods that ended. A pod that takes a waiting supervisor has neither
/// before it. The pool is small and filled up only while no pod is being started, one at a time, so
/// that it takes nothing from pods; in a burst longer than the pool the rest start as if there were
/// none. On the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "net/descriptor.h"
#include "net/loop.h"

namespace muster::agent::process {

struct WarmSandbox {
  std::unique_ptr<net::Descriptor> socket;
  std::uint32_t address = 0;
};

class WarmPool {
 public:
  /// `begin` asks for one more; it says "warm" on its socket when it is ready.
  WarmPool(net::Loop& loop, std::function<Result<WarmSandbox>()> begin);
  ~WarmPool();

  void start(std::size_t size);
  /// Lets go of those that wait: they end when their socket is closed. Returns their addresses.
  std::vector<std::uint32_t> stop();
  std::optional<WarmSandbox> take();

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
  Task<bool> becomes_ready(WarmSandbox& one);

  net::Loop& loop_;
  std::function<Result<WarmSandbox>()> begin_;
  std::size_t size_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
  std::deque<WarmSandbox> ready_;
  std::unique_ptr<Signal> wanted_;
};

}  // namespace muster::agent::process
