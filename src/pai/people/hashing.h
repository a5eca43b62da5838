/// Slow hashes aside: two at once on workers, 32 more wait in turn, whoever comes then is told to
/// come again (503). On the loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/env.h"
#include "pai/refusal.h"

namespace muster::pai {

class Hashing {
 public:
  explicit Hashing(Env& env);
  /// Runs `work` on a worker when its turn comes.
  Task<Answer<void>> run(std::function<void()> work);
  [[nodiscard]] std::size_t waiting() const { return waiting_; }

 private:
  static constexpr std::size_t kAtOnce = 2;
  static constexpr std::size_t kWaitingMax = 32;

  Env& env_;
  std::unique_ptr<Signal> left_;
  std::size_t running_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace muster::pai
