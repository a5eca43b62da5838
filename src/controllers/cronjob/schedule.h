/// A cron schedule: when is it next? Minutes, hours, days, months, weekdays; lists, ranges, steps, names and @hourly etc.
/// All times are UTC.
#pragma once

#include <bitset>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace muster::controllers::cronjob {

class Schedule {
 public:
  static Result<Schedule> parse(std::string_view text);
  /// The first time after `after`; none when there is none within five years (the 30th of February).
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
};

}  // namespace muster::controllers::cronjob
