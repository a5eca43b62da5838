/// What a configuration of cells says about the cluster below it: for callers that have no nodes to
/// look at (simulation).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/model/cell_config.h"
#include "engine/model/model.h"

namespace muster::engine::cells {

struct Layout {
  std::vector<engine::Node> nodes;  // with their devices, nothing else limited
  std::vector<std::string> virtual_clusters;
};

/// Fails when the configuration is wrong; the error says where.
Result<Layout> layout_of(const Config& config, const std::string& device_resource);

}  // namespace muster::engine::cells
