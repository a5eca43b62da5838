/// A /dev of a container's own: the few devices every program may use, and of the GPUs those that
/// were given to it. What is not there cannot be opened, whatever the environment says.
#pragma once

#include <vector>

#include "base/result.h"

namespace muster::agent::process {

/// Only where there is something to hide is a /dev of its own worth its mounts.
bool machine_has_gpus();

/// Replaces /dev of the calling process's mount namespace. /dev/shm, /dev/mqueue and terminals stay
/// what they are.
Result<void> mount_devices(const std::vector<int>& gpus, bool console);

}  // namespace muster::agent::process
