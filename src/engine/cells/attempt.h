/// Looks for a place for a gang that has none: in its pinned cell, in cells of the type that it asks
/// for, or in whatever its virtual cluster has.
///
/// Nothing is taken yet, with one exception: gangs that sit in the way and may be preempted lazily
/// lose their guarantee as soon as a place is found.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/cells/bookkeeping.h"
#include "engine/cells/cells.h"
#include "engine/cells/groups.h"
#include "engine/cells/mapping.h"
#include "engine/cells/request.h"
#include "engine/cells/search.h"

namespace muster::engine::cells {

class Attempt {
 public:
  /// What came of it.
  struct Outcome {
    bool found = false;
    Placement placement;
    std::string reason;  // why nothing was found
  };
  /// Memory that is used again by the next attempt.
  struct Scratch {
    Search::Scratch search;
    Mapping::Scratch mapping;
  };

  Attempt(Cells& cells,
          Groups& groups,
          const Suggested& suggested,
          Scratch& scratch,
          const ScheduleRequest& request,
          Index vc)
      : cells_(cells),
        groups_(groups),
        books_{cells, groups},
        suggested_(suggested),
        scratch_(scratch),
        request_(request),
        vc_(vc) {}

  /// An error: the request asks for what cannot be.
  Result<void> anywhere();
  [[nodiscard]] Outcome& outcome() { return out_; }

 private:
  Result<void> in_pinned();
  bool in_leaf_type(Index leaf_type);
  void in_chain(Index chain, const PinnedHolding* pinned);
  void pod_groups(Index chain, const PinnedHolding* pinned);
  bool map(Index chain);

  Cells& cells_;
  Groups& groups_;
  Bookkeeping books_;
  const Suggested& suggested_;
  Scratch& scratch_;
  const ScheduleRequest& request_;
  const Index vc_;
  Outcome out_;
};

}  // namespace muster::engine::cells
