/// What the containers of a pod share: GPUs, objects of the API, volumes, the sandbox, names, ports.
#pragma once

#include <string>

#include "agent/network/host_ports.h"
#include "agent/pod/pod_life.h"
#include "agent/pod/pod_tokens.h"
#include "agent/pod/volumes.h"

namespace muster::agent {

class PodSandbox {
 public:
  explicit PodSandbox(PodLife& life) : life_(life), host_ports_(life.context.sockets) {}

  /// The runtime has one of an agent before this one.
  void adopt() { known_ = true; }
  /// Looks whether the node can take the pod, as a kubelet does before it makes anything. True: it
  /// can. False: it has failed, or must wait until `retry_at()`.
  bool admit();
  /// False: to be tried again at `retry_at()`; an event says why.
  Task<bool> make();
  [[nodiscard]] Time retry_at() const { return retry_at_; }
  /// What it was given before, or what there is.
  GpuAnswer take_gpus();

  Task<Result<void>> refresh_volumes();
  /// That has succeeded once. Not so at first for a sandbox that was found.
  [[nodiscard]] bool knows_volumes() const { return knows_volumes_; }
  /// When the first of its tokens wants to be renewed; zero: none does.
  [[nodiscard]] Time renew_at() const { return tokens_.renew_at(); }
  [[nodiscard]] const Objects& objects() const { return objects_; }
  void forget_objects() { objects_.clear(); }
  [[nodiscard]] const PreparedVolumes& volumes() const { return volumes_; }

  void open_ports();
  void close_ports() { host_ports_.close(); }
  /// After a resize: what runs gets the limits that the spec now has.
  Task<void> apply_limits();
  /// Its containers have ended: ports are closed, the runtime's sandbox goes.
  Task<void> remove();
  /// Nothing of the pod remains on this machine.
  Task<void> tear_down();

 private:
  Task<Result<void>> try_make();
  Task<Result<Objects>> fetch_objects();

  PodLife& life_;
  bool known_ = false;  // the runtime has (or had) one that must be removed
  Time retry_at_;
  int failures_ = 0;
  PreparedVolumes volumes_;
  bool knows_volumes_ = false;
  Objects objects_;
  PodTokens tokens_;
  HostPorts host_ports_;
};

}  // namespace muster::agent
