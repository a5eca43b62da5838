/// How many runs of a kind are still going after a time: the estimate of Kaplan and Meier (1958) from
/// runs that ended and runs of which is only known that they lasted longer than that.
///
/// Example: ended after 1, 3 and 4 hours, cut off after 2. After 1 h 3 of 4 are left, the one that was
/// cut off says nothing about later times: after 3 h a half of that, 3/8, after 4 h none. A run may
/// count for less than others; where all count alike it does not matter how much.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace muster::answers {

class Survival {
 public:
  struct Run {
    std::int64_t us = 0;
    bool ended = true;  ///< False: it lasted, or will last, longer.
    double weight = 1;
  };
  /// In any order.
  explicit Survival(std::vector<Run> runs);

  /// The share that lasts longer than that.
  [[nodiscard]] double after(std::int64_t us) const;
  /// Of those that last longer than `age`, the time by which a share u (in [0, 1)) has ended. Absent:
  /// that lies beyond the longest end, and `beyond` gets how far into the rest it lies, 0 … 1.
  [[nodiscard]] std::optional<std::int64_t> quantile(std::int64_t age,
                                                     double u,
                                                     double* beyond = nullptr) const;
  [[nodiscard]] std::int64_t longest() const { return times_.empty() ? 0 : times_.back(); }
  [[nodiscard]] std::size_t runs() const { return runs_; }

 private:
  std::vector<std::int64_t> times_;  ///< At which some ended.
  std::vector<double> left_;         ///< After each.
  std::size_t runs_ = 0;
};

}  // namespace muster::answers
