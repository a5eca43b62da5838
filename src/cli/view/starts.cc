#include "cli/view/starts.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/view/answers.h"
#include "cli/view/job.h"

namespace muster::cli {
namespace {

using json::at;

/// "ns/kind/name" is its name to who works in that namespace.
std::string short_name(std::string_view job) {
  const std::size_t slash = job.rfind('/');
  return std::string(slash == std::string_view::npos ? job : job.substr(slash + 1));
}

std::int64_t step_of(Duration ahead) {
  if (ahead < std::chrono::hours(2)) return 60;
  return ahead < std::chrono::hours(24) ? 600 : 3600;
}

std::string waits_for_text(const json::Value& forecast, Time now) {
  std::vector<std::string> parts;
  for (const json::Value& one : json::array_at(forecast, "waitsFor")) {
    std::string text = fmt::format(
        "{} ({} GPUs", short_name(json::string_at(one, "job")), amount_text(at(one, "gpus")));
    if (at(one, "end").is_object()) text += ", ends " + range_text(at(one, "end"), now);
    parts.push_back(text + ")");
  }
  return parts.empty() ? "" : "  waits for " + join(parts, " and ") + "\n";
}

/// What was said first, where that was another minute; and that it is overdue, if it is.
std::string first_said_text(const json::Value& start, Time now) {
  const json::Value& said = at(start, "firstSaid");
  const std::string then = moment_text(at(said, "p50"), now);
  if (!said.is_object() || then == moment_text(at(start, "p50"), now)) return "";
  const auto at_time = parse_time(json::string_at(said, "at"));
  const std::string when = at_time ? local_time(*at_time).substr(11, 5) : "-";
  const auto foretold = parse_time(json::string_at(said, "p50"));
  if (foretold && *foretold < now)
    return fmt::format("; overdue since {}, first said at {}", then, when);
  return fmt::format("; first said {} at {}", then, when);
}

std::string alternatives_text(const json::Value& forecast) {
  std::size_t width = 0;
  for (const json::Value& one : json::array_at(forecast, "alternatives"))
    width = std::max(width, json::string_at(one, "flag").size());
  std::string out;
  for (const json::Value& one : json::array_at(forecast, "alternatives"))
    out += width == 0 ? fmt::format("  {}\n", json::string_at(one, "text"))
                      : fmt::format("  {:<{}}  {}\n",
                                    json::string_at(one, "flag"),
                                    width,
                                    json::string_at(one, "text"));
  return out.empty() ? "" : "Would start now:\n" + out;
}

}  // namespace

std::string decision_text(const json::Value& decision, const std::string& what, Time now) {
  const std::string_view verdict = json::string_at(decision, "verdict");
  const std::string_view text = json::string_at(decision, "text");
  std::string out;
  if (verdict == "starts") {
    out = fmt::format("{} {}.\n", what, text);
    for (const json::Value& victim : json::array_at(decision, "victims")) {
      out += fmt::format("  evicts {}", short_name(json::string_at(victim, "job")));
      if (const std::string_view user = json::string_at(victim, "user");
          at(victim, "gpus").is_number())
        out += fmt::format(
            " ({}{}{} GPUs, {} of work lost)",
            user,
            user.empty() ? "" : ", ",
            amount_text(at(victim, "gpus")),
            short_human_duration(std::chrono::seconds(json::int_at(victim, "lostSeconds"))));
      out += "\n";
    }
    return out;
  }
  if (verdict == "refused") return fmt::format("{} is refused: {}.\n", what, text);
  out = fmt::format("{} {}: {}.\n", what, verdict == "never" ? "can never start" : "waits", text);
  const json::Value& wait = at(decision, "wait");
  json::Value forecast = wait;
  if (forecast.is_object()) {
    forecast.as_object()["alternatives"] = at(decision, "alternatives");
    // The reason stands above.
    if (verdict == "waits" && json::string_at(at(wait, "start"), "basis") != "none")
      return out + starts_part(forecast, now).substr(1);
    if (verdict == "waits" && json::string_at(at(wait, "start"), "because") != text)
      return out + starts_part(forecast, now).substr(1);
    return out + alternatives_text(forecast);
  }
  return out;
}

std::string moment_text(const json::Value& time, Time now) {
  const auto parsed = parse_time(json::as_string(time));
  if (json::as_string(time).empty() || !parsed) return "-";
  const std::int64_t step = step_of(*parsed - now);
  const std::int64_t rounded = (parsed->seconds() + step / 2) / step * step;
  const std::string text = local_time(Time::from_seconds(rounded));  // 2026-11-16 11:05:00
  const std::string today = local_time(now);
  if (text.size() < 16) return text;
  return text.substr(0, 10) == today.substr(0, 10) ? text.substr(11, 5) : text.substr(0, 16);
}

std::string range_text(const json::Value& start, Time now) {
  if (!at(start, "p10").is_string()) return "-";
  const std::string from = moment_text(at(start, "p10"), now);
  return at(start, "p90").is_string()
             ? fmt::format("{} to {}", from, moment_text(at(start, "p90"), now))
             : fmt::format("{} to later", from);
}

std::string starts_part(const json::Value& forecast, Time now) {
  if (json::string_at(forecast, "state") != "waits") return "";
  const json::Value& start = at(forecast, "start");
  const std::string_view basis = json::string_at(start, "basis");
  std::string out = "\n";
  if (basis == "none") {
    out += fmt::format("No start can be predicted: {}.", json::string_at(start, "because"));
    if (at(start, "notBefore").is_string())
      out += fmt::format(" Not before {}.", moment_text(at(start, "notBefore"), now));
    out += "\n";
  } else if (!at(start, "p50").is_string()) {
    const double beyond = at(start, "beyond").is_double() ? at(start, "beyond").get_double() : 1;
    out += fmt::format("Starts later than {} ({} in 10); {}.\n",
                       moment_text(at(start, "horizon"), now),
                       static_cast<int>(beyond * 10 + 0.5),
                       basis);
  } else {
    std::int64_t runs = 0;
    for (const json::Value& one : json::array_at(forecast, "waitsFor"))
      runs = std::max(runs, json::int_at(one, "runs"));
    out += fmt::format(
        "Starts about {}, 8 in 10 between {} and {}; {}{}.\n",
        moment_text(at(start, "p50"), now),
        moment_text(at(start, "p10"), now),
        at(start, "p90").is_string() ? moment_text(at(start, "p90"), now) : "later",
        basis == "known" ? std::string("the jobs ahead of it declare how long they last")
        : runs > 0       ? fmt::format("learned from {} runs like those it waits for", runs)
                         : std::string("learned from runs like those it waits for"),
        first_said_text(start, now));
    out += waits_for_text(forecast, now);
  }
  if (json::int_at(forecast, "ageSeconds") > 60)
    out += fmt::format(
        "  (as it was {} ago)\n",
        short_human_duration(std::chrono::seconds(json::int_at(forecast, "ageSeconds"))));
  return out + alternatives_text(forecast);
}

}  // namespace muster::cli
