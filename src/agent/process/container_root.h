/// What a container sees of files: its root with everything mounted in it.
#pragma once

#include "agent/process/host_root.h"
#include "agent/process/wire.h"

namespace muster::agent::process {

struct RootWish {
  bool any_processes = false;  // /proc shows a pid namespace of its own or of its pod
  Fd ready;                    // a host root made ahead for this owner, whose folder has moved in
  Owner owner;
};

/// Called as first process of the container's namespaces; with a root made ahead it enters that one's
/// mounts. The working directory is made. The targets of mounts whose files show no owners.
Result<std::vector<std::string>> prepare_container(const ShimConfig& shim,
                                                   const ContainerConfig& config,
                                                   RootWish wish);

}  // namespace muster::agent::process
