/// apps/v1 StatefulSet: pods with names that stay.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::statefulset {

Plan plan(const json::Value& object, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::statefulset
