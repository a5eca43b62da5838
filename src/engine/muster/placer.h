/// Places one gang: whole or not at all.
///
/// Pods go one by one to the best node for their class; what State has bound is undone when the
/// least number of members does not fit. A group of groups, or a gang with topology levels, is
/// tried in one domain after the other, the tightest that can hold it first.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/ids.h"
#include "engine/muster/desk.h"
#include "engine/muster/fragmentation.h"
#include "engine/muster/gang.h"
#include "engine/muster/reservations.h"
#include "engine/muster/waiting.h"

namespace muster::engine {

/// What came of trying to place a gang.
struct Outcome {
  bool placed = false;
  /// Bound by State, in order; empty when nothing was placed.
  std::vector<PodId> pods;
  /// A reservation was in the way on some node.
  bool held = false;
};

/// Where one pod should go.
struct Place {
  /// Invalid: nowhere.
  NodeId node;
  /// Position of the device that a share should go to; -1: whichever State picks.
  std::int32_t device = -1;
  /// A reservation was in the way on some node that was looked at.
  bool held = false;
};

class Placer {
 public:
  Placer(Desk& desk, const Waiting& waiting, const Reservations& reservations)
      : desk_(desk), state_(*desk.state), waiting_(waiting), reservations_(reservations) {}

  /// Binds the gang, or the groups of its family that can start together.
  [[nodiscard]] Outcome place(const Members& members);
  [[nodiscard]] Place pick_node(PodId pod, GangId gang);

 private:
  /// Nodes among which must be chosen; null: all.
  using Domain = const std::vector<NodeId>*;

  bool place_members(const Members& members, Domain domain, Outcome& outcome);
  void place_surplus(const Members& members, Outcome& outcome);
  bool place_level(GangId group,
                   std::size_t level,
                   const std::vector<NodeId>& nodes,
                   Outcome& outcome);
  bool place_inside(GangId group, const std::vector<NodeId>& nodes, Outcome& outcome);
  bool place_children(GangId group, const std::vector<NodeId>& nodes, Outcome& outcome);
  [[nodiscard]] std::vector<std::vector<NodeId>> domains_of(GangId group,
                                                            std::size_t level,
                                                            const std::vector<NodeId>& nodes,
                                                            const std::vector<PodId>& tasks);
  [[nodiscard]] std::vector<PodId> first_tasks_below(GangId group) const;
  /// When the gang ends if it starts now; kNever: nobody knows, or it does not matter. The same for
  /// all its members, and looks at each of them: asked for once a gang.
  [[nodiscard]] Time end_of(GangId gang) const;
  [[nodiscard]] Place pick_node(PodId pod, GangId gang, Time end, Domain domain);
  [[nodiscard]] Place scan(PodId pod, GangId gang, Domain domain);
  [[nodiscard]] Place pick_by_end(const ClassIndex& index,
                                  const TaskClass& cls,
                                  GangId gang,
                                  Time end) const;
  [[nodiscard]] std::int64_t preference(PodId pod, NodeId node) const;
  [[nodiscard]] std::int64_t pods_in_domain(const PodTerm& term, const NodeState& node) const;
  /// Takes back what was bound since there were `before` pods.
  void undo(std::size_t before, Outcome& outcome);

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  Neighbour<const Waiting> waiting_;
  Neighbour<const Reservations> reservations_;
  Fragmentation fragmentation_;
};

}  // namespace muster::engine
