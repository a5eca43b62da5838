#include "agent/pod/pod_life.h"

#include <fmt/core.h>

#include <algorithm>

#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::agent {

using json::at;
using json::text;
using std::chrono::seconds;

PodLife::PodLife(Context& shared, client::ObjectPtr object)
    : context(shared),
      pod(std::move(object)),
      uid(kube::uid_of(*pod)),
      places(pod_directories(shared.directory, uid)),
      terminal(kube::pod_finished(*pod)),
      changed(shared.loop.make_signal()) {}

bool PodLife::over() const { return detached || gone || kube::is_deleting(*pod); }

ContainerRecord* PodLife::find(std::string_view name) {
  for (auto* records : {&state.inits, &state.containers, &state.ephemerals}) {
    for (auto& record : *records) {
      if (record.name == name) return &record;
    }
  }
  return nullptr;
}

ContainerRecord* PodLife::find_by_id(const std::string& container_id) {
  for (auto* records : {&state.inits, &state.containers, &state.ephemerals}) {
    for (auto& record : *records) {
      if (record.current && record.current->id == container_id) return &record;
    }
  }
  return nullptr;
}

const json::Value& PodLife::spec_of(const ContainerRecord& record) const {
  for (const auto& container : json::array_at(*pod, "spec", record.list())) {
    if (json::string_at(container, "name") == record.name) return container;
  }
  return json::null_value();
}

bool PodLife::any_running() const {
  const auto running = [](const ContainerRecord& record) { return record.running(); };
  return std::any_of(state.inits.begin(), state.inits.end(), running) ||
         std::any_of(state.containers.begin(), state.containers.end(), running) ||
         std::any_of(state.ephemerals.begin(), state.ephemerals.end(), running);
}

std::vector<std::string> PodLife::root_folders() const {
  std::vector<std::string> out;
  for (const auto* records : {&state.inits, &state.containers, &state.ephemerals}) {
    for (const auto& record : *records) out.push_back(root_folder(places.disk, record.name));
  }
  return out;
}

PodFacts PodLife::facts() const {
  return {state.pod_ip, state.host_ip, context.node_cpu_milli, context.node_memory_bytes};
}

void PodLife::event(const ContainerRecord* record,
                    const char* type,
                    const char* reason,
                    const std::string& message) {
  auto& events = context.events_of(text(at(*pod, "spec", "nodeName")));
  if (record == nullptr) {
    events.record(*pod, type, reason, message);
  } else {
    events.record_field(
        *pod, fmt::format("spec.{}{{{}}}", record->list(), record->name), type, reason, message);
  }
}

Duration PodLife::grace_left() const {
  const auto grace = json::as_int(at(*pod, "metadata", "deletionGracePeriodSeconds"), 30);
  const auto asked = kube::deletion_time(*pod) - seconds(grace);
  const auto left = seconds(grace) - (context.loop.now() - asked);
  // deletionTimestamp has whole seconds, so up to one is lost by rounding.
  return std::clamp<Duration>(left + seconds(1), Duration::zero(), seconds(grace));
}

void PodLife::end(std::string reason, std::string message) {
  state.reason = std::move(reason);
  state.message = std::move(message);
  terminal = true;
  context.gpus.leave(uid);
}

}  // namespace muster::agent
