// Water-filling for any queues: nobody beyond limit or demand, guarantees kept, nothing handed out
// twice, and nothing left over while somebody below limit and demand could take it.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "engine/state/shares.h"

namespace muster::engine {
namespace {

using volcano::Wide;

RC_GTEST_PROP(WaterFill, KeepsLimitsAndLeavesNothingWanted, ()) {
  const auto total = *rc::gen::inRange<std::int64_t>(0, 10'000);
  const auto n = *rc::gen::inRange<std::size_t>(1, 7);
  std::vector<Claim> claims(n);
  std::int64_t guaranteed = 0;
  for (Claim& c : claims) {
    c.weight = *rc::gen::inRange<std::int64_t>(1, 10);
    c.demand[0] = static_cast<Wide>(*rc::gen::inRange<std::int64_t>(0, 10'000)) * 1000;
    c.limit[0] = *rc::gen::arbitrary<bool>()
                     ? volcano::kInfinite
                     : static_cast<Wide>(*rc::gen::inRange<std::int64_t>(0, 10'000)) * 1000;
    const auto room = std::max<std::int64_t>(total - guaranteed, 0);
    const auto g = *rc::gen::inRange<std::int64_t>(0, room / 4 + 1);
    c.guarantee[0] = std::min(static_cast<Wide>(g) * 1000, c.limit[0]);
    guaranteed += g;
  }
  volcano::Amounts amounts;
  amounts[0] = static_cast<Wide>(total) * 1000;
  water_fill(amounts, 1, claims);
  Wide sum = 0;
  bool somebody_wants = false;
  for (const Claim& c : claims) {
    RC_ASSERT(c.deserved[0] >= c.guarantee[0]);
    RC_ASSERT(c.deserved[0] <= std::max(c.guarantee[0], std::min(c.limit[0], c.demand[0])));
    sum += c.deserved[0];
    somebody_wants |= c.deserved[0] + volcano::kTolerance < std::min(c.limit[0], c.demand[0]);
  }
  // Guarantees may add up beyond what the others left; without them it never exceeds the total.
  RC_ASSERT(sum <= amounts[0] + static_cast<Wide>(guaranteed) * 1000);
  if (guaranteed == 0 && somebody_wants)
    RC_ASSERT(sum + static_cast<Wide>(n) * volcano::kTolerance >= amounts[0]);
}

}  // namespace
}  // namespace muster::engine
