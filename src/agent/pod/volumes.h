/// A pod's volumes as directories of this machine.
///
/// ConfigMap, Secret, downwardAPI and projected volumes are written the way Kubernetes does it:
/// files are links into `..data`, which is a link to the current generation, so that a reader sees
/// an update whole or not at all.
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
};

struct VolumeInputs {
  const json::Value* pod = nullptr;
  PodFacts facts;
  Objects objects;
  /// serviceAccountToken sources by audience ("" for the default).
  std::map<std::string, std::string> tokens;
  std::string pod_directory;     // emptyDir volumes go below it
  std::string run_directory;     // those made of the API's objects
  std::int64_t group = -1;       // fsGroup; -1: none
  std::string claims_directory;  // persistent volume claims without a volume of their own
};

/// A file of a projected kind of volume.
struct VolumeFile {
  std::string path;  // relative, no ".."
  std::string content;
  int mode = 0644;
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
/// The files of a volume, or nullopt when it is not of a kind made of files. Pure.
Result<std::optional<std::vector<VolumeFile>>> volume_files(const json::Value& volume,
                                                            const VolumeInputs& inputs);
/// Replaces the files of `directory` at once. Does nothing when they are the same.
Result<void> write_files(const std::string& directory,
                         const std::vector<VolumeFile>& files,
                         std::int64_t group = -1);

}  // namespace muster::agent
