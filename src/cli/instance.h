/// Which instance of a job a command works on.
#pragma once

#include "cli/job.h"

namespace muster::cli {

/// The named one, else the chief, else the only one; nullptr when there are several and none leads.
Result<const Instance*> choose_instance(const Job& job, const std::string& name);
/// What to print when the caller must choose.
std::string instance_listing(const Job& job);

}  // namespace muster::cli
