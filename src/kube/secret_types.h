/// Types of Secrets that mean something to Muster itself.
#pragma once

#include <string_view>

namespace muster::kube::secret_types {

/// Logins for registries: today's form, and the one of old Docker clients.
inline constexpr std::string_view kDockerConfigJson = "kubernetes.io/dockerconfigjson";
inline constexpr std::string_view kDockerConfig = "kubernetes.io/dockercfg";

}  // namespace muster::kube::secret_types
