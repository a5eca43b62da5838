/// What a container sees of files: its root with everything mounted in it.
#pragma once

#include "agent/process/wire.h"

namespace muster::agent::process {

struct RootWish {
  bool any_processes = false;  // /proc shows a pid namespace of its own or of its pod
  Fd ready;                    // a root made ahead (host_root.h); none: it is made now
};

/// Called as first process of the container's namespaces. The working directory is made.
Result<void> prepare_container(const ShimConfig& shim,
                               const ContainerConfig& config,
                               RootWish wish);

}  // namespace muster::agent::process
