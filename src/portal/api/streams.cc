/// Logs and shells of tasks, over WebSockets of their own.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/time.h"
#include "portal/api/api.h"
#include "portal/jobs/rows.h"

namespace muster::portal {
namespace {

constexpr std::size_t kMergedMax = 64;
constexpr std::size_t kLinesMax = 500;

/// Whose log of which attempt, counted from 0.
struct FormerLog {
  std::string job, attempt, role;
  std::int32_t index = 0;
};

/// The pod of a task "role-index", or the only one; all of them without a name.
std::vector<const TaskFacts*> tasks_named(const JobIndex::Entry& entry, std::string_view name) {
  std::vector<const TaskFacts*> found;
  for (const auto& [pod, task] : entry.tasks) {
    if (name.empty() || task_id(task) == name || pod == name) found.push_back(&task);
  }
  return found;
}

std::string pod_path(const JobIndex::Entry& entry,
                     const TaskFacts& task,
                     std::string_view subresource) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}/{}", entry.facts.ns, task.pod, subresource);
}

/// The log of an attempt of an OpenPAI job that is over, as OpenPAI's API keeps it: of the last try of
/// that task in it.
Task<Result<std::string>> former_log(World& world, User user, FormerLog of) {
  if (!world.options.rest_call)
    co_return fail(Code::kNotFound, "logs of earlier attempts are not kept here");
  const std::string tries =
      fmt::format("/api/v2/jobs/{}/attempts/{}/taskRoles/{}/taskIndex/{}/attempts",
                  percent_encode(of.job),
                  percent_encode(of.attempt),
                  percent_encode(of.role),
                  of.index);
  const auto listed = co_await world.options.rest_call(user, "GET", tries, "", "");
  if (!listed) co_return fail(listed.error());
  const auto list = json::parse(listed->body);
  if (listed->status >= 300 || !list)
    co_return fail(Code::kNotFound, list ? json::text_at(*list, "message") : listed->body);
  const json::Array& newest_first = json::array_at(*list, "attempts");
  const std::int64_t last =
      newest_first.empty() ? 0 : json::int_at(newest_first.front(), "attemptId");
  auto log = co_await world.options.rest_call(
      user, "GET", fmt::format("{}/{}/logs/user.pai.all", tries, last), "", "");
  if (!log) co_return fail(log.error());
  if (log->status < 300) co_return std::move(log->body);
  const auto why = json::parse(log->body);
  co_return fail(Code::kNotFound, why ? json::text_at(*why, "message") : log->body);
}

/// [time, task, text] of "2026-…Z text".
json::Value line_value(const std::string& task, std::string_view line) {
  const auto space = line.find(' ');
  const auto time = space == std::string_view::npos ? Result<Time>(fail(Code::kBadRequest, ""))
                                                    : parse_time(line.substr(0, space));
  json::Array parts;
  parts.push_back(time ? json::Value(time->us / 1000) : json::Value(nullptr));
  parts.push_back(json::Value(task));
  parts.push_back(json::Value(time ? line.substr(space + 1) : line));
  return parts;
}

struct Tail {
  std::shared_ptr<net::WebSocket> socket;
  std::unique_ptr<Signal> ended;
  int open = 0;
};

Task<void> say(net::WebSocket& socket, const json::Value& value) {
  const auto sent = co_await socket.write({.binary = false, .data = json::dump(value)});
  (void)sent;
}

/// What is kept of an attempt that is over, all at once.
Task<void> say_former(World& world, User user, std::shared_ptr<Tail> tail, FormerLog of) {
  const std::string task = fmt::format("{}-{}", of.role, of.index);
  const auto text = co_await former_log(world, std::move(user), std::move(of));
  if (!text) {
    co_await say(*tail->socket,
                 {{"error",
                   {{"code", reason_of(text.error().code)},
                    {"message", fmt::format("{}: {}", task, text.error().message)}}}});
    co_return;
  }
  json::Array lines;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back({nullptr, task, rest.substr(0, end)});
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (lines.size() < kLinesMax && !rest.empty()) continue;
    co_await say(*tail->socket, {{"lines", std::exchange(lines, {})}});
  }
}

/// Follows one pod's log until it ends or they go.
Task<void> follow(std::shared_ptr<Tail> tail,
                  std::shared_ptr<net::ResponseStream> stream,
                  std::string task) {
  std::string rest;
  while (true) {
    auto piece = co_await stream->read();
    if (!piece || piece->empty()) break;
    rest += *piece;
    json::Array lines;
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos;
         end = rest.find('\n', begin)) {
      lines.push_back(line_value(task, std::string_view(rest).substr(begin, end - begin)));
      begin = end + 1;
      if (lines.size() >= kLinesMax) {
        const auto sent = co_await tail->socket->write(
            {.binary = false, .data = json::dump(json::Value{{"lines", std::move(lines)}})});
        lines = {};
        if (!sent) break;
      }
    }
    rest.erase(0, begin);
    // A line without an end is shown in parts before it eats the memory.
    if (rest.size() > 64 * 1024) {
      lines.push_back(line_value(task, rest));
      rest.clear();
    }
    if (lines.empty()) continue;
    const auto sent = co_await tail->socket->write(
        {.binary = false, .data = json::dump(json::Value{{"lines", std::move(lines)}})});
    if (!sent) break;
  }
  if (!rest.empty()) {
    json::Array last;
    last.push_back(line_value(task, rest));
    co_await say(*tail->socket, {{"lines", std::move(last)}});
  }
  if (--tail->open == 0) {
    co_await say(*tail->socket, {{"end", true}});
    tail->ended->notify();
  }
}

}  // namespace

Task<void> give_former_log(ApiWorld& api,
                           ApiCall& call,
                           const JobIndex::Entry& entry,
                           const TaskFacts& task) {
  const auto text = co_await former_log(
      api.world,
      call.visitor.user,
      {entry.facts.id, std::string(call.target.get("attempt")), task.role, task.index});
  if (!text) {
    co_await answer_error(call.writer, text.error());
    co_return;
  }
  net::Response response;
  response.status = 200;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.body = *text;
  co_await answer(call.writer, std::move(response));
}

Task<void> serve_log(ApiWorld api, ApiCall call) {
  World& world = api.world;
  const std::string id(call.target.get("job")), name(call.target.get("task"));
  const auto found = co_await find_job(world, call.visitor.user, id);
  if (!found) {
    co_await answer_error(call.writer, found.error());
    co_return;
  }
  struct Wanted {
    std::string task, target;
  };
  std::vector<Wanted> wanted;
  std::vector<FormerLog> formers;
  const std::vector<const TaskFacts*> tasks = tasks_named(**found, name);
  // All of them together are what a page keeps.
  const auto together =
      static_cast<std::int64_t>(std::clamp<std::size_t>(tasks.size(), 1, kMergedMax));
  const std::int64_t tail_lines =
      std::clamp<std::int64_t>(
          parse_int(call.target.get("tail")).value_or(10'000), together, 200'000) /
      together;
  const std::string attempt(call.target.get("attempt"));
  const bool previous = attempt == "previous";
  for (const TaskFacts* task : tasks) {
    if (wanted.size() + formers.size() >= kMergedMax) break;
    if (parse_int(attempt)) {
      formers.push_back({id, attempt, task->role, task->index});
      continue;
    }
    if (task->node.empty()) continue;
    std::string target =
        pod_path(**found, *task, "log") + fmt::format("?timestamps=true&tailLines={}", tail_lines);
    target += previous ? "&previous=true" : "&follow=true";
    const std::string_view container = call.target.get("container");
    if (!container.empty())
      target += "&container=" + percent_encode(container);
    else if (!task->containers.empty())
      target += "&container=" + percent_encode(task->containers.front());
    wanted.push_back({task_id(*task), std::move(target)});
  }
  auto socket = co_await call.writer.upgrade_websocket("");
  if (!socket) co_return;
  auto tail = std::make_shared<Tail>();
  tail->socket = std::move(*socket);
  tail->ended = world.env.make_signal();
  std::vector<std::shared_ptr<net::ResponseStream>> streams;
  tail->open = 1;
  for (const FormerLog& one : formers) co_await say_former(world, call.visitor.user, tail, one);
  for (const Wanted& one : wanted) {
    net::Request request;
    request.method = "GET";
    request.target = one.target;
    auto stream = co_await world.kube.http().stream(
        world.kube.request_as(call.visitor.user, std::move(request)));
    if (!stream || (*stream)->status() >= 300) {
      Error error = stream ? Error{.code = code_of("", (*stream)->status())} : stream.error();
      if (stream) {
        const auto said = co_await (*stream)->read();
        const auto status = json::parse(said ? *said : "");
        if (status) error.message = json::text_at(*status, "message");
      }
      co_await say(*tail->socket,
                   {{"error",
                     {{"code", reason_of(error.code)},
                      {"message", fmt::format("{}: {}", one.task, error.message)}}}});
      continue;
    }
    ++tail->open;
    streams.push_back(std::move(*stream));
    world.env.spawn(follow(tail, streams.back(), one.task));
  }
  if (--tail->open == 0) co_await say(*tail->socket, {{"end", true}});
  // Nothing they say matters; that they go does.
  while (true) {
    const auto message = co_await tail->socket->read();
    if (!message || !*message) break;
  }
  for (const auto& stream : streams) stream->close();
}

Task<void> serve_exec(ApiWorld api, ApiCall call) {
  World& world = api.world;
  const auto found =
      co_await find_job(world, call.visitor.user, std::string(call.target.get("job")));
  if (!found) {
    co_await answer_error(call.writer, found.error());
    co_return;
  }
  const auto tasks = tasks_named(**found, call.target.get("task"));
  const auto runs = std::find_if(tasks.begin(), tasks.end(), [](const TaskFacts* task) {
    return task->state == TaskState::kRunning;
  });
  if (runs == tasks.end()) {
    co_await answer(call.writer, error_answer(404, "NotFound", "no such task runs now"));
    co_return;
  }
  std::string target =
      pod_path(**found, **runs, "exec") + "?stdin=true&stdout=true&stderr=true&tty=true";
  const std::string_view container = call.target.get("container");
  if (!container.empty())
    target += "&container=" + percent_encode(container);
  else if (!(*runs)->containers.empty())
    target += "&container=" + percent_encode((*runs)->containers.front());
  std::vector<std::string> command = call.target.all("command");
  if (command.empty()) command = {"sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"};
  for (const std::string& word : command) target += "&command=" + percent_encode(word);
  net::Request request;
  request.method = "GET";
  request.target = target;
  constexpr const char* kProtocol = "v5.channel.k8s.io";
  auto other = co_await world.kube.http().websocket(
      world.kube.request_as(call.visitor.user, std::move(request)), kProtocol);
  if (!other) {
    co_await answer_error(call.writer, other.error());
    co_return;
  }
  auto socket = co_await call.writer.upgrade_websocket(kProtocol);
  if (!socket) co_return;
  co_await join_sockets(world.env, std::move(*socket), std::move(*other));
}

}  // namespace muster::portal
