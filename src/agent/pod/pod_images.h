/// What a pod's containers are started from: this machine's own files, a folder, or an image that has
/// to be pulled first.
#pragma once

#include <memory>
#include <string>

#include "agent/pod/pod_life.h"
#include "agent/pod/pod_status_writer.h"

namespace muster::agent {

class PodImages {
 public:
  PodImages(PodLife& life, PodStatusWriter& status) : life_(life), status_(status) {}

  /// True: `record.image` is what the container is to be started from. Otherwise it is on its way,
  /// or the record says why not.
  Task<bool> find(ContainerRecord& record);

 private:
  Task<void> fetch(std::shared_ptr<void> keep, std::string name);

  PodLife& life_;
  PodStatusWriter& status_;
};

}  // namespace muster::agent
