/// Muster's own rules as a policy of the engine; see planner.h.
#pragma once

#include "engine/muster/planner.h"
#include "engine/policy.h"

namespace muster::engine {

class MusterPolicy final : public Policy {
 public:
  explicit MusterPolicy(State& state) : state_(state), planner_(state) {}

  [[nodiscard]] Plan decide(Time now) override { return planner_.decide(now); }
  [[nodiscard]] std::optional<WaitView> why(GangId gang) override { return planner_.why(gang); }
  [[nodiscard]] std::optional<WaitView> told(GangId gang) const override {
    return planner_.told(gang);
  }
  [[nodiscard]] std::vector<WaitView> waiting(TenantId tenant, std::size_t limit) override {
    return planner_.waiting(tenant, limit);
  }
  [[nodiscard]] std::vector<QueueView> queues(std::span<const TenantId> tenants) override {
    return queue_views(state_, planner_.tenants(), tenants);
  }
  void count(Stats& stats) const override { stats.node_checks = planner_.node_checks(); }
  [[nodiscard]] std::unique_ptr<Policy> clone(State& state) const override {
    auto copy = std::make_unique<MusterPolicy>(state);
    copy->planner_ = planner_;
    return copy;
  }
  void digest(Digest& digest) const override { planner_.digest(digest); }

 private:
  State& state_;
  Planner planner_;
};

}  // namespace muster::engine
