/// From virtual leaves to physical ones: which free cells to bind, split as buddies.
///
/// Unbound virtual cells on the way up from the wanted leaves form trees of requests. The root of a
/// tree is a preassigned cell, to be given a free cell of its level, or hangs below a bound cell, to
/// be given a child of it. Siblings are given distinct candidates; candidates without opportunistic
/// users come first.
///
/// Made for one call; what it works with is kept from call to call to save allocations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cells/cells.h"
#include "engine/cells/groups.h"
#include "engine/cells/request.h"

namespace muster::engine::cells {

class Mapping {
 public:
  /// One virtual cell that wants a physical one; its children are those that want one below it.
  struct Vertex {
    Index cell = kNone;
    Index first_child = kNone;
    Index last_child = kNone;
    Index next = kNone;
    std::int32_t children = 0;
    Index physical = kNone;
  };
  /// Free cells by level.
  using FreeCells = std::vector<std::vector<Index>>;
  /// Requests below a virtual cell that is bound.
  struct Below {
    Index parent = kNone;
    /// A vertex without a cell, whose children are the requests.
    Index head = kNone;
  };
  /// The trees of requests.
  struct Requests {
    std::vector<Index> preassigned;
    std::vector<Below> below;
  };
  struct Scratch {
    std::vector<Vertex> vertices;
    /// By virtual cell; kNone between calls.
    std::vector<Index> vertex_of;
    FreeCells free;
    Requests requests;
    /// From a leaf up.
    std::vector<Index> path;
  };

  Mapping(const Cells& cells, const Suggested& suggested, Scratch& scratch)
      : cells_(cells), suggested_(suggested), scratch_(scratch) {}

  /// Finds the physical leaves for the virtual ones of the placement. Takes nothing yet.
  bool run(Index chain, Placement& placement);

 private:
  void add_requests(Index leaf, Requests& requests);
  bool map_preassigned(Index chain, const std::vector<Index>& vertices);
  bool map_below(const Below& below);
  Index add_vertex(Index virtual_cell);
  void append_child(Index parent, Index child);
  [[nodiscard]] bool usable(Index cell) const;
  bool fits(Index vertex, Index candidate);
  bool map_siblings(Index first_vertex, std::int32_t count, std::span<const Index> candidates);
  bool match_siblings(const std::vector<Index>& vertices, const std::vector<Index>& usable_cells);
  Index map_one(Index vertex, const std::vector<Index>& candidates);
  bool buddy(Index vertex, std::int32_t level, std::int32_t want, FreeCells& free);
  bool relaxed_buddy(Index vertex,
                     const Chain& chain,
                     std::int32_t want,
                     const std::vector<std::int32_t>& all_vc_free);
  [[nodiscard]] std::vector<std::int32_t> splittable_of(
      const Chain& chain, std::int32_t want, const std::vector<std::int32_t>& all_vc_free) const;
  [[nodiscard]] std::int64_t children_at(const Chain& chain, std::int32_t level) const;
  [[nodiscard]] std::vector<Index> open_largest(std::int32_t count,
                                                std::int32_t from,
                                                std::int32_t want);
  /// Takes `cell` out of the free cell of level `from` it lies in; its siblings on the way become
  /// free cells.
  void split_to(Index cell, std::int32_t from, FreeCells& free) const;

  const Cells& cells_;
  const Suggested& suggested_;
  Scratch& scratch_;
};

}  // namespace muster::engine::cells
