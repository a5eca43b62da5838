#include "answers/quantiles.h"

#include <algorithm>
#include <optional>

namespace muster::answers {
namespace {

constexpr std::size_t kDrawsForARange = 8;

/// So many need no smoothing.
constexpr std::size_t kFew = 256;

/// Of all draws sorted, each by the probability that as many of the others fall below the quantile as
/// lie below it (Bernstein's polynomial of the quantile function; Cheng 1995). Where one of a few
/// courses lies is chance; so its neighbours have a say.
/// Example: of five the middle is 1/16, 4/16, 6/16, 4/16 and 1/16 of them.
Time smooth(const std::vector<Time>& sorted, double p) {
  const std::size_t others = sorted.size() - 1;
  // From the side where more lie, so that no probability is too small for a number.
  const bool low = p <= 0.5;
  const double near = low ? p : 1 - p;
  double share = 1;
  for (std::size_t i = 0; i < others; ++i) share *= 1 - near;
  // As a distance from one of them, so that what is the same in all courses stays as it is.
  const Time from = low ? sorted.front() : sorted.back();
  double sum = 0;
  for (std::size_t i = 0; i <= others; ++i) {
    sum += share * static_cast<double>((sorted[low ? i : others - i] - from).count());
    share *= static_cast<double>(others - i) / static_cast<double>(i + 1) * near / (1 - near);
  }
  return from + Duration(static_cast<std::int64_t>(sum));
}

/// Position of a quantile among so many sorted draws, such that a new draw is below it with that
/// probability. Also where the last ones are missing.
std::optional<Time> position(const std::vector<Time>& sorted, std::size_t draws, double p) {
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
  const auto quantile = [&](double p) -> std::optional<Time> {
    const bool all = values.size() == draws && draws <= kFew;
    return all ? smooth(values, p) : position(values, draws, p);
  };
  out.p50 = quantile(0.5);
  if (draws < kDrawsForARange && !certain) return out;
  out.p10 = quantile(0.1);
  out.p90 = quantile(0.9);
  return out;
}

}  // namespace muster::answers
