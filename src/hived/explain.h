/// What one virtual cluster owns, who sits there, and what it uses beyond its own; for people.
#pragma once

#include <string>

#include "engine/cells/allocator.h"

namespace muster::hived {

/// Empty when there is no such virtual cluster.
std::string explain_virtual_cluster(const engine::cells::CellAllocator& allocator,
                                    const std::string& name);

}  // namespace muster::hived
