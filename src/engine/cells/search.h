/// Placement of a gang on the nodes of a view: inside a virtual cluster, a pinned cell, or anywhere.
///
/// Made for one call; what it works with is kept from call to call to save allocations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cells/cells.h"
#include "engine/cells/closest.h"
#include "engine/cells/groups.h"
#include "engine/cells/request.h"

namespace muster::engine::cells {

class Search {
 public:
  struct Scratch {
    std::vector<Index> candidates;
    ClosestScratch physical;
    ClosestScratch virt;
  };
  struct Where {
    View& view;
    /// Its entries are physical cells, not virtual ones.
    bool physical = false;
    /// Whose view it is; null: everybody's.
    const std::string* vc = nullptr;
    /// For people.
    [[nodiscard]] std::string name() const {
      return vc == nullptr ? "physical cluster" : "VC " + *vc;
    }
  };

  Search(Cells& cells, const Suggested& suggested, Scratch& scratch)
      : cells_(cells), suggested_(suggested), scratch_(scratch) {}

  /// Leaves for all pods of `out`: first beside everybody, then in place of lower ranks. False, with
  /// a reason: there are none.
  bool run(const Where& where, std::int32_t priority, Placement& out, std::string& reason);

 private:
  void refresh(const Where& where);
  bool pass(const Where& where, std::int32_t priority, Placement& out, std::string& reason);
  bool pick_leaves(bool physical, Index entry_cell, std::int32_t count, std::vector<Index>& out);
  void load_candidates(bool physical, Index entry_cell, std::int32_t priority);

  Cells& cells_;
  const Suggested& suggested_;
  Scratch& scratch_;
};

}  // namespace muster::engine::cells
