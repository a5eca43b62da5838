#include "answers/quantiles.h"

#include <algorithm>
#include <optional>

namespace muster::answers {
namespace {

constexpr std::size_t kDrawsForARange = 8;

/// Position of a quantile among so many sorted draws, such that a new draw is below it with that
/// probability.
std::optional<Time> quantile(const std::vector<Time>& sorted, std::size_t draws, double p) {
  const double at =
      std::clamp(p * static_cast<double>(draws + 1) - 1, 0.0, static_cast<double>(draws) - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, draws - 1);
  const double part = at - static_cast<double>(low);
  if (low >= sorted.size()) return std::nullopt;
  if (part == 0) return sorted[low];
  if (high >= sorted.size()) return std::nullopt;
  return sorted[low] + Duration(static_cast<std::int64_t>(
                           part * static_cast<double>((sorted[high] - sorted[low]).count())));
}

}  // namespace

Quantiles quantiles(std::vector<Time> values, std::size_t draws, bool certain) {
  std::sort(values.begin(), values.end());
  Quantiles out;
  if (draws == 0) return out;
  out.p50 = quantile(values, draws, 0.5);
  if (draws < kDrawsForARange && !certain) return out;
  out.p10 = quantile(values, draws, 0.1);
  out.p90 = quantile(values, draws, 0.9);
  return out;
}

}  // namespace muster::answers
