#include "answers/survival.h"

#include <algorithm>

namespace muster::answers {

Survival::Survival(std::span<const std::int64_t> ended, std::vector<std::int64_t> longer)
    : runs_(ended.size()) {
  std::sort(longer.begin(), longer.end());
  double left = 1;
  std::size_t cut = 0;
  for (std::size_t i = 0; i < ended.size();) {
    std::size_t same = i;
    while (same < ended.size() && ended[same] == ended[i]) ++same;
    // Whoever was cut off at this very time was still there.
    while (cut < longer.size() && longer[cut] < ended[i]) ++cut;
    const auto going = static_cast<double>(ended.size() - i + longer.size() - cut);
    left *= 1 - static_cast<double>(same - i) / going;
    times_.push_back(ended[i]);
    left_.push_back(left);
    i = same;
  }
}

double Survival::after(std::int64_t us) const {
  const auto at = std::upper_bound(times_.begin(), times_.end(), us) - times_.begin();
  return at == 0 ? 1 : left_[static_cast<std::size_t>(at - 1)];
}

std::optional<std::int64_t> Survival::quantile(std::int64_t age, double u, double* beyond) const {
  const auto first = std::upper_bound(times_.begin(), times_.end(), age) - times_.begin();
  const double wanted = after(age) * (1 - u);
  for (auto i = static_cast<std::size_t>(first); i < times_.size(); ++i) {
    if (left_[i] < wanted || (left_[i] == 0 && wanted == 0)) return times_[i];
  }
  const double rest = times_.empty() || first == static_cast<std::ptrdiff_t>(times_.size())
                          ? after(age)
                          : left_.back();
  if (beyond != nullptr) *beyond = rest > 0 ? std::clamp(1 - wanted / rest, 0.0, 1.0) : 1;
  return std::nullopt;
}

}  // namespace muster::answers
