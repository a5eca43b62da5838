/// Long work on the loop, cut into slices so that others have their turn in between:
///
///     Pace pace(env);
///     for (const auto& each : many) {
///       if (pace.over()) co_await pace.rest();
///       work(each);
///     }
///
/// What may change while it rests must have been copied before. Where much of such work may be under
/// way at once, it shares `Slices`: however many there are, one slice is done in each turn of the loop.
#pragma once

#include <deque>
#include <memory>

#include "base/env.h"

namespace muster {

class Slices {
 public:
  explicit Slices(Env& env) : env_(env) {}
  Slices(const Slices&) = delete;

  [[nodiscard]] Env& env() const { return env_; }

  /// Returns when those who asked before have had a slice each, and everybody else a turn after each.
  Task<void> turn() {
    const std::shared_ptr<Signal> mine = env_.make_signal();
    waiting_.push_back(mine);
    if (waiting_.size() == 1) env_.post([this] { next(); });
    co_await mine->wait(Duration::zero());
  }

 private:
  void next() {
    const std::shared_ptr<Signal> first = std::move(waiting_.front());
    waiting_.pop_front();
    first->notify();
    if (!waiting_.empty()) env_.post([this] { next(); });
  }

  Env& env_;
  std::deque<std::shared_ptr<Signal>> waiting_;
};

class Pace {
 public:
  /// Long enough that the turns cost nothing, and so short that a request that comes in between
  /// hardly notices: it may have to wait for several of them.
  static constexpr Duration kSlice = std::chrono::microseconds(200);

  /// `stride`: pieces so small that looking at the clock would cost as much are counted first.
  explicit Pace(Env& env, int stride = 1)
      : env_(env), stride_(stride), left_(stride), since_(env.monotonic()) {}
  explicit Pace(Slices& slices, int stride = 1) : Pace(slices.env(), stride) { slices_ = &slices; }

  /// The slice is used up.
  [[nodiscard]] bool over() {
    if (--left_ > 0) return false;
    left_ = stride_;
    return env_.monotonic() - since_ >= kSlice;
  }

  /// Returns when everybody else who was ready has had a turn.
  Task<void> rest() {
    if (slices_ != nullptr)
      co_await slices_->turn();
    else
      co_await env_.sleep(Duration::zero());
    since_ = env_.monotonic();
  }

 private:
  Env& env_;
  Slices* slices_ = nullptr;
  int stride_, left_;
  Duration since_;
};

}  // namespace muster
