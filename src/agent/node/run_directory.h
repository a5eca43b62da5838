/// The small files of running pods (state, names, tokens, secrets) live in memory, as kubelet keeps
/// them: secrets never reach a disk, and a pod's two dozen files cost next to nothing to make.
///
/// As root the directory is a tmpfs of its own, which outlives the agent as its pods do; else a
/// plain directory. Blocking.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::agent {

/// Mounts it unless a run before has.
Result<void> prepare_run_directory(const std::string& path);
/// No pod may be left.
void remove_run_directory(const std::string& path);
/// Those whose agent was killed and whose data folder was deleted since.
void remove_orphaned_run_directories();

}  // namespace muster::agent
