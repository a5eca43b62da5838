/// Which nodes a daemon's pod belongs on: node selector, required node affinity, taints.
#pragma once

#include "json/json.h"

namespace muster::controllers::daemonset {

struct Verdict {
  bool should_run = false;
  /// A running pod: a NoSchedule taint that came later does not drive it away.
  bool may_stay = false;
};
/// `pod_spec` with the tolerations that daemons have.
Verdict judge(const json::Value& pod_spec, const json::Value& node);

/// Adds the tolerations that every daemon has: it must run where others may not (yet).
void add_tolerations(json::Value& pod);

}  // namespace muster::controllers::daemonset
