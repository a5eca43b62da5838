/// Which victims: the cheapest set with which the whole gang, or enough groups of a group of
/// groups, fits.
///
/// For one gang the members are seated (seating.h), what was not needed is given back, and a bounded
/// search looks for less (thrift.h). Above that stand the domains that topology asks for and the
/// groups of a family that must start together; where the queue itself is full, lower ranks of the
/// same queue go as well.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/ids.h"
#include "engine/muster/desk.h"
#include "engine/muster/reservations.h"
#include "engine/muster/seating.h"
#include "engine/muster/victims.h"
#include "engine/muster/waiting.h"

namespace muster::engine {

/// For whom room is to be made.
struct RoomRequest {
  /// The gang, or the root of its family when that starts together.
  GangId root;
  Preemptor who;
  /// What is asked for, when the limits of its queue are in the way; null: they are not.
  const ResourceVector* over_limit = nullptr;
  /// Nominations were lifted for the question and are put back after it.
  bool undone = false;
};

struct RoomFound {
  bool found = false;
  EvictionPlan plan;
  /// A reservation was in the way on some node.
  bool held = false;
};

class RoomMaker {
 public:
  RoomMaker(Desk& desk, const Waiting& waiting, const Reservations& reservations)
      : desk_(desk), state_(*desk.state), waiting_(waiting), seating_(desk, reservations) {}

  /// The victims of a whole gang or family, with the room in its queue where that is short, too.
  [[nodiscard]] RoomFound find(const RoomRequest& request);

  [[nodiscard]] std::int64_t checks() const { return seating_.checks(); }

 private:
  /// Nodes inside which room must be made; null: all.
  using Inside = const std::vector<NodeId>*;

  bool plan_group(GangId group, Wish& wish, Inside inside, EvictionPlan& plan);
  bool plan_inside(GangId group, Wish& wish, Inside inside, EvictionPlan& plan);
  bool plan_children(GangId group, Wish& wish, Inside inside, EvictionPlan& plan);
  bool plan_gang(Wish& wish, EvictionPlan& plan);
  bool make_room_in_queue(const Wish& wish, EvictionPlan& plan) const;
  [[nodiscard]] bool queue_takes(const Wish& wish, const EvictionPlan& plan) const;
  [[nodiscard]] std::vector<std::vector<NodeId>> domains_of(GangId group, Inside inside) const;

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  Neighbour<const Waiting> waiting_;
  Seating seating_;
};

}  // namespace muster::engine
