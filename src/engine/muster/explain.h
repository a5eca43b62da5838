/// Why something waits, with numbers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/model/ids.h"
#include "engine/model/reason.h"
#include "engine/model/views.h"
#include "engine/muster/desk.h"
#include "engine/muster/reservations.h"
#include "engine/muster/survey.h"
#include "engine/muster/victims.h"
#include "engine/muster/waiting.h"
#include "engine/state/tenants.h"

namespace muster::engine {

/// A limit of its queue, or of one above it, is in the way.
[[nodiscard]] Refusal refusal_for_limit(const State& state, const Tenants::Excess& excess);

/// Its victims are on their way out: how many, one of them, and when the last must have left.
[[nodiscard]] Refusal refusal_for_leavers(const State& state, GangId id);

class Explainer {
 public:
  Explainer(Desk& desk, const Waiting& waiting, const Reservations& reservations)
      : desk_(desk), state_(*desk.state), waiting_(waiting), reservations_(reservations) {}

  /// Counts the nodes by what each lacks for one member, and says how much the best one has.
  [[nodiscard]] Refusal nodes(GangId id);
  /// Whose reservation is in the way: the first of those that rank before it.
  [[nodiscard]] Refusal reservation(GangId id) const;
  /// Who is served before the gang, and when it is expected to start.
  void add_ahead(GangId id, Refusal& refusal) const;

  /// What the portal and `explain` show of one gang; absent when it does not wait.
  [[nodiscard]] std::optional<WaitView> why(GangId id);
  /// The same as it was last told.
  [[nodiscard]] std::optional<WaitView> told(GangId id) const;
  /// Everything that waits in a queue, next first, at most `limit`.
  [[nodiscard]] std::vector<WaitView> waiting(TenantId tenant, std::size_t limit) const;

  /// Stops the program when what is kept of the nodes is not what they show.
  void check() const { surveys_.check(state_); }

 private:
  /// Looks at every node only where a kept survey would not do.
  [[nodiscard]] Survey survey(PodId pod, GangId gang, std::int32_t wanted);
  void add_shortages(const Survey& survey, const TaskClass& cls, Refusal& refusal) const;
  void add_domains(GangId id, PodId pod, Refusal& refusal) const;
  [[nodiscard]] WaitView view_of(GangId id) const;
  [[nodiscard]] WaitView told_view_of(GangId id) const;

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  Neighbour<const Waiting> waiting_;
  Neighbour<const Reservations> reservations_;
  Surveys surveys_;
};

}  // namespace muster::engine
