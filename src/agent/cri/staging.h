/// Mounts of a pod that the container runtime is to bind, made ready on this machine. What a pod
/// may have tampered with (a subPath's links) or may not see (the data folder inside of a hostPath)
/// is resolved and covered here, and bound from a place of our own; the runtime gets no name that
/// somebody else could change. Blocking.
#pragma once

#include <string>
#include <vector>

#include "agent/runtime.h"
#include "base/result.h"

namespace muster::agent::cri {

/// Below <run_directory>/mounts.
class Staging {
 public:
  Staging(std::string run_directory, std::string hidden);

  /// tmpfs volumes, and the shared memory of the pod's containers at <run_directory>/mounts/shm.
  Result<void> mount_memory(const std::vector<MemoryVolume>& volumes) const;
  [[nodiscard]] std::string shared_memory() const { return place_ + "/shm"; }
  /// The same mounts as the runtime may bind them, those of `container` in a folder of its own.
  Result<std::vector<Mount>> prepare(const std::string& container,
                                     const std::vector<Mount>& mounts) const;
  /// Everything of this pod, its volumes in memory (below its own directory) too.
  void clear(const std::string& pod_directory) const;

 private:
  std::string place_;
  std::string hidden_;
};

/// Unmounts whatever is mounted at or below a folder.
void unmount_below(const std::string& folder);

}  // namespace muster::agent::cri
