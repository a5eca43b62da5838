/// A cron schedule: when is it next? Minutes, hours, days, months, weekdays; lists, ranges, steps,
/// names and @hourly etc. Told in the time of a zone, UTC without one. A time that a change to
/// summer time leaves out is not; one that the change back repeats is twice.
#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "base/time_zone.h"

namespace muster::controllers::cronjob {

class Schedule {
 public:
  static Result<Schedule> parse(std::string_view text,
                                std::shared_ptr<const TimeZone> zone = nullptr);
  /// The first time after `after`; none when there is none within five years (the 30th of
  /// February).
  [[nodiscard]] std::optional<Time> next(Time after) const;

 private:
  [[nodiscard]] bool day_matches(int day, int month, int weekday) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<7> weekdays_;
  bool any_day_ = false, any_weekday_ = false;  // written as "*": the other one decides alone
  Duration every_{0};                           // @every
  std::shared_ptr<const TimeZone> zone_;        // null: UTC
};

}  // namespace muster::controllers::cronjob
