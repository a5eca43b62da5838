#include "answers/survival.h"

#include <algorithm>
#include <tuple>

namespace muster::answers {

Survival::Survival(std::vector<Run> runs) {
  // Whoever was cut off at the very time at which another ended was still there.
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::tie(a.us, b.ended) < std::tie(b.us, a.ended);
  });
  // Added up from the longest one on, so that the last end leaves exactly nobody.
  std::vector<double> going(runs.size() + 1, 0);
  for (std::size_t i = runs.size(); i > 0; --i) going[i - 1] = going[i] + runs[i - 1].weight;
  double left = 1;
  for (std::size_t i = 0; i < runs.size();) {
    if (!runs[i].ended) {
      ++i;
      continue;
    }
    std::size_t next = i;
    while (next < runs.size() && runs[next].us == runs[i].us && runs[next].ended) ++next;
    left *= going[next] / going[i];
    times_.push_back(runs[i].us);
    left_.push_back(left);
    runs_ += next - i;
    i = next;
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
