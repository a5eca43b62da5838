/// The data files that travel inside the binary: the table of Kubernetes' kinds and the bundled CRDs.
#pragma once

#include <string_view>
#include <vector>

namespace muster::kube {

std::string_view embedded_types();
std::string_view embedded_resources();
std::string_view embedded_descriptions();
/// One YAML stream per file of crds/.
std::vector<std::string_view> embedded_crds();

}  // namespace muster::kube
