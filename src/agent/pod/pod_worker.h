/// One pod's life on this node: from bound to gone.
///
/// A coroutine that looks at everything it knows (the pod's latest object, what its containers did,
/// the clock), does the next thing, publishes the status, and sleeps until something changes.
/// Nothing is remembered that cannot be found again after a restart: containers are adopted from
/// the runtime, counts from the status.
///
/// What is done is done by its parts, each with a state of its own: PodSandbox (what containers
/// share), PodImages (what they are started from), PodContainers (one container's way) and
/// PodStatusWriter. What they all know is PodLife.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/pod/pod_containers.h"
#include "agent/pod/pod_images.h"
#include "agent/pod/pod_life.h"
#include "agent/pod/pod_sandbox.h"
#include "agent/pod/pod_status_writer.h"

namespace muster::agent {

class PodWorker : public std::enable_shared_from_this<PodWorker> {
 public:
  /// `on_finished` is called once the pod is gone from this node and from the API.
  PodWorker(Context& context,
            client::ObjectPtr pod,
            std::optional<SandboxStatus> adopted,
            std::function<void(const std::string& uid)> on_finished);

  void start();
  /// Says what has happened until now, or gives up at this moment of the monotonic clock. For as long as
  /// somebody holds the worker.
  Task<void> say_until(Duration deadline) { return status_.write_until(deadline); }
  void update(client::ObjectPtr pod);
  /// The object is gone: what still runs is killed at once.
  void removed();
  void on_event(const RuntimeEvent& event);
  /// A ConfigMap or Secret of the pod's namespace changed.
  void object_changed(const ObjectRef& ref);
  /// It took more of this machine than it may: it fails, and what runs is killed at once.
  void evict(const std::string& message);
  /// Leaves everything running and ends the coroutines.
  void detach();

  [[nodiscard]] const std::string& uid() const { return life_.uid; }
  [[nodiscard]] const client::ObjectPtr& pod() const { return life_.pod; }
  [[nodiscard]] const PodState& state() const { return life_.state; }
  [[nodiscard]] const PodDirectories& places() const { return life_.places; }
  [[nodiscard]] bool ended() const { return life_.terminal || life_.gone; }
  /// Null when there is no such container.
  [[nodiscard]] const ContainerRecord* find_container(std::string_view name) const {
    return life_.find(name);
  }

 private:
  void recall_containers(const std::optional<SandboxStatus>& adopted);
  void add_ephemerals();
  Task<void> run();
  Task<Duration> sync();
  Task<Duration> sync_deleting();
  Task<Duration> sync_terminal();
  Task<Duration> sync_running();
  Task<Duration> sync_inits(bool& blocked);
  Task<Duration> sync_container(ContainerRecord& record);

  PodLife life_;
  std::function<void(const std::string&)> on_finished_;
  PodStatusWriter status_;
  PodSandbox sandbox_;
  PodImages images_;
  PodContainers containers_;

  bool finished_ = false;
  bool run_removed_ = false;  // the small files of its life
  bool volumes_stale_ = false;
  bool limits_stale_ = false;  // a resize came in
  bool add_ephemerals_wanted_ = false;
  bool killed_at_once_ = false;  // evicted: no grace
};

}  // namespace muster::agent
