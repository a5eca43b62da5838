#include "base/time_zone.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

namespace muster {
namespace {

constexpr const char* kFolder = "/usr/share/zoneinfo/";
constexpr std::size_t kHeaderBytes = 44, kFileBytesMax = 1024 * 1024;

std::int64_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  auto value =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<signed char>(bytes[at])));
  for (std::size_t i = 1; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return static_cast<std::int64_t>(value);
}

/// The counts of a header, in the file's order.
struct Counts {
  std::size_t utc, standard, leaps, transitions, types, letters;
};
std::optional<Counts> counts_at(std::string_view bytes, std::size_t at) {
  if (bytes.size() < at + kHeaderBytes || bytes.substr(at, 4) != "TZif") return std::nullopt;
  std::size_t counts[6];
  for (std::size_t i = 0; i < 6; ++i) {
    const auto count = number(bytes, at + 20 + 4 * i, 4);
    if (count < 0 || static_cast<std::size_t>(count) > kFileBytesMax) return std::nullopt;
    counts[i] = static_cast<std::size_t>(count);
  }
  return Counts{counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]};
}
std::size_t bytes_behind_header(const Counts& counts, std::size_t time_bytes) {
  return counts.transitions * (time_bytes + 1) + counts.types * 6 + counts.letters +
         counts.leaps * (time_bytes + 4) + counts.standard + counts.utc;
}

/// A rule of POSIX for years to come, such as CET-1CEST,M3.5.0,M10.5.0/3 or <+0330>-3:30.
class Rule {
 public:
  explicit Rule(std::string_view text) : text_(text) {}

  [[nodiscard]] bool done() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool name() {
    const auto size = text_.starts_with('<')
                          ? text_.find('>') + 1
                          : std::min(text_.find_first_of("+-0123456789,"), text_.size());
    if (size < 3) return false;
    text_.remove_prefix(size);
    return true;
  }
  std::optional<int> integer() {
    int value = 0;
    std::size_t digits = 0;
    for (; digits < text_.size() && digits < 4 && text_[digits] >= '0' && text_[digits] <= '9';
         ++digits)
      value = value * 10 + (text_[digits] - '0');
    if (digits == 0) return std::nullopt;
    text_.remove_prefix(digits);
    return value;
  }
  /// [+-]h[:m[:s]], in seconds.
  std::optional<std::int64_t> time() {
    const bool negative = take('-');
    if (!negative) (void)take('+');
    std::int64_t seconds = 0;
    for (const std::int64_t unit : {3600, 60, 1}) {
      const auto value = integer();
      if (!value) return std::nullopt;
      seconds += *value * unit;
      if (unit == 1 || !take(':')) break;
    }
    return negative ? -seconds : seconds;
  }

 private:
  std::string_view text_;
};

}  // namespace

Result<std::shared_ptr<const TimeZone>> TimeZone::find(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const TimeZone>, std::less<>> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return found->second;
  const auto unknown = [&] {
    return fail(Code::kInvalid, fmt::format("unknown time zone {}", name));
  };
  // What could lead out of the folder is no zone.
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-_/";
  if (name.empty() || name.front() == '/' ||
      name.find_first_not_of(kAllowed) != std::string_view::npos)
    return unknown();
  TimeZone zone;
  if (name != "UTC") {
    const std::string path = kFolder + std::string(name);
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return unknown();
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    auto read = parse(bytes);
    if (!read) return unknown();
    zone = std::move(*read);
  }
  return known.emplace(std::string(name), std::make_shared<const TimeZone>(std::move(zone)))
      .first->second;
}

Result<TimeZone> TimeZone::parse(std::string_view bytes) {
  const auto bad = [] { return fail(Code::kInvalid, "not a file of a time zone"); };
  const auto first = counts_at(bytes, 0);
  if (!first || bytes.size() > kFileBytesMax || bytes[4] < '2') return bad();
  // The second half is the same with larger numbers.
  const std::size_t second = kHeaderBytes + bytes_behind_header(*first, 4);
  const auto counts = counts_at(bytes, second);
  if (!counts || counts->types == 0) return bad();
  const std::size_t times = second + kHeaderBytes, kinds = times + counts->transitions * 8,
                    types = kinds + counts->transitions;
  const std::size_t footer = second + kHeaderBytes + bytes_behind_header(*counts, 8);
  if (bytes.size() < footer + 2 || bytes[footer] != '\n') return bad();
  TimeZone zone;
  zone.first_offset_s_ = number(bytes, types, 4);
  for (std::size_t i = 0; i < counts->transitions; ++i) {
    const auto type = static_cast<unsigned char>(bytes[kinds + i]);
    if (type >= counts->types) return bad();
    zone.transitions_.push_back(
        {number(bytes, times + 8 * i, 8), number(bytes, types + 6U * type, 4)});
  }
  const auto end = bytes.find('\n', footer + 1);
  if (end == std::string_view::npos || !read_rule(bytes.substr(footer + 1, end - footer - 1), zone))
    return bad();
  return zone;
}

bool TimeZone::read_rule(std::string_view text, TimeZone& zone) {
  if (text.empty()) return true;
  Rule rule(text);
  if (!rule.name()) return false;
  // POSIX counts westwards.
  const auto winter = rule.time();
  if (!winter) return false;
  zone.has_rule_ = true;
  zone.winter_offset_s_ = -*winter;
  if (rule.done()) return true;
  if (!rule.name()) return false;
  zone.has_summer_ = true;
  zone.summer_offset_s_ = zone.winter_offset_s_ + 3600;
  if (!rule.take(',')) {
    const auto summer = rule.time();
    if (!summer || !rule.take(',')) return false;
    zone.summer_offset_s_ = -*summer;
  }
  for (Change* change : {&zone.summer_, &zone.winter_}) {
    if (change == &zone.winter_ && !rule.take(',')) return false;
    if (!rule.take('M')) return false;
    const auto month = rule.integer();
    const bool dot = rule.take('.');
    const auto week = rule.integer();
    const bool dots = rule.take('.') && dot;
    const auto weekday = rule.integer();
    if (!month || !week || !weekday || !dots || *month < 1 || *month > 12 || *week < 1 ||
        *week > 5 || *weekday > 6)
      return false;
    *change = {*month, *week, *weekday, 2 * 3600};
    if (rule.take('/')) {
      const auto time = rule.time();
      if (!time) return false;
      change->time_s = *time;
    }
  }
  return rule.done();
}

std::int64_t TimeZone::begin_of(const Change& change, std::int64_t year) {
  namespace c = std::chrono;
  const c::year_month month(c::year(static_cast<int>(year)),
                            c::month(static_cast<unsigned>(change.month)));
  const c::weekday day(static_cast<unsigned>(change.weekday));
  const c::sys_days date =
      change.week == 5
          ? c::sys_days(c::year_month_weekday_last(month.year(), month.month(), day[c::last]))
          : c::sys_days(c::year_month_weekday(
                month.year(), month.month(), day[static_cast<unsigned>(change.week)]));
  return date.time_since_epoch().count() * 24 * 3600LL + change.time_s;
}

std::int64_t TimeZone::offset_s(Time at) const {
  const std::int64_t now = at.seconds();
  const auto next = std::upper_bound(
      transitions_.begin(), transitions_.end(), now, [](std::int64_t time, const Transition& one) {
        return time < one.at_s;
      });
  if (next != transitions_.end() || !has_rule_)
    return next == transitions_.begin() ? first_offset_s_ : std::prev(next)->offset_s;
  if (!has_summer_) return winter_offset_s_;
  const auto year = static_cast<int>(
      std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(
                                      std::chrono::seconds(now + winter_offset_s_))))
          .year());
  // Each change is told in the time that it ends.
  const std::int64_t summer = begin_of(summer_, year) - winter_offset_s_,
                     winter = begin_of(winter_, year) - summer_offset_s_;
  const bool is_summer =
      summer < winter ? now >= summer && now < winter : now >= summer || now < winter;
  return is_summer ? summer_offset_s_ : winter_offset_s_;
}

}  // namespace muster
