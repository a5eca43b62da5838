/// YAML from strangers: as parse_yaml_one, and kTooLarge when the text has more than `values_max`
/// values, found out while it is read.
#pragma once

#include <cstddef>
#include <string_view>

#include "json/json.h"

namespace muster::json {

Result<Value> parse_yaml_one(std::string_view text, std::size_t values_max);

}  // namespace muster::json
