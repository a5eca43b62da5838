/// Volcano's actions and plugins as a policy of the engine: every decision is one session.
#pragma once

#include "engine/policy.h"
#include "engine/volcano/session.h"

namespace muster::engine::volcano {

class VolcanoPolicy final : public Policy {
 public:
  explicit VolcanoPolicy(State& state) : state_(state) {}

  [[nodiscard]] Plan decide(Time now) override;
  [[nodiscard]] std::optional<WaitView> why(GangId gang) override { return told(gang); }
  [[nodiscard]] std::optional<WaitView> told(GangId gang) const override;
  /// By priority, then age: the order of the plugins that every configuration has. What else a
  /// session weighs changes from session to session.
  [[nodiscard]] std::vector<WaitView> waiting(TenantId tenant, std::size_t limit) override;
  [[nodiscard]] std::vector<QueueView> queues(std::span<const TenantId> tenants) override;
  [[nodiscard]] std::unique_ptr<Policy> clone(State& state) const override;
  void digest(Digest& digest) const override;

 private:
  /// What is told of the gang, or of the first member that waits beside those that run.
  [[nodiscard]] const Refusal* last_refusal(GangId gang) const;

  State& state_;
  Memory memory_;
  Tenants tenants_;  ///< For views; sessions work out their own.
};

}  // namespace muster::engine::volcano
