/// The data files that travel inside the binary: the table of Kubernetes' kinds, the bundled CRDs
/// and the roles of their users.
#pragma once

#include <string_view>
#include <vector>

namespace muster::kube {

std::string_view embedded_types();
std::string_view embedded_resources();
std::string_view embedded_descriptions();
/// roles/users.yaml, which deploy/ brings to other clusters.
std::string_view embedded_user_roles();
/// One YAML stream per file of crds/.
std::vector<std::string_view> embedded_crds();

}  // namespace muster::kube
