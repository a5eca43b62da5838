/// Scores of nodes. One of Volcano's points (a plugin gives 0 to 100 times its weight) is 10,000
/// here, so that fractions need no floating point.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/volcano/amounts.h"

namespace muster::engine::volcano {

inline constexpr std::int64_t kPoint = 10'000;
inline constexpr std::int64_t kFullScore = 100 * kPoint;

/// Parts per million of the node in use once the task is there; a million at most.
[[nodiscard]] inline std::int64_t fill(Wide after, Wide allocatable) {
  return static_cast<std::int64_t>(std::min<Wide>(after * 1'000'000 / allocatable, 1'000'000));
}

}  // namespace muster::engine::volcano
