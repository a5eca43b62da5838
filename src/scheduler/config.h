/// Volcano's scheduler configuration file (`actions`, `tiers`) as an engine configuration.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/config.h"

namespace muster::scheduler {

/// Errors name what is unknown and what would be right; nothing is applied then.
Result<engine::VolcanoConfig> parse_volcano_config(std::string_view yaml);

}  // namespace muster::scheduler
