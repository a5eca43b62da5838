/// What a pod's status says, from what its containers did. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/image/image_file.h"
#include "agent/runtime.h"
#include "json/json.h"
#include "json/memory.h"

namespace muster::agent {

struct ContainerRecord {
  std::string name;
  bool init = false;
  bool ephemeral = false;  // added to a running pod for a person to look around; starts once
  bool sidecar = false;    // an init container with restartPolicy Always
  int restarts = 0;
  std::optional<ContainerStatus> current;   // the attempt that runs or ended last
  std::optional<ContainerStatus> previous;  // the one before
  std::string waiting_reason;               // set: waits, whatever `current` says
  std::string waiting_message;
  bool started = false;  // startup probe passed, or none
  bool ready = false;    // readiness probe passes, or none
  int backoff_s = 0;     // next wait after a crash
  Time retry_at;         // not before
  bool hook_failed = false;
  std::optional<Image> image;  // for the next attempt; absent: to be found, or on its way
  bool image_on_its_way = false;
  /// Of the attempt that runs or ended last, where the image was pulled: its full name, its digest.
  std::string image_name, image_id;

  /// Where its spec is.
  [[nodiscard]] const char* list() const {
    return init ? "initContainers" : ephemeral ? "ephemeralContainers" : "containers";
  }
  [[nodiscard]] bool running() const {
    return current && current->state == ContainerState::kRunning;
  }
  [[nodiscard]] bool exited() const { return current && current->state == ContainerState::kExited; }
  [[nodiscard]] bool succeeded() const { return exited() && current->exit_code == 0; }
};

struct PodState {
  std::vector<ContainerRecord> inits;
  std::vector<ContainerRecord> containers;
  std::vector<ContainerRecord> ephemerals;
  bool sandbox_ready = false;
  std::string pod_ip;
  std::string host_ip;
  Time start_time;
  std::string reason;  // DeadlineExceeded, Evicted …: the pod failed whatever its containers did
  std::string message;
  bool terminated = false;  // all that will ever run has run
};

/// Every init container is done (or, for a sidecar, started).
bool initialized(const PodState& state);
/// May the container start again after it ended?
bool restarts_after_exit(std::string_view restart_policy, const ContainerRecord& record);
std::string phase_of(const json::Value& pod, const PodState& state);

/// The whole status; `before` is the one last published, for transition times. `id_scheme` is
/// "process". It lies in the given memory.
json::Value pod_status(const json::Value& pod,
                       const PodState& state,
                       const json::Value& before,
                       std::string_view id_scheme,
                       Time now,
                       const json::Storage& memory = {});

/// What differs between two statuses as a strategic merge patch {"status": …}, in the memory of the
/// newer one; null when nothing does.
json::Value status_patch(const json::Value& pod, const json::Value& before, json::Value after);

}  // namespace muster::agent
