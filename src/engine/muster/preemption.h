/// Evictions: when they are worth planning, and carrying them out.
#pragma once

#include <set>
#include <vector>

#include "engine/model/ids.h"
#include "engine/muster/desk.h"
#include "engine/muster/gang.h"
#include "engine/muster/nominations.h"
#include "engine/muster/reservations.h"
#include "engine/muster/room_maker.h"
#include "engine/muster/victims.h"
#include "engine/muster/waiting.h"

namespace muster::engine {

class Preemption {
 public:
  struct Result {
    /// Room was found and is held for the gang, or it is bound already.
    bool made = false;
    /// A reservation was in the way on some node.
    bool held = false;
    /// Gangs that lost the room held for them while this one was settled.
    std::vector<GangId> lost;
  };

  Preemption(Desk& desk,
             Waiting& waiting,
             const Reservations& reservations,
             Nominations& nominations)
      : desk_(desk),
        state_(*desk.state),
        waiting_(waiting),
        reservations_(reservations),
        nominations_(nominations),
        rooms_(desk, waiting, reservations) {}

  /// Makes room for a gang that has none on the nodes, or with `over_limit` none in its queue.
  [[nodiscard]] Result make_room_for(GangId id, bool over_limit);

  /// Nodes looked at for victims so far.
  [[nodiscard]] std::int64_t checks() const { return rooms_.checks(); }

 private:
  /// For what reasons others may have to go.
  struct Grounds {
    bool by_share = false;
    bool by_priority = false;
    /// Room held for lower ranks may be planned with.
    bool over_nominated = false;
  };

  [[nodiscard]] Grounds grounds_of(const GangState& gang,
                                   const ResourceVector& request,
                                   bool over_limit) const;
  [[nodiscard]] std::set<ClassId> waiting_classes(GangId root) const;
  [[nodiscard]] RoomFound find(RoomRequest request, GangId id, PodId task, bool lift);
  void carry_out(GangId id, const EvictionPlan& plan, PodId any_task, bool reclaim);

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  Neighbour<Waiting> waiting_;
  Neighbour<const Reservations> reservations_;
  Neighbour<Nominations> nominations_;
  RoomMaker rooms_;
};

}  // namespace muster::engine
