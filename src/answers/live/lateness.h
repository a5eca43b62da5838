/// Whether the loop keeps what it has to do waiting: asked by workers whose own work can wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/env.h"

namespace muster::answers {

class Lateness {
 public:
  explicit Lateness(Env& env) : env_(env) {}

  /// On any thread, as often as one likes: the loop is asked for a sign of life every few
  /// milliseconds at most.
  [[nodiscard]] bool late();

 private:
  struct Asked {
    std::atomic<std::int64_t> since_us{0};  // zero: the loop has answered
    std::atomic<std::int64_t> last_us{0};
  };
  Env& env_;
  const std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
};

}  // namespace muster::answers
