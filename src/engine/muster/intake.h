/// The door: which gangs may wait for a place at all, and the phase that their groups show.
///
/// A gang that changed is sorted in: nothing left to place, it is forgotten; not ready, not yet
/// admitted or in a queue that is not open, it is refused and set aside; with room held for it, it
/// waits for its victims to leave; otherwise it is listed (waiting.h).
#pragma once

#include <cstdint>
#include <set>

#include "engine/model/ids.h"
#include "engine/muster/desk.h"
#include "engine/muster/nominations.h"
#include "engine/muster/reservations.h"
#include "engine/muster/waiting.h"

namespace muster::engine {

class Intake {
 public:
  Intake(Desk& desk, Waiting& waiting, Reservations& reservations, Nominations& nominations)
      : desk_(desk),
        state_(*desk.state),
        waiting_(waiting),
        reservations_(reservations),
        nominations_(nominations) {}

  /// Finds the gang's place anew.
  void sort_in(GangId id);
  /// All gangs that State has marked since this was last asked.
  void sort_in_changed();
  /// Queues or the configuration changed since this was last asked; looks again at those that
  /// their queue's state kept out.
  bool notice_queues();
  /// Looks again at those that were not admitted, if anything has changed since.
  void admit_again();
  /// Tells the caller when the group's phase is another.
  void update_phase(GangId id);

  [[nodiscard]] bool none_set_aside() const { return parked_.empty() && unadmitted_.empty(); }
  [[nodiscard]] bool queues_are_known() const { return tenants_seen_ == state_->tenants_version(); }
  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

 private:
  void forget(GangId id);
  [[nodiscard]] Refusal reason_to_stay_out(GangId id);
  [[nodiscard]] bool admission_matters(const GangState& gang) const;

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  Neighbour<Waiting> waiting_;
  Neighbour<Reservations> reservations_;
  Neighbour<Nominations> nominations_;
  /// Refused for their queue's state; looked at again when queues change.
  std::set<GangId> parked_;
  std::set<GangId> unadmitted_;
  std::uint64_t admission_seen_ = 0;
  std::uint64_t tenants_seen_ = 0;
};

}  // namespace muster::engine
