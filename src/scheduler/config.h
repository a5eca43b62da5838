/// Volcano's scheduler configuration file (`actions`, `tiers`) as an engine configuration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/model/config.h"

namespace muster::scheduler {

/// Errors name what is unknown and what would be right; nothing is applied then.
Result<engine::VolcanoConfig> parse_volcano_config(std::string_view yaml);

/// What the file asks for and nobody here does: plugins and actions that are accepted and have no
/// effect.
std::vector<std::string> without_effect(const engine::VolcanoConfig& config);

}  // namespace muster::scheduler
