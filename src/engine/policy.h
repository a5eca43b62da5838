/// One way to decide: what Muster's own rules, Volcano's actions and plugins, and HiveD's cells have
/// in common.
///
/// A policy reads and changes one State, which it does not own, and remembers what it needs besides:
/// who waits in which order, what it has told, what it has promised. The state hears of every event
/// first; what a policy binds and evicts it does through the state, so that every policy and every
/// view sees one world. Engine is the only caller.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "engine/model/event.h"
#include "engine/model/ids.h"
#include "engine/model/plan.h"
#include "engine/model/views.h"
#include "engine/state/state.h"
#include "engine/state/tenants.h"

namespace muster::engine {

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  /// The state has taken the event in. Most need not listen: the state keeps logs of its changes.
  virtual void apply(const Event& event) { (void)event; }
  /// Decides everything the applied events made possible.
  [[nodiscard]] virtual Plan decide(Time now) = 0;

  // Queries. They may bring indexes up to date; that changes no later plan.
  /// Why does the gang wait? Absent when it does not.
  [[nodiscard]] virtual std::optional<WaitView> why(GangId gang) = 0;
  /// The same as it was last told, from memory alone; absent where the policy keeps no such thing.
  [[nodiscard]] virtual std::optional<WaitView> told(GangId gang) const {
    (void)gang;
    return std::nullopt;
  }
  /// What waits in the queue, next first, at most `limit`.
  [[nodiscard]] virtual std::vector<WaitView> waiting(TenantId tenant, std::size_t limit) = 0;
  /// One for each of these; how many gangs they have does not matter.
  [[nodiscard]] virtual std::vector<QueueView> queues(std::span<const TenantId> tenants) = 0;
  /// Fills in what only the policy counts.
  virtual void count(Stats& stats) const { (void)stats; }

  /// One that remembers the same about `state`, which must equal this policy's. The two share
  /// nothing that changes.
  [[nodiscard]] virtual std::unique_ptr<Policy> clone(State& state) const = 0;
  /// Adds all that decisions follow from.
  virtual void digest(Digest& digest) const = 0;
};

/// The policy that the state's configuration names.
std::unique_ptr<Policy> make_policy(State& state);

/// What the state knows of a gang that waits; rank and refusal are the policy's to fill in.
WaitView wait_view(const State& state, GangId gang);
/// What the state and the limits say about queues.
std::vector<QueueView> queue_views(const State& state,
                                   const Tenants& limits,
                                   std::span<const TenantId> tenants);

}  // namespace muster::engine
