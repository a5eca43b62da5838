/// apps/v1 Deployment: a ReplicaSet for each template, the newest taking over.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::deployment {

Plan plan(const json::Value& object, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::deployment
