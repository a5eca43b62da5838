#include "answers/live/lateness.h"

namespace muster::answers {

bool Lateness::late() {
  constexpr std::int64_t kLateUs = 5000, kAskEveryUs = 2000;
  const std::int64_t now = env_.monotonic().count();
  if (const std::int64_t since = asked_->since_us; since != 0) return now - since > kLateUs;
  std::int64_t last = asked_->last_us;
  if (now - last < kAskEveryUs || !asked_->last_us.compare_exchange_strong(last, now)) return false;
  asked_->since_us = now;
  env_.post([asked = asked_] { asked->since_us = 0; });
  return false;
}

}  // namespace muster::answers
