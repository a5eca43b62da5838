/// jobs/ID and what is below it, POST jobs, and acts on many.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "json/text.h"
#include "json/yaml.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "portal/api/api.h"
#include "portal/api/mask.h"
#include "portal/api/timeline.h"
#include "portal/jobs/rows.h"
#include "portal/topics/waiting.h"

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

std::string tasks_text(const JobIndex::Entry& entry) {
  std::string out;
  for (const auto& [name, task] : entry.tasks) {
    if (!out.empty()) out += ',';
    append_task(out, task);
  }
  return out;
}

json::Value millis_or_null(const json::Value& time) {
  return json::as_int(time) == 0 ? json::Value(nullptr) : time;
}

/// A task of an attempt that is over, as OpenPAI's API tells of it.
json::Value former_task(const std::string& role, const json::Value& task, std::int64_t attempt) {
  const json::Value& code = json::at(task, "containerExitCode");
  return {{"id", fmt::format("{}-{}", role, json::int_at(task, "taskIndex"))},
          {"role", role},
          {"index", json::int_at(task, "taskIndex")},
          {"state", json::text_at(task, "taskState")},
          {"node", json::text_at(task, "containerNodeName")},
          {"gpus", json::Array{}},
          {"gpuCount", 0},
          {"ip", json::text_at(task, "containerIp")},
          {"ports", json::Object{}},
          {"retries", json::int_at(task, "accountableRetries")},
          {"exit",
           code.is_number()
               ? json::Value{{"code", code},
                             {"phrase", json::text_at(task, "containerExitSpec", "phrase")}}
               : json::Value(nullptr)},
          {"started", millis_or_null(json::at(task, "launchedTime"))},
          {"ended", millis_or_null(json::at(task, "completedTime"))},
          {"pod", ""},
          {"containers", json::Array{}},
          {"attempt", attempt}};
}

/// Attempts that are over are kept by OpenPAI alone.
Task<void> give_former_attempt(ApiWorld& api,
                               ApiCall& call,
                               const JobIndex::Entry& entry,
                               std::int64_t number) {
  const std::string missing = fmt::format("attempt {} is no longer known", number);
  if (entry.facts.kind != JobKind::kOpenPai || !api.world.options.rest_call) {
    co_await answer(call.writer, error_answer(404, "NotFound", missing));
    co_return;
  }
  const auto told = co_await api.world.options.rest_call(
      call.visitor.user,
      "GET",
      fmt::format("/api/v2/jobs/{}/job-attempts/{}", percent_encode(entry.facts.id), number),
      "",
      "");
  const auto attempt = json::parse(told ? told->body : "");
  if (!told || told->status >= 300 || !attempt) {
    co_await answer(call.writer, error_answer(404, "NotFound", missing));
    co_return;
  }
  json::Array tasks;
  for (const auto& role : json::object_at(*attempt, "taskRoles")) {
    for (const json::Value& task : json::array_at(role.value(), "taskStatuses"))
      tasks.push_back(former_task(std::string(role.key()), task, number));
  }
  co_await answer_json(call.writer,
                       {{"n", number},
                        {"state", json::text_at(*attempt, "state")},
                        {"started", millis_or_null(json::at(*attempt, "appLaunchedTime"))},
                        {"ended", millis_or_null(json::at(*attempt, "attemptCompletedTime"))},
                        {"exit", nullptr},
                        {"failure", nullptr},
                        {"tasks", std::move(tasks)}});
}

Task<void> give_attempt(ApiWorld& api,
                        ApiCall& call,
                        const JobIndex::Entry& entry,
                        const std::string& number) {
  const Keys& keys = api.world.jobs.table().keys(entry.slot);
  const bool pai = entry.facts.kind == JobKind::kOpenPai;
  const std::int64_t newest = keys.retries_platform + (pai ? entry.facts.retries_user : 0);
  const std::int64_t wanted = parse_int(number).value_or(-1);
  if (wanted != newest) {
    co_await give_former_attempt(api, call, entry, wanted);
    co_return;
  }
  std::string out =
      fmt::format(R"({{"n":{},"state":"{}","started":)", newest, state_name(keys.state));
  append_millis(out, keys.started);
  out += R"(,"ended":)";
  append_millis(out, keys.ended);
  out += R"(,"exit":null,"failure":null,"tasks":[)" + tasks_text(entry) + "]}\n";
  co_await answer(call.writer, json_answer(200, std::move(out)));
}

/// Which nodes a cause of the wait means, a page of them.
Task<void> give_nodes(ApiWorld& api, ApiCall& call, const JobIndex::Entry& entry) {
  const World& world = api.world;
  const std::string cause(call.target.get("cause"));
  const std::size_t offset = static_cast<std::size_t>(
      std::max<std::int64_t>(0, parse_int(call.target.get("offset")).value_or(0)));
  const std::int64_t limit = parse_int(call.target.get("limit")).value_or(100);
  if (cause.empty() || limit < 1 || limit > 500) {
    co_await answer(
        call.writer,
        error_answer(
            400, "BadRequest", "wanted cause=TEXT, one of the wait's, and limit 1 to 500"));
    co_return;
  }
  std::vector<std::string> names;
  for (const std::string& key : gang_keys(entry)) {
    if (!world.options.nodes_of_cause) break;
    names = world.options.nodes_of_cause(key, cause);
    if (!names.empty()) break;
  }
  json::Array rows;
  for (std::size_t i = offset; i < names.size() && rows.size() < static_cast<std::size_t>(limit);
       ++i) {
    const NodeFacts* node = world.nodes.find(names[i]);
    std::string text;
    if (node != nullptr) {
      std::int64_t held = 0;
      for (const auto& [pod, on] : world.jobs.on_node(names[i])) held += on.task->gpus;
      text = fmt::format("{}, {} of {} GPUs free",
                         node_state_name(node->state),
                         std::max<std::int64_t>(0, node->gpus - held),
                         node->gpus);
    }
    rows.push_back({{"node", names[i]}, {"text", text}});
  }
  co_await answer_json(call.writer, {{"total", names.size()}, {"rows", std::move(rows)}});
}

/// What would start it now, tried on a copy in this user's name.
Task<void> give_alternatives(ApiWorld& api, ApiCall& call, const JobIndex::Entry& entry) {
  const std::string target = fmt::format("/apis/{}/v1/namespaces/{}/jobs/{}.{}/explain",
                                         kube::groups::kAnswers,
                                         percent_encode(entry.facts.ns),
                                         kind_name(entry.facts.kind),
                                         entry.object ? percent_encode(kube::name_of(*entry.object))
                                                      : percent_encode(entry.facts.name));
  const auto told = co_await api.world.kube.call_as(call.visitor.user, "GET", target, nullptr);
  const VisiblePtr visible = co_await api.world.rights.visible(call.visitor.user);
  json::Array list;
  for (const json::Value& one : told ? json::array_at(*told, "alternatives") : json::Array{}) {
    // Pods of one job are named once; whom this user may not see has been given no name.
    json::Array victims;
    for (const json::Value& victim : json::array_at(one, "victims")) {
      const std::string key = json::text(victim);
      const JobIndex::Entry* job = api.world.jobs.find(key);
      if (job == nullptr || !sees(*visible, *job)) job = job_of_gang(api.world, *visible, key);
      json::Value name(job ? job->facts.name : key);
      if (std::find(victims.begin(), victims.end(), name) == victims.end())
        victims.push_back(std::move(name));
    }
    const std::string flag = json::text_at(one, "flag"), text = json::text_at(one, "text");
    const Millis start = millis_at(json::at(one, "start"));
    list.push_back({{"change", text.empty() ? flag : text},
                    {"text", text.empty() ? "" : flag},
                    {"verdict", json::text_at(one, "verdict")},
                    {"start", start == 0 ? json::Value(nullptr) : json::Value(start)},
                    {"victims", std::move(victims)},
                    {"yaml", nullptr}});
  }
  co_await answer_json(call.writer, std::move(list));
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
  if (parse_int(call.target.get("attempt"))) {
    co_await give_former_log(api, call, entry, found->second);
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
    auto story = co_await timeline_of(api.world, call.visitor.user, path.id);
    if (story)
      co_await answer_json(call.writer, std::move(*story));
    else
      co_await answer_error(call.writer, story.error());
  } else if (path.rest == "attempts" && path.more.size() == 1) {
    co_await give_attempt(api, call, entry, path.more[0]);
  } else if (path.rest == "log") {
    co_await give_log(api, call, entry);
  } else if (path.rest == "wait" && path.more == std::vector<std::string>{"nodes"}) {
    co_await give_nodes(api, call, entry);
  } else if (path.rest == "wait" && path.more == std::vector<std::string>{"alternatives"}) {
    co_await give_alternatives(api, call, entry);
  } else {
    co_await answer(
        call.writer,
        error_answer(
            404,
            "NotFound",
            fmt::format(
                "a job has no \"{}\"; it has config, timeline, attempts/N, log, wait/nodes and wait/alternatives",
                path.rest.substr(0, 50))));
  }
}

}  // namespace muster::portal
