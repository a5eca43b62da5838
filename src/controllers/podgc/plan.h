/// What is written on a pod whose node is no more: nobody will report its end, so its status says
/// it here.
#pragma once

#include <string_view>

#include "base/time.h"
#include "json/json.h"

namespace muster::controllers::podgc {

/// Whether that was written on it.
bool is_lost(const json::Value& pod);

/// Whether the pod goes with that node. What was begun is finished, also when the node is back: a pod
/// that was said to have failed would stay as it is for ever, in the way of its successor. Another pod
/// of its name, which may be anywhere or nowhere yet, stays.
bool goes_with(const json::Value& pod, std::string_view node, bool node_is_there);

/// The merge patch of the status of this very pod: phase Failed unless it had ended, not Ready, and a
/// DisruptionTarget condition.
json::Value lost_status(const json::Value& pod, Time now);

}  // namespace muster::controllers::podgc
