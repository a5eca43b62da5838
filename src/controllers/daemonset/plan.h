/// apps/v1 DaemonSet: one pod on each node that takes it.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::daemonset {

Plan plan(const json::Value& object, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::daemonset
