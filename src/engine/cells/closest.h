/// Cells that sit close together: of some candidates, those below the lowest common ancestor.
///
/// Example: leaves 1, 4, 5, 6 of a node with switches {0 1} {2 3} {4 5} {6 7} are candidates. Two of
/// them are 4 and 5 (one switch); three are 4, 5, 6 (one socket).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/cells/cells.h"

namespace muster::engine::cells {

/// What picking works with, kept from call to call to save allocations.
struct ClosestScratch {
  std::vector<Index> ancestors;
  /// By cell; zero between calls.
  std::vector<std::int32_t> counts;
};

/// Moves `count` of the candidates (cells of one level inside `top`) to `out`: the first set, in
/// their order, whose lowest common ancestor is as low as any. `counts` must have room for all cells.
/// False, with nothing moved: there are too few.
template <typename ParentOf>
bool pick_closest(std::vector<Index>& candidates,
                  Index top,
                  std::int32_t count,
                  ClosestScratch& scratch,
                  ParentOf parent_of,
                  std::vector<Index>& out) {
  const auto at = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  const std::size_t n = candidates.size();
  if (n < at(count)) return false;
  // Climb level by level until some cell holds enough candidates, and among those take the cell of
  // the earliest candidate.
  std::vector<Index>& ancestors = scratch.ancestors;
  ancestors = candidates;
  Index chosen = kNone;
  while (true) {
    for (const Index a : ancestors) ++scratch.counts[at(a)];
    for (const Index a : ancestors) {
      if (scratch.counts[at(a)] >= count) {
        chosen = a;
        break;
      }
    }
    for (const Index a : ancestors) scratch.counts[at(a)] = 0;
    if (chosen != kNone || ancestors[0] == top) break;
    for (Index& a : ancestors) a = parent_of(a);
  }
  if (chosen == kNone) return false;
  std::int32_t taken = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (taken < count && ancestors[i] == chosen) {
      out.push_back(candidates[i]);
      ++taken;
    } else {
      candidates[kept++] = candidates[i];
    }
  }
  candidates.resize(kept);
  return true;
}

}  // namespace muster::engine::cells
