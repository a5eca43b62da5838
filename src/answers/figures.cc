#include "answers/figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster::answers {
namespace {

double pinball(double tau, double waited_s, double said_s) {
  const double e = std::log(waited_s + 60) - std::log(said_s + 60);
  return std::max(tau * e, (tau - 1) * e);
}

}  // namespace

void Tally::add(const SaidWait& said, double waited_s, double cpu_s) {
  if (waited_s < kLeast) return;
  ++sums_.moments;
  errs_.push_back(std::abs(said.p50 - waited_s) / std::max(waited_s, 60.0));
  const double ratio = (said.p50 + 60) / (waited_s + 60);
  sums_.x2 += ratio >= 0.5 && ratio <= 2 ? 1 : 0;
  sums_.holds += said.p10 <= waited_s && waited_s <= said.p90 ? 1 : 0;
  widths_.push_back((said.p90 + 60) / (said.p10 + 60));
  sums_.loss += (pinball(0.1, waited_s, said.p10) + pinball(0.5, waited_s, said.p50) +
                 pinball(0.9, waited_s, said.p90)) /
                3;
  sums_.answered += said.answered ? 1 : 0;
  range_ = range_ && said.range;
  sums_.cpu_s += cpu_s;
}

Figures Tally::figures(std::string name) const {
  Figures out = sums_;
  out.name = std::move(name);
  if (out.moments == 0) return out;
  const auto n = static_cast<double>(out.moments);
  std::vector<double> errs = errs_, widths = widths_;
  std::sort(errs.begin(), errs.end());
  std::sort(widths.begin(), widths.end());
  out.err = errs[errs.size() / 2];
  out.err75 = errs[std::min(errs.size() - 1, errs.size() * 3 / 4)];
  out.width = widths[widths.size() / 2];
  out.x2 /= n;
  out.holds = range_ ? out.holds / n : -1;
  out.loss /= n;
  out.answered /= n;
  out.cpu_s /= n;
  return out;
}

}  // namespace muster::answers
