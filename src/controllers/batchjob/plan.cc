#include "controllers/batchjob/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "controllers/batchjob/failure_policy.h"
#include "controllers/batchjob/groups.h"
#include "controllers/common/training.h"
#include "controllers/common/workload.h"
#include "kube/names.h"

namespace muster::controllers::batchjob {
namespace {

/// How often the index had failed before this pod was made.
constexpr auto kBackoffFirst = std::chrono::seconds(10);
constexpr auto kBackoffMost = std::chrono::minutes(6);

struct Sync {
  const json::Value& job;
  Time now;
  Plan& plan;
  json::Value status;
  Objects pods;
  std::int64_t parallelism = 1;
  std::optional<std::int64_t> completions;
  bool indexed = false;
  std::int64_t succeeded = 0, failed = 0;
  int active = 0, terminating = 0, ready = 0;
  std::set<int> done, taken;      // indexes that have succeeded; indexes with a pod at work
  std::set<int> given_up;         // indexes that have failed for good
  std::map<int, int> failures;    // of each index, where they are counted by index
  std::string fatal;              // why the policy ends the Job at once
  std::set<std::string> counted;  // uids of pods that were counted
  /// Among them those that were taken away by us, and those that succeeded.
  std::set<std::string> forgiven;
  std::string pod_group;  // what its pods name; empty: none

  [[nodiscard]] bool by_index() const {
    return indexed && spec("backoffLimitPerIndex").is_number();
  }
  [[nodiscard]] bool beyond(int index) const { return completions && index >= *completions; }
  [[nodiscard]] const json::Value& spec(std::string_view field) const {
    return json::at(job, "spec", field);
  }
  [[nodiscard]] const json::Value& condition(std::string_view type) const {
    static const json::Value kNone;
    for (const auto& condition : json::array_at(status, "conditions")) {
      if (json::string_at(condition, "type") == type) return condition;
    }
    return kNone;
  }
  [[nodiscard]] bool has(std::string_view type) const {
    return json::string_at(condition(type), "status") == "True";
  }
  void event(bool warning, std::string reason, std::string message) {
    plan.events.push_back({warning, std::move(reason), std::move(message)});
  }
};

int index_of(const json::Value& pod) {
  return static_cast<int>(
      parse_int(annotation_of(pod, kube::names::kubernetes::kCompletionIndex)).value_or(-1));
}

/// One failed pod that was not counted before.
void count_failure(Sync& sync, const json::Value& pod, int index) {
  const auto ruling = judge_failure(sync.spec("podFailurePolicy"), pod);
  if (ruling.consequence == Consequence::kFailJob) sync.fatal = ruling.message;
  if (ruling.consequence != Consequence::kIgnore) ++sync.failed;
  if (ruling.consequence == Consequence::kFailIndex && index >= 0) sync.given_up.insert(index);
}

/// Failures by index: a pod carries those before it, so that they outlive their pods.
void count_index_failure(Sync& sync, const json::Value& pod, int index) {
  const bool counts =
      judge_failure(sync.spec("podFailurePolicy"), pod).consequence != Consequence::kIgnore;
  const auto before = static_cast<int>(
      parse_int(annotation_of(pod, kube::names::kubernetes::kIndexFailures)).value_or(0));
  auto& failures = sync.failures[index];
  failures = std::max(failures, before + (counts ? 1 : 0));
  if (failures > json::as_int(sync.spec("backoffLimitPerIndex"))) sync.given_up.insert(index);
}

/// Counts each ended pod once. status.uncountedTerminatedPods holds the uids that are counted and
/// still exist, so a pod that somebody deletes stays counted; under "succeeded" also those that we
/// sent away, however they end.
void count(Sync& sync) {
  std::set<std::string> good, bad;
  for (const std::string_view list : {"succeeded", "failed"}) {
    for (const auto& uid : json::array_at(sync.status, "uncountedTerminatedPods", list)) {
      sync.counted.insert(json::text(uid));
      if (list == "succeeded") sync.forgiven.insert(json::text(uid));
    }
  }
  sync.succeeded = json::int_at(sync.status, "succeeded");
  sync.failed = json::int_at(sync.status, "failed");
  if (sync.indexed) sync.done = parse_indexes(json::string_at(sync.status, "completedIndexes"));
  if (sync.by_index()) sync.given_up = parse_indexes(json::string_at(sync.status, "failedIndexes"));
  // An elastic Job that has become smaller forgets the indexes that it lost.
  for (auto* indexes : {&sync.done, &sync.given_up})
    std::erase_if(*indexes, [&](int index) { return sync.beyond(index); });
  // Under a failure policy a pod is judged when it has ended, not while it is going.
  const bool judged = sync.spec("podFailurePolicy").is_object();
  const bool replaced_late =
      judged || json::as_string(sync.spec("podReplacementPolicy")) == "Failed";
  for (const auto* pod : sync.pods) {
    const auto phase = phase_of(*pod);
    const auto uid = uid_of(*pod);
    const int index = index_of(*pod);
    if (phase == "Succeeded") {
      good.insert(uid);
      if (sync.counted.contains(uid)) continue;
      if (sync.indexed && index >= 0 && !sync.beyond(index)) sync.done.insert(index);
      if (!sync.indexed) ++sync.succeeded;
    } else if (phase == "Failed" || is_deleting(*pod)) {
      // While the job sleeps or is over, pods go because they were told to.
      const bool told = json::as_bool(sync.spec("suspend")) || sync.has("SuccessCriteriaMet") ||
                        sync.has("Complete") || sync.has("Failed") || sync.has("Suspended");
      const bool going = phase != "Failed";
      if (going) ++sync.terminating;
      if (going && replaced_late && index >= 0) sync.taken.insert(index);
      const bool settled = sync.counted.contains(uid);
      const bool excused = sync.forgiven.contains(uid) || (!settled && told && going);
      if (going && judged && !settled) continue;
      (excused ? good : bad).insert(uid);
      if (excused) continue;
      if (!settled) count_failure(sync, *pod, index);
      if (sync.by_index() && index >= 0 && !sync.beyond(index))
        count_index_failure(sync, *pod, index);
    } else {
      ++sync.active;
      sync.ready += is_ready(*pod);
      if (index >= 0) sync.taken.insert(index);
    }
  }
  if (sync.indexed) sync.succeeded = static_cast<std::int64_t>(sync.done.size());
  for (const int index : sync.done) sync.given_up.erase(index);
  const auto uids = [](const std::set<std::string>& from) {
    json::Array list;
    for (const auto& uid : from) list.push_back(json::Value(uid));
    return list;
  };
  json::Object ledger;
  if (!good.empty()) ledger["succeeded"] = uids(good);
  if (!bad.empty()) ledger["failed"] = uids(bad);
  sync.status.as_object()["uncountedTerminatedPods"] = std::move(ledger);
}

/// Who goes first when there are too many: indexes that the Job lost, then who has no node, does
/// not run, is not ready, and the newest of the rest.
Objects by_least_loss(const Sync& sync) {
  Objects active;
  for (const auto* pod : sync.pods) {
    if (is_active(*pod)) active.push_back(pod);
  }
  const auto loss = [&](const json::Value& pod) {
    return std::tuple(!sync.beyond(index_of(pod)),
                      !json::string_at(pod, "spec", "nodeName").empty(),
                      phase_of(pod) == "Running",
                      is_ready(pod));
  };
  std::stable_sort(active.begin(), active.end(), [&](const json::Value* a, const json::Value* b) {
    const auto left = loss(*a), right = loss(*b);
    if (left != right) return left < right;
    const auto older = time_at(json::at(*a, "metadata", "creationTimestamp")),
               other = time_at(json::at(*b, "metadata", "creationTimestamp"));
    return older != other ? older > other : index_of(*a) > index_of(*b);
  });
  return active;
}

void delete_active(Sync& sync, std::int64_t most) {
  for (const auto* pod : by_least_loss(sync)) {
    if (most-- <= 0) return;
    auto action = remove(kinds::kPod, *pod);
    action.events.push_back({false, "SuccessfulDelete", "Deleted pod: " + name_of(*pod)});
    sync.plan.actions.push_back(std::move(action));
  }
}

/// The same of pods that have done nothing wrong: that they end is no failure, however they do it.
void send_away(Sync& sync, std::int64_t most) {
  if (most <= 0) return;
  delete_active(sync, most);
  auto& forgiven = array_of(json::make(sync.status, {"uncountedTerminatedPods"}), "succeeded");
  for (const auto* pod : by_least_loss(sync)) {
    if (most-- <= 0) return;
    forgiven.push_back(json::Value(uid_of(*pod)));
  }
}

/// What was decided is said for good when the last pod has ended, so that whoever waits for a
/// finished Job finds its room free.
void finish(Sync& sync) {
  const bool complete = sync.has("SuccessCriteriaMet");
  if (sync.active + sync.terminating > 0) return;
  const auto& target = sync.condition(complete ? "SuccessCriteriaMet" : "FailureTarget");
  const auto reason = json::text_at(target, "reason"), message = json::text_at(target, "message");
  set_workload_condition(
      sync.status, complete ? "Complete" : "Failed", true, reason, message, sync.now);
  if (complete) {
    sync.status.as_object()["completionTime"] = time_value(sync.now);
    sync.event(false, "Completed", "Job completed");
  } else {
    sync.event(true, reason, message);
  }
}

/// Pods that still work are told to end.
void wind_up(Sync& sync) {
  delete_active(sync, sync.active);
  sync.terminating += std::exchange(sync.active, 0);
  sync.ready = 0;
  finish(sync);
}

void end(Sync& sync, bool complete, const std::string& reason, const std::string& message) {
  set_workload_condition(sync.status,
                         complete ? "SuccessCriteriaMet" : "FailureTarget",
                         true,
                         reason,
                         message,
                         sync.now);
  wind_up(sync);
}

/// Restarts of containers count against the limit when the pods themselves are never replaced.
std::int64_t restarts(const Sync& sync) {
  if (json::string_at(sync.job, "spec", "template", "spec", "restartPolicy") != "OnFailure")
    return 0;
  std::int64_t sum = 0;
  for (const auto* pod : sync.pods) {
    const auto phase = phase_of(*pod);
    if (phase != "Running" && phase != "Pending") continue;
    for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
      for (const auto& container : json::array_at(*pod, "status", list))
        sum += json::int_at(container, "restartCount");
    }
  }
  return sum;
}

bool ended_by_index(Sync& sync) {
  const auto lost = static_cast<std::int64_t>(sync.given_up.size());
  if (const auto& most = sync.spec("maxFailedIndexes");
      most.is_number() && lost > json::as_int(most)) {
    end(sync,
        false,
        "MaxFailedIndexesExceeded",
        "Job has exceeded the specified maximal number of failed indexes");
    return true;
  }
  if (lost == 0 || sync.active > 0 || sync.succeeded + lost < *sync.completions) return false;
  end(sync, false, "FailedIndexes", "Job has failed indexes");
  return true;
}

bool ended_by_rule(Sync& sync) {
  if (!sync.fatal.empty()) {
    end(sync, false, "PodFailurePolicy", sync.fatal);
    return true;
  }
  if (const int rule =
          sync.indexed ? matching_success_rule(sync.spec("successPolicy"), sync.done) : -1;
      rule >= 0) {
    end(sync, true, "SuccessPolicy", fmt::format("Matched rules at index {}", rule));
    return true;
  }
  if (sync.by_index() && ended_by_index(sync)) return true;
  const auto limit = json::as_int(sync.spec("backoffLimit"), 6);
  const auto again = restarts(sync);
  if (sync.failed > limit || (again > 0 && (limit == 0 || again >= limit))) {
    end(sync, false, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    return true;
  }
  const auto started = time_at(json::at(sync.status, "startTime"));
  if (const auto& seconds = sync.spec("activeDeadlineSeconds"); seconds.is_number() && started) {
    const auto deadline = started + std::chrono::seconds(json::as_int(seconds));
    if (sync.now >= deadline) {
      end(sync, false, "DeadlineExceeded", "Job was active longer than specified deadline");
      return true;
    }
    wake_after(sync.plan, deadline - sync.now);
  }
  const bool complete = sync.completions
                            ? sync.succeeded >= *sync.completions
                            : sync.succeeded > 0 && sync.active == 0 && sync.terminating == 0;
  if (complete) {
    end(sync, true, "CompletionsReached", "Reached expected number of succeeded pods");
    return true;
  }
  return false;
}

/// After failures new pods wait: 10 s, 20 s, 40 s … since the last one. Where failures are counted
/// by index, each waits for its own alone.
bool backs_off(Sync& sync, int only_index = -1) {
  Time last;
  int recent = 0;
  for (const auto* pod : sync.pods) {
    if (phase_of(*pod) != "Failed" || (only_index >= 0 && index_of(*pod) != only_index)) continue;
    ++recent;
    Time ended = time_at(json::at(*pod, "metadata", "creationTimestamp"));
    for (const auto& container : json::array_at(*pod, "status", "containerStatuses")) {
      ended = std::max(ended, time_at(json::at(container, "state", "terminated", "finishedAt")));
    }
    last = std::max(last, ended);
  }
  if (recent == 0) return false;
  const auto delay =
      std::min<Duration>(kBackoffMost, kBackoffFirst * (1 << std::min(recent - 1, 10)));
  const auto due = last + delay;
  if (sync.now >= due) return false;
  wake_after(sync.plan, due - sync.now);
  return true;
}

void create_one(Sync& sync, int index) {
  const auto name = name_of(sync.job);
  auto pod = pod_from_template(sync.job,
                               sync.spec("template"),
                               sync.indexed ? fmt::format("{}-{}-", name, index) : name + "-");
  for (const std::string_view key :
       {kube::names::kubernetes::kOldJobName, kube::names::kubernetes::kJobName})
    set_label(pod, key, name);
  for (const std::string_view key :
       {kube::names::kubernetes::kOldControllerUid, kube::names::kubernetes::kControllerUid})
    set_label(pod, key, uid_of(sync.job));
  if (sync.indexed) {
    set_annotation(pod, kube::names::kubernetes::kCompletionIndex, std::to_string(index));
    set_label(pod, kube::names::kubernetes::kCompletionIndex, std::to_string(index));
    if (sync.by_index())
      set_annotation(
          pod, kube::names::kubernetes::kIndexFailures, std::to_string(sync.failures[index]));
    auto& hostname = json::make(pod, {"spec", "hostname"});
    if (!hostname.is_string()) hostname = fmt::format("{}-{}", name, index);
    const json::Value variable = json::Object{
        {"name", "JOB_COMPLETION_INDEX"},
        {"valueFrom",
         json::Object{{"fieldRef",
                       json::Object{{"fieldPath",
                                     fmt::format("metadata.annotations['{}']",
                                                 kube::names::kubernetes::kCompletionIndex)}}}}}};
    for (const std::string_view list : {"containers", "initContainers"}) {
      auto* containers = json::make_object(pod, {"spec"}).if_contains(list);
      if (containers == nullptr || !containers->is_array()) continue;
      for (auto& container : containers->get_array())
        array_of(container, "env").push_back(variable);
    }
  }
  if (!sync.pod_group.empty())
    json::make(pod, {"spec", "schedulingGroup", "podGroupName"}) = sync.pod_group;
  sync.plan.actions.push_back(create_workload_pod(std::move(pod)));
}

void manage_pods(Sync& sync) {
  const auto left = sync.completions ? *sync.completions - sync.succeeded -
                                           static_cast<std::int64_t>(sync.given_up.size())
                                     : 0;
  const auto remaining = sync.completions     ? left
                         : sync.succeeded > 0 ? sync.active
                                              : sync.parallelism;
  const auto wanted = std::max<std::int64_t>(0, std::min(sync.parallelism, remaining));
  if (sync.active > wanted) return send_away(sync, sync.active - wanted);
  const bool wait_for_end = json::as_string(sync.spec("podReplacementPolicy")) == "Failed" ||
                            sync.spec("podFailurePolicy").is_object();
  auto missing = wanted - sync.active - (wait_for_end ? sync.terminating : 0);
  if (missing <= 0 || (!sync.by_index() && backs_off(sync))) return;
  for (int index = 0; missing > 0; ++index) {
    if (sync.indexed) {
      if (index >= *sync.completions) break;
      if (sync.done.contains(index) || sync.taken.contains(index) || sync.given_up.contains(index))
        continue;
      if (sync.by_index() && backs_off(sync, index)) continue;
    }
    create_one(sync, index);
    --missing;
  }
}

void apply_ttl(Sync& sync) {
  const auto& ttl = sync.spec("ttlSecondsAfterFinished");
  if (!ttl.is_number()) return;
  Time ended;
  for (const auto& condition : json::array_at(sync.status, "conditions")) {
    const auto type = json::string_at(condition, "type");
    if (type == "Complete" || type == "Failed")
      ended = time_at(json::at(condition, "lastTransitionTime"));
  }
  if (!ended) return;
  const auto due = ended + std::chrono::seconds(json::as_int(ttl));
  if (sync.now >= due) {
    sync.plan.delete_job = true;
  } else {
    wake_after(sync.plan, due - sync.now);
  }
}

void set_number(json::Value& status, std::string_view field, std::int64_t value) {
  if (value == 0) {
    status.as_object().erase(field);
  } else {
    status.as_object()[field] = value;
  }
}

}  // namespace

/// One piece: the states of a Job, in the order in which they are asked for.
Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now) {
  Plan plan;
  const auto manager = json::string_at(job, "spec", "managedBy");
  if (is_deleting(job) || (!manager.empty() && manager != kube::names::kubernetes::kJobController))
    return plan;
  Sync sync{job,
            now,
            plan,
            status_or_empty(job),
            view.controlled_by(kinds::kPod, uid_of(job)),
            1,
            {},
            false,
            0,
            0,
            0,
            0,
            0,
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {}};
  sync.parallelism = json::as_int(sync.spec("parallelism"), 1);
  if (sync.spec("completions").is_number())
    sync.completions = json::as_int(sync.spec("completions"));
  if (!sync.completions && !sync.spec("parallelism").is_number()) sync.completions = 1;
  sync.indexed =
      json::as_string(sync.spec("completionMode")) == "Indexed" && sync.completions.has_value();
  const bool over = sync.has("Complete") || sync.has("Failed");
  const bool started =
      !sync.pods.empty() || !json::at(sync.status, "startTime").is_null() ||
      !json::array_at(sync.status, "conditions").empty() ||
      json::int_at(sync.status, "succeeded") + json::int_at(sync.status, "failed") > 0;
  if (!over) {
    const JobGroup group = plan_group(job, view, started, plan);
    if (group.wait) return plan;
    sync.pod_group = group.pod_group;
  }
  count(sync);
  if (over) {
    delete_active(sync, sync.active);
    apply_ttl(sync);
  } else if (sync.has("SuccessCriteriaMet") || sync.has("FailureTarget")) {
    force_delete_stuck(plan, sync.pods, settings, now);
    wind_up(sync);
    if (sync.has("Complete") || sync.has("Failed")) apply_ttl(sync);
  } else if (json::as_bool(sync.spec("suspend"))) {
    send_away(sync, sync.active);
    if (!sync.has("Suspended")) {
      set_workload_condition(sync.status, "Suspended", true, "JobSuspended", "Job suspended", now);
      sync.event(false, "Suspended", "Job suspended");
    }
    sync.status.as_object().erase("startTime");
  } else {
    if (sync.has("Suspended")) {
      set_workload_condition(sync.status, "Suspended", false, "JobResumed", "Job resumed", now);
      sync.event(false, "Resumed", "Job resumed");
    }
    if (json::at(sync.status, "startTime").is_null())
      sync.status.as_object()["startTime"] = time_value(now);
    force_delete_stuck(plan, sync.pods, settings, now);
    if (!ended_by_rule(sync)) manage_pods(sync);
    if (sync.has("Complete") || sync.has("Failed")) apply_ttl(sync);
  }
  set_number(sync.status, "active", sync.active);
  set_number(sync.status, "succeeded", sync.succeeded);
  set_number(sync.status, "failed", sync.failed);
  sync.status.as_object()["ready"] = sync.ready;
  sync.status.as_object()["terminating"] = sync.terminating;
  if (sync.indexed && !sync.done.empty())
    sync.status.as_object()["completedIndexes"] = format_indexes(sync.done);
  if (sync.by_index()) sync.status.as_object()["failedIndexes"] = format_indexes(sync.given_up);
  plan.status = std::move(sync.status);
  return plan;
}

}  // namespace muster::controllers::batchjob
