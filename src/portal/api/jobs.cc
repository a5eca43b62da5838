/// jobs/ID and what is below it, POST jobs, and acts on many.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "json/text.h"
#include "json/yaml.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "portal/api/api.h"
#include "portal/api/mask.h"
#include "portal/jobs/rows.h"

namespace muster::portal {
namespace {

/// "ns/kind/name" of several segments, or one segment with the id; the rest is what is asked of it.
struct JobPath {
  std::string id, rest;
  std::vector<std::string> more;
};

JobPath job_path(const std::vector<std::string>& path) {
  JobPath found;
  std::size_t used = 2;
  found.id = path[1];
  if (found.id.find('/') == std::string::npos && found.id.find('~') == std::string::npos &&
      path.size() >= 4) {
    found.id = path[1] + "/" + path[2] + "/" + path[3];
    used = 4;
  }
  if (path.size() > used) found.rest = path[used];
  for (std::size_t i = used + 1; i < path.size(); ++i) found.more.push_back(path[i]);
  return found;
}

Task<void> give_config(ApiWorld& api, ApiCall& call, const JobIndex::Entry& entry) {
  // The entry may be gone once that is answered.
  const auto object = entry.object;
  const bool openpai = entry.facts.kind == JobKind::kOpenPai;
  if (!object) {
    co_await answer(call.writer, error_answer(404, "NotFound", "the job's object is gone"));
    co_return;
  }
  const bool whole =
      co_await api.world.rights.reads_environments(call.visitor.user, entry.facts.ns);
  net::Response response;
  response.headers.set("Content-Type", "text/yaml; charset=utf-8");
  // What an OpenPAI job was made of is kept on it, its secrets masked already.
  const std::string_view submitted = kube::annotation(*object, kube::names::pai::kConfig);
  response.body =
      openpai && !submitted.empty()
          ? std::string(submitted)
          : json::to_yaml(masked(*object, whole ? Environment::kShown : Environment::kHidden));
  co_await answer(call.writer, std::move(response));
}

json::Value segment(std::string_view kind, Millis from, Millis to, std::string text) {
  return {{"kind", kind},
          {"from", from},
          {"to", to == 0 ? json::Value(nullptr) : json::Value(to)},
          {"text", std::move(text)}};
}

/// What the object and its pods still say; attempts before the present one are known from events.
json::Value timeline_of(const World& world, const JobIndex::Entry& entry) {
  const Keys& keys = world.jobs.table().keys(entry.slot);
  const Texts& texts = world.jobs.table().texts(entry.slot);
  json::Array segments, tasks, marks;
  Millis bound = 0;
  std::set<std::string> nodes;
  for (const auto& [name, task] : entry.tasks) {
    if (task.scheduled != 0 && (bound == 0 || task.scheduled < bound)) bound = task.scheduled;
    if (!task.node.empty()) nodes.insert(task.node);
  }
  const Millis queued_until = keys.state == State::kWaiting && bound == 0 ? 0
                              : bound != 0                                ? bound
                                                                          : keys.started;
  segments.push_back(segment("queued", keys.submitted, queued_until, texts.wait.text));
  if (bound != 0) segments.push_back(segment("starting", bound, keys.started, ""));
  const std::vector<std::string> names(nodes.begin(), nodes.end());
  if (keys.started != 0)
    segments.push_back(segment("running", keys.started, keys.ended, join(names, ", ")));
  for (const auto& [name, task] : entry.tasks) {
    if (tasks.size() >= 200) break;
    json::Array own;
    own.push_back(segment("queued",
                          task.created,
                          task.scheduled,
                          task.state == TaskState::kWaiting ? task.reason : ""));
    if (task.scheduled != 0)
      own.push_back(segment("starting", task.scheduled, task.started, task.node));
    if (task.started != 0) own.push_back(segment("running", task.started, task.ended, task.node));
    tasks.push_back({{"id", task_id(task)}, {"segments", std::move(own)}});
  }
  marks.push_back({{"at", keys.submitted}, {"kind", "submitted"}, {"text", ""}, {"by", nullptr}});
  for (const auto& [at, event] : world.events.all()) {
    if (marks.size() > 200 || world.jobs.of_uid(event.uid) != &entry) continue;
    if (event.reason == "Preempted")
      marks.push_back(
          {{"at", event.at}, {"kind", "evicted"}, {"text", event.message}, {"by", nullptr}});
    else if (event.reason == "FailedScheduling")
      marks.push_back(
          {{"at", event.at}, {"kind", "reason"}, {"text", event.message}, {"by", nullptr}});
  }
  if (keys.ended != 0)
    marks.push_back({{"at", keys.ended},
                     {"kind", keys.state == State::kFailed ? "failed" : "ended"},
                     {"text", texts.exit_phrase},
                     {"by", nullptr}});
  json::Array attempts;
  attempts.push_back({{"n", keys.retries_platform},
                      {"segments", std::move(segments)},
                      {"tasks", std::move(tasks)},
                      {"tasksTotal", entry.tasks.size()}});
  return {{"now", world.now()}, {"attempts", std::move(attempts)}, {"marks", std::move(marks)}};
}

std::string tasks_text(const JobIndex::Entry& entry) {
  std::string out;
  for (const auto& [name, task] : entry.tasks) {
    if (!out.empty()) out += ',';
    append_task(out, task);
  }
  return out;
}

Task<void> give_attempt(ApiWorld& api,
                        ApiCall& call,
                        const JobIndex::Entry& entry,
                        const std::string& number) {
  const Keys& keys = api.world.jobs.table().keys(entry.slot);
  if (parse_int(number) != keys.retries_platform) {
    co_await answer(call.writer,
                    error_answer(404,
                                 "NotFound",
                                 fmt::format("attempt {} is not remembered; the present one is {}",
                                             number.substr(0, 20),
                                             keys.retries_platform)));
    co_return;
  }
  std::string out = fmt::format(
      R"({{"n":{},"state":"{}","started":)", keys.retries_platform, state_name(keys.state));
  append_millis(out, keys.started);
  out += R"(,"ended":)";
  append_millis(out, keys.ended);
  out += R"(,"exit":null,"failure":null,"tasks":[)" + tasks_text(entry) + "]}\n";
  co_await answer(call.writer, json_answer(200, std::move(out)));
}

/// The whole log of one task, to be kept as a file.
Task<void> give_log(ApiWorld& api, ApiCall& call, const JobIndex::Entry& entry) {
  const std::string_view wanted = call.target.get("task");
  const auto found = std::find_if(entry.tasks.begin(), entry.tasks.end(), [&](const auto& one) {
    return wanted.empty() || task_id(one.second) == wanted || one.first == wanted;
  });
  if (found == entry.tasks.end()) {
    co_await answer(call.writer, error_answer(404, "NotFound", "there is no such task"));
    co_return;
  }
  net::Request request;
  request.method = "GET";
  request.target = fmt::format(
      "/kube/api/v1/namespaces/{}/pods/{}/log?follow=false", entry.facts.ns, found->first);
  std::string container(call.target.get("container"));
  if (container.empty() && !found->second.containers.empty())
    container = found->second.containers.front();
  if (!container.empty()) request.target += "&container=" + percent_encode(container);
  if (call.target.get("attempt") == "previous") request.target += "&previous=true";
  co_await serve_kube(api.world, call.visitor, std::move(request), call.writer);
}

}  // namespace

Task<void> serve_job(ApiWorld api, ApiCall call) {
  const JobPath path = job_path(call.path);
  const auto found = co_await find_job(api.world, call.visitor.user, path.id);
  if (!found) {
    co_await answer_error(call.writer, found.error());
    co_return;
  }
  const JobIndex::Entry& entry = **found;
  if (call.request.method != "GET") {
    co_await answer(call.writer,
                    error_answer(405, "MethodNotAllowed", "jobs are changed by POST jobs:act"));
    co_return;
  }
  if (path.rest.empty()) {
    const VisiblePtr visible = co_await api.world.rights.visible(call.visitor.user);
    // Whoever it was may have gone meanwhile.
    const JobIndex::Entry* still = api.world.jobs.find(path.id);
    if (still == nullptr) {
      co_await answer(call.writer, error_answer(404, "NotFound", "the job is gone"));
      co_return;
    }
    co_await answer(
        call.writer,
        json_answer(200, job_detail(api.world, call.visitor.user, *visible, *still) + "\n"));
  } else if (path.rest == "config") {
    co_await give_config(api, call, entry);
  } else if (path.rest == "timeline") {
    co_await answer_json(call.writer, timeline_of(api.world, entry));
  } else if (path.rest == "attempts" && path.more.size() == 1) {
    co_await give_attempt(api, call, entry, path.more[0]);
  } else if (path.rest == "log") {
    co_await give_log(api, call, entry);
  } else if (path.rest == "wait") {
    co_await answer(
        call.writer,
        error_answer(
            501, "NotImplemented", "this server does not say yet which nodes a cause means"));
  } else {
    co_await answer(
        call.writer,
        error_answer(
            404,
            "NotFound",
            fmt::format("a job has no \"{}\"; it has config, timeline, attempts/N and wait/nodes",
                        path.rest.substr(0, 50))));
  }
}

}  // namespace muster::portal
