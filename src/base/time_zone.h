/// The system's time zones, from the files below /usr/share/zoneinfo (RFC 8536). Immutable once
/// read; read once a zone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster {

class TimeZone {
 public:
  /// "Europe/Berlin", "UTC". The words of the error are Go's, which users of Kubernetes know:
  /// unknown time zone X.
  static Result<std::shared_ptr<const TimeZone>> find(std::string_view name);
  /// The bytes of one file. For tests.
  static Result<TimeZone> parse(std::string_view bytes);

  /// What a clock there shows beyond UTC, in seconds, at this moment.
  [[nodiscard]] std::int64_t offset_s(Time at) const;

 private:
  /// The day and second at which a year's summer or winter time begins, such as M3.5.0/2: the last
  /// Sunday of March, at two.
  struct Change {
    int month = 0, week = 0, weekday = 0;
    std::int64_t time_s = 0;
  };
  static bool read_rule(std::string_view text, TimeZone& zone);
  [[nodiscard]] static std::int64_t begin_of(const Change& change, std::int64_t year);

  struct Transition {
    std::int64_t at_s;
    std::int64_t offset_s;
  };
  std::int64_t first_offset_s_ = 0;
  std::vector<Transition> transitions_;  // in order of time
  // Behind the last of them: the same rule each year.
  bool has_rule_ = false, has_summer_ = false;
  std::int64_t winter_offset_s_ = 0, summer_offset_s_ = 0;
  Change summer_, winter_;
};

}  // namespace muster
