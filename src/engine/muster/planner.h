/// Muster's own policy: event driven, indexed, with reservations and cheapest victims.
///
/// What waits is grouped by shape and blocked as a whole until something it needs comes free, so a
/// release costs in proportion to what it can enable, not to what waits. A decision sorts in what
/// changed (Intake), binds gangs whose victims have left (Nominations), wakes what may go on
/// (Waiting), then tries one gang after the other: place it (Placer), else make room for it
/// (Preemption), else say why it waits (Explainer) and maybe hold a place for it in the future
/// (Reservations).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "engine/model/views.h"
#include "engine/muster/desk.h"
#include "engine/muster/explain.h"
#include "engine/muster/intake.h"
#include "engine/muster/nominations.h"
#include "engine/muster/placer.h"
#include "engine/muster/preemption.h"
#include "engine/muster/reservations.h"
#include "engine/muster/waiting.h"

namespace muster::engine {

class Planner {
 public:
  explicit Planner(State& state);
  /// Takes over all that the other planner knows; each keeps its own state, and the two states must
  /// be equal.
  Planner& operator=(const Planner&) = default;

  [[nodiscard]] Plan decide(Time now);

  [[nodiscard]] std::optional<WaitView> why(GangId gang) { return explainer_.why(gang); }
  [[nodiscard]] std::optional<WaitView> told(GangId gang) const { return explainer_.told(gang); }
  [[nodiscard]] std::vector<WaitView> waiting(TenantId tenant, std::size_t limit) const {
    return explainer_.waiting(tenant, limit);
  }
  /// The queues with their limits, brought up to date.
  [[nodiscard]] const Tenants& tenants() {
    desk_.tenants.refresh(desk_.state);
    return desk_.tenants;
  }
  [[nodiscard]] std::int64_t node_checks() const {
    return desk_.index.checks + preemption_.checks();
  }
  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

 private:
  void begin(Time now);
  bool place_at_once(GangId id);
  void settle_nominations();
  void wake();
  [[nodiscard]] std::optional<Candidate> next(bool& again);
  void try_to_start(const Candidate& candidate);
  void hold_alike(GangId refused);
  void try_over_limit(const Candidate& candidate, const Tenants::Excess& excess);
  [[nodiscard]] Preemption::Result make_room(GangId id, bool over_limit);
  void started(const std::vector<PodId>& pods);
  void block(GangId id);
  void tell_refusals();
  void check();

  Desk desk_;
  Waiting waiting_;
  Reservations reservations_;
  Nominations nominations_;
  Intake intake_;
  Placer placer_;
  Preemption preemption_;
  Explainer explainer_;
  std::vector<GangId> changed_;  ///< Used again in every decision, so that none allocates it.
};

}  // namespace muster::engine
