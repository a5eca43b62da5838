#include "engine/cells/tenants.h"

#include <fmt/core.h>

#include <algorithm>

namespace muster::engine::cells {

namespace {

/// A tree of queues is a few levels deep.
constexpr int kMaxDepth = 32;

std::optional<std::int64_t> devices_of(const State& state, const ResourceList& list) {
  for (const Amount& amount : list) {
    if (amount.name == state.config().device_resource) return amount.value;
  }
  return std::nullopt;
}

/// Calls `visit(tenant)` for the queue and those above it until it answers false.
template <typename Visit>
void upwards(const State& state, TenantId tenant, Visit&& visit) {
  for (int depth = 0; depth < kMaxDepth && tenant.valid(); ++depth) {
    if (!visit(tenant)) return;
    tenant = state.tenant(tenant).parent;
  }
}

}  // namespace

bool CellTenants::note(const State& state, TenantId tenant) {
  if (seen_.size() < state.tenant_count()) seen_.resize(state.tenant_count());
  const TenantState& now = state.tenant(tenant);
  Seen fresh{now.live,
             now.parent,
             now.spec.virtual_cluster,
             devices_of(state, now.spec.capability),
             devices_of(state, now.spec.deserved),
             now.spec.weight,
             now.spec.state,
             now.spec.backfill};
  if (seen_[tenant.index()] == fresh) return false;
  seen_[tenant.index()] = std::move(fresh);
  return true;
}

void CellTenants::count(const State& state, TenantId tenant, std::int64_t devices) {
  own_.resize(state.tenant_count());
  held_.resize(state.tenant_count());
  own_[tenant.index()] += devices;
  upwards(state, tenant, [&](TenantId up) {
    held_[up.index()] += devices;
    return true;
  });
}

void CellTenants::refresh(const State& state) {
  own_.resize(state.tenant_count());
  held_.assign(state.tenant_count(), 0);
  for (std::uint32_t t = 0; t < own_.size(); ++t) {
    if (own_[t] == 0) continue;
    upwards(state, TenantId(t), [&](TenantId up) {
      held_[up.index()] += own_[t];
      return true;
    });
  }
}

std::string CellTenants::virtual_cluster_of(const State& state,
                                            const Cells& cells,
                                            TenantId tenant) {
  std::string found;
  upwards(state, tenant, [&](TenantId up) {
    const TenantState& queue = state.tenant(up);
    const Index vc = cells.find_vc(queue.name);
    if (!queue.spec.virtual_cluster.empty())
      found = queue.spec.virtual_cluster;
    else if (vc != kNone && cells.vc(vc).configured)
      found = queue.name;
    return found.empty();
  });
  return found;
}

std::optional<Refusal> CellTenants::excess(const State& state,
                                           TenantId tenant,
                                           std::int64_t devices) const {
  std::optional<Refusal> refused;
  upwards(state, tenant, [&](TenantId up) {
    const TenantState& queue = state.tenant(up);
    if (!queue.live) return false;
    Refusal refusal;
    refusal.queue = queue.name;
    if (queue.spec.state != QueueState::kOpen) {
      refusal.reason = Reason::kQueueNotOpen;
      refusal.words = fmt::format("queue {} is closed", queue.name);
      refused = std::move(refusal);
      return false;
    }
    const auto limit = devices_of(state, queue.spec.capability);
    if (!limit || held(up) + devices <= *limit) return true;
    const std::string& resource = state.config().device_resource;
    refusal.reason = Reason::kTenantOverLimit;
    refusal.shortages.push_back(
        {resource, devices, std::max<std::int64_t>(*limit - held(up), 0), *limit});
    refusal.words = fmt::format("queue {} may hold {} {}, holds {}, and this gang needs {}",
                                queue.name,
                                *limit,
                                resource,
                                held(up),
                                devices);
    refused = std::move(refusal);
    return false;
  });
  return refused;
}

std::optional<CellTenants::Over> CellTenants::over(const State& state,
                                                   TenantId tenant,
                                                   std::int64_t devices) const {
  std::optional<Over> found;
  upwards(state, tenant, [&](TenantId up) {
    const auto limit = devices_of(state, state.tenant(up).spec.capability);
    if (limit && held(up) + devices > *limit) found = Over{up, held(up) + devices - *limit};
    return !found;
  });
  return found;
}

bool CellTenants::within(const State& state, TenantId tenant, TenantId queue) {
  bool found = false;
  upwards(state, tenant, [&](TenantId up) {
    found = up == queue;
    return !found;
  });
  return found;
}

std::int64_t CellTenants::share(const State& state, TenantId tenant) const {
  const Queue& queue = state.tenant(tenant).spec;
  const std::int64_t part = devices_of(state, queue.deserved).value_or(queue.weight);
  return held(tenant) * 1'000'000 / std::max<std::int64_t>(part, 1);
}

BackfillMode CellTenants::backfill(const State& state, TenantId tenant) {
  return state.tenant(tenant).spec.backfill;
}

}  // namespace muster::engine::cells
