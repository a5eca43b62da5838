/// A /dev of a container's own: the few devices every program may use, its pod's terminals and
/// shared memory, and of the GPUs those that were given to it. What is not there cannot be opened,
/// whatever the environment says.
#pragma once

#include <string>
#include <vector>

#include "agent/fd.h"
#include "agent/runtime.h"
#include "base/result.h"

namespace muster::agent::process {

/// What all containers have, mounted at `root`/dev.
Result<void> make_devices(int root);
/// Of these, the message queues of the caller's ipc namespace.
void attach_queues(int root);

/// Whether something is to be in a container's /dev that has no place there yet.
bool wants_own_devices(const ContainerConfig& config);

/// A copy of a device file, or of a mount, that is to appear below /dev.
struct DeviceMount {
  std::string name;  // below /dev
  bool directory = false;
  Fd fd;
};
/// What is the pod's (pts, shm) and what the container was given; before the root changes.
Result<std::vector<DeviceMount>> pod_devices(const std::vector<Device>& given);
/// After it has. `console`: the container has a terminal.
Result<void> attach_devices(const std::vector<DeviceMount>& devices, bool console);

}  // namespace muster::agent::process
