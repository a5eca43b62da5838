/// Time as a value. Nothing below main/ asks the kernel what time it is: it comes from Env, or as
/// an argument.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// A span of time; microseconds are fine enough for logs and events (Kubernetes' MicroTime).
using Duration = std::chrono::microseconds;

/// Microseconds since 1970-01-01 UTC. Zero means "no time".
struct Time {
  std::int64_t us = 0;

  auto operator<=>(const Time&) const = default;
  explicit operator bool() const { return us != 0; }
  Time operator+(Duration d) const { return Time{us + d.count()}; }
  Time operator-(Duration d) const { return Time{us - d.count()}; }
  Duration operator-(Time other) const { return Duration{us - other.us}; }
  static Time from_seconds(std::int64_t s) { return Time{s * 1'000'000}; }
  std::int64_t seconds() const { return us / 1'000'000; }
};

/// "2026-11-15T05:40:00Z", metav1.Time.
std::string format_time(Time time);
/// "2026-11-15T05:40:00.000000Z", metav1.MicroTime.
std::string format_micro_time(Time time);
/// "2026-11-15T05:40:00.123456789Z"-like with a nanosecond field, as `kubectl logs --timestamps`
/// shows.
std::string format_nano_time(Time time);
/// RFC 3339 with any fraction and offset.
Result<Time> parse_time(std::string_view text);

/// Go's duration syntax: "1h30m", "500ms", "2s".
Result<Duration> parse_duration(std::string_view text);

/// Kubernetes' short ages: 58s, 2m32s, 12m, 3h5m, 47h, 7d12h, 2y30d (duration.HumanDuration).
std::string human_duration(Duration duration);
/// Go's duration.ShortHumanDuration: 58s, 12m, 3h, 2d, 1y.
std::string short_human_duration(Duration duration);

}  // namespace muster
