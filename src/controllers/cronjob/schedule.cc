#include "controllers/cronjob/schedule.h"

#include <fmt/core.h>

#include <ctime>
#include <utility>

#include "base/strings.h"

namespace muster::controllers::cronjob {
namespace {

constexpr std::string_view kMonths[] = {
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kWeekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Bounds {
  std::string_view what;
  int low, high;
};

std::optional<int> number(std::string_view word, const Bounds& bounds) {
  const std::string lower = to_lower(word);
  if (bounds.what == "month") {
    for (int i = 0; i < 12; ++i) {
      if (lower == kMonths[i]) return i + 1;
    }
  }
  if (bounds.what == "day of the week") {
    for (int i = 0; i < 7; ++i) {
      if (lower == kWeekdays[i]) return i;
    }
  }
  const auto parsed = parse_int(word);
  return parsed && *parsed >= 0 && *parsed < 100 ? std::optional<int>(static_cast<int>(*parsed))
                                                 : std::nullopt;
}

/// "*", "5", "1-5", "*/15", "10-50/20" and lists of these.
template <std::size_t N>
Result<void> read_field(std::string_view text,
                        const Bounds& bounds,
                        std::bitset<N>& into,
                        bool* any = nullptr) {
  const auto bad = [&] {
    return fail(Code::kInvalid, fmt::format("\"{}\" is not a {}", text, bounds.what));
  };
  for (const std::string& part : split(text, ',')) {
    const std::size_t slash = part.find('/');
    const std::string range = part.substr(0, slash);
    int first = bounds.low, last = bounds.high, step = 1;
    if (range == "*" || range == "?") {
      if (any != nullptr && slash == std::string::npos) *any = true;
    } else {
      const std::size_t dash = range.find('-');
      const auto from = number(range.substr(0, dash), bounds);
      const auto to = dash == std::string::npos ? from : number(range.substr(dash + 1), bounds);
      if (!from || !to) return bad();
      first = *from;
      // "5/10" runs from 5 to the end.
      last = dash == std::string::npos && slash != std::string::npos ? bounds.high : *to;
    }
    if (slash != std::string::npos) {
      const auto given = parse_int(part.substr(slash + 1));
      if (!given || *given < 1 || *given > 100) return bad();
      step = static_cast<int>(*given);
    }
    if (first < bounds.low || last > bounds.high || first > last) return bad();
    for (int i = first; i <= last; i += step) into.set(static_cast<std::size_t>(i));
  }
  return {};
}

std::string_view spelled_out(std::string_view text) {
  if (text == "@yearly" || text == "@annually") return "0 0 1 1 *";
  if (text == "@monthly") return "0 0 1 * *";
  if (text == "@weekly") return "0 0 * * 0";
  if (text == "@daily" || text == "@midnight") return "0 0 * * *";
  if (text == "@hourly") return "0 * * * *";
  return text;
}

}  // namespace

Result<Schedule> Schedule::parse(std::string_view text, std::shared_ptr<const TimeZone> zone) {
  Schedule schedule;
  schedule.zone_ = std::move(zone);
  text = trim(text);
  if (text.starts_with("@every ")) {
    const auto period = parse_duration(trim(text.substr(7)));
    if (!period || *period < std::chrono::seconds(1))
      return fail(Code::kInvalid,
                  fmt::format("\"{}\" is not a schedule: wanted @every DURATION", text));
    schedule.every_ = *period;
    return schedule;
  }
  const auto fields = split_nonempty(spelled_out(text), ' ');
  if (fields.size() != 5)
    return fail(Code::kInvalid,
                fmt::format("expected exactly 5 fields, found {}: {}", fields.size(), text));
  for (const auto& read :
       {read_field(fields[0], {"minute", 0, 59}, schedule.minutes_),
        read_field(fields[1], {"hour", 0, 23}, schedule.hours_),
        read_field(fields[2], {"day of the month", 1, 31}, schedule.days_, &schedule.any_day_),
        read_field(fields[3], {"month", 1, 12}, schedule.months_),
        read_field(
            fields[4], {"day of the week", 0, 6}, schedule.weekdays_, &schedule.any_weekday_)}) {
    if (!read) return fail(read.error());
  }
  return schedule;
}

bool Schedule::day_matches(int day, int month, int weekday) const {
  if (!months_[static_cast<std::size_t>(month)]) return false;
  const bool by_day = days_[static_cast<std::size_t>(day)],
             by_weekday = weekdays_[static_cast<std::size_t>(weekday)];
  // Both given: either is enough.
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

std::optional<Time> Schedule::next(Time after) const {
  if (every_ > Duration{0}) return Time::from_seconds((after + every_).seconds());
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour, kHoursChecked = 3;
  std::int64_t at = (after.seconds() / kMinute + 1) * kMinute;
  const std::int64_t end = at + 5 * 366 * kDay;
  while (at < end) {
    const std::int64_t offset = zone_ ? zone_->offset_s(Time::from_seconds(at)) : 0;
    const std::time_t local = at + offset;
    std::tm parts{};
    gmtime_r(&local, &parts);
    if (!day_matches(parts.tm_mday, parts.tm_mon + 1, parts.tm_wday)) {
      // The last hours of a day one by one: where the clock is put forward at midnight, the next
      // day begins sooner.
      const std::int64_t left = kDay - local % kDay;
      at += !zone_                         ? left
            : left > kHour * kHoursChecked ? left - kHour * kHoursChecked
                                           : kHour - local % kHour;
    } else if (!hours_[static_cast<std::size_t>(parts.tm_hour)]) {
      at += kHour - local % kHour;
    } else if (!minutes_[static_cast<std::size_t>(parts.tm_min)]) {
      at += kMinute;
    } else {
      return Time::from_seconds(at);
    }
  }
  return std::nullopt;
}

}  // namespace muster::controllers::cronjob
