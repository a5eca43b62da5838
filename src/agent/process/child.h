/// The child's side of starting a container or an exec: from a fresh clone of the shim to execve.
#pragma once

#include <string>

#include "agent/process/user_range.h"
#include "agent/process/wire.h"

namespace muster::agent::process {

/// What the child shall use as its three streams; for a terminal all are the slave.
struct ChildStreams {
  int in = -1, out = -1, err = -1;
  bool tty = false;
};

/// The pod's name and its memory volumes, in the shim itself, which is in the pod's namespaces.
Result<void> prepare_pod(const ShimConfig& config);

/// How a command's process is to be.
struct Becoming {
  ChildStreams streams;
  Owner owner;
  bool dies_with_parent = false;
  bool one_user = false;  // the user namespace has one, whose number alone can be another
  std::string closed;     // a folder that it cannot open; empty: none
};

/// User, rights, environment, directory, streams, execve. Returns only on failure, with what to tell the
/// user.
std::string become(const ContainerConfig& config,
                   const std::vector<std::string>& args,
                   const Becoming& how);

/// Becomes root of the owner's user namespace, with every capability that counts there; nothing to
/// do for the machine's own. False: errno says why.
bool enter_users(const Owner& owner);

/// The first process of a container: waits for `main_pid`, passes signals on, collects orphans; the
/// exit code.
int run_init(int main_pid);

}  // namespace muster::agent::process
