#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/meta.h"
#include "kube/table/table.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Value;

struct Counts {
  std::int64_t restarts = 0;
  Time last_restart;
  int ready = 0;
  int total = 0;
};

Time time_at(const Value& value) {
  const std::string_view text = json::as_string(value);
  if (text.empty()) return {};
  const auto time = parse_time(text);
  return time ? *time : Time{};
}

std::string ended(const Value& terminated) {
  const std::string reason = json::text_at(terminated, "reason");
  if (!reason.empty()) return reason;
  const std::int64_t signal = json::int_at(terminated, "signal");
  if (signal != 0) return fmt::format("Signal:{}", signal);
  return fmt::format("ExitCode:{}", json::int_at(terminated, "exitCode"));
}

bool restartable(const Value& pod, std::string_view name) {
  for (const Value& container : json::array_at(pod, "spec", "initContainers")) {
    if (json::string_at(container, "name") == name)
      return json::string_at(container, "restartPolicy") == "Always";
  }
  return false;
}

void count_restarts(const Value& status, Counts& counts) {
  counts.restarts += json::int_at(status, "restartCount");
  counts.last_restart = std::max(
      counts.last_restart, time_at(json::at(status, "lastState", "terminated", "finishedAt")));
}

/// The first init container that is not done names the pod's state; true when there is one.
bool initializing(const Value& pod, std::string& reason, Counts& counts) {
  const Array& statuses = json::array_at(pod, "status", "initContainerStatuses");
  const std::size_t total = json::array_at(pod, "spec", "initContainers").size();
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const Value& status = statuses[i];
    const Value& state = json::at(status, "state");
    const bool sidecar = restartable(pod, json::string_at(status, "name"));
    count_restarts(status, counts);
    const Value& terminated = json::at(state, "terminated");
    const Value& waiting = json::at(state, "waiting");
    if (terminated.is_object() && json::int_at(terminated, "exitCode") == 0) continue;
    if (sidecar && json::bool_at(status, "started")) {
      if (json::bool_at(status, "ready")) ++counts.ready;
      continue;
    }
    if (terminated.is_object()) {
      reason = "Init:" + ended(terminated);
    } else if (waiting.is_object() && !json::string_at(waiting, "reason").empty() &&
               json::string_at(waiting, "reason") != "PodInitializing") {
      reason = "Init:" + json::text_at(waiting, "reason");
    } else {
      reason = fmt::format("Init:{}/{}", i, total);
    }
    return true;
  }
  return false;
}

bool ready_condition(const Value& pod) { return condition_true(pod, "Ready"); }

void walk_containers(const Value& pod, std::string& reason, Counts& counts) {
  const Array& statuses = json::array_at(pod, "status", "containerStatuses");
  bool running = false;
  std::string failed;
  for (std::size_t i = statuses.size(); i-- > 0;) {
    const Value& status = statuses[i];
    const Value& state = json::at(status, "state");
    count_restarts(status, counts);
    const Value& waiting = json::at(state, "waiting");
    const Value& terminated = json::at(state, "terminated");
    if (waiting.is_object() && !json::string_at(waiting, "reason").empty()) {
      reason = json::text_at(waiting, "reason");
    } else if (terminated.is_object()) {
      reason = ended(terminated);
      if (json::int_at(terminated, "exitCode") != 0) failed = reason;
    } else if (json::bool_at(status, "ready") && json::at(state, "running").is_object()) {
      running = true;
      ++counts.ready;
    }
  }
  if (reason != "Completed") return;
  if (running && ready_condition(pod))
    reason = "Running";
  else if (!failed.empty())
    reason = failed;  // since 1.35 a failure shows through the containers that completed
  else if (running)
    reason = "NotReady";
}

std::string status_and_counts(const Value& pod, Counts& counts) {
  const Value& status = json::at(pod, "status");
  std::string reason = json::text_at(status, "phase");
  const std::string own = json::text_at(status, "reason");
  if (!own.empty()) reason = own;
  if (json::string_at(condition(pod, "PodScheduled"), "reason") == "SchedulingGated")
    reason = "SchedulingGated";
  counts.total = static_cast<int>(json::array_at(pod, "spec", "containers").size());
  for (const Value& container : json::array_at(pod, "spec", "initContainers")) {
    if (json::string_at(container, "restartPolicy") == "Always") ++counts.total;
  }
  Counts init = counts;
  const bool starting = initializing(pod, reason, init);
  const std::string_view phase = json::string_at(status, "phase");
  if (starting && !condition_true(pod, "Initialized")) {
    counts = init;
  } else {
    // Restarts of the containers; sidecars count on both sides of READY.
    counts.ready = init.ready;
    if (counts.total > static_cast<int>(json::array_at(pod, "spec", "containers").size())) {
      for (const Value& one : json::array_at(status, "initContainerStatuses")) {
        if (restartable(pod, json::string_at(one, "name"))) count_restarts(one, counts);
      }
    }
    if (starting) reason = own.empty() ? std::string(phase) : own;
    walk_containers(pod, reason, counts);
  }
  if (is_deleting(pod)) {
    if (own == "NodeLost")
      reason = "Unknown";
    else if (phase != "Failed" && phase != "Succeeded")
      reason = "Terminating";
  }
  return reason;
}

std::string readiness_gates(const Value& pod) {
  const Array& gates = json::array_at(pod, "spec", "readinessGates");
  if (gates.empty()) return "<none>";
  std::size_t met = 0;
  for (const Value& gate : gates) {
    if (condition_true(pod, json::string_at(gate, "conditionType"))) ++met;
  }
  return fmt::format("{}/{}", met, gates.size());
}

}  // namespace

std::string pod_status_text(const Value& pod) {
  Counts counts;
  return status_and_counts(pod, counts);
}

json::Array pod_cells(const Value& pod, Time now) {
  Counts counts;
  const std::string status = status_and_counts(pod, counts);
  std::string restarts = std::to_string(counts.restarts);
  if (counts.restarts > 0 && counts.last_restart)
    restarts += fmt::format(" ({} ago)", age_of(counts.last_restart, now));
  const Value& state = json::at(pod, "status");
  std::string ip = json::text_at(state, "podIP");
  const Array& ips = json::array_at(state, "podIPs");
  if (!ips.empty()) ip = json::text_at(ips[0], "ip");
  return {name_of(pod),
          fmt::format("{}/{}", counts.ready, counts.total),
          status,
          restarts,
          age_of(creation_time(pod), now),
          or_none(std::move(ip)),
          or_none(json::text_at(pod, "spec", "nodeName")),
          or_none(json::text_at(state, "nominatedNodeName")),
          readiness_gates(pod)};
}

json::Value pod_row_conditions(const Value& pod) {
  const std::string_view phase = json::string_at(pod, "status", "phase");
  if (phase != "Succeeded" && phase != "Failed") return nullptr;
  const std::string_view message =
      phase == "Succeeded" ? "The pod has completed successfully." : "The pod failed.";
  return Array{json::Object{
      {"type", "Completed"}, {"status", "True"}, {"reason", phase}, {"message", message}}};
}

}  // namespace muster::kube
