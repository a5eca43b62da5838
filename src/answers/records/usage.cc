#include "answers/records/usage.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace muster::answers {
namespace {

constexpr std::int64_t kDay = 86'400;

struct Named {
  const char* name;
  std::int64_t Usage::* sum;
};
constexpr Named kSums[] = {
    {"held", &Usage::held},
    {"guaranteed", &Usage::guaranteed},
    {"opportunistic", &Usage::opportunistic},
    {"discarded", &Usage::discarded},
    {"waited", &Usage::waited},
    {"started", &Usage::started},
    {"preempted", &Usage::preempted},
    {"succeeded", &Usage::succeeded},
    {"failed", &Usage::failed},
    {"stopped", &Usage::stopped},
};

/// Calls each(day, seconds) for the days of [from, to).
template <typename Each>
void by_day(Time from, Time to, Each each) {
  std::int64_t at = from.seconds();
  const std::int64_t end = to.seconds();
  while (at < end) {
    const std::int64_t next = std::min(end, (at / kDay + 1) * kDay);
    each(day_of(Time::from_seconds(at)), next - at);
    at = next;
  }
}

/// Calls each(from, to, milli) for the times at which the job waited: until its first run, and
/// between runs.
template <typename Each>
void each_wait(const Record& record, Time now, Each each) {
  Time from = record.submitted;
  for (const Run& run : record.runs) {
    if (from && run.start > from) each(from, run.start);
    from = run.end;
    if (!from) return;
  }
  const bool waits = !record.over() && record.state == "WAITING";
  if (from && waits && now > from) each(from, now);
  if (from && record.over() && record.runs.empty() && record.ended > from) each(from, record.ended);
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  for (const Named& one : kSums) this->*one.sum += other.*one.sum;
  return *this;
}

UsageKey usage_key(const Record& record) {
  return {record.user, record.ns, record.queue, record.kind, record.model, record.priority};
}

void add_usage(const Record& record, Time now, UsageDays& days) {
  const UsageKey key = usage_key(record);
  const auto on = [&](const std::string& day) -> Usage& { return days[day][key]; };
  for (const Run& run : record.runs) {
    ++on(day_of(run.start)).started;
    const bool evicted = run.how == "evicted";
    if (evicted) ++on(day_of(run.end)).preempted;
    for (const Part& part : run.parts) {
      by_day(part.start, part.end ? part.end : now, [&](const std::string& day, std::int64_t s) {
        Usage& usage = on(day);
        const std::int64_t amount = part.milli * s;
        usage.held += amount;
        (run.opportunistic ? usage.opportunistic : usage.guaranteed) += amount;
        if (evicted) usage.discarded += amount;
      });
    }
  }
  each_wait(record, now, [&](Time from, Time to) {
    by_day(from, to, [&](const std::string& day, std::int64_t s) {
      on(day).waited += record.milli * s;
    });
  });
  if (!record.over()) return;
  Usage& last = on(day_of(record.ended));
  ++(record.state == "SUCCEEDED" ? last.succeeded
     : record.state == "FAILED"  ? last.failed
                                 : last.stopped);
}

std::vector<std::string> days_of(const Record& record, Time now) {
  UsageDays days;
  add_usage(record, now, days);
  std::vector<std::string> out;
  for (const auto& [day, rows] : days) out.push_back(day);
  return out;
}

std::string day_of(Time time) { return format_time(time).substr(0, 10); }

Result<Time> parse_moment(std::string_view text, Time now) {
  if (text.size() == 10 && text[4] == '-') {
    if (const auto time = parse_time(std::string(text) + "T00:00:00Z"); time) return *time;
  }
  if (const auto time = parse_time(text); time) return *time;
  if (text.ends_with('d')) {
    if (const auto days = parse_int(text.substr(0, text.size() - 1));
        days && *days >= 0 && *days < 40'000)
      return now - std::chrono::hours(24 * *days);
  }
  if (const auto age = parse_duration(text); age && *age >= Duration::zero()) return now - *age;
  return fail(
      Code::kBadRequest,
      fmt::format(
          "{}: wanted a date (2026-11-16), a time (2026-11-16T09:00:00Z) or an age (7d, 36h)",
          quoted(text)));
}

json::Array usage_json(const UsageRows& rows) {
  json::Array out;
  for (const auto& [key, usage] : rows) {
    json::Object row;
    for (std::size_t i = 0; i < key.size(); ++i) {
      if (!key[i].empty()) row[kUsageFields[i]] = key[i];
    }
    for (const Named& one : kSums) {
      if (usage.*one.sum != 0) row[one.name] = usage.*one.sum;
    }
    out.push_back(std::move(row));
  }
  return out;
}

UsageRows parse_usage(const json::Value& rows) {
  UsageRows out;
  for (const json::Value& row : json::as_array(rows)) {
    UsageKey key;
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = json::text_at(row, kUsageFields[i]);
    Usage& usage = out[key];
    for (const Named& one : kSums) usage.*one.sum += json::int_at(row, std::string_view(one.name));
  }
  return out;
}

}  // namespace muster::answers
