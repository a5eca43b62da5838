#include "portal/jobs/query.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace muster::portal {
namespace {

constexpr std::size_t kListMax = 200, kTextMax = 500;

constexpr std::array<std::string_view, 14> kSorts{"submitted",
                                                  "name",
                                                  "user",
                                                  "duration",
                                                  "vc",
                                                  "queue",
                                                  "kind",
                                                  "retries",
                                                  "tasks",
                                                  "gpus",
                                                  "prio",
                                                  "state",
                                                  "start",
                                                  "ended"};
constexpr std::array<std::string_view, 8> kGroups{
    "", "user", "vc", "queue", "state", "prio", "kind", "tag"};

Error bad(std::string message) {
  Error error;
  error.code = Code::kBadRequest;
  error.message = std::move(message);
  return error;
}

Result<std::vector<std::string>> list_of(std::string_view key, const json::Value& value) {
  std::vector<std::string> list;
  if (value.is_string()) {
    list.push_back(json::text(value));
  } else if (value.is_array()) {
    for (const json::Value& one : value.get_array()) {
      if (!one.is_string()) return fail(bad(fmt::format("{}: wanted a list of texts", key)));
      list.push_back(json::text(one));
    }
  } else {
    return fail(bad(fmt::format("{}: wanted a list of texts", key)));
  }
  if (list.size() > kListMax)
    return fail(
        bad(fmt::format("{}: {} values, at most {} are allowed", key, list.size(), kListMax)));
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

Result<Millis> millis_of(std::string_view key, const json::Value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) return static_cast<Millis>(value.get_uint64());
  if (value.is_string()) {
    if (const auto number = parse_int(json::as_string(value)); number) return *number;
  }
  return fail(bad(fmt::format("{}: wanted milliseconds since 1970", key)));
}

Result<std::uint8_t> states_of(const std::vector<std::string>& words) {
  std::uint8_t bits = 0;
  for (const std::string& word : words) {
    bool known = false;
    for (std::size_t i = 0; i < kStates; ++i) {
      if (word != state_name(static_cast<State>(i))) continue;
      bits = static_cast<std::uint8_t>(bits | (1U << i));
      known = true;
    }
    if (!known)
      return fail(bad(fmt::format(
          "state \"{}\": wanted WAITING, RUNNING, STOPPING, SUCCEEDED, FAILED, STOPPED or SUSPENDED",
          word)));
  }
  return bits;
}

Result<void> read_sort(JobQuery& query, std::string_view word) {
  query.descending = word.starts_with('-');
  if (query.descending) word.remove_prefix(1);
  const auto found = std::find(kSorts.begin(), kSorts.end(), word);
  if (found == kSorts.end())
    return fail(bad(fmt::format("sort \"{}\": wanted one of {}", word, fmt::join(kSorts, ", "))));
  query.sort = static_cast<SortField>(found - kSorts.begin());
  return {};
}

Result<void> read_one(JobQuery& query,
                      std::string_view key,
                      const json::Value& value,
                      std::string_view user) {
  if (key == "q") {
    if (!value.is_string() || json::as_string(value).size() > kTextMax)
      return fail(bad("q: wanted a text of at most 500 bytes"));
    query.text = to_lower(json::as_string(value));
    return {};
  }
  if (key == "from" || key == "to") {
    const auto number = millis_of(key, value);
    if (!number) return fail(number.error());
    (key == "from" ? query.from : query.to) = *number;
    return {};
  }
  if (key == "sort") return read_sort(query, json::as_string(value));
  if (key == "group") {
    const auto found = std::find(kGroups.begin(), kGroups.end(), json::as_string(value));
    if (found == kGroups.end() || !value.is_string())
      return fail(bad("group: wanted user, vc, queue, state, prio, kind or tag"));
    query.group = static_cast<GroupField>(found - kGroups.begin());
    return {};
  }
  auto list = list_of(key, value);
  if (!list) return fail(list.error());
  if (key == "user") {
    for (std::string& one : *list) {
      if (one == "me") one = user;
    }
    std::sort(list->begin(), list->end());
    query.users = std::move(*list);
  } else if (key == "state") {
    const auto bits = states_of(*list);
    if (!bits) return fail(bits.error());
    query.states = *bits;
  } else if (key == "vc") {
    query.vcs = std::move(*list);
  } else if (key == "queue") {
    query.queues = std::move(*list);
  } else if (key == "prio") {
    query.prios = std::move(*list);
  } else if (key == "kind") {
    query.kinds = std::move(*list);
  } else if (key == "tag") {
    query.tags = std::move(*list);
  } else if (key == "node") {
    query.nodes = std::move(*list);
  } else {
    return fail(bad(fmt::format(
        "\"{}\" is not a filter of jobs; there are q, user, vc, queue, state, prio, kind, tag, node, from, to, sort and group",
        key)));
  }
  return {};
}

}  // namespace

std::string JobQuery::key(const Visible& visible) const {
  std::string out = fmt::format("{}|{}|{}|{}", text, from, to, static_cast<int>(sort));
  for (const auto* list : {&users, &vcs, &queues, &prios, &kinds, &tags, &nodes}) {
    out += '|';
    for (const std::string& one : *list) out.append(one).push_back('\x1f');
  }
  out += visible.all ? "|*" : visible.openpai ? "|p" : "|";
  if (!visible.all) {
    for (const std::string& ns : visible.namespaces) out.append(ns).push_back('\x1f');
  }
  return out;
}

Result<JobQuery> parse_job_query(const json::Value& query, std::string_view user) {
  JobQuery parsed;
  if (query.is_null()) return parsed;
  if (!query.is_object()) return fail(bad("query: wanted an object"));
  for (const auto& [key, value] : query.get_object()) {
    const auto read = read_one(parsed, key, value, user);
    if (!read) return fail(read.error());
  }
  return parsed;
}

Result<Window> parse_window(const json::Value& value) {
  Window window;
  if (value.is_null()) return window;
  const json::Array& pair = json::as_array(value);
  const auto number = [&](std::size_t i) -> std::int64_t {
    return pair.size() == 2 && (pair[i].is_int64() || pair[i].is_uint64())
               ? json::as_int(pair[i], -1)
               : -1;
  };
  if (number(0) < 0 || number(1) < number(0) || number(1) > 1'000'000'000)
    return fail(bad("window: wanted [first, end] with 0 <= first <= end"));
  window.first = static_cast<std::size_t>(number(0));
  window.end = static_cast<std::size_t>(number(1));
  if (window.end - window.first > Window::kMax)
    return fail(bad(fmt::format(
        "window: {} rows, at most {} are allowed", window.end - window.first, Window::kMax)));
  return window;
}

json::Value query_of_target(const net::Target& target) {
  json::Object query;
  for (const auto& [key, value] : target.query) {
    if (key == "offset" || key == "limit") continue;
    if (key == "q" || key == "sort" || key == "group" || key == "from" || key == "to" ||
        key == "by" || key == "job" || key == "free" || key == "attempt") {
      query[key] = value;
      continue;
    }
    json::Value& list = query[key];
    if (!list.is_array()) list = json::Array{};
    for (const std::string& one : split_nonempty(value, ','))
      list.get_array().push_back(json::Value(one));
  }
  return query;
}

Result<Window> window_of_target(const net::Target& target) {
  Window window;
  std::int64_t offset = 0, limit = 100;
  if (target.has("offset")) {
    const auto number = parse_int(target.get("offset"));
    if (!number || *number < 0 || *number > 1'000'000'000)
      return fail(bad("offset: wanted a number from 0 on"));
    offset = *number;
  }
  if (target.has("limit")) {
    const auto number = parse_int(target.get("limit"));
    if (!number || *number < 0 || *number > static_cast<std::int64_t>(Window::kMax))
      return fail(bad(fmt::format(
          "limit \"{}\": wanted a number from 0 to {}", target.get("limit"), Window::kMax)));
    limit = *number;
  }
  window.first = static_cast<std::size_t>(offset);
  window.end = static_cast<std::size_t>(offset + limit);
  return window;
}

}  // namespace muster::portal
