/// The file of --scheduler-config: Volcano's scheduler configuration (`actions`, `tiers`), or a
/// policy of Muster's own with the keys of `muster sim` (`placement`, `backfill`, …), so that what
/// was simulated can be run as it is.
#pragma once

#include <string_view>

#include "base/result.h"
#include "scheduler/live_config.h"

namespace muster {

/// Errors name the key, what was wanted and what was found.
Result<scheduler::Config> parse_scheduler_config(std::string_view yaml);

}  // namespace muster
