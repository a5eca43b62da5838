/// The mounts that a pod's containers share: its terminals and its shared memory, beside the machine's
/// own mounts. Made ahead while a supervisor waits for a pod, and kept for the next pod where nothing of
/// the one before is left in them. Belongs to a supervisor, which has one thread.
#pragma once

#include "agent/fd.h"
#include "agent/process/mounts.h"
#include "agent/process/user_range.h"
#include "agent/process/wire.h"
#include "base/result.h"

namespace muster::agent::process {

class PodMounts {
 public:
  /// Takes the calling process's present mounts for the machine's.
  PodMounts();

  /// For a pod to come, whose users these will be.
  void make_ahead(const ShimConfig& config, const Owner& owner);
  /// Those made ahead, if they are as new ones would be; else new ones.
  Result<void> enter(const ShimConfig& config, const Owner& owner);
  /// Back to the machine's. What the pod mounted itself (`mounted_more`) or left goes with it.
  bool leave(bool mounted_more);

  /// Can be polled for POLLPRI: the machine's mounts have changed. Whoever waits forgets those made ahead
  /// then: they show what is no longer there, and keep it busy.
  [[nodiscard]] int changes() const { return table_.get(); }
  void forget() { ready_.reset(); }

 private:
  bool machine_changed() const;

  MountsOfCaller machine_;
  Fd table_;  // the list of the machine's mounts
  Fd ready_;
  uid_t ready_for_ = 0;
  bool inside_ready_ = false;
};

}  // namespace muster::agent::process
