/// How T9k ends what has been in a queue for too long: the pod's owner is told to stop, not the
/// pod, so that it does not come back. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "controllers/common/objects.h"

namespace muster::controllers::t9k {

/// The queue of a pod, by its label; empty: none of T9k's.
std::string queue_of(const json::Value& pod);

/// When the pod's time is over, waiting included. None without a limit, and for whom there is none:
/// what has ended or is about to, the pods of DaemonSets, and those that the cluster cannot do
/// without.
std::optional<Time> time_over(const json::Value& pod, const json::Value& queue);

/// What makes an owner stop: which one, and the merge patch. `uid` is that of the pod's controller,
/// which a Deployment stands above.
struct Stop {
  std::string api_version, kind, plural, name, uid;
  json::Value patch;
};
/// Of the highest owner that is known here; none: the pod has no such owner.
std::optional<Stop> stop_of_owner(const json::Value& pod);

}  // namespace muster::controllers::t9k
