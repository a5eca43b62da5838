#include "agent/pod/pod_status.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::agent {
namespace {

using json::at;
using json::text;

/// Room for the members of a condition or of a container's status: a table that grows is made anew.
constexpr std::size_t kMembersMost = 12;

json::Value terminated(const ContainerStatus& status,
                       std::string_view scheme,
                       const json::Storage& memory) {
  json::Value state = json::Object(memory);
  json::Object& out = json::make_object(state, {"terminated"});
  out["exitCode"] = status.exit_code;
  out["reason"] = status.reason;
  if (!status.message.empty()) out["message"] = status.message;
  if (status.started) out["startedAt"] = format_time(status.started);
  out["finishedAt"] = format_time(status.finished);
  out["containerID"] = fmt::format("{}://{}", scheme, status.id);
  return state;
}

json::Value waiting(const std::string& reason,
                    const std::string& message,
                    const json::Storage& memory) {
  json::Value state = json::Object(memory);
  json::Object& out = json::make_object(state, {"waiting"});
  out["reason"] = reason;
  if (!message.empty()) out["message"] = message;
  return state;
}

const json::Value& spec_of(const json::Value& pod, const ContainerRecord& record) {
  for (const auto& container : json::array_at(pod, "spec", record.list())) {
    if (json::string_at(container, "name") == record.name) return container;
  }
  return json::null_value();
}

json::Value container_status(const json::Value& pod,
                             const PodState& state,
                             const ContainerRecord& record,
                             std::string_view scheme,
                             const json::Storage& memory) {
  const auto& spec = spec_of(pod, record);
  json::Value now_state(memory), last_state(json::Object{memory});
  if (!record.waiting_reason.empty()) {
    now_state = waiting(record.waiting_reason, record.waiting_message, memory);
    if (record.exited()) last_state = terminated(*record.current, scheme, memory);
  } else if (record.running()) {
    json::make(now_state, {"running", "startedAt"}) = format_time(record.current->started);
  } else if (record.exited()) {
    now_state = terminated(*record.current, scheme, memory);
  } else {
    const bool initializing = record.init || initialized(state);
    now_state = waiting(initializing && !(record.init && !state.sandbox_ready)
                            ? (record.init ? "PodInitializing" : "ContainerCreating")
                        : state.inits.empty() ? "ContainerCreating"
                                              : "PodInitializing",
                        "",
                        memory);
  }
  if (record.previous && last_state.as_object().empty())
    last_state = terminated(*record.previous, scheme, memory);
  json::Object out(memory);
  out.reserve(kMembersMost);
  out["name"] = record.name;
  out["state"] = std::move(now_state);
  out["lastState"] = std::move(last_state);
  out["ready"] =
      record.init && !record.sidecar ? record.succeeded() : record.running() && record.ready;
  out["restartCount"] = record.restarts;
  out["image"] = record.image_name.empty() ? text(at(spec, "image")) : record.image_name;
  out["imageID"] = !record.current            ? std::string()
                   : !record.image_id.empty() ? record.image_id
                                              : text(at(spec, "image"));
  if (record.current) out["containerID"] = fmt::format("{}://{}", scheme, record.current->id);
  out["started"] = record.running() && record.started;
  // A resize is refused on nodes that do not report these.
  if (record.running()) {
    const auto& resources = at(spec, "resources");
    if (const auto& requests = at(resources, "requests"); !requests.is_null())
      out["allocatedResources"] = requests;
    out["resources"] = resources.is_null() ? json::Value(json::Object{}) : resources;
  }
  json::Array mounts(memory);
  for (const auto& mount : json::array_at(spec, "volumeMounts")) {
    json::Object item(memory);
    item["name"] = at(mount, "name");
    item["mountPath"] = at(mount, "mountPath");
    if (json::bool_at(mount, "readOnly")) {
      item["readOnly"] = true;
      item["recursiveReadOnly"] = "Disabled";
    }
    mounts.push_back(std::move(item));
  }
  if (!mounts.empty()) out["volumeMounts"] = std::move(mounts);
  return out;
}

std::string names_where(const std::vector<ContainerRecord>& records,
                        bool (*pick)(const ContainerRecord&)) {
  std::string out;
  for (const auto& record : records) {
    if (pick(record)) out += (out.empty() ? "" : " ") + record.name;
  }
  return out;
}

struct Verdict {
  bool value;
  std::string reason, message;
};

Verdict initialized_verdict(const PodState& state, const std::string& phase) {
  if (phase == "Succeeded") return {true, "PodCompleted", ""};
  if (initialized(state)) return {true, "", ""};
  return {false,
          "ContainersNotInitialized",
          fmt::format("containers with incomplete status: [{}]",
                      names_where(state.inits, [](const ContainerRecord& r) {
                        return r.sidecar ? !(r.running() && r.started) : !r.succeeded();
                      }))};
}

Verdict ready_verdict(const PodState& state, const std::string& phase) {
  if (phase == "Succeeded") return {false, "PodCompleted", ""};
  if (phase == "Failed") return {false, "PodFailed", ""};
  const auto unready = [](const ContainerRecord& r) {
    return (!r.init || r.sidecar) && !(r.running() && r.ready && r.waiting_reason.empty());
  };
  auto names = names_where(state.inits, unready);
  const auto more = names_where(state.containers, unready);
  if (!more.empty()) names += (names.empty() ? "" : " ") + more;
  if (names.empty() && !state.containers.empty()) return {true, "", ""};
  return {false, "ContainersNotReady", fmt::format("containers with unready status: [{}]", names)};
}

const json::Value& find_condition(const json::Value& status, std::string_view type) {
  for (const auto& item : json::array_at(status, "conditions")) {
    if (json::string_at(item, "type") == type) return item;
  }
  return json::null_value();
}

void put_condition(json::Array& out,
                   const json::Value& before,
                   const char* type,
                   const Verdict& verdict,
                   const json::Value& generation,
                   Time now) {
  const char* status = verdict.value ? "True" : "False";
  json::Object item(out.storage());
  item.reserve(kMembersMost);
  item["type"] = type;
  item["status"] = status;
  item["lastProbeTime"] = nullptr;
  if (!generation.is_null()) item["observedGeneration"] = generation;
  const auto& old = find_condition(before, type);
  item["lastTransitionTime"] =
      json::string_at(old, "status") == status && !at(old, "lastTransitionTime").is_null()
          ? text(at(old, "lastTransitionTime"))
          : format_time(now);
  if (!verdict.reason.empty()) item["reason"] = verdict.reason;
  if (!verdict.message.empty()) item["message"] = verdict.message;
  out.push_back(std::move(item));
}

void put_address(json::Value& list, const std::string& address) {
  json::make(list.emplace_array().emplace_back(nullptr), {"ip"}) = address;
}

}  // namespace

bool initialized(const PodState& state) {
  return std::all_of(state.inits.begin(), state.inits.end(), [](const ContainerRecord& record) {
    return record.sidecar ? record.started || record.exited() : record.succeeded();
  });
}

bool restarts_after_exit(std::string_view restart_policy, const ContainerRecord& record) {
  if (record.ephemeral) return false;
  if (record.sidecar) return true;
  if (record.init) return restart_policy != "Never" && !record.succeeded();
  if (restart_policy == "Never") return false;
  return restart_policy != "OnFailure" || !record.succeeded();
}

std::string phase_of(const json::Value& pod, const PodState& state) {
  if (!state.reason.empty()) return "Failed";
  const auto policy = json::as_string(at(pod, "spec", "restartPolicy"), "Always");
  for (const auto& record : state.inits) {
    if (!record.sidecar && record.exited() && record.current->exit_code != 0 && policy == "Never")
      return "Failed";
  }
  if (!initialized(state)) return state.terminated ? "Failed" : "Pending";
  int waiting_count = 0, running = 0, stopped = 0, succeeded = 0;
  for (const auto& record : state.containers) {
    if (record.running()) {
      ++running;
    } else if (record.exited()) {
      ++stopped;
      if (record.succeeded()) ++succeeded;
    } else {
      ++waiting_count;
    }
  }
  if (waiting_count > 0) return state.terminated ? "Failed" : running > 0 ? "Running" : "Pending";
  if (running > 0) return "Running";
  if (state.terminated) return stopped == succeeded ? "Succeeded" : "Failed";
  if (policy == "Always") return "Running";
  if (stopped == succeeded) return "Succeeded";
  return policy == "Never" ? "Failed" : "Running";
}

json::Value pod_status(const json::Value& pod,
                       const PodState& state,
                       const json::Value& before,
                       std::string_view scheme,
                       Time now,
                       const json::Storage& memory) {
  const auto phase = phase_of(pod, state);
  const auto& generation = at(pod, "metadata", "generation");
  json::Object out(memory);
  out.reserve(kMembersMost);
  out["phase"] = phase;
  if (!generation.is_null()) out["observedGeneration"] = generation;
  if (!state.reason.empty()) out["reason"] = state.reason;
  if (!state.message.empty()) out["message"] = state.message;
  json::Array conditions(memory);
  conditions.reserve(5);
  put_condition(conditions,
                before,
                "PodReadyToStartContainers",
                {state.sandbox_ready, "", ""},
                generation,
                now);
  put_condition(
      conditions, before, "Initialized", initialized_verdict(state, phase), generation, now);
  const auto ready = ready_verdict(state, phase);
  auto gated = ready;
  if (ready.value) {
    for (const auto& gate : json::array_at(pod, "spec", "readinessGates")) {
      const auto type = json::string_at(gate, "conditionType");
      if (!kube::condition_true(pod, type))
        gated = {false,
                 "ReadinessGatesNotReady",
                 fmt::format("corresponding condition of pod readiness gate \"{}\" does not exist.",
                             type)};
    }
  }
  put_condition(conditions, before, "Ready", gated, generation, now);
  put_condition(conditions, before, "ContainersReady", ready, generation, now);
  put_condition(conditions, before, "PodScheduled", {true, "", ""}, generation, now);
  out["conditions"] = std::move(conditions);
  out["hostIP"] = state.host_ip;
  put_address(out["hostIPs"], state.host_ip);
  if (!state.pod_ip.empty()) {
    out["podIP"] = state.pod_ip;
    put_address(out["podIPs"], state.pod_ip);
  }
  if (state.start_time) out["startTime"] = format_time(state.start_time);
  json::Array inits(memory), containers(memory), ephemerals(memory);
  for (const auto& record : state.inits)
    inits.push_back(container_status(pod, state, record, scheme, memory));
  for (const auto& record : state.containers)
    containers.push_back(container_status(pod, state, record, scheme, memory));
  for (const auto& record : state.ephemerals)
    ephemerals.push_back(container_status(pod, state, record, scheme, memory));
  if (!inits.empty()) out["initContainerStatuses"] = std::move(inits);
  if (!ephemerals.empty()) out["ephemeralContainerStatuses"] = std::move(ephemerals);
  out["containerStatuses"] = std::move(containers);
  out["qosClass"] = kube::qos_class(pod);
  return out;
}

json::Value status_patch(const json::Value& pod, const json::Value& before, json::Value after) {
  json::Object changed(after.storage());
  changed.reserve(json::as_object(after).size());
  if (auto* members = after.if_object()) {
    for (auto& member : *members) {
      if (!json::equal(at(before, member.key()), member.value()))
        changed.emplace(member.key(), std::move(member.value()));
    }
  }
  if (changed.empty()) return nullptr;
  // Conditions are merged by type: what an older one said and this one does not must be taken away
  // by name.
  if (changed.contains("conditions")) {
    for (auto& item : changed["conditions"].as_array()) {
      for (const auto* field : {"reason", "message"}) {
        if (!item.as_object().contains(field)) item.as_object()[field] = nullptr;
      }
    }
  }
  json::Value patch = json::Object(changed.storage());
  json::make(patch, {"metadata", "uid"}) = text(at(pod, "metadata", "uid"));
  patch.get_object()["status"] = std::move(changed);
  return patch;
}

}  // namespace muster::agent
