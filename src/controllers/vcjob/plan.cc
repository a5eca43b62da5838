#include "controllers/vcjob/plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "controllers/common/objects.h"
#include "controllers/common/podgroup.h"
#include "controllers/common/training.h"
#include "controllers/common/workload.h"
#include "controllers/vcjob/pods.h"
#include "controllers/vcjob/spec.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers::vcjob {
namespace {

/// Muster's own, for kinds that have no field for it: "true" takes the job off the cluster and
/// keeps it.

struct Counts {
  int pending = 0, running = 0, succeeded = 0, failed = 0, terminating = 0, unknown = 0;
};

/// One look at one job.
struct Look {
  const json::Value& job;
  const JobSpec& spec;
  const View& view;
  Time now;
  Plan& plan;
  Objects pods;
  Counts counts;
  std::map<std::string, Counts> by_task;
  std::string phase;
  int retries = 0;
};

void count(Counts& counts, const json::Value& pod) {
  const std::string phase = phase_of(pod);
  if (is_deleting(pod)) {
    ++counts.terminating;
  } else if (phase == "Running") {
    ++counts.running;
  } else if (phase == "Succeeded") {
    ++counts.succeeded;
  } else if (phase == "Failed") {
    ++counts.failed;
  } else if (phase == "Unknown") {
    ++counts.unknown;
  } else {
    ++counts.pending;
  }
}

std::string task_of_pod(const json::Value& pod) {
  return label_of(pod, kube::names::volcano::kTaskSpec);
}

/// A pod that the job, made smaller, has no use for: that it goes is nobody's failure.
bool too_many(const JobSpec& spec, const json::Value& pod) {
  const TaskSpec* task = spec.find(task_of_pod(pod));
  return task == nullptr || index_label(pod, kube::names::volcano::kTaskIndex) >= task->replicas;
}

bool is_final(std::string_view phase) {
  return phase == "Completed" || phase == "Terminated" || phase == "Failed";
}
bool is_ending(std::string_view phase) {
  return phase == "Restarting" || phase == "Aborting" || phase == "Completing" ||
         phase == "Terminating";
}

std::int64_t exit_code_of(const json::Value& pod) {
  for (const json::Value& container : json::array_at(pod, "status", "containerStatuses")) {
    const std::int64_t code = json::int_at(container, "state", "terminated", "exitCode");
    if (code != 0) return code;
  }
  return 0;
}

void delete_pods(Look& look, bool finished_too) {
  for (const json::Value* pod : look.pods) {
    if (is_deleting(*pod)) continue;
    if (is_active(*pod) || finished_too) look.plan.actions.push_back(remove(kinds::kPod, *pod));
  }
}

void delete_group(Look& look) {
  const json::Value* group = look.view.find(kinds::kVolcanoPodGroup, group_name(look.job));
  if (group != nullptr && !is_deleting(*group))
    look.plan.actions.push_back(remove(kinds::kVolcanoPodGroup, *group));
}

void enter(Look& look, std::string phase, std::string reason, const std::string& message) {
  look.plan.events.push_back({phase == "Failed",
                              "ExecuteAction",
                              fmt::format("Start to execute action {}: {}", reason, message)});
  look.phase = std::move(phase);
}

/// The first thing that happened to the pods for which a policy names an action, and which pod or
/// task it is about.
struct Reaction {
  std::string action, event;
  const json::Value* pod = nullptr;
};

Reaction react(const Look& look) {
  for (const json::Value* pod : look.pods) {
    if (too_many(look.spec, *pod)) continue;
    const TaskSpec* task = look.spec.find(task_of_pod(*pod));
    const bool finished = phase_of(*pod) == "Failed" || phase_of(*pod) == "Succeeded";
    const bool evicted = is_deleting(*pod) && !finished;
    const bool failed = !is_deleting(*pod) && phase_of(*pod) == "Failed";
    if (!evicted && !failed) continue;
    const std::string_view event = evicted ? "PodEvicted" : "PodFailed";
    if (std::string action = action_for(look.spec, *task, event, failed ? exit_code_of(*pod) : 0);
        !action.empty()) {
      return {std::move(action), std::string(event), pod};
    }
  }
  for (const TaskSpec& task : look.spec.tasks) {
    const auto counts = look.by_task.find(task.name);
    if (task.replicas == 0 || counts == look.by_task.end() ||
        counts->second.succeeded < task.replicas)
      continue;
    if (std::string action = action_for(look.spec, task, "TaskCompleted", 0); !action.empty())
      return {std::move(action), "TaskCompleted", nullptr};
  }
  return {};
}

/// True when the job's phase changed or pods were deleted: the rest waits for the next look.
bool obey(Look& look) {
  const Reaction reaction = react(look);
  const std::string& action = reaction.action;
  const std::string why =
      reaction.event + (reaction.pod == nullptr ? "" : " of " + name_of(*reaction.pod));
  if (action.empty() || action == "SyncJob") return false;
  if (action == "RestartJob") enter(look, "Restarting", action, why);
  if (action == "AbortJob") enter(look, "Aborting", action, why);
  if (action == "TerminateJob") enter(look, "Terminating", action, why);
  if (action == "CompleteJob") enter(look, "Completing", action, why);
  if (is_ending(look.phase)) return true;
  if (reaction.pod == nullptr) return false;
  for (const json::Value* pod : look.pods) {
    const bool meant = action == "RestartTask" ? task_of_pod(*pod) == task_of_pod(*reaction.pod)
                                               : pod == reaction.pod;
    if (meant && !is_deleting(*pod)) look.plan.actions.push_back(remove(kinds::kPod, *pod));
  }
  return true;
}

/// Pods go; when none is left that could still do something, the next phase begins.
void end(Look& look) {
  const bool again = look.phase == "Restarting";
  // What has finished stays readable, unless it must make room for its successor. The last failure
  // stays too.
  const bool last = again && look.retries + 1 >= look.spec.max_retry;
  delete_pods(look, again && !last);
  const bool left = std::any_of(look.pods.begin(), look.pods.end(), [&](const json::Value* pod) {
    return is_deleting(*pod) || is_active(*pod) || (again && !last);
  });
  if (left) return;
  delete_group(look);
  if (again) {
    ++look.retries;
    look.phase = last ? "Failed" : "Pending";
  } else {
    look.phase = look.phase == "Aborting"     ? "Aborted"
                 : look.phase == "Completing" ? "Completed"
                                              : "Terminated";
  }
}

bool may_start(const Look& look, const TaskSpec& task) {
  if (task.depends_on.empty()) return true;
  const auto ready = [&](const std::string& name) {
    const TaskSpec* other = look.spec.find(name);
    const auto counts = look.by_task.find(name);
    if (other == nullptr || counts == look.by_task.end()) return false;
    return counts->second.running + counts->second.succeeded >= std::max(1, other->min_available);
  };
  return task.depends_on_any ? std::any_of(task.depends_on.begin(), task.depends_on.end(), ready)
                             : std::all_of(task.depends_on.begin(), task.depends_on.end(), ready);
}

/// Pods that failed and stay do not come back. When another one has to be made again (its node is no
/// more, say) the gang is what is left of it, or that one would wait for members that nobody makes.
bool is_cut_down(const Look& look) {
  const Counts& counts = look.counts;
  return counts.failed > 0 &&
         counts.running + counts.succeeded + counts.failed < look.spec.replicas;
}

json::Value group_spec(const Look& look) {
  const JobSpec& spec = look.spec;
  const bool cut_down = is_cut_down(look);
  std::vector<ReplicaSpec> replicas;
  json::Object by_task;
  for (const TaskSpec& task : spec.tasks) {
    replicas.push_back({task.name, task.replicas, "", task.pod_template});
    const auto counts = look.by_task.find(task.name);
    const int failed = cut_down && counts != look.by_task.end() ? counts->second.failed : 0;
    by_task[task.name] = std::min(task.min_available, std::max(0, task.replicas - failed));
  }
  const int left = spec.replicas - (cut_down ? look.counts.failed : 0);
  json::Object wanted{{"minMember", std::min(spec.min_available, std::max(1, left))},
                      {"minTaskMember", std::move(by_task)},
                      {"queue", spec.queue},
                      {"minResources", min_resources(replicas, spec.min_available, look.view)}};
  if (!spec.priority_class.empty()) wanted["priorityClassName"] = spec.priority_class;
  if (const json::Value& topology = json::at(look.job, "spec", "networkTopology");
      topology.is_object())
    wanted["networkTopology"] = topology;
  return wanted;
}

/// True when the group has been admitted, so that pods may be made.
bool sync_group(Look& look) {
  const std::string name = group_name(look.job);
  const json::Value* group = look.view.find(kinds::kVolcanoPodGroup, name);
  if (group == nullptr) {
    json::Value made =
        make_child(look.job, kube::resources::kPodGroups.api_version(), "PodGroup", name);
    made.as_object()["spec"] = group_spec(look);
    keep_submission_time(look.job, made);
    look.plan.actions.push_back(create(kinds::kVolcanoPodGroup, std::move(made)));
    return false;
  }
  if (is_deleting(*group)) return false;
  const json::Value wanted = group_spec(look);
  if (!contains(json::at(*group, "spec"), wanted))
    look.plan.actions.push_back(
        patch(kinds::kVolcanoPodGroup, name, json::Object{{"spec", wanted}}));
  const auto phase = json::string_at(*group, "status", "phase");
  return !phase.empty() && phase != "Pending";
}

void sync_pods(Look& look) {
  std::map<std::string, const json::Value*> found;
  for (const json::Value* pod : look.pods) found[name_of(*pod)] = pod;
  for (const TaskSpec& task : look.spec.tasks) {
    const bool starts = may_start(look, task);
    for (int i = 0; i < task.replicas; ++i) {
      const std::string name = pod_name(look.job, task, i);
      if (found.erase(name) > 0 || !starts) continue;
      Action action = create(kinds::kPod, pod_of(look.job, look.spec, task, i));
      action.failed_reason = "FailedCreate";
      action.failed_prefix = "Error creating: ";
      look.plan.actions.push_back(std::move(action));
    }
  }
  for (const auto& [name, pod] : found) {
    if (!is_deleting(*pod)) look.plan.actions.push_back(remove(kinds::kPod, *pod));
  }
}

/// Pending and Running follow from the counters; so does the end.
void follow_counts(Look& look) {
  const Counts& counts = look.counts;
  const JobSpec& spec = look.spec;
  const int ended = counts.succeeded + counts.failed;
  if (look.phase == "Pending") {
    if (counts.running + ended >= spec.min_available) look.phase = "Running";
    if (look.phase == "Pending") return;
  }
  if (spec.min_success > 0 && counts.succeeded >= spec.min_success)
    return enter(
        look, "Completing", "CompleteJob", fmt::format("{} pods have succeeded", counts.succeeded));
  if (ended < spec.replicas) {
    if (counts.pending + counts.terminating > spec.replicas - spec.min_available)
      look.phase = "Pending";
    return;
  }
  bool good = counts.succeeded >= (spec.min_success > 0 ? spec.min_success : spec.min_available);
  for (const TaskSpec& task : spec.tasks)
    good = good && look.by_task[task.name].succeeded >= task.min_available;
  look.phase = good ? "Completed" : "Failed";
  delete_group(look);
}

void write_status(Look& look) {
  json::Value status = status_or_empty(look.job);
  json::Object& object = status.as_object();
  const auto set = [&](std::string_view key, std::int64_t value) {
    if (value == 0) {
      object.erase(key);
    } else {
      object[key] = value;
    }
  };
  set("pending", look.counts.pending);
  set("running", look.counts.running);
  set("succeeded", look.counts.succeeded);
  set("failed", look.counts.failed);
  set("terminating", look.counts.terminating);
  set("unknown", look.counts.unknown);
  set("retryCount", look.retries);
  object["minAvailable"] = look.spec.min_available;
  json::Object tasks;
  for (const TaskSpec& task : look.spec.tasks) {
    json::Object phases;
    const Counts& counts = look.by_task[task.name];
    for (const auto& [word, number] : {std::pair{"Pending", counts.pending},
                                       std::pair{"Running", counts.running},
                                       std::pair{"Succeeded", counts.succeeded},
                                       std::pair{"Failed", counts.failed}}) {
      if (number > 0) phases[word] = number;
    }
    if (!phases.empty()) tasks[task.name] = json::Object{{"phase", std::move(phases)}};
  }
  object["taskStatusCount"] = std::move(tasks);
  if (json::string_at(status, "state", "phase") != look.phase) {
    object["state"] =
        json::Object{{"phase", look.phase}, {"lastTransitionTime", time_value(look.now)}};
    array_at(status, {"conditions"})
        .push_back(
            json::Object{{"status", look.phase}, {"lastTransitionTime", time_value(look.now)}});
  }
  look.plan.status = std::move(status);
}

/// Deletes the finished job when its time has come, or says when that is.
void expire(Look& look) {
  const json::Value& ttl = json::at(look.job, "spec", "ttlSecondsAfterFinished");
  if (!ttl.is_number()) return;
  const Time ended = time_at(json::at(look.job, "status", "state", "lastTransitionTime"));
  const Duration left = ended + std::chrono::seconds(json::as_int(ttl)) - look.now;
  if (left.count() <= 0) {
    look.plan.delete_job = true;
  } else {
    wake_after(look.plan, left);
  }
}

}  // namespace

Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now) {
  Plan plan;
  if (is_deleting(job)) return plan;
  const JobSpec spec = spec_of(job);
  Look look{
      job, spec, view, now, plan, view.controlled_by(kinds::kPod, uid_of(job)), {}, {}, "", 0};
  for (const json::Value* pod : look.pods) {
    if (too_many(spec, *pod)) continue;
    count(look.counts, *pod);
    count(look.by_task[task_of_pod(*pod)], *pod);
  }
  look.phase = json::text_at(job, "status", "state", "phase");
  if (look.phase.empty()) look.phase = "Pending";
  look.retries = static_cast<int>(json::int_at(job, "status", "retryCount"));
  if (is_final(look.phase)) {
    delete_pods(look, /*finished_too=*/false);
    write_status(look);
    expire(look);
    return plan;
  }
  if (const std::string problem = problem_of(spec); !problem.empty()) {
    plan.events.push_back({true, "InvalidJob", problem});
    look.phase = "Failed";
    write_status(look);
    return plan;
  }
  const bool suspended = annotation_of(job, kube::names::kSuspend) == "true";
  if (suspended && !is_ending(look.phase) && look.phase != "Aborted")
    enter(look, "Aborting", "AbortJob", "the job is suspended");
  if (!suspended && look.phase == "Aborted") {
    // Coming back is no failure: it costs no retry. What is left of the first run makes room.
    delete_pods(look, /*finished_too=*/true);
    look.phase = "Pending";
    write_status(look);
    return plan;
  }
  if (!is_ending(look.phase) && look.phase != "Aborted") {
    const bool obeyed = obey(look);
    if (!obeyed) follow_counts(look);
    if (!obeyed && (look.phase == "Pending" || look.phase == "Running")) {
      add_plugin_objects(plan, job, spec, view);
      if (sync_group(look)) sync_pods(look);
    }
  }
  if (is_ending(look.phase)) end(look);
  force_delete_stuck(plan, look.pods, settings, now);
  write_status(look);
  return plan;
}

}  // namespace muster::controllers::vcjob
