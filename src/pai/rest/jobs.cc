/// Jobs: listed, shown, stopped, tagged; their configuration and events.
#include "pai/rest/jobs.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "pai/job/job.h"
#include "pai/people/records.h"
#include "pai/protocol/submit.h"
#include "pai/rest/body.h"
#include "pai/rest/routes.h"

namespace muster::pai::rest {
namespace {

constexpr std::size_t kLimitMax = 50'000;

const std::vector<std::pair<std::string_view, JobOrder>>& orders() {
  static const std::vector<std::pair<std::string_view, JobOrder>> kOrders{
      {"submissionTime", JobOrder::kSubmitted},
      {"jobName", JobOrder::kName},
      {"username", JobOrder::kUser},
      {"vc", JobOrder::kVc},
      {"retries", JobOrder::kRetries},
      {"totalTaskNumber", JobOrder::kTasks},
      {"totalGpuNumber", JobOrder::kGpus},
      {"state", JobOrder::kState},
      {"completionTime", JobOrder::kCompleted},
      {"jobPriority", JobOrder::kPriority}};
  return kOrders;
}

Answer<std::size_t> read_count(const net::Target& target,
                               std::string_view name,
                               std::size_t usual) {
  if (!target.has(name)) return usual;
  const auto number = parse_int(target.get(name));
  if (!number || *number < 0)
    return refuse(bad_parameters(fmt::format("\"{}\" must be a number from 0 on", name)));
  return static_cast<std::size_t>(*number);
}

Answer<JobQuery> read_query(const net::Target& target) {
  JobQuery query;
  const auto words = [&target](std::string_view name) {
    return split_nonempty(target.get(name), ',');
  };
  query.users = words("username");
  query.vcs = words("vc");
  query.states = words("state");
  query.priorities = words("jobPriority");
  query.tags_any = words("tagsContain");
  query.tags_none = words("tagsNotContain");
  query.keyword = target.get("keyword");
  const auto offset = read_count(target, "offset", 0), limit = read_count(target, "limit", 5000);
  if (!offset) return refuse(offset.error());
  if (!limit) return refuse(limit.error());
  if (*limit > kLimitMax)
    return refuse(bad_parameters(fmt::format("Limit exceeds max number {}.", kLimitMax)));
  query.offset = *offset;
  query.limit = *limit;
  if (!target.has("order")) return query;
  const auto parts = split(target.get("order"), ',');
  const auto found = std::find_if(
      orders().begin(), orders().end(), [&](const auto& each) { return each.first == parts[0]; });
  const bool way =
      parts.size() == 1 || (parts.size() == 2 && (parts[1] == "ASC" || parts[1] == "DESC"));
  if (found == orders().end() || !way)
    return refuse(bad_parameters(fmt::format(
        "\"order\" must be a field and ASC or DESC, e.g. submissionTime,DESC; found \"{}\"",
        target.get("order"))));
  query.order = found->second;
  query.ascending = parts.size() == 2 && parts[1] == "ASC";
  return query;
}

Task<Answer<Reply>> list(Jobs& jobs, Call& call) {
  const Duration wait = jobs.lists.ask(call.caller.user, jobs.env.monotonic());
  if (wait > Duration::zero()) co_return refuse(too_often(wait));
  const auto query = read_query(call.target);
  if (!query) co_return refuse(query.error());
  const JobPage page = jobs.index.list(*query);
  std::size_t bytes = 64;
  for (const ListedJob* job : page.jobs) bytes += job->summary.size() + 1;
  Reply reply;
  reply.type = "application/json; charset=utf-8";
  reply.text.reserve(bytes);
  const bool counted = call.target.get("withTotalCount") == "true";
  if (counted) reply.text += fmt::format("{{\"totalCount\":{},\"data\":", page.total);
  reply.text += '[';
  for (const ListedJob* job : page.jobs) {
    if (reply.text.back() != '[') reply.text += ',';
    reply.text += job->summary;
  }
  reply.text += counted ? "]}" : "]";
  co_return reply;
}

Task<Answer<Reply>> show(Jobs& jobs, Call& call) {
  const auto job = find_job(jobs.index, call.values[0]);
  if (!job) co_return refuse(job.error());
  auto reply = co_await made_of(jobs.env, (*job)->object, job_detail);
  co_return reply;
}

Task<Answer<Reply>> config(Jobs& jobs, Call& call) {
  const auto job = find_job(jobs.index, call.values[0]);
  if (!job) co_return refuse(job.error());
  Reply reply;
  reply.text = job_config(*(*job)->object);
  reply.type = "text/yaml; charset=utf-8";
  if (reply.text.empty())
    co_return refuse(
        404, "NoJobConfigError", fmt::format("Config of job {} is not found.", call.values[0]));
  co_return reply;
}

Task<Answer<void>> patch_job(Jobs& jobs, const ListedJob& job, json::Value patch) {
  const auto patched = co_await jobs.client.patch(kube::resources::kFrameworks,
                                                  std::string(kube::namespace_of(*job.object)),
                                                  job.framework,
                                                  "",
                                                  client::PatchType::kMerge,
                                                  std::move(patch));
  if (!patched) co_return refuse(patched.error());
  jobs.index.wrote(*patched);
  co_return Answer<void>();
}

Task<Answer<Reply>> execute(Jobs& jobs, Call& call) {
  Members members(call.body);
  const std::string value = members.text("value");
  if (value != "START" && value != "STOP")
    members.complain("\"value\" must be one of [START, STOP]");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  const auto job = find_job(jobs.index, call.values[0]);
  if (!job) co_return refuse(job.error());
  const auto owner = check_owner(call, **job);
  if (!owner) co_return refuse(owner.error());
  // A job that was stopped does not start again, and one that runs has started.
  if (value == "STOP") {
    const auto stopped =
        co_await patch_job(jobs, **job, json::Object{{"spec", {{"executionType", "Stop"}}}});
    if (!stopped) co_return refuse(stopped.error());
  }
  co_return Reply{.status = 202,
                  .body = json::Object{
                      {"status", 202},
                      {"message", fmt::format("Execute job {} successfully.", call.values[0])}}};
}

Task<Answer<Reply>> tag(Jobs& jobs, Call& call) {
  const bool adding = call.request.method == "PUT";
  Members members(call.body);
  const std::string value = members.text("value");
  if (value.empty() || value.size() > 64 || value.find(',') != std::string::npos)
    members.complain("\"value\" must be 1 to 64 characters without a comma");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  const auto job = find_job(jobs.index, call.values[0]);
  if (!job) co_return refuse(job.error());
  const auto owner = check_owner(call, **job);
  if (!owner) co_return refuse(owner.error());
  auto tags = (*job)->tags;
  if (!adding && !contains(tags, value))
    co_return refuse(
        404, "NoTagError", fmt::format("Tag {} of job {} is not found.", value, call.values[0]));
  if (!adding) std::erase(tags, value);
  if (adding && !contains(tags, value)) tags.push_back(value);
  json::Value patch =
      json::Object{{"metadata",
                    {{"annotations", {{kube::names::pai::kTags, join(tags, ",")}}},
                     {"resourceVersion", kube::resource_version_of(*(*job)->object)}}}};
  const auto changed = co_await patch_job(jobs, **job, std::move(patch));
  if (!changed) co_return refuse(changed.error());
  co_return said(
      200,
      fmt::format(
          "{} tag {} for job {} successfully.", adding ? "Add" : "Delete", value, call.values[0]));
}

/// FRAMEWORK-ROLE-INDEX, the name of a task's pod.
json::Object event_json(const ListedJob& job, const json::Value& event) {
  const std::string pod = json::text_at(event, "involvedObject", "name");
  json::Object out{{"uid", json::at(event, "metadata", "uid")},
                   {"frameworkName", job.framework},
                   {"podUid", nullptr},
                   {"taskroleName", nullptr},
                   {"taskName", nullptr},
                   {"taskIndex", nullptr},
                   {"type", json::at(event, "type")},
                   {"reason", json::at(event, "reason")},
                   {"message", json::at(event, "message")},
                   {"firstTimestamp", millis(json::at(event, "firstTimestamp"))},
                   {"lastTimestamp", millis(json::at(event, "lastTimestamp"))},
                   {"count", json::at(event, "count")},
                   {"sourceComponent", json::at(event, "source", "component")},
                   {"sourceHost", json::at(event, "source", "host")}};
  const auto parts = split(pod, '-');
  if (json::string_at(event, "involvedObject", "kind") == "Pod" && parts.size() == 3) {
    out["podUid"] = json::at(event, "involvedObject", "uid");
    out["taskroleName"] = parts[1];
    out["taskName"] = pod;
    if (const auto index = parse_int(parts[2])) out["taskIndex"] = *index;
  }
  return out;
}

Task<Answer<Reply>> events(Jobs& jobs, Call& call) {
  const auto found = find_job(jobs.index, call.values[0]);
  if (!found) co_return refuse(found.error());
  const ListedJob job = **found;
  const std::string wanted(call.target.get("type"));
  if (!wanted.empty() && wanted != "Warning" && wanted != "Normal")
    co_return refuse(bad_parameters("\"type\" must be Warning or Normal"));
  client::ListOptions where;
  where.ns = kJobsNamespace;
  if (!wanted.empty()) where.field_selector = "type=" + wanted;
  const auto listed = co_await jobs.client.list(client::resources::kEvents, where);
  if (!listed) co_return refuse(listed.error());
  std::vector<const json::Value*> ours;
  for (const json::Value& event : listed->items) {
    const std::string_view name = json::string_at(event, "involvedObject", "name");
    if (name == job.framework || name.starts_with(job.framework + "-")) ours.push_back(&event);
  }
  std::stable_sort(ours.begin(), ours.end(), [](const json::Value* a, const json::Value* b) {
    return json::string_at(*a, "lastTimestamp") > json::string_at(*b, "lastTimestamp");
  });
  json::Array data;
  for (const json::Value* event : ours) data.push_back(event_json(job, *event));
  co_return answered(json::Object{{"totalCount", data.size()}, {"data", std::move(data)}});
}

Task<Answer<Reply>> ssh(Call& call) {
  co_return refuse(
      404, "NoJobSshInfoError", fmt::format("SSH info of job {} is not found.", call.values[0]));
}

}  // namespace

Answer<const ListedJob*> find_job(const JobIndex& index, const std::string& id) {
  const std::size_t tilde = id.find('~');
  const ListedJob* job =
      tilde == std::string::npos
          ? nullptr
          : index.find(framework_name(id.substr(0, tilde), id.substr(tilde + 1)));
  if (job == nullptr) return refuse(404, "NoJobError", fmt::format("Job {} is not found.", id));
  return job;
}

Task<Reply> made_of(Env& env,
                    client::ObjectPtr framework,
                    std::function<json::Value(const json::Value&)> make) {
  // 2,000 tasks take 16 ms.
  constexpr std::int64_t kTasksOnLoop = 200;
  std::int64_t tasks = 0;
  for (const json::Value& role : json::array_at(*framework, "spec", "taskRoles"))
    tasks += json::int_at(role, "taskNumber");
  Reply reply;
  reply.type = "application/json; charset=utf-8";
  std::function<void()> work = [&] { reply.text = json::dump(make(*framework)); };
  if (tasks > kTasksOnLoop) {
    co_await env.run_on_worker(std::move(work));
  } else {
    work();
  }
  co_return reply;
}

Answer<void> check_owner(const Call& call, const ListedJob& job) {
  if (call.caller.admin || call.caller.user == job.user) return {};
  return refuse(403,
                "ForbiddenUserError",
                fmt::format("User {} is not allowed to do operation on job {}~{}.",
                            call.caller.user,
                            job.user,
                            job.name));
}

std::vector<Route> job_routes(Jobs& jobs) {
  const auto with = [&jobs](Task<Answer<Reply>> (*run)(Jobs&, Call&)) -> Run {
    return [&jobs, run](Call& call) { return run(jobs, call); };
  };
  return {
      {"GET", "jobs", Who::kPrograms, with(list)},
      {"GET", "jobs/:job", Who::kPrograms, with(show)},
      {"GET", "jobs/:job/config", Who::kPrograms, with(config)},
      {"PUT", "jobs/:job/executionType", Who::kPrograms, with(execute)},
      {"PUT", "jobs/:job/tag", Who::kPrograms, with(tag)},
      {"DELETE", "jobs/:job/tag", Who::kPrograms, with(tag)},
      {"GET", "jobs/:job/events", Who::kPrograms, with(events)},
      {"GET", "jobs/:job/ssh", Who::kPrograms, [](Call& call) { return ssh(call); }},
  };
}

}  // namespace muster::pai::rest
