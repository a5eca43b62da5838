/// What the API remembers of a container, for one that the runtime no longer knows. Pure.
#pragma once

#include "agent/pod/pod_status.h"

namespace muster::agent {

/// `status` is the container's in the pod's status. One that ran when last heard of is lost.
void recall(ContainerRecord& record, const json::Value& status, Time now);

}  // namespace muster::agent
