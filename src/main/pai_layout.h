/// `muster up --pai-layout DIR`: a cluster as OpenPAI's installer would have made it of these files.
#pragma once

#include <string>

#include "base/result.h"
#include "main/cluster.h"

namespace muster {

/// The password that the course and OpenPAI's documents print. Everybody knows it.
inline constexpr const char* kKnownPassword = "admin-password";

/// Nodes, first cells, first password and OpenPAI's port, where the command line does not say
/// otherwise. Writes what the installer writes, below the data folder.
Result<void> use_layout(const std::string& folder, ClusterOptions& options);

/// The installer's last words.
std::string layout_banner(const ClusterOptions& options, const std::string& kubeconfig);

}  // namespace muster
