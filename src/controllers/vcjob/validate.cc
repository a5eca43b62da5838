#include "controllers/vcjob/validate.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "controllers/vcjob/spec.h"
#include "kube/kinds/validate.h"

namespace muster::controllers::vcjob {
namespace {

const std::vector<std::string_view> kActions{"AbortJob",
                                             "RestartJob",
                                             "RestartTask",
                                             "RestartPod",
                                             "RestartPartition",
                                             "TerminateJob",
                                             "CompleteJob",
                                             "ResumeJob"};
const std::vector<std::string_view> kEvents{"*",
                                            "PodFailed",
                                            "PodEvicted",
                                            "PodPending",
                                            "Unknown",
                                            "TaskCompleted",
                                            "TaskFailed",
                                            "JobUpdated"};

bool is_one_of(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void check_count(Verdict& verdict,
                 const json::Value& owner,
                 std::string_view field,
                 std::string path) {
  const auto& value = json::at(owner, field);
  if (value.is_number() && json::as_int(value) < 0)
    verdict.invalid(std::move(path), value, "must not be negative");
}

/// One list of policies: an action each, for events or for one exit code, none of them twice.
void check_policies(Verdict& verdict, const json::Value& list, const std::string& path) {
  std::set<std::string, std::less<>> events;
  std::set<std::int64_t> codes;
  const auto& policies = json::as_array(list);
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const auto here = fmt::format("{}[{}]", path, i);
    const auto& policy = policies[i];
    std::vector<std::string> named;
    if (const auto event = json::text_at(policy, "event"); !event.empty()) named.push_back(event);
    for (const auto& event : json::array_at(policy, "events")) named.push_back(json::text(event));
    const auto& code = json::at(policy, "exitCode");
    if (named.empty() == code.is_null())
      verdict.invalid(here, policy, "must have either events or an exitCode");
    if (code.is_number() && json::as_int(code) == 0)
      verdict.invalid(here + ".exitCode", code, "0 is not a failure");
    if (code.is_number() && !codes.insert(json::as_int(code)).second)
      verdict.invalid(here + ".exitCode", code, "is there twice");
    for (const std::string& event : named) {
      if (!is_one_of(kEvents, event))
        verdict.unsupported(here + ".event", json::Value(event), kEvents);
      else if (!events.insert(event).second)
        verdict.invalid(here + ".event", json::Value(event), "is there twice");
    }
    const auto action = json::text_at(policy, "action");
    if (!action.empty() && !is_one_of(kActions, action))
      verdict.unsupported(here + ".action", json::Value(action), kActions);
  }
  if (events.contains("*") && events.size() > 1)
    verdict.invalid(path, list, "\"*\" means all events: it cannot be combined with others");
}

/// Whether tasks wait for each other in a circle.
bool is_cyclic(const JobSpec& spec) {
  std::map<std::string, int> marks;  // 1: on the way, 2: done
  const auto visit = [&](const auto& self, const TaskSpec& task) -> bool {
    int& mark = marks[task.name];
    if (mark != 0) return mark == 1;
    mark = 1;
    for (const std::string& name : task.depends_on) {
      const TaskSpec* other = spec.find(name);
      if (other != nullptr && self(self, *other)) return true;
    }
    marks[task.name] = 2;
    return false;
  };
  return std::any_of(spec.tasks.begin(), spec.tasks.end(), [&](const TaskSpec& task) {
    return visit(visit, task);
  });
}

void check_volumes(Verdict& verdict, const json::Value& job) {
  std::set<std::string> paths;
  const auto& volumes = json::array_at(job, "spec", "volumes");
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const auto here = fmt::format("spec.volumes[{}]", i);
    const auto path = json::text_at(volumes[i], "mountPath");
    if (path.empty())
      verdict.required(here + ".mountPath", "");
    else if (!paths.insert(path).second)
      verdict.invalid(here + ".mountPath", json::Value(path), "is there twice");
    if (json::text_at(volumes[i], "volumeClaimName").empty() &&
        json::at(volumes[i], "volumeClaim").is_null())
      verdict.required(here + ".volumeClaimName", "a volume needs the name of a claim, or a claim");
  }
}

/// All of the spec but what may be changed.
json::Value kept(const json::Value& job) {
  json::Value spec = json::at(job, "spec");
  if (!spec.is_object()) return spec;
  for (const char* field : {"minAvailable", "priorityClassName"}) spec.get_object().erase(field);
  auto* tasks = spec.get_object().if_contains("tasks");
  if (tasks == nullptr || !tasks->is_array()) return spec;
  for (auto& task : tasks->get_array()) {
    if (!task.is_object()) continue;
    for (const char* field : {"replicas", "minAvailable"}) task.get_object().erase(field);
  }
  return spec;
}

}  // namespace

Verdict validate(const json::Value& job, const json::Value* old_job) {
  Verdict verdict;
  const auto& spec = json::at(job, "spec");
  // One that was stored before these rules were may still be changed in its metadata.
  if (old_job != nullptr && json::equal(spec, json::at(*old_job, "spec"))) return verdict;
  for (const std::string_view field : {"minAvailable", "maxRetry", "ttlSecondsAfterFinished"})
    check_count(verdict, spec, field, fmt::format("spec.{}", field));
  const auto& tasks = json::array_at(spec, "tasks");
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto here = fmt::format("spec.tasks[{}]", i);
    check_count(verdict, tasks[i], "replicas", here + ".replicas");
    check_count(verdict, tasks[i], "minAvailable", here + ".minAvailable");
    check_policies(verdict, json::at(tasks[i], "policies"), here + ".policies");
    if (const auto name = json::text_at(tasks[i], "name"); !name.empty()) {
      if (const auto wrong = kube::check_dns_label(name); !wrong.empty())
        verdict.invalid(here + ".name", json::Value(name), wrong);
    }
  }
  check_policies(verdict, json::at(spec, "policies"), "spec.policies");
  check_volumes(verdict, job);
  const JobSpec read = spec_of(job);
  if (const auto problem = problem_of(read); !problem.empty() && verdict.errors.empty())
    verdict.invalid("spec", json::Value(json::text_at(job, "metadata", "name")), problem);
  if (is_cyclic(read))
    verdict.invalid("spec.tasks", json::Value(""), "tasks depend on each other in a circle");
  if (old_job != nullptr && !json::equal(kept(job), kept(*old_job)))
    verdict.forbidden(
        "spec",
        "job updates may not change fields other than minAvailable, tasks[*].replicas and priorityClassName");
  return verdict;
}

}  // namespace muster::controllers::vcjob
