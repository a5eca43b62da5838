#include "answers/calibration.h"

#include <algorithm>
#include <cmath>

namespace muster::answers {
namespace {

constexpr double kStep = 0.05;
constexpr double kOutside = 0.1;
constexpr Duration kJustCame = std::chrono::minutes(5);

double x_of(Duration wait) {
  return std::log(60 + static_cast<double>(std::max<std::int64_t>(wait.count(), 0)) / 1e6);
}
Duration wait_of(double x) {
  return Duration(static_cast<std::int64_t>(std::max(0.0, std::exp(std::min(x, 30.0)) - 60) * 1e6));
}

}  // namespace

std::size_t Calibration::band_of(const Said& said) {
  const auto& p50 = said.range.p50;
  if (!p50 || *p50 - said.at >= std::chrono::hours(8)) return 2;
  return *p50 - said.at >= std::chrono::hours(1) ? 1 : 0;
}

std::size_t Calibration::age_of(const Said& said) { return said.waited >= kJustCame ? 1 : 0; }

Quantiles Calibration::widen(const Said& said) const {
  const Quantiles& range = said.range;
  if (said.basis == Basis::kNone) return range;
  const Side& side = this->side(said);
  if (side.judged < kJudgedForUse) return range;
  Quantiles out = range;
  if (range.p10) out.p10 = said.at + wait_of(x_of(*range.p10 - said.at) - side.below);
  if (range.p90) out.p90 = said.at + wait_of(x_of(*range.p90 - said.at) + side.above);
  if (range.p50 && out.p10) out.p10 = std::min(*out.p10, *range.p50);
  if (range.p50 && out.p90) out.p90 = std::max(*out.p90, *range.p50);
  return out;
}

void Calibration::judge(const Said& said, Time started) {
  if (said.basis == Basis::kNone) return;
  Side& side = sides_[said.basis == Basis::kKnown ? 1 : 0][age_of(said)][band_of(said)];
  const bool below = said.range.p10 && started < *said.range.p10;
  const bool above = said.range.p90 && started > *said.range.p90;
  side.below += kStep * ((below ? 1.0 : 0.0) - kOutside);
  side.above += kStep * ((above ? 1.0 : 0.0) - kOutside);
  ++side.judged;
  if (!below && !above) ++side.held;
}

}  // namespace muster::answers
