/// Who is served first inside a queue.
#pragma once

#include <compare>
#include <cstdint>

namespace muster::engine {

/// The least is served first.
struct Rank {
  /// Priority negated.
  std::int64_t low_priority = 0;
  /// Members above the minimum come after everybody's minimum.
  bool surplus = false;
  /// Dominant share in millionths, where DRF is asked for.
  std::int64_t drf = 0;
  std::int64_t created_us = 0;
  std::uint64_t seq = 0;

  auto operator<=>(const Rank&) const = default;
};

}  // namespace muster::engine
