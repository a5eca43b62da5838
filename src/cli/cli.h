/// The commands of arena, and Muster's own that talk to a cluster.
///
/// Called through a link named `arena` the program names itself so in its texts; everything else is
/// the same.
#pragma once

#include <string>
#include <vector>

#include "command/command.h"

namespace muster::cli {

/// Arena's commands. With --wait they exit with 3 for a job that failed and 4 for one that was not
/// ready in time.
command::Section jobs_section();

/// `hived tree`, `hived check` and `hived apply`.
command::Command hived_command();

/// `pai import`.
command::Command pai_command();

/// OpenPAI's paictl; `name`: as it was called.
command::Program paictl_program(std::string name);

/// What the launcher of an MPIJob runs: `kubectl exec POD [-c CONTAINER] -- COMMAND…`, with the
/// pod's own account. The exit code is the command's.
int run_as_kubectl(const std::vector<std::string>& words);

}  // namespace muster::cli
