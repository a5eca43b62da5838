/// The namespaces that a pod's containers share: network, hostname, ipc, users, mounts.
///
/// They belong to a supervisor and may serve one pod after another: making a network and having the
/// kernel remove it again is more than half of what a short pod costs. A pod finds nothing of the
/// one before: all its processes are gone, its ipc objects with their namespace, its mounts as
/// pod_mounts.h says, and a network that could have been changed is not used again (who may change one:
/// supervisor.cc). The network gets another address, as a new one would, so that what was meant for the
/// old pod does not reach the next. Users stay the same ones: no file outside of what a pod takes with it
/// belongs to them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "agent/process/host_root.h"
#include "agent/process/messages.h"
#include "agent/process/pod_mounts.h"
#include "agent/process/wire.h"

namespace muster::agent::process {

class Namespaces {
 public:
  /// Takes the calling process's present mounts for the machine's.
  Namespaces();
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  /// Makes and enters them, the first time; with the network of `config`.
  Result<void> enter(const ShimConfig& config);
  [[nodiscard]] PodMounts& mounts() { return mounts_; }
  /// What may be used of it by the pod that follows one of `config` whose processes are all gone.
  struct Next {
    std::uint32_t address = 0;
    bool new_users = false;  // something of the one before may be left with its user namespace
  };
  /// Clears the rest for another pod. Takes a moment. False: something is left, such as a connection
  /// that the kernel still winds up; the process ends then.
  bool renew(const ShimConfig& config, const Next& next);

  /// Makes a pod's mounts and a container's root ahead, for when they are needed, with the folder that
  /// was taken back from the pod before, if one was. Once entered, with the machine's mounts.
  void make_ahead(const ShimConfig& config);
  void keep_folder(std::string folder) { used_folder_ = std::move(folder); }
  /// The one made ahead, if it suits; none: it is yet to be made. The next one is of this kind.
  HostRoot take_root(FolderKind kind);
  /// Whose files and processes those of the pod are: users of its own, if it has them.
  [[nodiscard]] Owner owner() const { return {first_id_, users_.get()}; }

 private:
  Result<void> make_users(const ShimConfig& config);
  void make_root(const RootPlan& plan);

  PodMounts mounts_;
  std::string machine_name_;
  bool entered_ = false;
  Fd users_;
  uid_t first_id_ = 0;
  Fd furniture_;  // /dev and /sys that every pod of this network can have; see host_root.h
  HostRoot ready_root_;
  std::optional<FolderKind> last_kind_;
  std::string used_folder_;
};

}  // namespace muster::agent::process
