/// Long work on the loop, cut into slices so that others have their turn in between:
///
///     Pace pace(env);
///     for (const auto& each : many) {
///       if (pace.over()) co_await pace.rest();
///       work(each);
///     }
///
/// What may change while it rests must have been copied before.
#pragma once

#include "base/env.h"

namespace muster {

class Pace {
 public:
  /// Long enough that the turns cost nothing, and so short that a request that comes in between
  /// hardly notices.
  static constexpr Duration kSlice = std::chrono::microseconds(300);

  /// `stride`: pieces so small that looking at the clock would cost as much are counted first.
  explicit Pace(Env& env, int stride = 1)
      : env_(env), stride_(stride), left_(stride), since_(env.monotonic()) {}

  /// The slice is used up.
  [[nodiscard]] bool over() {
    if (--left_ > 0) return false;
    left_ = stride_;
    return env_.monotonic() - since_ >= kSlice;
  }

  /// Returns when everybody else who was ready has had a turn.
  Task<void> rest() {
    co_await env_.sleep(Duration::zero());
    since_ = env_.monotonic();
  }

 private:
  Env& env_;
  int stride_, left_;
  Duration since_;
};

}  // namespace muster
