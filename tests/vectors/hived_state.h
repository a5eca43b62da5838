/// What a scenario sees of the allocator: the dump that `inspect` and `cells` compare with.
#pragma once

#include <string>

#include "engine/cells/allocator.h"
#include "json/json.h"

namespace muster::vectors {

/// groups, physicalCells, virtualCells, opportunisticCells, internal; only cells that differ from
/// the default.
json::Value hived_state(const engine::cells::CellAllocator& allocator);
/// All cells built from the configuration.
json::Value hived_cells(const engine::cells::CellAllocator& allocator);
/// "" if `got` (of hived_cells) is what `want` says, else the first difference.
std::string cells_difference(const json::Value& want, const json::Value& got);

}  // namespace muster::vectors
