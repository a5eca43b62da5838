/// Writes of the scheduler, a bounded number in flight at once; the rest wait in order. One lane
/// for what must be quick (bindings, evictions), one for what may wait (conditions, phases), where
/// only the newest text of an object counts. The second goes on at a walk while the first is busy:
/// on a loaded API server every status write would cost a binding.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "base/env.h"
#include "base/gate.h"

namespace muster::scheduler {

class Lane {
 public:
  Lane(Env& env, int in_flight_max) : env_(env), in_flight_max_(in_flight_max), under_way_(env) {}

  /// Few at a time while `other` has work. Both live equally long.
  void yield_to(Lane& other) {
    ahead_ = &other;
    other.behind_ = this;
  }

  using Work = std::function<Task<void>()>;
  void add(Work work) {
    queue_.push_back([this, work = std::move(work)] { env_.spawn(run(work)); });
    pump();
  }
  /// Work that needs no coroutine: it calls its argument once it has ended, and never before it has
  /// returned.
  using Call = std::function<void(std::function<void()> ended)>;
  void add_call(Call call) {
    queue_.push_back([this, call = std::move(call)] { call([this] { ended(); }); });
    pump();
  }
  /// Replaces work of the same key that has not begun.
  void add_latest(const std::string& key, Work work) {
    const auto [slot, fresh] = latest_.insert_or_assign(key, std::move(work));
    if (fresh) {
      add([this, key]() -> Task<void> {
        auto found = latest_.extract(key);
        if (!found.empty()) co_await found.mapped()();
      });
    }
  }
  void forget(const std::string& key) {
    const auto found = latest_.find(key);
    if (found != latest_.end()) found->second = []() -> Task<void> { co_return; };
  }
  void stop() {
    stopped_ = true;
    queue_.clear();
    latest_.clear();
  }
  [[nodiscard]] bool idle() const { return queue_.empty() && under_way_.inside() == 0; }
  /// Until nothing is under way, for `most` at the longest (zero: for ever). What waits its turn
  /// begins meanwhile, unless the lane was stopped.
  Task<bool> wait_idle(Duration most) { return under_way_.wait_empty(most); }

 private:
  void pump() {
    const int most = ahead_ == nullptr || ahead_->idle() ? in_flight_max_ : kInFlightYielding;
    while (!stopped_ && static_cast<int>(under_way_.inside()) < most && !queue_.empty()) {
      const auto begin = std::move(queue_.front());
      queue_.pop_front();
      under_way_.enter();
      begin();
    }
  }
  Task<void> run(Work work) {
    co_await work();
    ended();
  }
  void ended() {
    under_way_.leave();
    pump();
    if (behind_ != nullptr && idle()) behind_->pump();
  }

  static constexpr int kInFlightYielding = 2;

  Env& env_;
  Lane* ahead_ = nullptr;
  Lane* behind_ = nullptr;
  int in_flight_max_;
  Gate under_way_;
  bool stopped_ = false;
  std::deque<std::function<void()>> queue_;
  std::map<std::string, Work> latest_;
};

}  // namespace muster::scheduler
