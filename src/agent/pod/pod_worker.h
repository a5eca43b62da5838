/// One pod's life on this node: from bound to gone.
///
/// A coroutine that looks at everything it knows (the pod's latest object, what its containers did,
/// the clock), does the next thing, publishes the status, and sleeps until something changes.
/// Nothing is remembered that cannot be found again after a restart: containers are adopted from
/// the runtime, counts from the status. Its code is in four files by subject: pod_worker.cc (the
/// life as a whole), pod_sandbox.cc (what containers share), pod_images.cc (what they are started
/// from), pod_containers.cc (one container).
///
/// It is one class of many small steps, because there is one thing to keep right: which step may
/// follow which. Every step asks where the pod is in its life (the flags below) and moves it on;
/// parts with a state of their own would have to ask each other the same. What has a state of its
/// own stands apart: PodState, PodTokens, HostPorts, PreparedVolumes, Prober.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/context.h"
#include "agent/network/host_ports.h"
#include "agent/pod/container_spec.h"
#include "agent/pod/pod_status.h"
#include "agent/pod/pod_tokens.h"
#include "agent/pod/volumes.h"

namespace muster::agent {

/// The RuntimeClass of pods that run on this machine's own files, whatever their image is called.
inline constexpr const char* kHostClass = "host";

class PodWorker : public std::enable_shared_from_this<PodWorker> {
 public:
  /// `on_finished` is called once the pod is gone from this node and from the API.
  PodWorker(Context& context,
            client::ObjectPtr pod,
            std::optional<SandboxStatus> adopted,
            std::function<void(const std::string& uid)> on_finished);

  void start();
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

  [[nodiscard]] const std::string& uid() const { return uid_; }
  [[nodiscard]] const client::ObjectPtr& pod() const { return pod_; }
  [[nodiscard]] const PodState& state() const { return state_; }
  [[nodiscard]] const PodDirectories& places() const { return places_; }
  [[nodiscard]] bool ended() const { return terminal_ || gone_; }
  /// Null when there is no such container.
  [[nodiscard]] const ContainerRecord* find_container(std::string_view name) const;

 private:
  friend class Prober;

  Task<void> run();
  Task<Duration> sync();
  Task<Duration> sync_deleting();
  Task<Duration> sync_terminal();
  Task<Duration> sync_running();
  Task<Duration> sync_inits(bool& blocked);
  void add_ephemerals();
  Task<Duration> sync_container(ContainerRecord& record);

  /// Looks whether the node can take the pod, as a kubelet does before it makes anything. True: it
  /// can. False: it has failed, or must wait until `retry_sandbox_at_`.
  bool admit();
  GpuAnswer take_gpus();
  /// It will run no more: nothing is started, and what it holds will be free.
  void end(std::string reason, std::string message);
  Task<Result<void>> make_sandbox();
  Task<Result<Objects>> fetch_objects();
  Task<Result<void>> refresh_volumes();
  void write_names();
  void open_host_ports();
  Task<void> apply_limits();

  /// True: `record.image` is what the container is to be started from. Otherwise it is on its way,
  /// or the record says why not.
  Task<bool> find_image(ContainerRecord& record);
  Task<void> fetch_image(std::shared_ptr<PodWorker> self, std::string name);
  Task<void> start_container(ContainerRecord& record);
  Task<Result<ContainerConfig>> container_config(const ContainerRecord& record,
                                                 const json::Value& spec);
  bool has_real_gpus() const;
  Task<bool> run_hook(ContainerRecord& record, std::string hook_name, Duration limit);
  void container_ended(ContainerRecord& record);
  Task<void> stop_container(std::shared_ptr<PodWorker> self,
                            std::string name,
                            Duration grace,
                            std::string message);
  /// Asks every running container to end; main ones first, then sidecars. True when none runs.
  bool stop_all(Duration grace);
  Task<void> tear_down();

  void publish();
  /// Its first status is written, or will be long in coming.
  void no_longer_starting();
  Task<void> patch_status(std::shared_ptr<PodWorker> self);
  Task<void> flush_status();

  ContainerRecord* find_record(std::string_view name);
  ContainerRecord* find_record_by_id(const std::string& container_id);
  const json::Value& spec_of(const ContainerRecord& record) const;
  [[nodiscard]] bool any_running() const;
  [[nodiscard]] Duration grace_left() const;
  void record_event(const ContainerRecord* record,
                    const char* type,
                    const char* reason,
                    const std::string& message);
  PodFacts facts() const;
  void wake() { wake_->notify(); }

  Context& context_;
  client::ObjectPtr pod_;
  const std::string uid_;
  const PodDirectories places_;
  std::function<void(const std::string&)> on_finished_;

  PodState state_;
  bool sandbox_known_ = false;  // the runtime has (or had) one that must be removed
  bool gone_ = false;           // the object no longer exists
  bool detached_ = false;
  bool finished_ = false;
  bool terminal_ = false;      // Succeeded or Failed; nothing is started any more
  bool was_terminal_ = false;  // already so when first seen: the published status stays as it is
  bool run_removed_ = false;   // the small files of its life
  bool volumes_stale_ = false;
  bool limits_stale_ = false;  // a resize came in
  bool add_ephemerals_wanted_ = false;
  bool killed_at_once_ = false;  // evicted: no grace
  Time retry_sandbox_at_;
  int sandbox_failures_ = 0;
  PreparedVolumes volumes_;
  Objects objects_;
  PodTokens tokens_;
  std::map<std::string, Duration> stopping_;  // container name -> grace it was given

  HostPorts host_ports_;

  json::Value published_;  // the status as last written (or read)
  bool patching_ = false;
  bool starting_ = false;  // counted in context_.starting
  Slots::Slot start_slot_;
  bool changed_ = false;  // since the status was last computed
  std::unique_ptr<Signal> wake_;
  std::unique_ptr<Signal> patched_;
};

}  // namespace muster::agent
