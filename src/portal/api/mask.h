/// An object as everybody who may see the job may see it: without what looks like a secret. Pure.
#pragma once

#include "json/json.h"

namespace muster::portal {

/// Values of environment variables and of members whose name speaks of a secret become "******";
/// managed fields and what kubectl keeps for itself are left out.
json::Value masked(const json::Value& object);

}  // namespace muster::portal
