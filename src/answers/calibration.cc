#include "answers/calibration.h"

#include <algorithm>
#include <cmath>

namespace muster::answers {
namespace {

constexpr double kStep = 0.05;
constexpr double kOutside = 0.1;

double x_of(Duration wait) {
  return std::log(60 + static_cast<double>(std::max<std::int64_t>(wait.count(), 0)) / 1e6);
}
Duration wait_of(double x) {
  return Duration(static_cast<std::int64_t>(std::max(0.0, std::exp(std::min(x, 30.0)) - 60) * 1e6));
}

}  // namespace

std::size_t Calibration::band_of(Time now, const Quantiles& range) {
  if (!range.p50 || *range.p50 - now >= std::chrono::hours(8)) return 2;
  return *range.p50 - now >= std::chrono::hours(1) ? 1 : 0;
}

Quantiles Calibration::widen(Basis basis, Time now, const Quantiles& range) const {
  if (basis == Basis::kNone) return range;
  const Side& side = this->side(basis, band_of(now, range));
  if (side.judged < kJudgedForUse) return range;
  Quantiles out = range;
  if (range.p10) out.p10 = now + wait_of(x_of(*range.p10 - now) - side.below);
  if (range.p90) out.p90 = now + wait_of(x_of(*range.p90 - now) + side.above);
  if (range.p50 && out.p10) out.p10 = std::min(*out.p10, *range.p50);
  if (range.p50 && out.p90) out.p90 = std::max(*out.p90, *range.p50);
  return out;
}

void Calibration::judge(Basis basis, Time said, const Quantiles& range, Time started) {
  if (basis == Basis::kNone) return;
  Side& side = sides_[basis == Basis::kKnown ? 1 : 0][band_of(said, range)];
  const bool below = range.p10 && started < *range.p10;
  const bool above = range.p90 && started > *range.p90;
  side.below += kStep * ((below ? 1.0 : 0.0) - kOutside);
  side.above += kStep * ((above ? 1.0 : 0.0) - kOutside);
  ++side.judged;
  if (!below && !above) ++side.held;
}

}  // namespace muster::answers
