/// The cell allocator's tables: what must hold after every event, computed only from the tree of cells and the gangs.
#pragma once

#include <string>

#include "engine/cells/allocator.h"

namespace muster::dst {

/// "" or what is wrong.
/// Derived state (counts, priorities, states, lists, counters) equals a recount of the tree.
std::string check_books(const engine::cells::CellAllocator& allocator);
/// No leaf has two users; every gang sits whole or not at all.
std::string check_leaves(const engine::cells::CellAllocator& allocator);
/// Every virtual cluster can still get every cell it was promised, by carving what is free.
std::string check_promises(const engine::cells::CellAllocator& allocator);
/// Two allocators that hold the same pods count the same (used after a rebuild with all nodes
/// healthy).
std::string check_same(const engine::cells::CellAllocator& a,
                       const engine::cells::CellAllocator& b);

}  // namespace muster::dst
