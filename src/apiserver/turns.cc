#include "apiserver/turns.h"

namespace muster::apiserver {

Task<void> Turns::wait() {
  if (first_ == 0) co_return;
  const std::shared_ptr<Signal> turn = env_.make_signal();
  waiting_.push_back(turn);
  co_await turn->wait(Duration::zero());
}

void Turns::leave() {
  --first_;
  ++since_;
  if (first_ > 0 && since_ < kShare) return;
  since_ = 0;
  for (bool more = !waiting_.empty(); more; more = first_ == 0 && !waiting_.empty()) {
    const auto turn = std::move(waiting_.front());
    waiting_.pop_front();
    turn->notify();
  }
}

}  // namespace muster::apiserver
