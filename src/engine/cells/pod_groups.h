/// Placement of a tree of pod groups (the second version of HiveD's annotations) inside a virtual
/// cluster, a pinned cell, or anywhere.
///
/// A pod asks for cells of a type, not for leaves; a group may ask to sit inside one cell of a type
/// (`withinOneCell`), and its child groups sit inside that cell. Larger groups are placed first. A
/// cell that turns out too small for a group is given up for the next one; pods are never moved once
/// they are placed beside each other in a cell.
///
/// Example: three groups of 3, 3 and 2 switches, each within a node, together within a rack: each
/// rack in turn is tried, and in it a node for each group.
///
/// Made for one call, and costs what the view has nodes: a rare request, so nothing is kept sorted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cells/cells.h"
#include "engine/cells/closest.h"
#include "engine/cells/groups.h"
#include "engine/model/cell_request.h"

namespace muster::engine::cells {

class PodGroupSearch {
 public:
  struct Where {
    Index chain = kNone;
    const View& view;
    /// All cells of the view by level.
    const std::vector<std::vector<Index>>& full;
    /// They are physical cells, not virtual ones.
    bool physical = false;
    /// For people.
    std::string name;
  };

  PodGroupSearch(const Cells& cells, const Where& where, const PodSpec& spec);

  /// Leaves for all pods of `out`: first beside everybody, then in place of lower ranks. False, with
  /// a reason: there are none.
  bool run(Placement& out, std::string& reason);

 private:
  bool place_group(const PodGroup& group, Index within);
  bool place_inside(const PodGroup& group, Index within);
  bool place_pods(std::int32_t member, Index within);
  /// Where the group may sit; `within` alone (kNone: everywhere) unless it asks for less.
  [[nodiscard]] std::vector<Index> candidates_of(const PodGroup& group, Index within) const;
  /// The cells that pods are placed in one by one: nodes, and what is smaller.
  [[nodiscard]] std::vector<Index> nodes_of(Index within) const;
  void add_inside(Index cell, std::int32_t level, std::vector<Index>& out) const;
  void load(Index node, std::int32_t level);
  void add_by_use(Index cell, std::int32_t level, std::vector<Index>& out) const;
  void take(const std::vector<Index>& cells, std::vector<Index>& leaves);
  void give_back(std::size_t until);
  bool insufficient();
  bool bad(Index cell);

  struct Seen {
    std::int32_t level;
    bool healthy;
    std::int32_t same, higher;
    std::int32_t priority;
    Index parent, leaf_begin, leaf_end;
    bool multi_node;
  };
  [[nodiscard]] Seen seen(Index cell) const;
  [[nodiscard]] std::vector<Index> children(Index cell) const;
  [[nodiscard]] const std::string& physical_address(Index cell) const;
  [[nodiscard]] std::vector<Index> ordered(std::vector<Index> list) const;
  /// In this chain; 0: it has no such type. Empty: leaf cells.
  [[nodiscard]] std::int32_t level_of(const std::string& type) const;
  [[nodiscard]] std::int64_t leaves_of(const PodGroup& group) const;

  const Cells& cells_;
  const Where& where_;
  const PodSpec& spec_;
  std::int32_t priority_ = kOpportunistic;
  Placement* out_ = nullptr;
  std::string reason_;
  /// By position of the leaf in its list; and the positions in the order they were taken.
  std::vector<char> is_taken_;
  std::vector<Index> taken_;
  std::vector<Index> load_;
  ClosestScratch closest_;
};

/// Fills in how many leaf cells each pod of a tree needs. An error: a type that is not in the
/// configuration, or is larger than a node. Nothing to do for a plain affinity group.
[[nodiscard]] Result<void> size_pod_groups(const Cells& cells, PodSpec& spec);

}  // namespace muster::engine::cells
