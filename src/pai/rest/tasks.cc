/// Attempts of jobs and tasks, and the tasks' logs.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/meta.h"
#include "pai/job/job.h"
#include "pai/people/records.h"
#include "pai/rest/jobs.h"

namespace muster::pai::rest {
namespace {

/// The last of a log that `tail-mode` shows.
constexpr std::size_t kTailBytes = 16 * 1024;
constexpr std::size_t kLogBytes = 64 * 1024 * 1024;
constexpr const char* kLogName = "user.pai.all";

struct Attempt {
  std::int64_t number = 0;
  bool latest = false;
  client::ObjectPtr framework;  // as it was
};

/// All that are known, the newest first.
Task<Answer<std::vector<Attempt>>> attempts_of(Jobs& jobs, const std::string& id) {
  const auto found = find_job(jobs.index, id);
  if (!found) co_return refuse(found.error());
  const client::ObjectPtr now = (*found)->object;
  auto past = co_await jobs.attempts.of(**found);
  if (!past) co_return refuse(past.error());
  std::vector<Attempt> attempts;
  attempts.push_back({json::int_at(*now, "status", "attemptStatus", "id"), true, now});
  for (auto each = past->rbegin(); each != past->rend(); ++each)
    if (each->first < attempts.front().number)
      attempts.push_back(
          {each->first, false, std::make_shared<const json::Value>(std::move(each->second))});
  co_return attempts;
}

Task<Answer<Attempt>> find_attempt(Jobs& jobs, const std::string& id, const std::string& number) {
  auto attempts = co_await attempts_of(jobs, id);
  if (!attempts) co_return refuse(attempts.error());
  const auto wanted = parse_int(number);
  for (Attempt& attempt : *attempts)
    if (wanted && attempt.number == *wanted) co_return std::move(attempt);
  co_return refuse(
      404, "NoJobError", fmt::format("Attempt {} of job {} is not found.", number, id));
}

Task<Answer<Reply>> show_attempt(Jobs& jobs, Call& call) {
  auto attempt = co_await find_attempt(jobs, call.values[0], call.values[1]);
  if (!attempt) co_return refuse(attempt.error());
  auto reply = co_await made_of(jobs.env, attempt->framework, job_detail);
  co_return reply;
}

/// JobAttempt, the shape before /attempts/:n.
json::Object job_attempt(const Attempt& attempt) {
  const json::Value detail = job_detail(*attempt.framework);
  const json::Value& status = json::at(detail, "jobStatus");
  json::Object out{{"jobName", json::at(detail, "name")},
                   {"frameworkName", json::at(detail, "debugId")},
                   {"userName", json::at(status, "username")},
                   {"attemptIndex", attempt.number},
                   {"exitCode", json::at(status, "appExitCode")},
                   {"exitPhrase", json::at(status, "appExitSpec", "phrase")},
                   {"exitType", json::at(status, "appExitType")},
                   {"exitDiagnostics", json::at(status, "appExitDiagnostics")},
                   {"taskRoles", json::at(detail, "taskRoles")},
                   {"isLatest", attempt.latest}};
  for (const auto& each : json::as_object(status))
    if (!out.contains(each.key())) out[each.key()] = each.value();
  out["attemptStartedTime"] = json::at(status, "appCreatedTime");
  out["attemptCompletedTime"] = json::at(status, "appCompletedTime");
  return out;
}

Task<Answer<Reply>> list_attempts(Jobs& jobs, Call& call) {
  const auto attempts = co_await attempts_of(jobs, call.values[0]);
  if (!attempts) co_return refuse(attempts.error());
  auto reply = co_await made_of(
      jobs.env, attempts->front().framework, [&attempts](const json::Value&) -> json::Value {
        json::Array out;
        for (const Attempt& attempt : *attempts) out.push_back(job_attempt(attempt));
        return out;
      });
  co_return reply;
}

Task<Answer<Reply>> show_job_attempt(Jobs& jobs, Call& call) {
  const auto attempt = co_await find_attempt(jobs, call.values[0], call.values[1]);
  if (!attempt) co_return refuse(attempt.error());
  auto reply =
      co_await made_of(jobs.env, attempt->framework, [&attempt](const json::Value&) -> json::Value {
        return job_attempt(*attempt);
      });
  co_return reply;
}

Task<Answer<Reply>> healthy(Jobs& jobs, Call& call) {
  const auto found = find_job(jobs.index, call.values[0]);
  if (!found) co_return refuse(found.error());
  co_return said(200, "The history of jobs is kept.");
}

/// job, attempt, role, index of the path: the task's attempts, the newest first.
Task<Answer<json::Array>> find_task(Jobs& jobs, const Call& call) {
  const auto attempt = co_await find_attempt(jobs, call.values[0], call.values[1]);
  if (!attempt) co_return refuse(attempt.error());
  json::Array attempts =
      task_attempts(*attempt->framework, call.values[2], parse_int(call.values[3]).value_or(-1));
  if (!attempts.empty()) co_return attempts;
  co_return refuse(
      404,
      "NoTaskError",
      fmt::format(
          "Task {} {} of job {} is not found.", call.values[2], call.values[3], call.values[0]));
}

Task<Answer<Reply>> show_task(Jobs& jobs, Call& call) {
  auto attempts = co_await find_task(jobs, call);
  if (!attempts) co_return refuse(attempts.error());
  const auto found = find_job(jobs.index, call.values[0]);
  if (!found) co_return refuse(found.error());
  const ListedJob& job = **found;
  json::Object out{{"jobName", job.name},
                   {"frameworkName", job.framework},
                   {"userName", job.user},
                   {"taskRoleName", call.values[2]},
                   {"jobAttemptIndex", parse_int(call.values[1]).value_or(0)}};
  for (const auto& each : json::as_object(attempts->front())) out[each.key()] = each.value();
  out.erase("taskAttemptIndex");
  out["attempts"] = std::move(*attempts);
  co_return answered(std::move(out));
}

Refusal no_log(const Call& call) {
  return {.status = 404,
          .code = "NoTaskLogError",
          .message = fmt::format("Log of task {} {} of job {} is not found.",
                                 call.values[2],
                                 call.values[3],
                                 call.values[0])};
}

/// Where the log of a task attempt is.
struct LogPlace {
  std::string pod;  // its name while it is there
  std::string uid;
};

/// 404 NoTaskLogError when there is none.
Task<Answer<LogPlace>> find_log(Jobs& jobs, const Call& call) {
  const auto attempts = co_await find_task(jobs, call);
  if (!attempts) co_return refuse(attempts.error());
  const auto found = find_job(jobs.index, call.values[0]);
  if (!found) co_return refuse(found.error());
  const auto number = parse_int(call.values[4]);
  LogPlace place;
  for (const json::Value& each : *attempts)
    if (number && json::int_at(each, "attemptId") == *number)
      place.uid = json::text_at(each, "containerId");
  if (place.uid.empty()) co_return refuse(no_log(call));
  const std::string name =
      fmt::format("{}-{}-{}", (*found)->framework, call.values[2], call.values[3]);
  const auto pod = co_await jobs.client.get(client::resources::kPods, kJobsNamespace, name);
  if (pod && kube::uid_of(*pod) == place.uid) {
    place.pod = name;
    co_return place;
  }
  if (!jobs.former_log) co_return refuse(no_log(call));
  const auto kept = co_await jobs.former_log(place.uid, 1);
  if (!kept) co_return refuse(no_log(call));
  co_return place;
}

bool wants_tail(const Call& call) {
  return call.target.get("tail-mode") == "true" || call.target.get("tailMode") == "true";
}

Task<Answer<Reply>> list_logs(Jobs& jobs, Call& call) {
  const auto place = co_await find_log(jobs, call);
  if (!place) co_return refuse(place.error());
  std::string path = call.request.target.substr(0, call.request.target.find('?'));
  while (path.ends_with('/')) path.pop_back();
  const std::string query = wants_tail(call) ? "?tail-mode=true" : "";
  json::Array locations{
      json::Object{{"name", kLogName}, {"uri", fmt::format("{}/{}{}", path, kLogName, query)}}};
  co_return answered(json::Object{{"locations", std::move(locations)}});
}

/// Of a pod that is there. The end of a long log comes without all of it going through memory first.
Task<Answer<std::string>> log_of_pod(Jobs& jobs, const Call& call, std::string pod) {
  net::Request request;
  request.method = "GET";
  request.target =
      fmt::format("{}/{}/log?container=app{}",
                  client::resources::kPods.path(kJobsNamespace),
                  pod,
                  wants_tail(call) ? "&tailLines=1000" : fmt::format("&limitBytes={}", kLogBytes));
  auto answer = co_await jobs.client.http().request(std::move(request));
  if (!answer) co_return refuse(answer.error());
  if (answer->status != 200) co_return refuse(no_log(call));
  co_return std::move(answer->body);
}

Task<Answer<Reply>> read_log(Jobs& jobs, Call& call) {
  const auto place = co_await find_log(jobs, call);
  if (!place) co_return refuse(place.error());
  if (call.values[5] != kLogName)
    co_return refuse(404,
                     "NoTaskLogError",
                     fmt::format("Log {} is not found; there is {}.", call.values[5], kLogName));
  Reply reply;
  reply.type = "text/plain; charset=utf-8";
  if (place->pod.empty()) {
    auto kept = co_await jobs.former_log(place->uid, wants_tail(call) ? kTailBytes : kLogBytes);
    if (!kept) co_return refuse(no_log(call));
    reply.text = std::move(*kept);
    co_return reply;
  }
  auto text = co_await log_of_pod(jobs, call, place->pod);
  if (!text) co_return refuse(text.error());
  reply.text = std::move(*text);
  if (wants_tail(call) && reply.text.size() > kTailBytes)
    reply.text.erase(0, reply.text.size() - kTailBytes);
  co_return reply;
}

}  // namespace

std::vector<Route> task_routes(Jobs& jobs) {
  const auto with = [&jobs](Task<Answer<Reply>> (*run)(Jobs&, Call&)) -> Run {
    return [&jobs, run](Call& call) { return run(jobs, call); };
  };
  const std::string task = "jobs/:job/attempts/:attempt/taskRoles/:role/taskIndex/:index/attempts";
  return {
      {"GET", "jobs/:job/attempts/:attempt", Who::kPrograms, with(show_attempt)},
      {"GET", "jobs/:job/job-attempts", Who::kPrograms, with(list_attempts)},
      {"GET", "jobs/:job/job-attempts/healthz", Who::kPrograms, with(healthy)},
      {"GET", "jobs/:job/job-attempts/:attempt", Who::kPrograms, with(show_job_attempt)},
      {"GET", task, Who::kPrograms, with(show_task)},
      {"GET", task + "/:try/logs", Who::kPrograms, with(list_logs)},
      {"GET", task + "/:try/logs/:name", Who::kPrograms, with(read_log)},
  };
}

}  // namespace muster::pai::rest
