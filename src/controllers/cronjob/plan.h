/// batch/v1 CronJob: a Job at each time of its schedule.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::cronjob {

Plan plan(const json::Value& object, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::cronjob
