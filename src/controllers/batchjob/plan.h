/// batch/v1 Job: as many pods as it wants to succeed, one by one or side by side.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::batchjob {

Plan plan(const json::Value& object, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::batchjob
