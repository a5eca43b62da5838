/// How good foretold starts were: one way to count, for replays of traces (score.h) and for what
/// was really said here (`report accuracy`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace muster::answers {

/// What was said, in seconds from then.
struct SaidWait {
  double p10 = 0, p50 = 0, p90 = 0;
  bool answered = true;
  bool range = true;
};

/// Over the moments of jobs that waited for at least a minute more.
struct Figures {
  std::string name;
  std::int64_t moments = 0;
  double err = 0, err75 = 0;  ///< |p50 - y| / max(y, 60 s), median and 75th percentile.
  double x2 = 0;              ///< Share with p50 within a factor of 2.
  double holds = 0;           ///< Share within p10 … p90; below zero: it gives no range.
  double width = 0;           ///< Median (p90 + 60) / (p10 + 60).
  double loss = 0;            ///< Pinball loss over 0.1, 0.5, 0.9 in ln(60 s + wait).
  double answered = 0;
  double cpu_s = 0;  ///< A moment.
};

class Tally {
 public:
  static constexpr double kLeast = 60;  ///< Shorter waits are not counted.

  void add(const SaidWait& said, double waited_s, double cpu_s = 0);
  [[nodiscard]] Figures figures(std::string name = {}) const;

 private:
  Figures sums_;
  bool range_ = true;
  std::vector<double> errs_, widths_;
};

}  // namespace muster::answers
