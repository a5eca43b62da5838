#include "apiserver/rest/turns.h"

namespace muster::apiserver {

Task<void> Turns::wait() {
  if (first_ == 0) co_return;
  if (waiting_.empty()) crowded_since_ = env_.monotonic();
  const std::shared_ptr<Signal> turn = env_.make_signal();
  waiting_.push_back(turn);
  co_await turn->wait(Duration::zero());
}

void Turns::leave() {
  --first_;
  if (waiting_.empty()) {
    since_ = 0;
    return;
  }
  ++since_;
  if (first_ > 0 && since_ < kShare && env_.monotonic() - crowded_since_ < patience_) return;
  since_ = 0;
  for (bool more = true; more; more = first_ == 0 && !waiting_.empty()) {
    const auto turn = std::move(waiting_.front());
    waiting_.pop_front();
    turn->notify();
  }
}

}  // namespace muster::apiserver
