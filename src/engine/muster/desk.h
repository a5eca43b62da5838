/// What the parts of Muster's own policy share: the world, the clock value of the decision being
/// made, the plan that grows, and the tables that every part reads.
///
/// The parts (Waiting, Reservations, Placer, RoomMaker, Nominations, Preemption, Intake, Explainer)
/// belong to one Planner, are made once and know each other by Neighbour. Each owns what it
/// remembers and nobody else changes that.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/model/ids.h"
#include "engine/model/plan.h"
#include "engine/muster/departures.h"
#include "engine/state/node_index.h"
#include "engine/state/state.h"
#include "engine/state/tenants.h"

namespace muster::engine {

/// A reference that assignment leaves alone. A planner that takes over what another one knows
/// copies its parts member by member; its own parts go on talking to each other.
template <typename T>
class Neighbour {
 public:
  Neighbour(T& target) : target_(&target) {}
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) { return *this; }
  ~Neighbour() = default;

  T& operator*() const { return *target_; }
  T* operator->() const { return target_; }
  operator T&() const { return *target_; }

 private:
  T* target_;
};

struct Desk {
  explicit Desk(State& world) : state(world) {}

  Neighbour<State> state;
  Time now;
  Plan plan;
  Tenants tenants;
  NodeIndex index;
  /// By gang: when it may well have ended by what others took, when most would have, until when that
  /// stays so if nobody like it ends, and the decision that was found in.
  struct Foretold {
    std::uint64_t epoch = 0;
    Time early, late, same_until;
  };
  std::vector<Foretold> foretold;
  Departures departures;
  /// An end that was asked for is one of those foretold.
  bool estimated = false;

  /// The caller is to ask again at this time, or earlier.
  void wake_at(Time at) { plan.wake = plan.wake ? std::min(*plan.wake, at) : at; }
  /// Puts pods that State has bound into the plan.
  void tell_binds(std::span<const PodId> placed);
};

}  // namespace muster::engine
