/// The EndpointSlices of a Service: the same addresses as its Endpoints, a hundred to a slice, with
/// their conditions.
#pragma once

#include "controllers/common/objects.h"
#include "controllers/common/plan.h"

namespace muster::controllers::endpoints {

/// `pods`: those that the selector matches, ordered by name. `found`: the slices that the service
/// owns now.
Plan plan_slices(const json::Value& service, const Objects& pods, const Objects& found);

}  // namespace muster::controllers::endpoints
