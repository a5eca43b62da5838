#include "base/loan.h"

#include <utility>

namespace muster {

Loan::Hold Loan::try_hold() {
  if (!round_) return {};
  std::unique_lock lock(round_->free, std::try_to_lock);
  const bool mine = lock.owns_lock() && !round_->used;
  return {std::move(lock), mine};
}

void Loan::claim() {
  if (!round_) return;
  const std::lock_guard lock(round_->free);
  round_->claimed = true;
}

void Loan::offer() { round_ = std::make_shared<Round>(); }

std::function<void(const std::function<void()>& work)> Loan::turn() {
  return [round = round_](const std::function<void()>& work) {
    const std::lock_guard lock(round->free);
    if (round->claimed) return;
    round->used = true;
    work();
  };
}

bool Loan::take_back() {
  const std::shared_ptr<Round> round = std::exchange(round_, nullptr);
  return round->used && !round->claimed;
}

}  // namespace muster
