/// The scheduler as a component of the embedded cluster, and its settings from files for `muster
/// run` too.
#pragma once

#include <memory>
#include <string>

#include "main/components.h"
#include "scheduler/scheduler.h"

namespace muster {

/// Files named by flags; empty: not given.
struct SchedulerFiles {
  std::string scheduler_config;  // Volcano's configuration, or a policy of Muster's own
  std::string hived_config;      // HiveD's configuration
};
/// Adds what the files say. Errors name the file and the line.
Result<void> read_scheduler_files(const SchedulerFiles& files, scheduler::Options& options);

std::unique_ptr<Component> make_scheduler_component(ComponentContext& context);

}  // namespace muster
