#include "controllers/common/training.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/names.h"

namespace muster::controllers {
namespace {

constexpr auto kBetweenStarts =
    std::chrono::seconds(10);             // of the pods of one replica that keep failing
constexpr int kMissingExitCode = 0xbeef;  // counts as retryable, as upstream has it
constexpr std::size_t kAbnormalPodsPerPass = 10;

const json::Value& run_policy(const json::Value& job) { return json::at(job, "spec", "runPolicy"); }
bool is_suspended(const json::Value& job) { return json::bool_at(run_policy(job), "suspend"); }

std::vector<ReplicaSpec> read_replicas(const Traits& traits, const json::Value& job) {
  std::vector<ReplicaSpec> result;
  const auto& specs = json::at(job, "spec", std::string_view(traits.specs_field));
  for (const auto& type : traits.types) {
    const auto& spec = json::at(specs, std::string_view(type));
    if (!spec.is_object()) continue;
    result.push_back({type,
                      static_cast<int>(json::int_at(spec, "replicas")),
                      json::text_at(spec, "restartPolicy"),
                      &json::at(spec, "template")});
  }
  return result;
}

json::Object base_labels(const Pass& pass, const std::string& type, int index) {
  return json::Object{{kube::names::kubeflow::kOperatorName, pass.traits.controller},
                      {kube::names::kubeflow::kJobName, pass.name()},
                      {kube::names::kubeflow::kReplicaType, to_lower(type)},
                      {kube::names::kubeflow::kReplicaIndex, std::to_string(index)}};
}

const ReplicaSpec* replica_of(const Pass& pass, const json::Value& pod) {
  for (const auto& replica : pass.replicas) {
    if (to_lower(replica.type) == label_of(pod, kube::names::kubeflow::kReplicaType))
      return &replica;
  }
  return nullptr;
}

/// Pods that the last pass saw running or ended.
int counted(const json::Value& status) {
  std::int64_t sum = 0;
  for (const auto& [type, entry] : json::object_at(status, "replicaStatuses")) {
    for (const std::string_view field : {"active", "succeeded", "failed"})
      sum += json::int_at(entry, field);
  }
  return static_cast<int>(sum);
}

std::string child_name(const Pass& pass, const std::string& type, int index) {
  return replace_all(fmt::format("{}-{}-{}", pass.name(), to_lower(type), index), "/", "-");
}

bool name_taken(const Pass& pass, const ReplicaSpec& replica) {
  for (int index = 0; index < replica.replicas; ++index) {
    const auto* pod = pass.view.find(kinds::kPod, child_name(pass, replica.type, index));
    if (pod != nullptr && !is_controlled_by(*pod, pass.job)) return true;
  }
  return false;
}

int exit_code(const Pass& pass, const json::Value& pod, std::vector<Event>* exits) {
  int code = kMissingExitCode;
  for (const auto& container : json::array_at(pod, "status", "containerStatuses")) {
    const auto& terminated = json::at(container, "state", "terminated");
    if (json::string_at(container, "name") != pass.traits.container || !terminated.is_object())
      continue;
    code = static_cast<int>(json::int_at(terminated, "exitCode"));
    if (exits != nullptr) {
      exits->push_back(
          {false,
           "ExitedWithCode",
           fmt::format("Pod: {}.{} exited with code {}", pass.ns(), name_of(pod), code)});
    }
  }
  return code;
}

/// When a failed pod may be replaced. One that ended as soon as it had begun would otherwise be
/// made again many times a second, for ever: a node starts it at once here. Nothing is waited for a
/// pod that was taken away, which says no such times.
Time replaceable_at(const Pass& pass, const json::Value& pod) {
  Time due;
  for (const auto& container : json::array_at(pod, "status", "containerStatuses")) {
    const auto& terminated = json::at(container, "state", "terminated");
    if (json::string_at(container, "name") != pass.traits.container ||
        !time_at(json::at(terminated, "finishedAt")))
      continue;
    due = std::max(time_at(json::at(terminated, "startedAt")),
                   time_at(json::at(pod, "status", "startTime"))) +
          kBetweenStarts;
  }
  return due;
}

void count(Counts& counts, const json::Value& pod) {
  const auto phase = phase_of(pod);
  if (phase == "Running") {
    // A pod that is being taken away counts as failed: it may never reach the phase Failed.
    is_terminating(pod) ? ++counts.failed : ++counts.active;
  } else if (phase == "Succeeded") {
    ++counts.succeeded;
  } else if (phase == "Failed") {
    ++counts.failed;
  }
}

/// Services are known by the job's labels, whoever made them.
bool serves(const Pass& pass, const json::Value& service) {
  return is_controlled_by(service, pass.job) ||
         (label_of(service, kube::names::kubeflow::kJobName) == pass.name() &&
          label_of(service, kube::names::kubeflow::kOperatorName) == pass.traits.controller);
}

/// Deletes pods, each with its service, by the clean-pod policy ("" : all).
void delete_pods_and_services(Pass& pass, std::string_view policy) {
  for (const auto* pod : pass.pods) {
    const auto phase = phase_of(*pod);
    if (policy == "Running" && phase != "Running" && phase != "Pending" && !phase.empty()) continue;
    delete_pod(pass.plan, *pod);
    const auto* service = pass.view.find(kinds::kService, name_of(*pod));
    if (service != nullptr && serves(pass, *service) && !is_terminating(*service)) {
      auto action = remove(kinds::kService, *service);
      action.events.push_back(
          {false, "SuccessfulDeleteService", "Deleted service: " + name_of(*service)});
      action.failed_reason = "FailedDeleteService";
      action.failed_prefix = "Error deleting: ";
      pass.plan.actions.push_back(std::move(action));
    }
  }
}

/// `entering`: say so even if there is no group to delete any more.
void delete_podgroup(Pass& pass, bool entering) {
  if (pass.settings.gang == Gang::kNone) return;
  const auto kind = podgroup_kind(pass.settings.gang);
  const auto* group = pass.view.find(kind, pass.name());
  const bool ours =
      group != nullptr && is_controlled_by(*group, pass.job) && !is_terminating(*group);
  if (!ours && !entering) return;
  pass.event(false, "JobTerminated", "Job has been terminated. Deleting PodGroup");
  const Event deleted{false, "SuccessfulDeletePodGroup", "Deleted PodGroup: " + pass.name()};
  if (!ours) {
    pass.plan.events.push_back(deleted);
    return;
  }
  auto action = remove(kind, *group);
  action.events.push_back(deleted);
  action.failed_reason = "FailedDeletePodGroup";
  action.failed_prefix = "Error deleting: ";
  pass.plan.actions.push_back(std::move(action));
}

void apply_ttl(Pass& pass) {
  const auto& ttl = json::at(run_policy(pass.job), "ttlSecondsAfterFinished");
  if (!ttl.is_number() || is_suspended(pass.job)) return;
  const auto ended = time_at(json::at(pass.status, "completionTime"));
  if (!ended) return;
  const auto expires = ended + std::chrono::seconds(json::as_int(ttl));
  if (pass.now < expires) {
    wake_after(pass.plan, expires - pass.now);
    return;
  }
  pass.plan.delete_job = true;
  pass.event(false,
             pass.traits.ttl_reports_pod ? "SuccessfulDeletePod" : "SuccessfulDeleteJob",
             "Deleted job: " + pass.name());
}

bool past_backoff_limit(const Pass& pass) {
  const auto& limit_value = json::at(run_policy(pass.job), "backoffLimit");
  if (!limit_value.is_number()) return false;
  const auto limit = json::as_int(limit_value);
  int active = 0, failed = 0, failed_before = 0;
  std::int64_t restarts = 0;
  for (const auto* pod : pass.pods) {
    if (is_active(*pod)) ++active;
    if (phase_of(*pod) == "Failed") ++failed;
  }
  for (const auto& [type, status] : json::object_at(pass.status, "replicaStatuses")) {
    failed_before += static_cast<int>(json::int_at(status, "failed"));
  }
  // The counter of requeues that upstream compares here is always 0, so this rule works for a limit
  // of 0 only.
  if (failed > failed_before && active != pass.total() && 1 > limit) return true;
  for (const auto& replica : pass.replicas) {
    if (replica.restart_policy != "OnFailure" && replica.restart_policy != "Always" &&
        replica.restart_policy != "ExitCode")
      continue;
    for (const auto* pod : pass.pods) {
      if (phase_of(*pod) != "Running" ||
          label_of(*pod, kube::names::kubeflow::kReplicaType) != to_lower(replica.type))
        continue;
      for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
        for (const auto& container : json::array_at(*pod, "status", list))
          restarts += json::int_at(container, "restartCount");
      }
    }
  }
  return limit == 0 ? restarts > 0 : restarts >= limit;
}

bool past_deadline(Pass& pass) {
  const auto& seconds = json::at(run_policy(pass.job), "activeDeadlineSeconds");
  const auto started = time_at(json::at(pass.status, "startTime"));
  if (!seconds.is_number() || !started) return false;
  const auto deadline = started + std::chrono::seconds(json::as_int(seconds));
  if (pass.now >= deadline) return true;
  wake_after(pass.plan, deadline - pass.now);
  return false;
}

}  // namespace

void wake_after(Plan& plan, Duration delay) {
  if (!plan.requeue_after || delay < *plan.requeue_after) plan.requeue_after = delay;
}

bool wants_requeue(const json::Value& job) {
  return annotation_of(job, kube::names::kOnPreempt) == "requeue";
}

void keep_submission_time(const json::Value& job, json::Value& object) {
  if (wants_requeue(job))
    set_annotation(
        object, kube::names::kSubmittedAt, json::string_at(job, "metadata", "creationTimestamp"));
}

bool was_preempted(const json::Value& pod) {
  for (const auto& condition : json::array_at(pod, "status", "conditions")) {
    if (json::string_at(condition, "type") == "DisruptionTarget" &&
        json::string_at(condition, "status") == "True")
      return true;
  }
  const auto reason = json::string_at(pod, "status", "reason");
  if (phase_of(pod) == "Failed" &&
      (reason == "Preempted" || reason == "Evicted" || reason == "Preempting"))
    return true;
  return is_terminating(pod) && phase_of(pod) != "Succeeded";
}

void force_delete_stuck(Plan& plan, const Objects& pods, const Settings& settings, Time now) {
  if (settings.force_delete_after <= Duration{0}) return;
  for (const auto* pod : pods) {
    if (!is_terminating(*pod)) continue;
    const auto due =
        time_at(json::at(*pod, "metadata", "deletionTimestamp")) + settings.force_delete_after;
    if (now < due) {
      wake_after(plan, due - now);
      continue;
    }
    auto action = remove(kinds::kPod, *pod);
    action.grace_s = 0;
    action.events.push_back(
        {true,
         "ForceDeletedPod",
         fmt::format("Pod {} did not end in its grace period: deleted by force", name_of(*pod))});
    plan.actions.push_back(std::move(action));
  }
}

int port_of(const Traits& traits, const ReplicaSpec& replica) {
  for (const auto& container : json::array_at(*replica.pod_template, "spec", "containers")) {
    if (json::string_at(container, "name") != traits.container) continue;
    for (const auto& port : json::array_at(container, "ports")) {
      if (json::string_at(port, "name") == traits.port_name)
        return static_cast<int>(json::int_at(port, "containerPort"));
    }
  }
  return traits.port;
}

void add_env(json::Value& pod, const json::Array& added) {
  for (auto& container : array_at(pod, {"spec", "containers"})) {
    for (const auto& item : added) array_of(container, "env").push_back(item);
  }
}

void delete_pod(Plan& plan, const json::Value& pod) {
  if (is_terminating(pod)) return;
  auto action = remove(kinds::kPod, pod);
  action.events.push_back({false, "SuccessfulDeletePod", "Deleted pod: " + name_of(pod)});
  action.failed_reason = "FailedDeletePod";
  action.failed_prefix = "Error deleting: ";
  plan.actions.push_back(std::move(action));
}

Pass::Pass(const Traits& t, const json::Value& j, const View& v, const Settings& s, Time n, Plan& p)
    : traits(t),
      job(j),
      replicas(read_replicas(t, j)),
      view(v),
      settings(s),
      now(n),
      plan(p),
      status(json::at(j, "status").is_object() ? json::at(j, "status")
                                               : json::Value(json::Object{})),
      conditions(status, true, n) {
  for (const auto* pod : v.controlled_by(kinds::kPod, uid_of(j))) pods.push_back(pod);
}

int Pass::total() const {
  int sum = 0;
  for (const auto& replica : replicas) sum += replica.replicas;
  return sum;
}

const ReplicaSpec* Pass::find(std::string_view type) const {
  for (const auto& replica : replicas) {
    if (replica.type == type) return &replica;
  }
  return nullptr;
}

void Pass::complete() {
  if (json::at(status, "completionTime").is_null())
    status.as_object()["completionTime"] = time_value(now);
}

// The events are recorded even where the condition stays as it is (another type failed first,
// Failed is final): they say which replicas did it.
void Pass::succeed(const std::string& message) {
  complete();
  conditions.set("Succeeded", true, reason("Succeeded"), message);
  event(false, reason("Succeeded"), message);
}

void Pass::fail(const std::string& message) {
  complete();
  conditions.set("Failed", true, reason("Failed"), message);
  event(false, reason("Failed"), message);
}

void Pass::restart(const std::string& message) {
  // A pod that takes long to end is looked at many times: said once, until something else was said.
  if (!conditions.set("Restarting", true, reason("Restarting"), message) &&
      conditions.message("Restarting") == message)
    return;
  event(true, reason("Restarting"), message);
}

void write_counts(Pass& pass, bool selector) {
  // A type that the spec no longer has keeps the last that was said of it.
  json::Object statuses = json::object_at(pass.status, "replicaStatuses");
  for (const auto& replica : pass.replicas) {
    const auto& counts = pass.counts[replica.type];
    json::Object entry;
    if (counts.active > 0) entry["active"] = counts.active;
    if (counts.succeeded > 0) entry["succeeded"] = counts.succeeded;
    if (counts.failed > 0) entry["failed"] = counts.failed;
    if (selector) {
      entry["selector"] = fmt::format("{}={},{}={},{}={}",
                                      kube::names::kubeflow::kJobName,
                                      pass.name(),
                                      kube::names::kubeflow::kOperatorName,
                                      pass.traits.controller,
                                      kube::names::kubeflow::kReplicaType,
                                      to_lower(replica.type));
    }
    statuses[replica.type] = std::move(entry);
  }
  pass.status.as_object()["replicaStatuses"] = std::move(statuses);
}

void decorate_pod(Pass& pass, const ReplicaSpec& replica, json::Value& pod) {
  keep_submission_time(pass.job, pod);
  if (pass.settings.gang == Gang::kNone) return;
  auto& scheduler = json::make(pod, {"spec", "schedulerName"});
  const auto named = json::text(scheduler);
  bool other = false, ours = false;
  for (const auto& each : pass.replicas) {
    const auto name = json::string_at(*each.pod_template, "spec", "schedulerName");
    other = other || (!name.empty() && name != pass.settings.gang_scheduler);
    ours = ours || name == pass.settings.gang_scheduler;
  }
  // MPIJob v1 warns unless a template names the gang's scheduler itself, and spells the reason in
  // its own way.
  if (pass.traits.services ? other : !ours) {
    pass.event(
        true,
        pass.traits.services ? "SetPodTemplateSchedulerName" : "SettedPodTemplateSchedulerName",
        "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten");
  }
  if (named.empty()) scheduler = pass.settings.gang_scheduler;
  if (pass.settings.gang == Gang::kVolcano) {
    set_annotation(pod, kube::names::volcano::kGroupName, pass.name());
    set_annotation(pod, kube::names::volcano::kTaskSpec, to_lower(replica.type));
  } else {
    set_label(pod, kube::names::plugins::kPodGroup, pass.name());
  }
}

void report_abnormal_pods(Pass& pass) {
  std::size_t reported = 0;
  for (const auto* pod : pass.pods) {
    if (!is_active(*pod) || reported >= kAbnormalPodsPerPass) continue;
    const auto& status = json::at(*pod, "status");
    const auto& main = json::array_at(status, "containerStatuses");
    const auto& containers = main.empty() ? json::array_at(status, "initContainerStatuses") : main;
    const auto before = pass.plan.events.size();
    for (const auto& container : containers) {
      const auto& terminated = json::at(container, "state", "terminated");
      const auto& waiting = json::at(container, "state", "waiting");
      const auto name = json::string_at(container, "name");
      if (terminated.is_object() && json::int_at(terminated, "exitCode") != 0) {
        pass.event(true,
                   json::text_at(terminated, "reason"),
                   fmt::format("Error pod {} container {} exitCode: {} terminated message: {}",
                               name_of(*pod),
                               name,
                               json::int_at(terminated, "exitCode"),
                               json::string_at(terminated, "message")));
      } else if (!json::string_at(waiting, "message").empty()) {
        pass.event(true,
                   json::text_at(waiting, "reason"),
                   fmt::format("Error pod {} container {} waiting message: {}",
                               name_of(*pod),
                               name,
                               json::string_at(waiting, "message")));
      }
    }
    if (containers.empty()) {
      const json::Value* newest = nullptr;
      for (const auto& condition : json::array_at(status, "conditions")) {
        if (newest == nullptr || json::string_at(*newest, "lastTransitionTime") <
                                     json::string_at(condition, "lastTransitionTime"))
          newest = &condition;
      }
      if (newest != nullptr && json::string_at(*newest, "status") != "True") {
        pass.event(true,
                   json::text_at(*newest, "reason"),
                   fmt::format("Error pod {} condition message: {}",
                               name_of(*pod),
                               json::string_at(*newest, "message")));
      }
    }
    if (pass.plan.events.size() != before) ++reported;
  }
}

json::Value TrainingKind::with_defaults(const json::Value& original) const {
  json::Value job = original;
  json::make_object(job, {"spec"});
  read_legacy(job);
  auto& policy = json::make_object(job, {"spec", "runPolicy"});
  if (json::at(policy, "cleanPodPolicy").is_null()) policy["cleanPodPolicy"] = "None";
  auto& specs = json::make(job, {"spec", std::string_view(traits_.specs_field)});
  if (specs.is_object()) {
    json::Object folded;
    for (const auto& [key, value] : specs.get_object()) {
      std::string name(std::string_view(key.data(), key.size()));
      for (const auto& type : traits_.types) {
        if (traits_.fold_keys && to_lower(name) == to_lower(type)) name = type;
      }
      json::Value spec = value;
      if (spec.is_object()) {
        auto& object = spec.get_object();
        if (!json::at(spec, "replicas").is_number()) object["replicas"] = default_replicas(name);
        if (json::string_at(spec, "restartPolicy").empty())
          object["restartPolicy"] = traits_.default_restart;
        auto& containers = json::make(spec, {"template", "spec", "containers"});
        if (!traits_.port_name.empty() && containers.is_array() &&
            !containers.get_array().empty()) {
          const int at =
              std::max(0, find_container(json::at(spec, "template", "spec"), traits_.container));
          auto& container = containers.get_array()[static_cast<std::size_t>(at)];
          bool has = false;
          for (const auto& port : json::array_at(container, "ports"))
            has = has || json::string_at(port, "name") == traits_.port_name;
          if (!has && container.is_object())
            array_of(container, "ports")
                .push_back(
                    json::Object{{"name", traits_.port_name}, {"containerPort", traits_.port}});
        }
      }
      folded[name] = std::move(spec);
    }
    specs = std::move(folded);
  }
  add_defaults(job);
  return job;
}

std::string TrainingKind::check(const json::Value& job) const {
  const auto& specs = json::at(job, "spec", std::string_view(traits_.specs_field));
  if (json::as_object(specs).empty())
    return fmt::format("spec.{} must name at least one replica type", traits_.specs_field);
  for (const auto& [type, spec] : json::as_object(specs)) {
    const std::string_view name(type.data(), type.size());
    if (std::find(traits_.types.begin(), traits_.types.end(), name) == traits_.types.end()) {
      return fmt::format("spec.{}[{}] is not a replica type of a {} (wanted one of: {})",
                         traits_.specs_field,
                         name,
                         traits_.kind,
                         join(traits_.types, ", "));
    }
    if (json::array_at(spec, "template", "spec", "containers").empty()) {
      return fmt::format(
          "spec.{}[{}].template.spec.containers must not be empty", traits_.specs_field, name);
    }
    if (traits_.services &&
        find_container(json::at(spec, "template", "spec"), traits_.container) < 0) {
      return fmt::format(
          "spec.{}[{}].template.spec.containers must have at least one container with name {}",
          traits_.specs_field,
          name,
          traits_.container);
    }
  }
  return {};
}

Plan TrainingKind::plan(const json::Value& original,
                        const View& view,
                        const Settings& settings,
                        Time now) const {
  Plan plan;
  const auto& manager = json::at(run_policy(original), "managedBy");
  const bool of_another = traits_.heeds_managed_by && manager.is_string() &&
                          json::as_string(manager) != kube::names::kubeflow::kTrainingOperator;
  if (of_another || is_terminating(original)) return plan;
  const auto job = with_defaults(original);
  if (const auto problem = check(job); !problem.empty()) {
    // Nothing will get better until the job is edited, and an edit wakes us.
    plan.events.push_back({true,
                           traits_.kind + "FailedValidation",
                           fmt::format("{} failed validation because {}", traits_.kind, problem)});
    return plan;
  }
  Pass pass(traits_, job, view, settings, now, plan);
  pass.conditions.set("Created",
                      true,
                      pass.reason("Created"),
                      fmt::format("{} {} is created.", traits_.kind, pass.name()));
  before(pass, is_suspended(job));
  if (pass.conditions.finished()) {
    finished(pass);
  } else if (is_suspended(job)) {
    suspend(pass);
  } else {
    if (pass.conditions.is_true("Suspended")) {
      const auto message = fmt::format("{} {} is resumed.", traits_.kind, pass.name());
      pass.conditions.set("Suspended", false, pass.reason("Resumed"), message);
      pass.status.as_object()["startTime"] = time_value(now);
      pass.event(false, pass.reason("Resumed"), message);
    }
    report_abnormal_pods(pass);
    if (!exceeded(pass) && !gang_waits(pass) && !requeue(pass)) {
      force_delete_stuck(plan, pass.pods, settings, now);
      reconcile_pods(pass);
      if (json::at(pass.status, "startTime").is_null())
        pass.status.as_object()["startTime"] = time_value(now);
      past_deadline(pass);
      update_status(pass);
      if (pass.conditions.is_true("Failed")) pass.complete();
    }
  }
  plan.status = std::move(pass.status);
  return plan;
}

void TrainingKind::finished(Pass& pass) const {
  const auto policy = json::string_at(run_policy(pass.job), "cleanPodPolicy");
  if (policy != "None") delete_pods_and_services(pass, policy);
  delete_podgroup(pass, false);
  apply_ttl(pass);
  if (!pass.conditions.is_true("Succeeded")) return;
  for (auto& [type, entry] : json::make_object(pass.status, {"replicaStatuses"})) {
    if (!entry.is_object()) continue;
    const auto active = json::int_at(entry, "active");
    if (active == 0) continue;
    entry.get_object()["succeeded"] = json::int_at(entry, "succeeded") + active;
    json::remove(entry, {"active"});
  }
  if (json::object_at(pass.status, "replicaStatuses").empty())
    json::remove(pass.status, {"replicaStatuses"});
}

void TrainingKind::suspend(Pass& pass) const {
  const bool entering = !pass.conditions.is_true("Suspended");
  delete_pods_and_services(pass, "");
  delete_podgroup(pass, entering);
  if (auto* statuses = pass.status.as_object().if_contains("replicaStatuses");
      statuses != nullptr && statuses->is_object()) {
    for (auto& [type, entry] : statuses->get_object()) json::remove(entry, {"active"});
  }
  const auto message = fmt::format("{} {} is suspended.", traits_.kind, pass.name());
  if (pass.conditions.is_true("Running"))
    pass.conditions.set("Running", false, pass.reason("Suspended"), message);
  if (entering) {
    pass.conditions.set("Suspended", true, pass.reason("Suspended"), message);
    pass.event(false, pass.reason("Suspended"), message);
  }
}

bool TrainingKind::exceeded(Pass& pass) const {
  std::string message;
  if (past_backoff_limit(pass)) {
    message = fmt::format("Job {} has failed because it has reached the specified backoff limit",
                          pass.name());
  } else if (past_deadline(pass)) {
    message = fmt::format("Job {} has failed because it was active longer than specified deadline",
                          pass.name());
  } else {
    return false;
  }
  pass.complete();
  delete_pods_and_services(pass, "");
  delete_podgroup(pass, true);
  pass.fail(message);
  apply_ttl(pass);
  return true;
}

/// A job that asked to be requeued and lost a pod to somebody else: the rest goes too, and nothing
/// is made until all of it is gone, so that the gang comes back whole.
bool TrainingKind::requeue(Pass& pass) const {
  if (!wants_requeue(pass.job)) return false;
  std::string lost;
  int there = 0;
  for (const auto* pod : pass.pods) {
    const auto* replica = replica_of(pass, *pod);
    if (replica == nullptr ||
        index_label(*pod, kube::names::kubeflow::kReplicaIndex) >= replica->replicas)
      continue;
    ++there;
    if (lost.empty() && was_preempted(*pod)) lost = name_of(*pod);
  }
  // All were there at the last look and one is not now: it vanished between two looks. (A job
  // scaled up is missing some too, but those were never there.)
  if (lost.empty() && pass.conditions.is_true("Running") && there > 0 && there < pass.total() &&
      counted(pass.status) >= pass.total())
    lost = "a pod";
  if (lost.empty()) return false;
  for (const auto* pod : pass.pods) {
    if (phase_of(*pod) != "Succeeded") delete_pod(pass.plan, *pod);
    if (const auto* replica = replica_of(pass, *pod)) count(pass.counts[replica->type], *pod);
  }
  force_delete_stuck(pass.plan, pass.pods, pass.settings, pass.now);
  write_counts(pass, traits_.selector_in_status);
  const auto message =
      fmt::format("{} {} lost {} to preemption and goes back to its queue as a whole.",
                  traits_.kind,
                  pass.name(),
                  lost);
  if (pass.conditions.reason("Restarting") != pass.reason("Requeued") &&
      pass.conditions.set("Restarting", true, pass.reason("Requeued"), message)) {
    pass.event(true, pass.reason("Requeued"), message);
  }
  return true;
}

bool TrainingKind::gang_waits(Pass& pass) const {
  if (pass.settings.gang == Gang::kNone) return false;
  const auto& policy = json::at(run_policy(pass.job), "schedulingPolicy");
  PodGroupSpec spec;
  const auto& available = json::at(policy, "minAvailable");
  spec.min_member =
      available.is_number() ? static_cast<int>(json::as_int(available)) : pass.total();
  spec.priority_class = json::text_at(policy, "priorityClass");
  spec.timeout_s = json::at(policy, "scheduleTimeoutSeconds");
  const auto& given = json::at(policy, "minResources");
  spec.min_resources =
      given.is_object() ? given : min_resources(pass.replicas, spec.min_member, pass.view);
  const auto* group = pass.view.find(podgroup_kind(pass.settings.gang), pass.name());
  spec.queue = group == nullptr ? "" : json::text_at(*group, "spec", "queue");
  if (spec.queue.empty()) spec.queue = json::text_at(policy, "queue");
  if (spec.queue.empty()) spec.queue = "default";
  json::Value notes = json::at(pass.job, "metadata", "annotations");
  if (wants_requeue(pass.job)) {
    json::make_object(notes, {})[kube::names::kSubmittedAt] =
        json::at(pass.job, "metadata", "creationTimestamp");
  }
  sync_podgroup(pass.plan, pass.job, spec, notes, pass.view, pass.settings.gang);
  if (!pods_must_wait(pass.job, pass.view, pass.settings.gang)) return false;
  // Written once, not at every look: a status that changes by the clock alone would wake us for
  // ever.
  if (json::at(pass.status, "lastReconcileTime").is_null())
    pass.status.as_object()["lastReconcileTime"] = time_value(pass.now);
  return true;
}

void TrainingKind::create_pod(Pass& pass, const ReplicaSpec& replica, int index) const {
  const auto& pod_template = *replica.pod_template;
  auto pod = make_child(pass.job, "v1", "Pod", child_name(pass, replica.type, index));
  for (const std::string_view field : {"labels", "annotations", "finalizers"}) {
    const auto& value = json::at(pod_template, "metadata", field);
    if (!json::is_empty(value)) json::make_object(pod, {"metadata"})[field] = value;
  }
  for (const auto& [key, value] : base_labels(pass, replica.type, index))
    json::make_object(pod, {"metadata", "labels"})[key] = value;
  if (is_master(pass, replica.type, index))
    set_label(pod, kube::names::kubeflow::kJobRole, "master");
  pod.as_object()["spec"] = json::at(pod_template, "spec");
  wire(pass, replica, index, pod);
  auto& policy = json::make(pod, {"spec", "restartPolicy"});
  if (!json::as_string(policy).empty()) {
    pass.event(
        true,
        "SetPodTemplateRestartPolicy",
        "Restart policy in pod template will be overwritten by restart policy in replica spec");
  }
  policy = replica.restart_policy == "ExitCode" ? "Never" : replica.restart_policy;
  decorate_pod(pass, replica, pod);
  auto action = create(kinds::kPod, std::move(pod));
  action.events.push_back({false, "SuccessfulCreatePod", "Created pod: " + action.name});
  action.failed_reason = "FailedCreatePod";
  action.failed_prefix = "Error creating: ";
  pass.plan.actions.push_back(std::move(action));
}

void TrainingKind::one_pod(Pass& pass,
                           const ReplicaSpec& replica,
                           int index,
                           const json::Value& pod,
                           std::vector<Event>& exits) const {
  if (index >= replica.replicas) delete_pod(pass.plan, pod);
  const auto phase = phase_of(pod);
  const bool ended = phase == "Failed" || phase == "Succeeded";
  const int code = exit_code(pass, pod, ended ? &exits : &pass.plan.events);
  if (phase == "Failed") {
    const bool by_code = replica.restart_policy == "ExitCode";
    if (replica.restart_policy == "OnFailure" || replica.restart_policy == "Always" ||
        (by_code && code >= 128)) {
      const auto due = replaceable_at(pass, pod);
      pass.now < due ? wake_after(pass.plan, due - pass.now) : delete_pod(pass.plan, pod);
      pass.restart(fmt::format(
          "job {} is restarting because {} replica(s) failed.", pass.name(), replica.type));
    } else if (by_code) {
      const auto message = fmt::format(
          "job \"{}\" is failing because \"{}\" replica(s) failed.", pass.name(), replica.type);
      if (pass.conditions.set("Failed", true, pass.reason("Failed"), message))
        pass.event(true, pass.reason("Failed"), message);
    }
  }
  count(pass.counts[replica.type], pod);
}

void TrainingKind::reconcile_pods(Pass& pass) const {
  const auto& before = json::at(pass.job, "status", "replicaStatuses");
  // A type that cannot be completed, because a pod's name is taken by somebody else's, does not
  // hold up the others.
  auto order = pass.replicas;
  std::stable_partition(order.begin(), order.end(), [&](const ReplicaSpec& replica) {
    return !name_taken(pass, replica);
  });
  for (const auto& replica : order) {
    std::map<int, Objects> by_index;
    for (const auto* pod : pass.pods) {
      if (label_of(*pod, kube::names::kubeflow::kReplicaType) != to_lower(replica.type)) continue;
      if (const int index = index_label(*pod, kube::names::kubeflow::kReplicaIndex); index >= 0)
        by_index[index].push_back(pod);
    }
    const int size =
        std::max(replica.replicas, by_index.empty() ? 0 : by_index.rbegin()->first + 1);
    std::vector<Event> exits;
    for (int index = 0; index < size; ++index) {
      const auto found = by_index.find(index);
      if (found == by_index.end()) {
        if (index < replica.replicas) create_pod(pass, replica, index);
      } else if (found->second.size() == 1) {
        one_pod(pass, replica, index, *found->second[0], exits);
      }
    }
    // The exit codes of ended pods are news only when the counters moved.
    const auto& counts = pass.counts[replica.type];
    const auto& old = json::at(before, std::string_view(replica.type));
    if (json::int_at(old, "succeeded") != counts.succeeded ||
        json::int_at(old, "failed") != counts.failed) {
      for (auto& event : exits) pass.plan.events.push_back(std::move(event));
    }
    if (traits_.services) reconcile_services(pass, replica);
  }
  write_counts(pass, traits_.selector_in_status);
}

void TrainingKind::reconcile_services(Pass& pass, const ReplicaSpec& replica) const {
  const auto type = to_lower(replica.type);
  std::map<int, Objects> by_index;
  for (const auto* service : pass.view.controlled_by(kinds::kService, uid_of(pass.job))) {
    if (label_of(*service, kube::names::kubeflow::kReplicaType) != type) continue;
    if (const int index = index_label(*service, kube::names::kubeflow::kReplicaIndex); index >= 0)
      by_index[index].push_back(service);
  }
  for (const auto& [index, services] : by_index) {
    if (index < replica.replicas || is_terminating(*services[0])) continue;
    auto action = remove(kinds::kService, *services[0]);
    action.events.push_back(
        {false, "SuccessfulDeleteService", "Deleted service: " + name_of(*services[0])});
    pass.plan.actions.push_back(std::move(action));
  }
  json::Array ports;
  const auto& spec = json::at(*replica.pod_template, "spec");
  const int container = find_container(spec, traits_.container);
  const auto& containers = json::array_at(spec, "containers");
  for (const auto& port :
       json::array_at(containers[static_cast<std::size_t>(std::max(0, container))], "ports")) {
    ports.push_back(
        json::Object{{"name", json::at(port, "name")}, {"port", json::at(port, "containerPort")}});
  }
  for (int index = 0; index < replica.replicas; ++index) {
    if (by_index.contains(index)) continue;
    auto service = make_child(pass.job, "v1", "Service", child_name(pass, replica.type, index));
    const auto selector = base_labels(pass, replica.type, index);
    // One that carries the labels serves, whoever made it.
    if (const auto* found = pass.view.find(kinds::kService, name_of(service));
        found != nullptr && contains(json::at(*found, "metadata", "labels"), selector))
      continue;
    json::make_object(service, {"metadata"})["labels"] = selector;
    service.as_object()["spec"] =
        json::Object{{"clusterIP", "None"}, {"selector", selector}, {"ports", ports}};
    auto action = create(kinds::kService, std::move(service));
    action.events.push_back({false, "SuccessfulCreateService", "Created service: " + action.name});
    action.failed_reason = "FailedCreateService";
    action.failed_prefix = "Error creating: ";
    pass.plan.actions.push_back(std::move(action));
  }
}

}  // namespace muster::controllers
