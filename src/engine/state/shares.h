/// Who deserves how much: water-filling by weight, as Volcano's proportion plugin defines it, in
/// exact fixed point.
///
/// Every round hands what remains to the queues whose demand is not met, by weight; each takes at
/// most its limit and its demand, and gets at least its guarantee; what was capped goes back. It
/// ends when nothing remains or nothing moves. Example: 8 GPUs, queues a (weight 1, wants 1) and b,
/// c (weight 1, want 8): a gets 1, b and c get 3.5 each.
#pragma once

#include <vector>

#include "engine/volcano/amounts.h"

namespace muster::engine {

struct Claim {
  std::int64_t weight = 1;
  volcano::Amounts limit;  ///< kInfinite where there is none.
  volcano::Amounts demand;
  volcano::Amounts guarantee;
  volcano::Amounts deserved;  ///< The answer.
};

void water_fill(const volcano::Amounts& total, std::size_t dimensions, std::vector<Claim>& claims);

}  // namespace muster::engine
