/// Volumes that are made of the API's objects: ConfigMap, Secret, downwardAPI, projected.
///
/// They are written the way Kubernetes does it: files are links into `..data`, which is a link to
/// the current generation, so that a reader sees an update whole or not at all. Names of files come
/// from users: each is checked, and is written below a descriptor that it cannot leave.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/pod/volumes.h"

namespace muster::agent {

struct VolumeFile {
  std::string path;  // relative, no ".."
  std::string content;
  int mode = 0644;
};

/// The files of a volume, or nullopt when it is not of a kind made of files. Pure.
Result<std::optional<std::vector<VolumeFile>>> volume_files(const json::Value& volume,
                                                            const VolumeInputs& inputs);
/// Replaces the files of `directory` at once. Does nothing when they are the same.
Result<void> write_files(const std::string& directory,
                         const std::vector<VolumeFile>& files,
                         std::int64_t group = -1);

}  // namespace muster::agent
