/// The file of --scheduler-config: Volcano's scheduler configuration (`actions`, `tiers`), or a
/// policy of Muster's own with the keys of `muster sim` (`placement`, `backfill`, …), so that what
/// was simulated can be run as it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/model/config.h"
#include "engine/model/model.h"

namespace muster {

struct SchedulerConfig {
  engine::Config engine;
  engine::BackfillMode backfill =
      engine::BackfillMode::kReservation;   // of queues that do not say it themselves
  std::vector<std::string> without_effect;  // what the file asks for and nobody here does
};

/// Errors name the key, what was wanted and what was found.
Result<SchedulerConfig> parse_scheduler_config(std::string_view yaml);

}  // namespace muster
