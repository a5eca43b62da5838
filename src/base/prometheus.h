/// Prometheus' text format, written by hand: a page of metrics, one after the other.
///
///   prometheus::Page page;
///   page.begin("muster_queue_gangs_waiting", "gauge", "Gangs of a queue that wait.");
///   page.value("muster_queue_gangs_waiting", 3, {{"queue", "default"}});
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace muster::prometheus {

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

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Page {
 public:
  /// Before the values of a metric. `type`: counter, gauge or histogram.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  /// Values of labels may be any text.
  void value(std::string_view name, double number, Labels labels = {});
  /// A metric of one value.
  void one(std::string_view name, std::string_view type, std::string_view help, double number);
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram);

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// The names that every Prometheus client library uses for the process itself.
void add_process(Page& page);

}  // namespace muster::prometheus
