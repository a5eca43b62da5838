/// The supervisor of one pod, or of several one after the other: a small process that outlives the
/// agent.
///
/// It lives in the pod's network, ipc, uts and (its own) mount namespaces, starts containers in pid
/// and mount namespaces below that, writes their logs, remembers how they ended in `state` of the
/// pod's directory, and answers the agent: over the socket it was born with, and over `shim.sock`
/// in the pod's directory for an agent that was started later. Single-threaded; a pod's containers
/// die with it. When a pod is over and the agent wants it so, the process waits for another one,
/// in the same network and with nothing else left of the first; it ends when the agent does.
#pragma once

#include "agent/process/messages.h"
#include "agent/process/wire.h"

namespace muster::agent::process {

/// Runs until told to end; the process's exit code.
int supervise(ShimConfig config, Fd control);
/// The same for a pod that is not there yet: only the network of `config` counts. Says "warm" on
/// `control` once that is set up, waits there for the whole configuration, and ends if none comes.
int supervise_later(const ShimConfig& config, Fd control);

}  // namespace muster::agent::process
