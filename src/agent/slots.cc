#include "agent/slots.h"

namespace muster::agent {

constexpr Duration kPatience = std::chrono::seconds(10);

void Slots::Slot::release() {
  if (held_) give_back(*held_);
  held_.reset();
}

Slots::Slot Slots::hold() {
  Slot slot;
  slot.held_ = std::make_shared<Slot::Held>();
  slot.held_->from = this;
  const std::weak_ptr<Slot::Held> weak = slot.held_;
  slot.held_->patience = loop_.after(kPatience, [weak] {
    if (const auto held = weak.lock(); held) give_back(*held);
  });
  return slot;
}

Task<Slots::Slot> Slots::take() {
  if (closed_) co_return Slot();
  if (free_ > 0) {
    --free_;
    co_return hold();
  }
  const auto own = std::make_shared<Waiter>();
  own->woken = loop_.make_signal();
  waiting_.push_back(own);
  while (!own->served && !closed_) co_await own->woken->wait(Duration::zero());
  if (!own->served) co_return Slot();
  co_return hold();
}

/// The slot passes to the first who waits.
void Slots::give_back(Slot::Held& held) {
  auto* const self = std::exchange(held.from, nullptr);
  if (self == nullptr) return;
  if (self->waiting_.empty()) {
    ++self->free_;
    return;
  }
  const auto next = std::move(self->waiting_.front());
  self->waiting_.pop_front();
  next->served = true;
  next->woken->notify();
}

void Slots::close() {
  closed_ = true;
  const auto all = std::move(waiting_);
  waiting_.clear();
  for (const auto& one : all) one->woken->notify();
}

}  // namespace muster::agent
