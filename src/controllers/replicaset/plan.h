/// apps/v1 ReplicaSet: so many pods of one template.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::replicaset {

Plan plan(const json::Value& object, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::replicaset
