#include "engine/cells/layout.h"

#include <algorithm>

#include "engine/cells/cells.h"

namespace muster::engine::cells {

Result<Layout> layout_of(const Config& config, const std::string& device_resource) {
  auto cells = Cells::build(config, true);
  if (!cells) return fail(cells.error());
  Layout out;
  for (const VirtualCluster& vc : cells->vcs) out.virtual_clusters.push_back(vc.name);
  for (const Node& node : cells->nodes) {
    engine::Node made;
    made.name = node.name;
    for (const Index leaf : node.leaves) {
      const PhysicalCell& cell = cells->p(leaf);
      // A node may stand in several chains; its devices are the same ones.
      const bool known =
          std::any_of(made.devices.begin(), made.devices.end(), [&](const Device& device) {
            return device.index == cell.leaf_index;
          });
      if (!known) made.devices.push_back({cell.leaf_index, cells->type(cell.type).name, true});
    }
    made.allocatable = {{"pods", 1'000'000},
                        {device_resource, static_cast<std::int64_t>(made.devices.size())}};
    out.nodes.push_back(std::move(made));
  }
  return out;
}

}  // namespace muster::engine::cells
