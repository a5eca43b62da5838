/// Who held how many GPUs for how long, counted from records: exact, in thousandths of a GPU times
/// seconds, day by day (UTC). Pure. Sums over users, over queues and over the cluster agree, because
/// all of them are sums of the same rows.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "answers/records/record.h"
#include "base/result.h"
#include "base/time.h"
#include "json/json.h"

namespace muster::answers {

/// By what usage can be grouped, in this order in every row.
inline constexpr std::array<std::string_view, 6> kUsageFields{
    "user", "namespace", "queue", "kind", "model", "priority"};
using UsageKey = std::array<std::string, 6>;

struct Usage {
  // Thousandths of a GPU times seconds.
  std::int64_t held = 0;
  std::int64_t guaranteed = 0, opportunistic = 0;       // together they are `held`
  std::int64_t discarded = 0;                           // of `held`, runs that were evicted
  std::int64_t waited = 0;                              // asked for and not had
  std::int64_t started = 0, preempted = 0;              // runs
  std::int64_t succeeded = 0, failed = 0, stopped = 0;  // jobs, on the day they ended

  Usage& operator+=(const Usage& other);
  bool operator==(const Usage&) const = default;
};

using UsageRows = std::map<UsageKey, Usage>;
/// "2026-11-16" -> what was used on that day.
using UsageDays = std::map<std::string, UsageRows>;

UsageKey usage_key(const Record& record);
/// Adds what the record says up to `now`, each second to its day.
void add_usage(const Record& record, Time now, UsageDays& days);
/// The days that add_usage() would touch, in order.
std::vector<std::string> days_of(const Record& record, Time now);

std::string day_of(Time time);  // "2026-11-16"
/// A date, an RFC 3339 time, or an age such as "7d" or "36h" before `now`.
Result<Time> parse_moment(std::string_view text, Time now);

json::Array usage_json(const UsageRows& rows);
UsageRows parse_usage(const json::Value& rows);

}  // namespace muster::answers
