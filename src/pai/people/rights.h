/// What groups give, in Kubernetes' words: for each virtual cluster a ClusterRole with the verb `use`
/// and a ClusterRoleBinding to the groups that grant it. So a person may use through kubectl what
/// they may use through REST, and nothing else, where queues are closed (docs/security.md).
#pragma once

#include <string>
#include <vector>

#include "client/client.h"
#include "pai/people/directory.h"

namespace muster::pai {

/// Makes, changes and removes what differs.
Task<Result<void>> write_rights(client::Client& client,
                                const Directory& directory,
                                std::vector<std::string> vcs);

}  // namespace muster::pai
