/// Which virtual cell a physical one answers: the way back from cells in use to the promises of
/// virtual clusters, for gangs that are found running and for those whose cell was given away.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/cells/cells.h"
#include "engine/cells/groups.h"

namespace muster::engine::cells {

class Promises {
 public:
  explicit Promises(Cells& cells) : cells_(cells) {}

  /// The virtual leaf for a leaf of the gang below a cell of that type; kNone: its virtual cluster
  /// has no such promise left.
  [[nodiscard]] Index find(const Group& group,
                           const PodSpec& spec,
                           Index leaf,
                           const std::string& preassigned_type);
  /// The virtual leaf if it can still be bound, else another of its kind; kNone: there is none.
  [[nodiscard]] Index renew(Index leaf, Index virtual_leaf, std::int32_t priority);

 private:
  /// What is looked for: a cell of that level among those that a virtual cluster owns.
  struct Wanted {
    const std::vector<Index>& list;
    /// Of the list, when it is not that of a pinned cell.
    const RootList* roots = nullptr;
    std::int32_t level = 0;
    std::int32_t priority = 0;
    Index vc = kNone;
    bool healthy = true;
  };

  [[nodiscard]] Index inverse(Index physical_cell, const Wanted& wanted);
  [[nodiscard]] Index inverse_at_level(Index physical_cell, const Wanted& wanted);
  [[nodiscard]] Index choose(std::span<const Index> list,
                             const RootList* roots,
                             std::int32_t priority) const;

  Cells& cells_;
};

}  // namespace muster::engine::cells
