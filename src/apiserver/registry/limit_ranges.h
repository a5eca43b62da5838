/// LimitRange as Kubernetes' admission plugin applies it: defaults for containers, then bounds on
/// containers, on the pod as a whole and on claims.
#pragma once

#include <string>

#include "apiserver/core.h"

namespace muster::apiserver {

/// Fills in the defaults of every LimitRange of the namespace; true if there are any.
bool set_limit_defaults(Core& core, const std::string& ns, json::Value& pod);
/// Forbidden by the first LimitRange that the pod or claim breaks.
[[nodiscard]] Result<void> check_limits(Core& core,
                                        const Resource& resource,
                                        const std::string& ns,
                                        const json::Value& object);

}  // namespace muster::apiserver
