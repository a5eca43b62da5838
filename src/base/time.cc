#include "base/time.h"

#include <fmt/core.h>

#include <cmath>

namespace muster {
namespace {

struct Civil {
  std::int64_t year;
  int month, day, hour, minute, second, micro;
};

/// Howard Hinnant's days_from_civil and its inverse (chrono-Compatible Low-Level Date Algorithms).
std::int64_t days_from_civil(std::int64_t y, int m, int d) {
  y -= m <= 2;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t yoe = y - era * 400;
  const std::int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  const std::int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + doe - 719468;
}

Civil civil_of(Time time) {
  std::int64_t s = time.us / 1'000'000;
  std::int64_t micro = time.us % 1'000'000;
  if (micro < 0) {
    micro += 1'000'000;
    --s;
  }
  std::int64_t days = s / 86400;
  std::int64_t rest = s % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const std::int64_t doe = days - era * 146097;
  const std::int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const std::int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const std::int64_t mp = (5 * doy + 2) / 153;
  const int day = static_cast<int>(doy - (153 * mp + 2) / 5 + 1);
  const int month = static_cast<int>(mp < 10 ? mp + 3 : mp - 9);
  const std::int64_t year = yoe + era * 400 + (month <= 2);
  return {year,
          month,
          day,
          static_cast<int>(rest / 3600),
          static_cast<int>(rest / 60 % 60),
          static_cast<int>(rest % 60),
          static_cast<int>(micro)};
}

}  // namespace

std::string format_time(Time time) {
  const Civil c = civil_of(time);
  if (c.year < 0 || c.year > 9999)
    return fmt::format(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", c.year, c.month, c.day, c.hour, c.minute, c.second);
  // By hand: every write of an object makes several of these.
  std::string text = "0000-00-00T00:00:00Z";
  const auto put = [&text](std::size_t at, auto value) {
    text[at] = static_cast<char>('0' + value / 10 % 10);
    text[at + 1] = static_cast<char>('0' + value % 10);
  };
  put(0, c.year / 100);
  put(2, c.year % 100);
  put(5, c.month);
  put(8, c.day);
  put(11, c.hour);
  put(14, c.minute);
  put(17, c.second);
  return text;
}

std::string format_micro_time(Time time) {
  std::string text = format_time(time);
  text.back() = '.';
  char digits[] = "000000Z";
  int rest = static_cast<int>(civil_of(time).micro);
  for (int at = 5; at >= 0; --at, rest /= 10) digits[at] = static_cast<char>('0' + rest % 10);
  return text.append(digits);
}

std::string format_nano_time(Time time) {
  const Civil c = civil_of(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}000Z",
                     c.year,
                     c.month,
                     c.day,
                     c.hour,
                     c.minute,
                     c.second,
                     c.micro);
}

Result<Time> parse_time(std::string_view text) {
  const auto bad = [&] {
    return fail(Code::kInvalid,
                fmt::format("time \"{}\": wanted RFC 3339, such as 2006-01-02T15:04:05Z", text));
  };
  const auto digits = [&](std::size_t at, std::size_t count) -> int {
    int value = 0;
    for (std::size_t i = at; i < at + count; ++i) {
      if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' ||
      (text[10] != 'T' && text[10] != 't') || text[13] != ':' || text[16] != ':') {
    return bad();
  }
  const int year = digits(0, 4), month = digits(5, 2), day = digits(8, 2);
  const int hour = digits(11, 2), minute = digits(14, 2), second = digits(17, 2);
  if (year < 0 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 ||
      minute < 0 || minute > 59 || second < 0 || second > 60) {
    return bad();
  }
  std::size_t at = 19;
  std::int64_t micro = 0;
  if (text[at] == '.') {
    ++at;
    std::int64_t scale = 100'000;
    const std::size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      micro += (text[at] - '0') * scale;
      scale /= 10;
      ++at;
    }
    if (at == first) return bad();
  }
  std::int64_t offset_s = 0;
  if (at < text.size() && (text[at] == 'Z' || text[at] == 'z')) {
    ++at;
  } else if (at + 6 <= text.size() && (text[at] == '+' || text[at] == '-') && text[at + 3] == ':') {
    const int oh = digits(at + 1, 2), om = digits(at + 4, 2);
    if (oh < 0 || oh > 23 || om < 0 || om > 59) return bad();
    offset_s = (oh * 3600 + om * 60) * (text[at] == '-' ? -1 : 1);
    at += 6;
  } else {
    return bad();
  }
  if (at != text.size()) return bad();
  const std::int64_t s =
      days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset_s;
  return Time{s * 1'000'000 + micro};
}

Result<Duration> parse_duration(std::string_view text) {
  const auto bad = [&] {
    return fail(
        Code::kInvalid,
        fmt::format("duration \"{}\": wanted a number and a unit, such as 90s, 5m or 1h30m", text));
  };
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  if (rest == "0") return Duration{0};
  if (rest.empty()) return bad();
  double total = 0;
  while (!rest.empty()) {
    double value = 0, scale = 1;
    bool point = false, any = false;
    while (!rest.empty() && ((rest[0] >= '0' && rest[0] <= '9') || (rest[0] == '.' && !point))) {
      if (rest[0] == '.') {
        point = true;
      } else {
        any = true;
        if (point) {
          scale /= 10;
          value += (rest[0] - '0') * scale;
        } else {
          value = value * 10 + (rest[0] - '0');
        }
      }
      rest.remove_prefix(1);
    }
    if (!any) return bad();
    std::size_t unit = 0;
    while (unit < rest.size() && !(rest[unit] >= '0' && rest[unit] <= '9') && rest[unit] != '.')
      ++unit;
    const std::string_view name = rest.substr(0, unit);
    rest.remove_prefix(unit);
    double factor = 0;
    if (name == "ns")
      factor = 1e-3;
    else if (name == "us" || name == "µs")
      factor = 1;
    else if (name == "ms")
      factor = 1e3;
    else if (name == "s")
      factor = 1e6;
    else if (name == "m")
      factor = 60e6;
    else if (name == "h")
      factor = 3600e6;
    else
      return bad();
    total += value * factor;
  }
  if (total > 9e18) return bad();
  const auto us = static_cast<std::int64_t>(std::llround(total));
  return Duration{negative ? -us : us};
}

std::string human_duration(Duration duration) {
  const std::int64_t s = duration.count() / 1'000'000;
  if (duration.count() < -1'000'000) return "<invalid>";
  if (duration.count() < 0) return "0s";
  if (s < 120) return fmt::format("{}s", s);
  const std::int64_t m = s / 60;
  if (m < 10) return s % 60 == 0 ? fmt::format("{}m", m) : fmt::format("{}m{}s", m, s % 60);
  if (m < 180) return fmt::format("{}m", m);
  const std::int64_t h = s / 3600;
  if (h < 8) return m % 60 == 0 ? fmt::format("{}h", h) : fmt::format("{}h{}m", h, m % 60);
  if (h < 48) return fmt::format("{}h", h);
  if (h < 24 * 8)
    return h % 24 == 0 ? fmt::format("{}d", h / 24) : fmt::format("{}d{}h", h / 24, h % 24);
  if (h < 24 * 365 * 2) return fmt::format("{}d", h / 24);
  if (h < 24 * 365 * 8) {
    const std::int64_t d = h / 24 % 365;
    return d == 0 ? fmt::format("{}y", h / 24 / 365) : fmt::format("{}y{}d", h / 24 / 365, d);
  }
  return fmt::format("{}y", h / 24 / 365);
}

std::string short_human_duration(Duration duration) {
  const std::int64_t s = duration.count() / 1'000'000;
  if (duration.count() < -1'000'000) return "<invalid>";
  if (duration.count() < 0) return "0s";
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m", s / 60);
  if (s < 86400) return fmt::format("{}h", s / 3600);
  if (s < 86400LL * 365) return fmt::format("{}d", s / 86400);
  return fmt::format("{}y", s / 86400 / 365);
}

}  // namespace muster
