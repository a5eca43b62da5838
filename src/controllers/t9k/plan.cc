#include "controllers/t9k/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "controllers/common/objects.h"
#include "controllers/common/training.h"
#include "controllers/t9k/pods.h"
#include "controllers/t9k/validate.h"
#include "kube/pod_end.h"

namespace muster::controllers::t9k {
namespace {

struct Replica {
  std::string name, type;
  int index = 0;
  const json::Value* pod = nullptr;
};

struct Sync {
  const json::Value& job;
  const View& view;
  const Settings& settings;
  Time now;
  Plan& plan;
  json::Value status;
  std::vector<Replica> replicas;           // the launcher first
  std::map<std::string, json::Value> old;  // status entries of the last pass, by pod name
  std::map<std::string, int> restarts;     // by type

  void condition(std::string_view type,
                 bool value,
                 std::string_view reason,
                 std::string_view message) {
    auto& list = array_at(status, {"conditions"});
    const std::string_view word = value ? "True" : "False";
    for (auto& entry : list) {
      if (json::string_at(entry, "type") != type) continue;
      auto& object = entry.as_object();
      if (json::string_at(entry, "status") != word) object["lastTransitionTime"] = time_value(now);
      object["status"] = word;
      object["reason"] = reason;
      object["message"] = message;
      return;
    }
    list.push_back(json::Object{{"type", type},
                                {"status", word},
                                {"reason", reason},
                                {"message", message},
                                {"lastTransitionTime", time_value(now)}});
  }
  [[nodiscard]] std::string condition_status(std::string_view type) const {
    for (const auto& entry : json::array_at(status, "conditions")) {
      if (json::string_at(entry, "type") == type) return json::text_at(entry, "status");
    }
    return "";
  }
  [[nodiscard]] std::string phase() const { return json::text_at(status, "phase"); }
  void set_phase(std::string_view phase) { status.as_object()["phase"] = phase; }
  [[nodiscard]] bool paused() const {
    return json::bool_at(job, "spec", "runMode", "pause", "enabled");
  }
  [[nodiscard]] bool resumed() const { return condition_status("Paused") == "False"; }
};

void read_old(Sync& sync) {
  for (const auto& task : json::array_at(sync.status, "tasks")) {
    sync.restarts[json::text_at(task, "type")] =
        static_cast<int>(json::int_at(task, "restartCount"));
    for (const auto& entry : json::array_at(task, "replicas"))
      sync.old[json::text_at(entry, "name")] = entry;
  }
}

/// Secret, hostfile, service and PodGroup. True when all of them are there already.
bool ensure_parts(Sync& sync) {
  const auto before = sync.plan.actions.size();
  const auto ensure = [&](std::string_view kind, json::Value wanted) {
    if (!wanted.is_null() && sync.view.find(kind, name_of(wanted)) == nullptr)
      sync.plan.actions.push_back(create(kind, std::move(wanted)));
  };
  ensure(kinds::kSecret, ssh_secret(sync.job));
  if (sync.plan.actions.size() != before) sync.plan.actions.back().with_ssh_key = true;
  ensure(kinds::kConfigMap, hostfile_map(sync.job));
  ensure(kinds::kService, pod_service(sync.job));
  ensure(kinds::kT9kPodGroup, pod_group(sync.job));
  return sync.plan.actions.size() == before;
}

/// Containers as tasks[] shows them.
json::Array containers_of(const json::Value& pod) {
  json::Array result;
  for (const auto& container : json::array_at(pod, "status", "containerStatuses")) {
    const auto& state = json::at(container, "state");
    json::Object entry{{"name", json::at(container, "name")}};
    entry["state"] = json::at(state, "terminated").is_object() ? "Terminated"
                     : json::at(state, "running").is_object()  ? "Running"
                                                               : "Waiting";
    if (json::at(state, "terminated").is_object())
      entry["exitCode"] = json::int_at(state, "terminated", "exitCode");
    result.push_back(std::move(entry));
  }
  return result;
}

std::string replica_phase(const json::Value& pod) {
  const auto phase = phase_of(pod);
  if (phase == "Pending" || phase.empty())
    return json::string_at(pod, "spec", "nodeName").empty() ? "Creating" : "Pending";
  return phase;
}

/// tasks and aggregate. A replica without a pod shows as Creating, or as Deleted where none is
/// wanted any more.
void write_replicas(Sync& sync, const std::map<std::string, std::string>& without_pod) {
  std::map<std::string, int> counts;
  json::Array tasks;
  for (const std::string type : {"launcher", "worker"}) {
    json::Array entries;
    for (const auto& replica : sync.replicas) {
      if (replica.type != type) continue;
      json::Object entry{{"name", replica.name}};
      std::string phase = "Creating";
      if (replica.pod != nullptr) {
        phase = replica_phase(*replica.pod);
        entry["uid"] = uid_of(*replica.pod);
        entry["containers"] = containers_of(*replica.pod);
      } else if (const auto found = without_pod.find(replica.name); found != without_pod.end()) {
        phase = found->second;
      }
      entry["phase"] = phase;
      if (!entry.contains("containers")) entry["containers"] = json::Array{};
      ++counts[phase];
      entries.push_back(std::move(entry));
    }
    // The manual's sample calls the list "status", its reference "replicas": both are served.
    tasks.push_back(json::Object{{"type", type},
                                 {"restartCount", sync.restarts[type]},
                                 {"replicas", entries},
                                 {"status", entries}});
  }
  sync.status.as_object()["tasks"] = std::move(tasks);
  sync.status.as_object()["aggregate"] = json::Object{{"creating", counts["Creating"]},
                                                      {"pending", counts["Pending"]},
                                                      {"running", counts["Running"]},
                                                      {"succeeded", counts["Succeeded"]},
                                                      {"failed", counts["Failed"]},
                                                      {"unknown", counts["Unknown"]},
                                                      {"deleted", counts["Deleted"]}};
}

void delete_all(Sync& sync, bool workers_only) {
  for (const auto& replica : sync.replicas) {
    if (replica.pod != nullptr && !(workers_only && replica.type == "launcher"))
      delete_pod(sync.plan, *replica.pod);
  }
}

std::map<std::string, std::string> all_deleted(const Sync& sync) {
  std::map<std::string, std::string> result;
  for (const auto& replica : sync.replicas) result[replica.name] = "Deleted";
  return result;
}

void pause(Sync& sync, bool initialized) {
  delete_all(sync, false);
  if (initialized)
    sync.condition("Initialized", true, "-", "The job has been initialized successfully.");
  sync.condition("Paused", true, "Paused", "The job is paused.");
  if (sync.condition_status("Running") == "True")
    sync.condition("Running", false, "Paused", "The job is paused.");
  sync.set_phase("Paused");
  write_replicas(sync, all_deleted(sync));
}

void finish(Sync& sync, bool succeeded) {
  if (succeeded) {
    constexpr std::string_view kMessage = "The job has finished successfully.";
    sync.condition("Running", false, "Succeeded", kMessage);
    sync.condition("ReplicaFailure", false, "Finished", "The job has finished successfully");
    sync.condition("Completed", true, "Succeeded", kMessage);
    sync.condition("Failed", false, "Succeeded", kMessage);
    sync.plan.events.push_back({false, "Succeeded", std::string(kMessage)});
  } else {
    constexpr std::string_view kMessage = "The job exited with an error code.";
    sync.condition("Running", false, "Failed", kMessage);
    sync.condition("Completed", false, "Failed", kMessage);
    sync.condition("Failed", true, "Failed", kMessage);
    sync.plan.events.push_back({true, "Failed", std::string(kMessage)});
  }
  sync.set_phase(succeeded ? "Succeeded" : "Failed");
  std::map<std::string, std::string> gone;
  write_replicas(sync, gone);
}

/// After the end: workers go if asked for, and what has gone is shown so.
void clean_up(Sync& sync) {
  if (json::bool_at(sync.job, "spec", "runPolicy", "cleanUpWorkers")) delete_all(sync, true);
  write_replicas(sync, all_deleted(sync));
}

std::string why_lost(const json::Value& pod) {
  const auto reason = json::text_at(pod, "status", "reason");
  if (!reason.empty()) return reason;
  for (const auto& condition : json::array_at(pod, "status", "conditions")) {
    if (json::string_at(condition, "type") == "DisruptionTarget") return "Preempted";
  }
  for (const auto& container : json::array_at(pod, "status", "containerStatuses")) {
    const auto word = json::text_at(container, "state", "terminated", "reason");
    if (!word.empty()) return word;
  }
  return is_deleting(pod) ? "Deleted" : "Failed";
}

void create_missing(Sync& sync, bool resumed) {
  for (const auto& replica : sync.replicas) {
    if (replica.pod != nullptr) continue;
    // A pod that was there and is wanted again is a restart; the first one and one after a pause
    // are not.
    const auto found = sync.old.find(replica.name);
    const bool was_there = found != sync.old.end() && json::at(found->second, "uid").is_string() &&
                           json::string_at(found->second, "phase") != "Deleted";
    if (was_there) ++sync.restarts[replica.type];
    auto action = create(kinds::kPod,
                         replica.type == "launcher" ? launcher_pod(sync.job, resumed)
                                                    : worker_pod(sync.job, replica.index, resumed));
    action.events.push_back({false, "SuccessfulCreatePod", "Created pod: " + replica.name});
    action.failed_reason = "FailedCreatePod";
    action.failed_prefix = "Error creating: ";
    sync.plan.actions.push_back(std::move(action));
  }
}

struct Tally {
  int running = 0, lost = 0, unknown = 0;
  std::string reason, name, how;
};

Tally look(Sync& sync, bool whole) {
  Tally tally;
  for (const auto& replica : sync.replicas) {
    if (replica.pod == nullptr) {
      if (sync.old.contains(replica.name) && json::at(sync.old[replica.name], "uid").is_string() &&
          json::string_at(sync.old[replica.name], "phase") != "Deleted") {
        ++tally.lost;
        tally.reason = "Deleted";
        tally.name = replica.name;
      }
      continue;
    }
    const auto phase = phase_of(*replica.pod);
    tally.unknown += phase == "Unknown";
    const bool ended = phase == "Failed" || (phase == "Succeeded" && replica.type == "worker");
    if (ended || is_deleting(*replica.pod)) {
      ++tally.lost;
      tally.reason = why_lost(*replica.pod);
      tally.name = replica.name;
      tally.how = kube::how_pod_ended(*replica.pod);
      if (ended) delete_pod(sync.plan, *replica.pod);
    } else if (phase == "Running") {
      ++tally.running;
    }
  }
  if (whole && tally.lost > 0) delete_all(sync, false);
  return tally;
}

void run(Sync& sync, bool parts_ready) {
  const auto& launcher = sync.replicas[0];
  if (launcher.pod != nullptr && !is_deleting(*launcher.pod)) {
    const auto phase = phase_of(*launcher.pod);
    if (phase == "Succeeded") return finish(sync, true);
    if (phase == "Failed" && !was_preempted(*launcher.pod)) return finish(sync, false);
  }
  const bool coming_back = sync.condition_status("Paused") == "True";
  if (coming_back) sync.condition("Paused", false, "Resumed", "The job is resumed.");
  const bool requeue = wants_requeue(sync.job);
  const auto tally = look(sync, requeue);
  const bool draining = requeue && tally.lost > 0 &&
                        std::any_of(sync.replicas.begin(), sync.replicas.end(), [](const auto& r) {
                          return r.pod != nullptr;
                        });
  if (!draining) create_missing(sync, sync.resumed());
  force_delete_stuck(
      sync.plan, sync.view.controlled_by(kinds::kPod, uid_of(sync.job)), sync.settings, sync.now);

  const bool all_there = std::all_of(
      sync.replicas.begin(), sync.replicas.end(), [](const auto& r) { return r.pod != nullptr; });
  const bool all_running = tally.running == static_cast<int>(sync.replicas.size());
  if (parts_ready && all_there && sync.condition_status("Initialized").empty())
    sync.condition("Initialized", true, "-", "The job has been initialized successfully.");
  if (const auto error = sync.view.last_error(); !error.empty() && !all_there) {
    sync.condition("ReplicaFailure", true, "FailedCreate", error);
  } else if (tally.lost > 0) {
    sync.condition("ReplicaFailure",
                   true,
                   tally.reason,
                   fmt::format("Pod {} was lost{} and is created again.",
                               tally.name,
                               tally.how.empty() ? "" : " (" + tally.how + ")"));
  } else if (all_running || sync.condition_status("ReplicaFailure") != "True") {
    sync.condition("ReplicaFailure", false, "-", "All pods are running normally.");
  }
  const auto before = sync.phase();
  const bool launcher_runs = launcher.pod != nullptr && phase_of(*launcher.pod) == "Running" &&
                             !is_deleting(*launcher.pod);
  if (tally.unknown > 0) {
    sync.set_phase("Unknown");
  } else if (all_running) {
    sync.condition("Running", true, "-", "All pods are running normally.");
    sync.set_phase("Running");
  } else if (coming_back || before == "Resuming") {
    sync.set_phase("Resuming");
  } else if (!(before == "Running" && launcher_runs)) {
    sync.set_phase("Pending");
    if (sync.condition_status("Running") == "True")
      sync.condition("Running", false, "Restarting", "Pods are being created again.");
  }
  write_replicas(sync, {});
}

}  // namespace

Plan plan(const json::Value& original, const View& view, const Settings& settings, Time now) {
  Plan plan;
  if (is_deleting(original)) return plan;
  const json::Value job = usual_shape(original);
  if (const auto verdict = validate(original, nullptr); !verdict.errors.empty()) {
    plan.events.push_back({true, "FailedValidation", "MPIJob is not valid: " + verdict.text()});
    return plan;
  }
  Sync sync{
      job,
      view,
      settings,
      now,
      plan,
      json::at(job, "status").is_object() ? json::at(job, "status") : json::Value(json::Object{}),
      {},
      {},
      {}};
  read_old(sync);
  const auto add = [&](std::string name, std::string type, int index) {
    const auto* pod = view.find(kinds::kPod, name);
    if (pod != nullptr && !is_controlled_by(*pod, job)) refuse_foreign(plan, name, "Pod", "MPIJob");
    sync.replicas.push_back({std::move(name), std::move(type), index, pod});
  };
  add(launcher_name(job), "launcher", 0);
  for (int i = 0; i < worker_count(job); ++i) add(worker_name(job, i), "worker", i);
  if (!plan.error.empty()) return plan;
  const auto phase = sync.phase();
  if (phase == "Succeeded" || phase == "Failed") {
    clean_up(sync);
  } else {
    const bool parts_ready = ensure_parts(sync);
    sync.paused() ? pause(sync, parts_ready) : run(sync, parts_ready);
  }
  plan.status = std::move(sync.status);
  plan.status_anyway = !view.last_error().empty();
  return plan;
}

}  // namespace muster::controllers::t9k
