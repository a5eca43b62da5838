/// Endpoints of a Service with a selector: the addresses of its pods, ready ones and others apart.
#pragma once

#include "controllers/common/objects.h"
#include "controllers/common/plan.h"

namespace muster::controllers::endpoints {

/// `pods`: those that the selector matches, ordered by name. `found`: the Endpoints there now, or
/// nullptr. No action when it is as it should be.
Plan plan(const json::Value& service, const Objects& pods, const json::Value* found);
/// The ports of the service, as numbers of this pod.
json::Array ports_of(const json::Value& service, const json::Value& pod);

}  // namespace muster::controllers::endpoints
