#include "controllers/cronjob/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "controllers/common/training.h"
#include "controllers/common/workload.h"
#include "controllers/cronjob/schedule.h"
#include "kube/names.h"

namespace muster::controllers::cronjob {
namespace {

/// A schedule that was missed this often is told of, since nobody wants a thousand Jobs after a
/// long pause.
constexpr int kMissedMost = 100;

/// "Complete", "Failed", or empty while it runs.
std::string ended_as(const json::Value& job) {
  for (const auto& condition : json::array_at(job, "status", "conditions")) {
    const auto type = json::string_at(condition, "type");
    if ((type == "Complete" || type == "Failed") && json::string_at(condition, "status") == "True")
      return std::string(type);
  }
  return {};
}

bool was_active(const json::Value& cron, const json::Value& job) {
  for (const auto& entry : json::array_at(cron, "status", "active")) {
    if (json::string_at(entry, "uid") == uid_of(job)) return true;
  }
  return false;
}

Action delete_job(const json::Value& job) {
  auto action = remove(kinds::kJob, job);
  action.events.push_back({false, "SuccessfulDelete", "Deleted job " + name_of(job)});
  action.failed_reason = "FailedDelete";
  action.failed_prefix = "Deleted job: ";
  return action;
}

/// The oldest beyond the limit go.
void prune(Plan& plan, Objects jobs, std::int64_t limit) {
  std::sort(jobs.begin(), jobs.end(), [](const json::Value* a, const json::Value* b) {
    const auto x = json::string_at(*a, "status", "startTime"),
               y = json::string_at(*b, "status", "startTime");
    return x != y ? x < y : name_of(*a) < name_of(*b);
  });
  for (std::size_t i = 0; i + static_cast<std::size_t>(limit) < jobs.size(); ++i) {
    if (!is_deleting(*jobs[i])) plan.actions.push_back(delete_job(*jobs[i]));
  }
}

struct Due {
  std::optional<Time> newest;
  int missed = 0;
};

/// The newest time of the schedule that has come, and how many have since the last Job.
Due find_due(const json::Value& cron, const Schedule& schedule, Time now) {
  Time since = time_at(json::at(cron, "status", "lastScheduleTime"));
  if (!since) since = time_at(json::at(cron, "metadata", "creationTimestamp"));
  const auto& deadline = json::at(cron, "spec", "startingDeadlineSeconds");
  if (deadline.is_number())
    since = std::max(since, now - std::chrono::seconds(json::as_int(deadline)));
  Due due;
  for (auto at = schedule.next(since); at && *at <= now && due.missed <= kMissedMost;
       at = schedule.next(*at)) {
    due.newest = at;
    ++due.missed;
  }
  if (due.missed <= kMissedMost) return due;
  // A schedule of every minute that rested for a year has half a million times: the last is looked
  // for from now on backwards.
  for (const int hours : {1, 24, 24 * 32, 24 * 366 * 5}) {
    const auto last = due.newest;
    for (auto at = schedule.next(now - std::chrono::hours(hours)); at && *at <= now;
         at = schedule.next(*at))
      due.newest = at;
    if (due.newest != last) break;
  }
  return due;
}

json::Value make_job(const json::Value& cron, Time scheduled) {
  auto job = make_child(
      cron, "batch/v1", "Job", fmt::format("{}-{}", name_of(cron), scheduled.seconds() / 60));
  const auto& from = json::at(cron, "spec", "jobTemplate");
  for (const std::string_view field : {"labels", "annotations"}) {
    if (const auto& value = json::at(from, "metadata", field); !json::is_empty(value))
      json::make_object(job, {"metadata"})[field] = value;
  }
  set_annotation(job, kube::names::kubernetes::kScheduledTimestamp, format_time(scheduled));
  job.as_object()["spec"] = json::at(from, "spec");
  return job;
}

/// Its Jobs, by what became of them.
struct Jobs {
  Objects running, succeeded, failed;
  Time last_success;
};

/// Also tells of those that have ended since the last look.
Jobs look_at_jobs(const json::Value& cron, const View& view, Plan& plan) {
  Jobs out;
  out.last_success = time_at(json::at(cron, "status", "lastSuccessfulTime"));
  for (const auto* job : view.controlled_by(kinds::kJob, uid_of(cron))) {
    const auto ended = ended_as(*job);
    if (ended.empty()) {
      if (!is_deleting(*job)) out.running.push_back(job);
      continue;
    }
    if (was_active(cron, *job))
      plan.events.push_back(
          {false,
           "SawCompletedJob",
           fmt::format("Saw completed job: {}, condition: {}", name_of(*job), ended)});
    if (ended == "Complete")
      out.last_success =
          std::max(out.last_success, time_at(json::at(*job, "status", "completionTime")));
    (ended == "Complete" ? out.succeeded : out.failed).push_back(job);
  }
  return out;
}

void write_active(json::Value& status, const Objects& jobs) {
  json::Array active;
  // Without the version: it moves with every change of the Job and is news to nobody.
  for (const auto* job : jobs) {
    active.push_back(json::Object{{"kind", "Job"},
                                  {"namespace", namespace_of(*job)},
                                  {"name", name_of(*job)},
                                  {"uid", uid_of(*job)},
                                  {"apiVersion", "batch/v1"}});
  }
  auto& object = status.as_object();
  active.empty() ? void(object.erase("active")) : void(object["active"] = std::move(active));
}

/// Nothing: it cannot be read, and an event says why.
std::optional<Schedule> read_schedule(const json::Value& spec, Plan& plan) {
  const auto zone_name = json::string_at(spec, "timeZone");
  std::shared_ptr<const TimeZone> zone;
  if (!zone_name.empty()) {
    auto found = TimeZone::find(zone_name);
    if (!found) {
      plan.events.push_back(
          {true,
           "UnknownTimeZone",
           fmt::format("invalid timeZone: \"{}\": {}", zone_name, found.error().message)});
      return std::nullopt;
    }
    zone = std::move(*found);
  }
  auto schedule = Schedule::parse(json::string_at(spec, "schedule"), std::move(zone));
  if (schedule) return std::move(*schedule);
  plan.events.push_back({true,
                         "UnparseableSchedule",
                         fmt::format("unparseable schedule: \"{}\" : {}",
                                     json::string_at(spec, "schedule"),
                                     schedule.error().message)});
  return std::nullopt;
}

void start(Plan& plan, const View& view, json::Value job) {
  if (view.find(kinds::kJob, name_of(job)) != nullptr) return;
  auto action = create(kinds::kJob, std::move(job));
  action.events.push_back({false, "SuccessfulCreate", "Created job " + action.name});
  action.failed_reason = "FailedCreate";
  action.failed_prefix = "Error creating job: ";
  plan.actions.push_back(std::move(action));
}

}  // namespace

Plan plan(const json::Value& cron, const View& view, const Settings&, Time now) {
  Plan plan;
  if (is_deleting(cron)) return plan;
  const auto& spec = json::at(cron, "spec");
  Jobs jobs = look_at_jobs(cron, view, plan);
  prune(plan, jobs.succeeded, json::as_int(json::at(spec, "successfulJobsHistoryLimit"), 3));
  prune(plan, jobs.failed, json::as_int(json::at(spec, "failedJobsHistoryLimit"), 1));

  auto status = status_or_empty(cron);
  if (jobs.last_success) status.as_object()["lastSuccessfulTime"] = time_value(jobs.last_success);
  write_active(status, jobs.running);
  plan.status = status;
  if (json::bool_at(spec, "suspend")) return plan;

  const auto schedule = read_schedule(spec, plan);
  if (!schedule) return plan;
  if (const auto next = schedule->next(now))
    wake_after(plan, *next - now + std::chrono::milliseconds(100));
  const Due due = find_due(cron, *schedule, now);
  if (!due.newest) return plan;
  if (due.missed > kMissedMost) {
    plan.events.push_back(
        {true,
         "TooManyMissedTimes",
         "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"});
  }
  const auto policy = json::string_at(spec, "concurrencyPolicy");
  if (policy == "Forbid" && !jobs.running.empty()) {
    plan.events.push_back(
        {false,
         "JobAlreadyActive",
         "Not starting job because prior execution is running and concurrency policy is Forbid"});
    return plan;
  }
  if (policy == "Replace") {
    for (const auto* job : jobs.running) plan.actions.push_back(delete_job(*job));
    write_active(status, {});
  }
  start(plan, view, make_job(cron, *due.newest));
  status.as_object()["lastScheduleTime"] = time_value(*due.newest);
  plan.status = std::move(status);
  return plan;
}

}  // namespace muster::controllers::cronjob
