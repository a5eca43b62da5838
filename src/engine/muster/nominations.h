/// The room that is held for gangs until the victims that make it have left.
///
/// A gang is nominated whole, with the other groups of its family that start with it: all room
/// there, it is bound to exactly the devices that were held; room still to come, it waits; room
/// lost, it gives up what is left and waits again like others.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "engine/model/ids.h"
#include "engine/muster/desk.h"
#include "engine/muster/reservations.h"
#include "engine/muster/victims.h"
#include "engine/muster/waiting.h"

namespace muster::engine {

class Nominations {
 public:
  /// A nomination taken off the books for the time of a question.
  struct Lifted {
    GangId gang;
    PodId pod;
    NodeId node;
    Positions devices;
  };

  Nominations(Desk& desk, Waiting& waiting, Reservations& reservations)
      : desk_(desk), state_(*desk.state), waiting_(waiting), reservations_(reservations) {}

  /// Holds room on the node for one pod, on these devices once whoever is there has left.
  void nominate(PodId pod, NodeId node, const Positions& devices);
  /// The gang's pods have been nominated: it waits for their room and in no bucket any more.
  void hold(GangId id);
  /// Gives up what is held for the gang.
  void drop(GangId id);
  /// Binds the gang, and the nominated groups of its family, if all their room is there. Answers
  /// with those that lost it: they are to be sorted in again.
  [[nodiscard]] std::vector<GangId> settle(GangId id);

  /// Takes the nominations of lower ranks off the books, so that the room held for them can be
  /// planned with.
  [[nodiscard]] std::vector<Lifted> lift_lower(const Preemptor& who);
  /// Gives them back, whole gangs only, the highest rank first; a gang whose room was `taken` waits
  /// again like others.
  void put_back(std::vector<Lifted> lifted, bool taken);

  /// Nominated groups of whose family another one has lost its room: without it they start now, or
  /// hold nothing either. Forgets them.
  [[nodiscard]] std::set<GangId> take_bereft() { return std::exchange(bereft_, {}); }
  [[nodiscard]] bool any_bereft() const { return !bereft_.empty(); }
  /// A gang lost the room held for it since this was last asked.
  [[nodiscard]] bool take_dropped() { return std::exchange(dropped_, false); }
  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

 private:
  /// A family's nominations, and what stands against binding them.
  struct Family {
    std::vector<GangId> gangs;
    std::vector<Lifted> pods;
    bool lost = false;
    bool over_limit = false;
    /// Somebody who is to leave is still on one of the nodes.
    bool waits_for_leavers = false;
  };

  void tell(PodId id);
  [[nodiscard]] Family family_of(GangId id) const;
  [[nodiscard]] bool bind_all(Family& family);
  [[nodiscard]] bool may_lift(const Preemptor& who, GangId id) const;
  bool restore(std::vector<Lifted>& lifted, std::size_t from, std::size_t end, bool taken);

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  Neighbour<Waiting> waiting_;
  Neighbour<Reservations> reservations_;
  std::set<GangId> bereft_;
  bool dropped_ = false;
};

}  // namespace muster::engine
