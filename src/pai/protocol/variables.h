/// The PAI_* variables that are known when a job is submitted. Those that name addresses and ports
/// are made in the pod (pai/runtime).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pai/protocol/job.h"

namespace muster::pai {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Of a task of `role`. Its index is told by the Framework's controller: "$(FC_TASK_INDEX)".
Variables variables(const Job& job, const Role& role);

}  // namespace muster::pai
