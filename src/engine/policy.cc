#include "engine/policy.h"

#include "engine/muster/policy.h"
#include "engine/volcano/policy.h"

namespace muster::engine {

std::unique_ptr<Policy> make_policy(State& state) {
  if (state.config().policy == PolicyKind::kVolcano)
    return std::make_unique<volcano::VolcanoPolicy>(state);
  return std::make_unique<MusterPolicy>(state);
}

WaitView wait_view(const State& state, GangId id) {
  const GangState& gang = state.gang(id);
  WaitView view;
  view.key = gang.key;
  view.is_group = gang.has_group;
  view.queue = state.tenant(gang.tenant).name;
  view.priority = gang.spec->priority;
  view.since = gang.created;
  return view;
}

namespace {

QueueView queue_view(const State& state, const Tenants& limits, TenantId id) {
  const TenantState& tenant = state.tenant(id);
  QueueView view;
  view.name = tenant.name;
  if (tenant.parent.valid()) view.parent = state.tenant(tenant.parent).name;
  view.allocated = state.list_of(tenant.allocated);
  view.requested = state.list_of(tenant.allocated + tenant.pending);
  if (limits.known(id)) {
    view.deserved = state.list_of(limits.deserved(id));
    view.real_capability = state.list_of(limits.real(id));
    view.share_permille = limits.share(state, id) / 1000;
  }
  view.gangs_waiting = tenant.gangs_waiting;
  view.gangs_running = tenant.gangs_running;
  return view;
}

}  // namespace

std::vector<QueueView> queue_views(const State& state,
                                   const Tenants& limits,
                                   std::span<const TenantId> tenants) {
  std::vector<QueueView> out;
  out.reserve(tenants.size());
  for (const TenantId id : tenants) out.push_back(queue_view(state, limits, id));
  return out;
}

}  // namespace muster::engine
