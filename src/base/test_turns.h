/// For tests: time that is measured in turns of the loop instead of milliseconds.
#pragma once

#include <memory>

#include "base/env.h"

namespace muster {

/// Lets the loop turn so often: each time everything that was posted before has run. What needs no
/// socket, no timer and no other thread has happened after a few of them, or never will.
inline Task<void> turns(Env& env, int count) {
  const std::shared_ptr<Signal> turned = env.make_signal();
  for (int i = 0; i < count; ++i) {
    env.post([turned] { turned->notify(); });
    co_await turned->wait(Duration::zero());
  }
}

}  // namespace muster
