/// What is written on a pod whose node is no more: nobody will report its end, so its status says
/// it here.
#pragma once

#include "base/time.h"
#include "json/json.h"

namespace muster::controllers::podgc {

/// Whether that was written on it.
bool is_lost(const json::Value& pod);

/// The merge patch of the status of this very pod: phase Failed unless it had ended, not Ready, and a
/// DisruptionTarget condition.
json::Value lost_status(const json::Value& pod, Time now);

}  // namespace muster::controllers::podgc
