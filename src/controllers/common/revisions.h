/// ControllerRevisions: the templates that a StatefulSet or DaemonSet had, which `kubectl rollout
/// history` and `undo` read.
#pragma once

#include <set>
#include <string>

#include "controllers/common/plan.h"

namespace muster::controllers {

/// Makes the revision NAME-HASH of the owner's present template if there is none, counts it as the
/// newest if an older one comes back, and drops those beyond spec.revisionHistoryLimit that no pod
/// has. `hashes_in_use` are those of the living pods.
void sync_revisions(Plan& plan,
                    const json::Value& owner,
                    const View& view,
                    const std::string& hash,
                    const std::set<std::string>& hashes_in_use);

}  // namespace muster::controllers
