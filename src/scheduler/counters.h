/// What the scheduler has done since it started, for metrics. Only ever counted up.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace muster::scheduler {

/// How long something took, in buckets as Prometheus counts them.
class Histogram {
 public:
  static constexpr std::array<double, 11> kBounds_s{
      0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30};
  void add(Duration took) {
    const double seconds = std::chrono::duration<double>(took).count();
    std::size_t bucket = 0;
    while (bucket < kBounds_s.size() && seconds > kBounds_s[bucket]) ++bucket;
    ++counts_[bucket];
    ++count_;
    sum_s_ += seconds;
  }
  /// Of the bucket alone, not of those below it; the last is what passes every bound.
  [[nodiscard]] std::int64_t in_bucket(std::size_t bucket) const { return counts_[bucket]; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] double sum_s() const { return sum_s_; }

 private:
  std::array<std::int64_t, kBounds_s.size() + 1> counts_{};
  std::int64_t count_ = 0;
  double sum_s_ = 0;
};

struct Counters {
  std::int64_t bound = 0;  // bindings that the API server took
  std::int64_t bind_failures = 0;
  std::int64_t evicted = 0;
  std::int64_t evict_failures = 0;
  Histogram decide;  // one pass of the engine
  Histogram bind;    // a binding from the decision to the API server's answer
};

}  // namespace muster::scheduler
