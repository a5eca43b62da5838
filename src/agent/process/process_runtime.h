/// Pods as processes of this machine. See docs/agent.md.
///
///   agent ──sandbox──▶ keeper ──fork──▶ supervisor of a pod ──clone──▶ containers
///     ◀──────────── one socket a pod: start, stop, exec, attach; events ────────┘
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/runtime.h"
#include "net/loop/loop.h"

namespace muster::agent::process {

struct ProcessRuntimeOptions {
  std::string directory;                // state; sandboxes are found again in <directory>/run/<uid>
  std::string shim_binary;              // started as `<binary> agent-shim <directory>`
  std::string hidden;                   // the folder that no pod may see; empty: none
  std::vector<std::string> show, hide;  // of the machine's files, see HostFiles
  bool images = false;                  // some containers are of images
  bool isolate = true;                  // false: as if not root
  bool map_users = true;                // root of a pod is nobody on this machine
  std::size_t warm_sandboxes = 16;      // made ahead
  std::size_t warm_sandboxes_max = 64;  // with those that served a pod
};

std::unique_ptr<Runtime> make_process_runtime(net::Loop& loop, ProcessRuntimeOptions options);

}  // namespace muster::agent::process
