/// Gives the members of one gang their nodes, with victims where it must be.
///
/// Members get their places one by one, each where it costs least on top of what is planned
/// already. That is blind to gangs: two pods on each of four nodes look cheaper than one gang of
/// four over these nodes, four times in a row. So a second round counts what each choice costs for
/// each member that it lets in (`each`). thrift.h takes care of what is still too much.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/model/ids.h"
#include "engine/muster/desk.h"
#include "engine/muster/gang.h"
#include "engine/muster/reservations.h"
#include "engine/muster/victims.h"
#include "engine/state/victim_index.h"

namespace muster::engine {

/// Nodes tried exactly for each pod; the index has put the cheapest first.
inline constexpr std::size_t kCandidates = 24;

/// Everything about one gang's wish for room.
struct Wish {
  Asking asking;
  Members members;
  /// Only these nodes, in order of their ids; all when absent.
  const std::vector<NodeId>* domain = nullptr;
  /// What the indexes have yet to read cancels out.
  bool undone = false;
  /// The queue's limits would hold; absent: they hold.
  std::function<bool(const EvictionPlan&)> enough;
  /// All have their nodes and keep them.
  bool settled = false;
  /// A reservation was in the way on some node.
  bool held = false;
};

/// The plan with the victims of `base` and of `seeds` and who must go with them; absent when one of
/// them may not go.
[[nodiscard]] std::optional<EvictionPlan> with_victims(const Asking& asking,
                                                       const EvictionPlan& base,
                                                       const std::vector<PodId>& seeds);

class Seating {
 public:
  Seating(Desk& desk, const Reservations& reservations)
      : desk_(desk), state_(*desk.state), reservations_(reservations) {}

  /// Places for the least number of members, one after the other. False: not all have one.
  bool seat_members(Wish& wish, bool each, EvictionPlan& plan);
  /// The guests of `old` on the room of the plan's victims, or elsewhere where it is free. Guests
  /// stay where they are when they can, and those of `base` are seated already.
  bool reseat(Wish& wish, const EvictionPlan& old, const EvictionPlan& base, EvictionPlan& plan);
  /// A node that takes the task with nobody more evicted: one of the plan's, then a free one.
  [[nodiscard]] NodeId free_place(Wish& wish, PodId task, const EvictionPlan& plan);
  /// Nodes on which victims may make room for a pod of the class that asks: those of the plan, then
  /// the cheapest.
  [[nodiscard]] std::vector<NodeId> candidates(const Wish& wish, const EvictionPlan& plan);

  [[nodiscard]] std::int64_t checks() const { return victims_.checks; }

 private:
  /// One way to let a member in.
  struct Offer {
    NodeId node;
    EvictionPlan plan;
    /// On top of the plan so far.
    VictimCost cost;
    /// How many like it the plan's nodes would take.
    std::int32_t members = 1;
    /// Of the victims, the one that goes before all others.
    PodId first;
  };
  /// Which member is let in, on top of which plan, and the best way found so far.
  struct Letting {
    Wish& wish;
    const EvictionPlan& plan;
    PodId task;
    /// Members that have no place yet.
    std::int32_t left = 0;
    bool each = false;
    std::optional<Offer> best;
  };

  bool let_in(Wish& wish, PodId task, std::int32_t left, bool each, EvictionPlan& plan);
  void offer(Letting& letting, NodeId node, EvictionPlan trial, PodId first);
  void offer_apart(Letting& letting, NodeId node);
  void offer_whole_gangs(Letting& letting, NodeId node, PodId first);
  [[nodiscard]] bool beats(const Offer& a, const Offer& b) const;
  [[nodiscard]] std::vector<NodeId> nodes_to_try(const Letting& letting);
  [[nodiscard]] bool may_take(Wish& wish, PodId task, NodeId node, const EvictionPlan& plan);
  [[nodiscard]] bool tolerates_others(PodId task, NodeId node, const EvictionPlan& plan) const;
  [[nodiscard]] std::int32_t lets_in(const Letting& letting, const EvictionPlan& plan) const;
  [[nodiscard]] std::vector<PodId> in_order(const Members& members) const;

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  Neighbour<const Reservations> reservations_;
  VictimIndex victims_;
};

}  // namespace muster::engine
