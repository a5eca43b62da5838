/// A task of a Framework reads that Framework, to learn where the other tasks are. It needs no role
/// for it, and no role would do: one for a namespace would show the environments of all other
/// Frameworks there.
#pragma once

#include "apiserver/auth/rbac.h"

namespace muster::apiserver {

/// True if a pod's own token asks to read the Framework that the pod was made for: its ConfigMap
/// controls the pod, and is controlled by it.
bool reads_own_framework(Core& core, const User& user, const Attributes& attributes);

}  // namespace muster::apiserver
