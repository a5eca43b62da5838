/// logs: the output of one instance.
#include <fmt/core.h>

#include "base/strings.h"
#include "cli/commands/instance.h"
#include "cli/shell/commands.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

/// Arena's --since: whole numbers of h, m and s.
Result<std::int64_t> since_seconds(const std::string& text) {
  std::int64_t seconds = 0, number = 0;
  bool digits = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      digits = true;
      if (number > 1'000'000'000) break;
      continue;
    }
    const std::int64_t unit = c == 'h' ? 3600 : c == 'm' ? 60 : c == 's' ? 1 : 0;
    if (unit == 0 || !digits)
      return fail(
          Code::kInvalid,
          fmt::format("--since {}: wanted whole hours, minutes and seconds, such as 1h30m", text));
    seconds += number * unit;
    number = 0;
    digits = false;
  }
  if (digits || seconds == 0)
    return fail(
        Code::kInvalid,
        fmt::format("--since {}: wanted whole hours, minutes and seconds, such as 1h30m", text));
  return seconds;
}

Result<std::string> log_query(const Values& values, const std::string& container) {
  std::string query;
  const auto add = [&](std::string_view key, std::string_view value) {
    query += fmt::format("{}{}={}", query.empty() ? "?" : "&", key, percent_encode(value));
  };
  if (!container.empty()) add("container", container);
  if (values.yes("follow")) add("follow", "true");
  if (values.yes("timestamps")) add("timestamps", "true");
  if (values.number("tail") > 0) add("tailLines", values.text("tail"));
  if (const std::string since = values.text("since"); !since.empty()) {
    const auto seconds = since_seconds(since);
    if (!seconds) return fail(seconds.error());
    add("sinceSeconds", std::to_string(*seconds));
  }
  if (const std::string since = values.text("since-time"); !since.empty()) {
    if (!parse_time(since))
      return fail(
          Code::kInvalid,
          fmt::format("--since-time {}: wanted RFC 3339, such as 2026-11-15T05:40:00Z", since));
    add("sinceTime", since);
  }
  return query;
}

bool initialising(const json::Value& pod) {
  return json::string_at(pod, "status", "phase") == "Pending" &&
         !json::array_at(pod, "spec", "initContainers").empty() &&
         !json::array_at(pod, "status", "initContainerStatuses").empty();
}

Task<int> copy_stream(Session& session, std::string target) {
  auto stream = co_await session.cluster().http().stream(session.request("GET", std::move(target)));
  if (!stream) co_return session.failed(stream.error());
  const bool good = (*stream)->status() == 200;
  std::string answer;
  for (;;) {
    const auto piece = co_await (*stream)->read();
    if (!piece) co_return session.failed(piece.error());
    if (piece->empty()) break;
    if (good) {
      session.console.out(*piece);
      session.console.flush();
    } else {
      answer += *piece;
    }
  }
  if (good) co_return 0;
  const auto status = json::parse(answer);
  co_return session.failed(status ? json::text_at(*status, "message")
                                  : fmt::format("the server answered {}", (*stream)->status()));
}

}  // namespace

Task<int> run_logs(Invocation& call) {
  Session& session = call.session;
  const auto chosen = co_await choose_instance(call);
  if (!chosen) co_return 1;
  const Instance& instance = *chosen->instance;
  const json::Value& pod = *instance.pod;
  const bool starting = initialising(pod);
  if (instance.phase == "PENDING" && !starting) {
    co_return session.failed(
        fmt::format("instance {} is not running, it is {}; see '{} explain {}'",
                    instance.name,
                    instance.status,
                    session.program,
                    chosen->job->name));
  }
  std::string container = container_or_first(*chosen);
  if (chosen->container.empty() && starting)
    container = json::text_at(json::array_at(pod, "spec", "initContainers")[0], "name");
  const auto query = log_query(call.values, container);
  if (!query) co_return session.failed(query.error());
  const int code = co_await copy_stream(
      session,
      fmt::format("/api/v1/namespaces/{}/pods/{}/log{}", chosen->job->ns, instance.name, *query));
  co_return code;
}

}  // namespace muster::cli
