/// A pod's volumes as directories of this machine.
///
/// Those made of the API's objects are written by volume_files.h; here is where each kind lies, and
/// what of it a container mounts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/pod/pod_env.h"
#include "agent/runtime.h"

namespace muster::agent {

struct Volume {
  std::string path;
  bool read_only = false;
  std::string host_type;  // of a hostPath
  bool of_host = false;
};

struct VolumeInputs {
  const json::Value* pod = nullptr;
  PodFacts facts;
  Objects objects;
  /// serviceAccountToken sources by audience ("" for the default).
  std::map<std::string, std::string> tokens;
  std::string pod_directory;     // emptyDir volumes go below it
  std::string run_directory;     // those made of the API's objects
  std::string hidden;            // the data folder, which no hostPath may lie in
  std::int64_t group = -1;       // fsGroup; -1: none
  std::string claims_directory;  // persistent volume claims without a volume of their own
};

struct PreparedVolumes {
  std::map<std::string, Volume> by_name;
  std::vector<MemoryVolume> memory;
};

/// Blocking; for a worker. Also called again when an object changed: only what differs is written.
Result<PreparedVolumes> prepare_volumes(const VolumeInputs& inputs);
/// The mounts of one container; subPathExpr sees `env`.
Result<std::vector<Mount>> container_mounts(const json::Value& container,
                                            const PreparedVolumes& volumes,
                                            const EnvList& env);

}  // namespace muster::agent
