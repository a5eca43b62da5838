/// Pods under a container runtime that speaks CRI (runtime.v1), as kubelets drive it: containerd
/// with runc. For pods of a RuntimeClass, or for all of a node (`muster up --runtime cri`).
///
///   agent ──gRPC over a unix socket──▶ containerd ──▶ shim of a pod ──▶ runc ──▶ containers
///     ◀── events of tasks; a look at everything every 10 s ──┘
///
/// What runs belongs to containerd: it outlives us, and start() finds it again by our label. Files
/// of a pod that the runtime binds lie where the process runtime has them. See docs/agent.md.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/runtime.h"
#include "net/loop/loop.h"

namespace muster::agent::cri {

struct CriOptions {
  std::string socket;     // the runtime's
  std::string directory;  // the agent's; what is ours carries it as a label
  std::string hidden;     // the data folder: no pod sees it
  bool own = false;       // our own containerd: the sandbox image is imported
};

std::unique_ptr<Runtime> make_cri_runtime(net::Loop& loop, CriOptions options);

/// A file that says that pods of an agent may be with its container runtime: whoever starts next
/// must ask it.
std::string mark_of(const std::string& agent_directory);

/// Whether a private containerd could run pods: runc and the plugins for networks are installed.
/// The sentence says what is missing; empty: nothing.
std::string cri_missing();

}  // namespace muster::agent::cri
