#include "controllers/framework/tasks.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "controllers/common/objects.h"
#include "controllers/common/training.h"
#include "controllers/framework/outcome.h"
#include "controllers/framework/pods.h"
#include "kube/framework.h"

namespace muster::controllers::framework {
namespace {

namespace completion = kube::completion;

constexpr auto kLookAgain = std::chrono::seconds(1);
/// Former attempts that a task keeps, and all tasks together: an object must not grow without end.
constexpr std::size_t kFormerMost = 10, kFormerTotal = 1000;

json::Value new_attempt(const Look& look,
                        std::string_view role,
                        std::int64_t index,
                        std::int64_t id) {
  return json::Object{{"id", id},
                      {"startTime", time_value(look.now)},
                      {"runTime", nullptr},
                      {"completionTime", nullptr},
                      {"instanceUID", nullptr},
                      {"podName", pod_name(look.framework, role, index)},
                      {"podUID", nullptr},
                      {"podNodeName", nullptr},
                      {"podIP", nullptr},
                      {"podHostIP", nullptr},
                      {"completionStatus", nullptr}};
}

json::Value new_task(const Look& look, std::string_view role, std::int64_t index) {
  return json::Object{
      {"index", index},
      {"startTime", time_value(look.now)},
      {"runTime", nullptr},
      {"completionTime", nullptr},
      {"state", states::kCreationPending},
      {"transitionTime", time_value(look.now)},
      {"deletionPending", false},
      {"retryPolicyStatus",
       json::Object{
           {"totalRetriedCount", 0}, {"accountableRetriedCount", 0}, {"retryDelaySec", nullptr}}},
      {"attemptStatus", new_attempt(look, role, index, 0)}};
}

/// How many tasks the role shall have, within what its definition allows.
std::int64_t wanted_tasks(const json::Value& role) {
  constexpr std::int64_t kMost = 10000;
  return std::clamp<std::int64_t>(json::int_at(role, "taskNumber"), 0, kMost);
}

const json::Value& role_of_spec(const Look& look, std::string_view name) {
  for (const json::Value& role : json::array_at(look.framework, "spec", "taskRoles")) {
    if (json::string_at(role, "name") == name) return role;
  }
  return json::null_value();
}

/// One task and everything a step of it needs.
class TaskStep {
 public:
  TaskStep(Look& look, const json::Value& role, json::Value& role_status, json::Value& task)
      : look_(look),
        role_(role),
        task_(task),
        role_name_(json::text_at(role_status, "name")),
        index_(json::int_at(task, "index")),
        pod_(find_pod(look, json::string_at(task, "attemptStatus", "podName"))) {}

  void run(std::int64_t ending) {
    if (ending == 0 && json::bool_at(task_, "deletionPending"))
      ending = completion::kDeleteTaskRequested;
    // Several states may pass in one look; each is left at most once.
    if (state() == states::kCreationPending) create(ending);
    if (is_one_of({states::kCreationRequested, states::kPreparing, states::kRunning}))
      follow(ending);
    if (!asked_ &&
        is_one_of({states::kDeletionPending, states::kDeletionRequested, states::kDeleting}))
      await_end();
    if (state() == states::kAttemptCompleted) conclude(ending);
  }

 private:
  [[nodiscard]] std::string_view state() const { return state_of(task_); }
  [[nodiscard]] bool is_one_of(std::initializer_list<std::string_view> some) const {
    return std::find(some.begin(), some.end(), state()) != some.end();
  }
  void enter(std::string_view next) { framework::enter(task_, next, look_.now); }
  json::Value& attempt() { return task_.as_object()["attemptStatus"]; }
  [[nodiscard]] std::int64_t attempt_id() const {
    return json::int_at(task_, "attemptStatus", "id");
  }
  [[nodiscard]] std::int64_t framework_attempt() const {
    return json::int_at(look_.status, "attemptStatus", "id");
  }
  /// The pod of this very attempt; one of an earlier attempt only has to go.
  [[nodiscard]] const json::Value* own_pod() const {
    return pod_ != nullptr && is_pod_of(*pod_, framework_attempt(), attempt_id()) ? pod_ : nullptr;
  }

  void create(std::int64_t ending) {
    if (own_pod() != nullptr) return enter(states::kCreationRequested);
    if (ending != 0) return complete(completion_status(ending, "The task had no pod yet"));
    if (pod_ != nullptr) {
      if (!is_deleting(*pod_)) look_.plan.actions.push_back(remove(kinds::kPod, *pod_));
      force(*pod_);
      return;
    }
    // Of an attempt whose ConfigMap is gone: it is on its way.
    if (look_.view.find(kinds::kPod, pod_name(look_.framework, role_name_, index_)) != nullptr)
      return wake_after(look_.plan, kLookAgain);
    if (const std::string refused = refused_by_server(); !refused.empty())
      return complete(completion_status(completion::kPodCreationPermanentError, refused));
    Action action = controllers::create(
        kinds::kPod,
        pod_of({look_.framework, role_, index_, framework_attempt(), attempt_id()},
               *look_.config_map));
    action.failed_reason = "FailedCreate";
    action.failed_prefix = "Error creating: ";
    // It stays pending until the pod is seen: the frame may hold back a pod that failed before.
    look_.plan.actions.push_back(std::move(action));
  }

  /// The server's words when it said that this pod can never be.
  [[nodiscard]] std::string refused_by_server() const {
    const std::string said = look_.view.last_error();
    if (said.find(fmt::format("\"{}\"", pod_name(look_.framework, role_name_, index_))) ==
        std::string::npos)
      return {};
    const bool quota = said.find("exceeded quota") != std::string::npos;
    const bool never = said.find("is invalid") != std::string::npos ||
                       (said.find("is forbidden") != std::string::npos && !quota);
    return never ? "Failed to create Pod: " + said : "";
  }

  void follow(std::int64_t ending) {
    const json::Value* pod = own_pod();
    if (pod == nullptr)
      return complete(
          completion_status(completion::kPodExternalDeleted, "Pod was deleted by others"));
    note(*pod);
    const std::string phase = phase_of(*pod);
    const bool finished = phase == "Succeeded" || phase == "Failed";
    if (is_deleting(*pod)) {
      attempt().as_object()["completionStatus"] =
          finished && ended_by_itself(*pod) ? completion_of_pod(*pod)
          : ending != 0
              ? completion_status(ending, "The pod was stopped")
              : completion_status(completion::kPodExternalDeleted, "Pod was deleted by others");
      return enter(states::kDeleting);
    }
    if (finished) return complete(completion_of_pod(*pod));
    if (ending != 0) {
      attempt().as_object()["completionStatus"] = completion_status(ending, "The pod was stopped");
      look_.plan.actions.push_back(remove(kinds::kPod, *pod));
      asked_ = true;
      return enter(states::kDeletionRequested);
    }
    if (const std::string missing = image_in_vain(*pod); !missing.empty()) {
      attempt().as_object()["completionStatus"] =
          completion_status(completion::kContainerImageNotExists, missing);
      look_.plan.actions.push_back(remove(kinds::kPod, *pod));
      asked_ = true;
      return enter(states::kDeletionRequested);
    }
    if (phase == "Running" && state() != states::kRunning) {
      for (json::Value* status : {&task_, &attempt()}) {
        if (json::at(*status, "runTime").is_null() || status == &attempt())
          status->as_object()["runTime"] = time_value(look_.now);
      }
      return enter(states::kRunning);
    }
    if (phase == "Pending" && state() != states::kPreparing) enter(states::kPreparing);
  }

  /// OpenPAI's jobs end when their image is none; FrameworkController's own wait, as with it.
  [[nodiscard]] std::string image_in_vain(const json::Value& pod) const {
    const json::Value& notes = json::at(look_.framework, "metadata", "annotations");
    return json::at(notes, kube::names::pai::kRuntime).is_null() ? "" : missing_image(pod);
  }

  void note(const json::Value& pod) {
    json::Object& known = attempt().as_object();
    const std::string uid = uid_of(pod);
    known["podUID"] = uid;
    known["instanceUID"] = instance_uid(attempt_id(), uid);
    for (const auto& [key, text] :
         {std::pair{"podNodeName", json::string_at(pod, "spec", "nodeName")},
          std::pair{"podIP", json::string_at(pod, "status", "podIP")},
          std::pair{"podHostIP", json::string_at(pod, "status", "hostIP")}}) {
      if (!text.empty()) known[key] = text;
    }
  }

  /// A pod that does not go in its time is made to.
  void force(const json::Value& pod) {
    const json::Value& timeout = json::at(role_, "task", "podGracefulDeletionTimeoutSec");
    if (!timeout.is_number() || !is_deleting(pod)) return;
    const Time began =
        time_at(json::at(pod, "metadata", "deletionTimestamp")) -
        std::chrono::seconds(json::int_at(pod, "metadata", "deletionGracePeriodSeconds"));
    const Duration left = began + std::chrono::seconds(json::as_int(timeout)) - look_.now;
    if (left.count() > 0) return wake_after(look_.plan, left);
    Action action = remove(kinds::kPod, pod);
    action.grace_s = 0;
    look_.plan.actions.push_back(std::move(action));
  }

  void await_end() {
    const json::Value* pod = own_pod();
    if (pod == nullptr) return complete(json::at(attempt(), "completionStatus"));
    if (is_deleting(*pod)) {
      if (state() != states::kDeleting) enter(states::kDeleting);
      return force(*pod);
    }
    // Requested before a crash, and never sent.
    look_.plan.actions.push_back(remove(kinds::kPod, *pod));
    if (state() != states::kDeletionRequested) enter(states::kDeletionRequested);
  }

  void complete(json::Value status) {
    json::Object& known = attempt().as_object();
    known["completionStatus"] = std::move(status);
    known["completionTime"] = time_value(look_.now);
    enter(states::kAttemptCompleted);
  }

  void conclude(std::int64_t ending) {
    json::Value& policy_status = task_.as_object()["retryPolicyStatus"];
    const Retry retry = ending != 0 ? Retry{}
                                    : decide_retry(json::at(role_, "task", "retryPolicy"),
                                                   policy_status,
                                                   json::at(attempt(), "completionStatus"),
                                                   /*delays=*/false,
                                                   "");
    if (!retry.again) {
      task_.as_object()["completionTime"] = time_value(look_.now);
      return enter(states::kCompleted);
    }
    json::Object& counts = policy_status.as_object();
    counts["totalRetriedCount"] = json::int_at(policy_status, "totalRetriedCount") + 1;
    if (retry.accountable)
      counts["accountableRetriedCount"] =
          json::int_at(policy_status, "accountableRetriedCount") + 1;
    keep_attempt();
    attempt() = new_attempt(look_, role_name_, index_, attempt_id() + 1);
    enter(states::kCreationPending);
    // What is left of the last attempt makes room; if it has gone already, the next comes at once.
    create(0);
  }

  /// What people ask of an attempt that is over.
  void keep_attempt() {
    const auto tasks = std::max<std::int64_t>(wanted_tasks(role_), 1);
    const std::size_t most = std::min(kFormerMost, kFormerTotal / static_cast<std::size_t>(tasks));
    json::Object kept;
    for (const char* key :
         {"id", "startTime", "runTime", "completionTime", "podUID", "podNodeName", "podIP"})
      kept[key] = json::at(attempt(), key);
    const json::Value& ended = json::at(attempt(), "completionStatus");
    kept["completionStatus"] = json::Object{{"code", json::at(ended, "code")},
                                            {"phrase", json::at(ended, "phrase")},
                                            {"diagnostics", json::at(ended, "diagnostics")}};
    json::Array& all = array_of(task_, kube::names::framework::kFormerAttempts);
    all.push_back(std::move(kept));
    while (all.size() > most) all.erase(all.begin());
  }

  Look& look_;
  const json::Value& role_;
  json::Value& task_;
  std::string role_name_;
  std::int64_t index_;
  const json::Value* pod_;
  bool asked_ = false;  // for the pod's deletion, in this look
};

/// Runs as it did, which most tasks of a large job do at any time.
bool goes_on(const Look& look, const json::Value& task) {
  if (state_of(task) != states::kRunning || json::bool_at(task, "deletionPending")) return false;
  const json::Value& attempt = json::at(task, "attemptStatus");
  const json::Value* pod = find_pod(look, json::string_at(attempt, "podName"));
  return pod != nullptr && json::string_at(*pod, "status", "phase") == "Running" &&
         !is_deleting(*pod) &&
         json::string_at(*pod, "metadata", "uid") == json::string_at(attempt, "podUID") &&
         json::string_at(*pod, "status", "podIP") == json::string_at(attempt, "podIP");
}

json::Value& role_status_of(Look& look, std::string_view name) {
  json::Array& all = array_at(look.status, {"attemptStatus", "taskRoleStatuses"});
  for (json::Value& each : all) {
    if (json::string_at(each, "name") == name) return each;
  }
  all.push_back(json::Object{
      {"name", name}, {"podGracefulDeletionTimeoutSec", nullptr}, {"taskStatuses", json::Array{}}});
  return all.back();
}

}  // namespace

void enter(json::Value& status, std::string_view state, Time now) {
  status.as_object()["state"] = state;
  status.as_object()["transitionTime"] = time_value(now);
}

void match_tasks(Look& look) {
  for (const json::Value& role : json::array_at(look.framework, "spec", "taskRoles")) {
    const std::string name = json::text_at(role, "name");
    json::Value& status = role_status_of(look, name);
    status.as_object()["podGracefulDeletionTimeoutSec"] =
        json::at(role, "task", "podGracefulDeletionTimeoutSec");
    json::Array& tasks = array_of(status, "taskStatuses");
    const auto wanted = wanted_tasks(role);
    for (std::int64_t i = static_cast<std::int64_t>(tasks.size()); i < wanted; ++i)
      tasks.push_back(new_task(look, name, i));
  }
  for (json::Value& status : array_at(look.status, {"attemptStatus", "taskRoleStatuses"})) {
    const json::Value& role = role_of_spec(look, json::string_at(status, "name"));
    const auto wanted = wanted_tasks(role);
    json::Array& tasks = array_of(status, "taskStatuses");
    for (json::Value& task : tasks) {
      if (json::int_at(task, "index") >= wanted) task.as_object()["deletionPending"] = true;
    }
    // From the end, so that the others keep their places.
    while (!tasks.empty() && json::bool_at(tasks.back(), "deletionPending") &&
           state_of(tasks.back()) == states::kCompleted &&
           json::int_at(tasks.back(), "index") >= wanted &&
           find_pod(look, json::string_at(tasks.back(), "attemptStatus", "podName")) == nullptr)
      tasks.pop_back();
    // A task that was to go and is wanted again begins anew once its end is seen.
    for (json::Value& task : tasks) {
      if (json::bool_at(task, "deletionPending") && json::int_at(task, "index") < wanted &&
          state_of(task) == states::kCompleted)
        task = new_task(look, json::string_at(status, "name"), json::int_at(task, "index"));
    }
  }
}

void step_tasks(Look& look, std::int64_t ending) {
  for (json::Value& role_status : array_at(look.status, {"attemptStatus", "taskRoleStatuses"})) {
    const json::Value& role = role_of_spec(look, json::string_at(role_status, "name"));
    for (json::Value& task : array_of(role_status, "taskStatuses")) {
      if (state_of(task) == states::kCompleted && !json::bool_at(task, "deletionPending")) continue;
      if (state_of(task) == states::kCompleted) {
        // Scaled away after it had ended: its pod goes, too.
        const json::Value* pod = find_pod(look, json::string_at(task, "attemptStatus", "podName"));
        if (pod != nullptr && !is_deleting(*pod))
          look.plan.actions.push_back(remove(kinds::kPod, *pod));
        continue;
      }
      if (ending == 0 && goes_on(look, task)) continue;
      TaskStep(look, role, role_status, task).run(ending);
    }
  }
}

void stop_waiting_tasks(Look& look, std::int64_t ending) {
  for (json::Value& role_status : array_at(look.status, {"attemptStatus", "taskRoleStatuses"})) {
    const json::Value& role = role_of_spec(look, json::string_at(role_status, "name"));
    for (json::Value& task : array_of(role_status, "taskStatuses")) {
      const json::Value* pod = find_pod(look, json::string_at(task, "attemptStatus", "podName"));
      if (state_of(task) != states::kCompleted && pod != nullptr && !is_deleting(*pod) &&
          json::string_at(*pod, "spec", "nodeName").empty())
        TaskStep(look, role, role_status, task).run(ending);
    }
  }
}

Counts count_tasks(const json::Value& attempt_status) {
  Counts counts;
  for (const json::Value& role : json::array_at(attempt_status, "taskRoleStatuses")) {
    for (const json::Value& task : json::array_at(role, "taskStatuses")) {
      if (json::bool_at(task, "deletionPending") && state_of(task) == states::kCompleted) continue;
      ++counts.tasks;
      if (state_of(task) == states::kCompleted) ++counts.completed;
      if (state_of(task) == states::kRunning) ++counts.running;
    }
  }
  return counts;
}

}  // namespace muster::controllers::framework
