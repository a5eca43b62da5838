/// Keys to work on: each once however often it is added, in order, with per-key exponential
/// back-off on failure. A key added while it is being worked on is worked on again afterwards.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/env.h"
#include "base/result.h"

namespace muster::client {

struct WorkQueueOptions {
  int workers = 4;  // keys in flight at once
  Duration backoff_first = std::chrono::milliseconds(5);
  Duration backoff_max = std::chrono::seconds(60);
};

class WorkQueue {
 public:
  virtual ~WorkQueue() = default;
  virtual void add(const std::string& key) = 0;
  virtual void add_after(const std::string& key, Duration delay) = 0;
  virtual void start() = 0;
  virtual Task<void> stop() = 0;
  /// Nothing queued, delayed by back-off, or in flight (timers of add_after do not count).
  [[nodiscard]] virtual bool idle() const = 0;
};

/// `work` failing puts the key back with back-off; success resets it.
std::unique_ptr<WorkQueue> make_work_queue(Env& env,
                                           std::function<Task<Result<void>>(std::string key)> work,
                                           WorkQueueOptions options);

}  // namespace muster::client
