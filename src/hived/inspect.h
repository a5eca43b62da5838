/// The answers of HiveD's inspect API, in its shape.
#pragma once

#include <string>

#include "engine/cells/allocator.h"
#include "json/json.h"

namespace muster::hived {

json::Value inspect_group(const engine::cells::CellAllocator& allocator,
                          const engine::cells::Group& group);
/// {"items": […]}; null when there is none.
json::Value inspect_groups(const engine::cells::CellAllocator& allocator);
/// The top physical cells with their children.
json::Value inspect_physical(const engine::cells::CellAllocator& allocator);
/// The virtual cells of one virtual cluster, its opportunistic use as extra cells at the end.
json::Value inspect_virtual(const engine::cells::CellAllocator& allocator, engine::cells::Index vc);
/// Virtual cluster name -> its cells.
json::Value inspect_virtual_clusters(const engine::cells::CellAllocator& allocator);
/// {"physicalCluster": …, "virtualClusters": …}
json::Value inspect_cluster(const engine::cells::CellAllocator& allocator);

}  // namespace muster::hived
