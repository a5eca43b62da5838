#include "controllers/framework/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "controllers/common/objects.h"
#include "controllers/common/podgroup.h"
#include "controllers/common/training.h"
#include "controllers/common/workload.h"
#include "controllers/framework/look.h"
#include "controllers/framework/outcome.h"
#include "controllers/framework/pods.h"
#include "controllers/framework/tasks.h"
#include "kube/framework.h"
#include "kube/names.h"

namespace muster::controllers::framework {
namespace {

namespace completion = kube::completion;

json::Value new_attempt(const Look& look, std::int64_t id) {
  return json::Object{{"id", id},
                      {"startTime", time_value(look.now)},
                      {"runTime", nullptr},
                      {"completionTime", nullptr},
                      {"instanceUID", nullptr},
                      {"configMapName", config_map_name(look.framework)},
                      {"configMapUID", nullptr},
                      {"completionStatus", nullptr},
                      {"taskRoleStatuses", json::Array{}}};
}

json::Value new_status(const Look& look) {
  return json::Object{
      {"startTime", time_value(look.now)},
      {"runTime", nullptr},
      {"completionTime", nullptr},
      {"state", states::kCreationPending},
      {"transitionTime", time_value(look.now)},
      {"retryPolicyStatus",
       json::Object{
           {"totalRetriedCount", 0}, {"accountableRetriedCount", 0}, {"retryDelaySec", nullptr}}},
      {"attemptStatus", new_attempt(look, 0)}};
}

bool is_attempt(const json::Value& status) {
  const json::Value& ended = json::at(status, "completionStatus");
  return status.is_object() && (ended.is_null() || ended.is_object());
}

bool is_task(const json::Value& task) {
  return task.is_object() && is_attempt(json::at(task, "attemptStatus")) &&
         json::at(task, "retryPolicyStatus").is_object();
}

/// The status is this controller's own, but who may write it may write anything: what it cannot have
/// written is begun anew.
bool is_own(const json::Value& status) {
  if (!status.is_object() || !json::at(status, "retryPolicyStatus").is_object() ||
      !is_attempt(json::at(status, "attemptStatus")))
    return false;
  const json::Array& roles = json::array_at(status, "attemptStatus", "taskRoleStatuses");
  return std::all_of(roles.begin(), roles.end(), [](const json::Value& role) {
    const json::Array& tasks = json::array_at(role, "taskStatuses");
    return role.is_object() && std::all_of(tasks.begin(), tasks.end(), is_task);
  });
}

json::Value with_trigger(json::Value status,
                         std::string message,
                         std::string_view role,
                         const json::Value& index) {
  json::Object trigger{{"message", std::move(message)}};
  if (!role.empty()) trigger["taskRoleName"] = role;
  if (!index.is_null()) trigger["taskIndex"] = index;
  status.as_object()["trigger"] = std::move(trigger);
  return status;
}

class FrameworkStep {
 public:
  explicit FrameworkStep(Look& look) : look_(look), spec_(json::at(look.framework, "spec")) {}

  void run() {
    if (state() == states::kCompleted) return;
    match_tasks(look_);
    if (state() == states::kAttemptCompleted) conclude();
    if (state() == states::kCreationPending) create();
    if (is_one_of({states::kCreationRequested, states::kPreparing, states::kRunning})) follow();
    if (is_one_of({states::kDeletionPending, states::kDeletionRequested, states::kDeleting}))
      await_end();
    if (state() == states::kAttemptCompleted) conclude();
  }

 private:
  [[nodiscard]] std::string_view state() const { return state_of(look_.status); }
  [[nodiscard]] bool is_one_of(std::initializer_list<std::string_view> some) const {
    return std::find(some.begin(), some.end(), state()) != some.end();
  }
  void enter(std::string_view next) { framework::enter(look_.status, next, look_.now); }
  json::Value& attempt() { return look_.status.as_object()["attemptStatus"]; }
  [[nodiscard]] bool stops() const { return json::string_at(spec_, "executionType") == "Stop"; }

  void create() {
    if (stops()) {
      end(completion_status(completion::kStopFrameworkRequested, "A stop was requested"));
      return complete_attempt();
    }
    if (json::string_at(spec_, "executionType") == "Create") return;
    const json::Value* map = look_.view.find(kinds::kConfigMap, config_map_name(look_.framework));
    if (map == nullptr) {
      make_ssh_secret();
      look_.plan.actions.push_back(controllers::create(
          kinds::kConfigMap, config_map_of(look_.framework, json::int_at(attempt(), "id"))));
      return enter(states::kCreationRequested);
    }
    if (!is_controlled_by(*map, look_.framework))
      return refuse_foreign(look_.plan, name_of(*map), "ConfigMap", "Framework");
    if (look_.config_map != nullptr) return enter(states::kCreationRequested);  // before a crash
    if (!is_deleting(*map)) look_.plan.actions.push_back(remove(kinds::kConfigMap, *map));
  }

  void make_ssh_secret() {
    const std::string name = annotation_of(look_.framework, kube::names::framework::kSshSecret);
    if (name.empty() || look_.view.find(kinds::kSecret, name) != nullptr) return;
    json::Value secret = make_child(look_.framework, "v1", "Secret", name);
    secret.as_object()["type"] = kube::names::kubernetes::kSshAuth;
    Action action = controllers::create(kinds::kSecret, std::move(secret));
    action.with_ssh_key = true;
    look_.plan.actions.push_back(std::move(action));
  }

  void follow() {
    if (look_.config_map == nullptr) {
      // Asked for in this very look: it comes with the next.
      if (!look_.plan.actions.empty()) return;
      end(completion_status(completion::kConfigMapExternalDeleted,
                            "The attempt's ConfigMap was deleted by others"));
      return await_end();
    }
    json::Object& known = attempt().as_object();
    known["configMapUID"] = uid_of(*look_.config_map);
    known["instanceUID"] = instance_uid(json::int_at(attempt(), "id"), uid_of(*look_.config_map));
    if (state() == states::kCreationRequested) enter(states::kPreparing);
    if (!stops()) {
      sync_group();
      step_tasks(look_, 0);
    }
    if (auto status = verdict()) {
      end(std::move(*status));
      return;
    }
    if (state() == states::kPreparing && count_tasks(attempt()).running > 0) {
      for (json::Value* each : {&look_.status, &attempt()}) {
        if (json::at(*each, "runTime").is_null())
          each->as_object()["runTime"] = time_value(look_.now);
      }
      enter(states::kRunning);
      tell("running", "JobRunning", "The job runs", false);
    }
  }

  /// How the attempt ends, if it does.
  [[nodiscard]] std::optional<json::Value> verdict() {
    if (stops())
      return completion_status(completion::kStopFrameworkRequested, "A stop was requested");
    // First how tasks ended by themselves, in all roles: a pod that vanished may be one that we deleted
    // after that, before a crash (await_end).
    for (const bool vanished_count : {false, true}) {
      for (const json::Value& role : json::array_at(spec_, "taskRoles")) {
        if (auto status = verdict_of(role, vanished_count)) return status;
      }
    }
    const Counts counts = count_tasks(attempt());
    if (counts.completed < counts.tasks) return std::nullopt;
    return with_trigger(completion_status(completion::kSucceeded, "All tasks have completed"),
                        fmt::format("All {} tasks have completed", counts.tasks),
                        "",
                        nullptr);
  }

  [[nodiscard]] std::optional<json::Value> verdict_of(const json::Value& role,
                                                      bool vanished_count) {
    const auto name = json::string_at(role, "name");
    const json::Value& policy = json::at(role, "frameworkAttemptCompletionPolicy");
    const auto min_failed = json::int_at(policy, "minFailedTaskCount");
    const auto min_succeeded = json::int_at(policy, "minSucceededTaskCount");
    std::int64_t failed = 0, succeeded = 0;
    const json::Value *last_failed = nullptr, *last_succeeded = nullptr;
    const auto later = [](const json::Value& a, const json::Value* b) {
      return b == nullptr ||
             json::string_at(a, "completionTime") >= json::string_at(*b, "completionTime");
    };
    for (const json::Value& status : json::array_at(attempt(), "taskRoleStatuses")) {
      if (json::string_at(status, "name") != name) continue;
      for (const json::Value& task : json::array_at(status, "taskStatuses")) {
        if (state_of(task) != states::kCompleted || json::bool_at(task, "deletionPending"))
          continue;
        const json::Value& ended = json::at(task, "attemptStatus", "completionStatus");
        if (!vanished_count && json::int_at(ended, "code") == completion::kPodExternalDeleted)
          continue;
        const bool good = has_succeeded(ended);
        ++(good ? succeeded : failed);
        const json::Value*& last = good ? last_succeeded : last_failed;
        if (later(task, last)) last = &task;
      }
    }
    if (min_failed >= 1 && failed >= min_failed) {
      json::Value status = json::at(*last_failed, "attemptStatus", "completionStatus");
      status.as_object().erase("pod");
      return with_trigger(
          std::move(status),
          fmt::format("{} failed tasks of role {} have reached {}", failed, name, min_failed),
          name,
          json::at(*last_failed, "index"));
    }
    if (min_succeeded >= 1 && succeeded >= min_succeeded)
      return with_trigger(
          completion_status(completion::kSucceeded, ""),
          fmt::format(
              "{} succeeded tasks of role {} have reached {}", succeeded, name, min_succeeded),
          name,
          json::at(*last_succeeded, "index"));
    return std::nullopt;
  }

  /// The attempt is over; its pods may not be.
  void end(json::Value status) {
    attempt().as_object()["completionStatus"] = std::move(status);
    enter(states::kDeletionPending);
  }

  [[nodiscard]] Retry retry() {
    return decide_retry(json::at(spec_, "retryPolicy"),
                        json::at(look_.status, "retryPolicyStatus"),
                        json::at(attempt(), "completionStatus"),
                        /*delays=*/true,
                        uid_of(look_.framework) + std::to_string(json::int_at(attempt(), "id")));
  }

  /// Deletes go out before the status of the same look is written. After a crash between the two a
  /// pod of ours that we deleted would seem taken away by others, and the attempt failed by that: so
  /// how it ended is on record before anything of it is deleted. Only pods without a node go at once,
  /// or the scheduler would give them what the others leave; verdict() knows of them.
  [[nodiscard]] bool on_record() {
    const json::Value& known = json::at(look_.framework, "status", "attemptStatus");
    return json::at(known, "completionStatus").is_object() &&
           json::int_at(known, "id") == json::int_at(attempt(), "id");
  }

  void await_end() {
    const Counts before = count_tasks(attempt());
    const auto ending =
        json::int_at(attempt(), "completionStatus", "code") == completion::kStopFrameworkRequested
            ? completion::kStopFrameworkRequested
            : completion::kFrameworkAttemptCompletion;
    if (!on_record() && (before.completed < before.tasks || retry().again))
      return stop_waiting_tasks(look_, ending);
    if (look_.config_map != nullptr || look_.pods.empty()) step_tasks(look_, ending);
    const Counts counts = count_tasks(attempt());
    if (counts.completed < counts.tasks) {
      if (state() == states::kDeletionPending) enter(states::kDeletionRequested);
      return;
    }
    if (!retry().again) return complete_attempt();
    // The names are needed again.
    bool left = false;
    for (const json::Value* pod : look_.pods) {
      left = true;
      if (!is_deleting(*pod)) look_.plan.actions.push_back(remove(kinds::kPod, *pod));
    }
    if (left) {
      if (state() != states::kDeleting) enter(states::kDeleting);
      return;
    }
    if (look_.config_map != nullptr) {
      if (!is_deleting(*look_.config_map))
        look_.plan.actions.push_back(remove(kinds::kConfigMap, *look_.config_map));
      if (state() != states::kDeleting) enter(states::kDeleting);
      return;
    }
    complete_attempt();
  }

  void complete_attempt() {
    attempt().as_object()["completionTime"] = time_value(look_.now);
    enter(states::kAttemptCompleted);
  }

  /// Tries again, waits before it does, or is done.
  void conclude() {
    Retry next = retry();
    if (next.again && stops()) {
      attempt().as_object()["completionStatus"] =
          completion_status(completion::kStopFrameworkRequested, "A stop was requested");
      next = {};
    }
    json::Value& policy_status = look_.status.as_object()["retryPolicyStatus"];
    if (!next.again) {
      look_.status.as_object()["completionTime"] = time_value(look_.now);
      enter(states::kCompleted);
      return finish();
    }
    if (next.delay_s > 0) {
      policy_status.as_object()["retryDelaySec"] = next.delay_s;
      const Duration left = time_at(json::at(attempt(), "completionTime")) +
                            std::chrono::seconds(next.delay_s) - look_.now;
      if (left.count() > 0) return wake_after(look_.plan, left);
    }
    json::Object& counts = policy_status.as_object();
    counts["retryDelaySec"] = nullptr;
    counts["totalRetriedCount"] = json::int_at(policy_status, "totalRetriedCount") + 1;
    if (next.accountable)
      counts["accountableRetriedCount"] =
          json::int_at(policy_status, "accountableRetriedCount") + 1;
    tell("retried", "JobRetried", describe(), false);
    attempt() = new_attempt(look_, json::int_at(attempt(), "id") + 1);
    match_tasks(look_);
    enter(states::kCreationPending);
    create();
  }

  [[nodiscard]] std::string describe() {
    const json::Value& status = json::at(attempt(), "completionStatus");
    return fmt::format("Attempt {} ended with code {} ({})",
                       json::int_at(attempt(), "id"),
                       json::int_at(status, "code"),
                       json::string_at(status, "phrase"));
  }

  void finish() {
    if (const json::Value* group = look_.view.find(kinds::kVolcanoPodGroup, group_name());
        group != nullptr && is_controlled_by(*group, look_.framework) && !is_deleting(*group))
      look_.plan.actions.push_back(remove(kinds::kVolcanoPodGroup, *group));
    const json::Value& status = json::at(attempt(), "completionStatus");
    if (has_succeeded(status)) return tell("succeeded", "JobSucceeded", describe(), false);
    if (json::int_at(status, "code") == completion::kStopFrameworkRequested)
      return tell("stopped", "JobStopped", describe(), false);
    tell("failed", "JobFailed", describe(), true);
  }

  /// To whoever asked to be told.
  void tell(std::string_view what, std::string reason, std::string message, bool warning) {
    const auto wanted = split(annotation_of(look_.framework, kube::names::framework::kNotify), ',');
    if (std::find(wanted.begin(), wanted.end(), what) == wanted.end()) return;
    look_.plan.events.push_back({warning, std::move(reason), std::move(message)});
  }

  /// The gang that the pods' templates name, where cells do not decide.
  [[nodiscard]] std::string group_name() const {
    for (const json::Value& role : json::array_at(spec_, "taskRoles")) {
      const auto name = json::string_at(
          role, "task", "pod", "metadata", "annotations", kube::names::volcano::kGroupName);
      if (!name.empty()) return std::string(name);
    }
    return {};
  }

  void sync_group() {
    const std::string name = group_name();
    if (name.empty()) return;
    std::int64_t members = 0;
    std::vector<ReplicaSpec> replicas;
    json::Object wanted;
    for (const json::Value& role : json::array_at(spec_, "taskRoles")) {
      const json::Value& pod = json::at(role, "task", "pod");
      const json::Value& notes = json::at(pod, "metadata", "annotations");
      if (json::string_at(notes, kube::names::volcano::kGroupName) != name) continue;
      const auto number = json::int_at(role, "taskNumber");
      members += number;
      replicas.push_back({json::text_at(role, "name"), static_cast<int>(number), "", &pod});
      if (const auto queue = json::string_at(notes, kube::names::volcano::kQueueName);
          !queue.empty())
        wanted["queue"] = queue;
      if (const auto priority = json::string_at(pod, "spec", "priorityClassName");
          !priority.empty())
        wanted["priorityClassName"] = priority;
    }
    wanted["minMember"] = members;
    wanted["minResources"] = min_resources(replicas, static_cast<int>(members), look_.view);
    const json::Value* group = look_.view.find(kinds::kVolcanoPodGroup, name);
    if (group == nullptr) {
      json::Value made =
          make_child(look_.framework, kube::resources::kPodGroups.api_version(), "PodGroup", name);
      made.as_object()["spec"] = std::move(wanted);
      if (const std::string time = annotation_of(look_.framework, kube::names::kSubmittedAt);
          !time.empty())
        set_annotation(made, kube::names::kSubmittedAt, time);
      look_.plan.actions.push_back(controllers::create(kinds::kVolcanoPodGroup, std::move(made)));
    } else if (!contains(json::at(*group, "spec"), json::Value(wanted))) {
      look_.plan.actions.push_back(
          patch(kinds::kVolcanoPodGroup, name, json::Object{{"spec", std::move(wanted)}}));
    }
  }

  Look& look_;
  const json::Value& spec_;
};

}  // namespace

Plan plan(const json::Value& job, const View& view, const Settings& /*settings*/, Time now) {
  Plan plan;
  if (is_deleting(job)) return plan;
  Look look{job, view, now, plan, {}, nullptr, {}, {}};
  look.status = json::at(job, "status");
  if (!is_own(look.status)) look.status = new_status(look);
  const json::Value* map = view.find(kinds::kConfigMap, config_map_name(job));
  if (map != nullptr && is_controlled_by(*map, job)) {
    // Also those of an attempt before this one: their names are in the way.
    look.pods = view.controlled_by(kinds::kPod, uid_of(*map));
    look.pod_by_name.reserve(look.pods.size());
    for (const json::Value* pod : look.pods)
      look.pod_by_name.emplace(json::string_at(*pod, "metadata", "name"), pod);
    const std::string attempt = std::to_string(json::int_at(look.status, "attemptStatus", "id"));
    if (!is_deleting(*map) &&
        annotation_of(*map, kube::names::framework::kFrameworkAttemptId) == attempt)
      look.config_map = map;
  }
  FrameworkStep(look).run();
  plan.status = std::move(look.status);
  return plan;
}

}  // namespace muster::controllers::framework
