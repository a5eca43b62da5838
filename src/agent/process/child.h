/// The child's side of starting a container or an exec: from a fresh clone of the shim to execve.
#pragma once

#include <string>

#include "agent/process/wire.h"

namespace muster::agent::process {

/// What the child shall use as its three streams; for a terminal all are the slave.
struct ChildStreams {
  int in = -1, out = -1, err = -1;
  bool tty = false;
};

/// Pod-wide mounts and names, in the shim itself after unshare: hostname, /dev/pts, /dev/shm,
/// memory volumes.
Result<void> prepare_pod(const ShimConfig& config);

/// User, rights, environment, directory, streams, execve. Returns only on failure, with what to tell the
/// user.
std::string become(const ContainerConfig& config,
                   const std::vector<std::string>& args,
                   const ChildStreams& streams);

/// The first process of a container: waits for `main_pid`, passes signals on, collects orphans; the
/// exit code.
int run_init(int main_pid);

}  // namespace muster::agent::process
