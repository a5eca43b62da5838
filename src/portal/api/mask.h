/// An object as everybody who may see the job may see it: without what looks like a secret. Pure.
#pragma once

#include <cstdint>

#include "json/json.h"

namespace muster::portal {

/// Whether values of environment variables are shown at all. Where they are not, annotations are
/// not either: a Framework's say what its environment is.
enum class Environment : std::uint8_t { kShown, kHidden };

/// Values of environment variables and of members whose name speaks of a secret become "******";
/// managed fields and what kubectl keeps for itself are left out.
json::Value masked(const json::Value& object, Environment environment);

}  // namespace muster::portal
