/// Nobody gives away more than they have: whoever writes a role must hold everything in it (or the
/// verb `escalate` on it), and whoever writes a binding everything in the role it names (or the
/// verb `bind` on that role). Members of system:masters, and so Muster's own components, may do
/// everything already.
#pragma once

#include <string>

#include "apiserver/core.h"

namespace muster::apiserver {

/// True for roles and bindings.
[[nodiscard]] bool grants_rights(const Resource& resource);

/// Forbidden in Kubernetes' words. `live` is null on create.
[[nodiscard]] Result<void> check_escalation(Core& core,
                                            const Resource& resource,
                                            const std::string& ns,
                                            const json::Value& next,
                                            const json::Value* live,
                                            const User& user);

}  // namespace muster::apiserver
