#include "base/gate.h"

#include "base/result.h"

namespace muster {

Gate::Gate(Env& env) : env_(env), emptied_(env.make_signal()) {}

Gate::Sleeper::Sleeper(Gate& gate, Signal& signal) : gate_(gate), signal_(signal) {
  gate_.sleepers_.insert(&signal_);
  if (gate_.closed_) signal_.notify();
}

void Gate::leave() {
  MUSTER_CHECK(inside_ > 0, "more left the gate than had entered it");
  if (--inside_ == 0) emptied_->notify();
}

void Gate::close() {
  closed_ = true;
  // A signal wakes its waiters later, from the loop, so nobody leaves the set meanwhile.
  for (Signal* sleeper : sleepers_) sleeper->notify();
}

Task<bool> Gate::wait_empty(Duration most) {
  const bool bounded = most > Duration::zero();
  const Duration end = env_.monotonic() + most;
  while (inside_ > 0) {
    const Duration left = bounded ? end - env_.monotonic() : Duration::zero();
    if (bounded && left <= Duration::zero()) co_return false;
    co_await emptied_->wait(left);
  }
  co_return true;
}

}  // namespace muster
