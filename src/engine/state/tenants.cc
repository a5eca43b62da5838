#include "engine/state/tenants.h"

#include <algorithm>

#include "engine/state/shares.h"

namespace muster::engine {

void Tenants::limits(const State& state,
                     const std::vector<TenantId>& siblings,
                     const View* parent) {
  const std::size_t dims = state.names().size();
  ResourceVector guaranteed;
  std::int64_t weights = 0;
  for (const TenantId t : siblings) {
    guaranteed += state.tenant(t).guarantee;
    weights += std::max(state.tenant(t).spec.weight, 1);
  }
  for (const TenantId t : siblings) {
    const TenantState& tenant = state.tenant(t);
    View& view = views_[t.index()];
    view = View{};
    if (parent != nullptr) view.path = parent->path;
    view.path.push_back(t);
    view.guarded = (parent != nullptr && parent->guarded) || !tenant.guarantee.is_zero();
    for (std::size_t i = 0; i < dims; ++i) {
      const std::int64_t others = guaranteed[i] - tenant.guarantee[i];
      const bool parent_limits = parent != nullptr && (parent->mask & (1U << i)) != 0;
      std::int64_t limit = parent_limits ? parent->real[i] : state.total()[i];
      bool limited = false;
      if (others > 0) {
        limit = std::max<std::int64_t>(limit - guaranteed[i], 0) + tenant.guarantee[i];
        limited = true;
      }
      if ((tenant.capability_mask & (1U << i)) != 0 && (!limited || tenant.capability[i] < limit)) {
        limit = limited ? std::min(limit, tenant.capability[i]) : tenant.capability[i];
        limited = true;
      }
      if (limited) {
        view.real.set(i, limit);
        view.mask |= 1U << i;
      }
      const std::int64_t pool = parent == nullptr ? state.total()[i] : parent->deserved[i];
      std::int64_t due = pool / weights * std::max(tenant.spec.weight, 1);
      if (tenant.deserved[i] > 0) {
        due = tenant.deserved[i];
        view.deserved_mask |= 1U << i;
      } else if (!tenant.spec.deserved.empty()) {
        due = 0;
      }
      if (tenant.guarantee[i] > 0) {
        due = std::max(due, tenant.guarantee[i]);
        view.deserved_mask |= 1U << i;
      }
      if (limited) due = std::min(due, limit);
      view.deserved.set(i, due);
    }
    view.guarded |= state.config().reclaim && view.deserved_mask != 0;
    const std::vector<TenantId>& children = tenant.children;
    if (!children.empty()) {
      const View copy = view;
      limits(state, children, &copy);
    }
  }
}

/// Shares by weight as a hard cap, over the leaves of a flat tree.
void Tenants::proportion(const State& state) {
  using volcano::Amounts;
  const std::size_t dims = state.names().size();
  std::vector<Claim> claims;
  std::vector<std::uint32_t> owners;
  for (std::uint32_t t = 0; t < state.tenant_count(); ++t) {
    const TenantState& tenant = state.tenant(TenantId(t));
    if (tenant.allocated.is_zero() && tenant.pending.is_zero()) continue;
    Claim c;
    c.weight = std::max(tenant.spec.weight, 1);
    const Amounts real = Amounts::of(views_[t].real);
    for (std::size_t i = 0; i < dims; ++i)
      c.limit[i] = (views_[t].mask & (1U << i)) != 0 ? real[i] : volcano::kInfinite;
    c.demand = Amounts::of(tenant.allocated + tenant.pending);
    c.guarantee = Amounts::of(tenant.guarantee);
    claims.push_back(c);
    owners.push_back(t);
  }
  water_fill(Amounts::of(state.total()), dims, claims);
  for (std::size_t k = 0; k < owners.size(); ++k) {
    View& view = views_[owners[k]];
    for (std::size_t i = 0; i < dims; ++i) {
      if (!volcano::compared(i)) continue;
      const bool milli =
          i == ResourceNames::kCpu || i == ResourceNames::kMemory || i == ResourceNames::kDevice;
      const auto due =
          static_cast<std::int64_t>(claims[k].deserved[i] / (milli ? 1000 : 1'000'000));
      view.deserved.set(i, due);
      view.deserved_mask |= 1U << i;
      view.real.set(i, due);
      view.mask |= 1U << i;
    }
  }
}

void Tenants::refresh(const State& state) {
  const bool shares = state.config().tenant_rule == TenantRule::kProportion;
  if (!shares && version_ == state.tenants_version() && count_ == state.tenant_count()) return;
  version_ = state.tenants_version();
  count_ = state.tenant_count();
  views_.resize(count_);
  std::vector<TenantId> roots;
  for (std::uint32_t t = 0; t < count_; ++t) {
    if (!state.tenant(TenantId(t)).parent.valid()) roots.push_back(TenantId(t));
  }
  limits(state, roots, nullptr);
  if (shares) proportion(state);
}

std::optional<Tenants::Excess> Tenants::excess_of(const State& state,
                                                  TenantId tenant,
                                                  const ResourceVector& need,
                                                  bool own,
                                                  const ResourceVector& freed) const {
  const View& view = views_[tenant.index()];
  const TenantState& t = state.tenant(tenant);
  for (std::size_t i = 0; i < need.size(); ++i) {
    if (need[i] <= 0 || (view.mask & (1U << i)) == 0 || i == ResourceNames::kPods) continue;
    const std::int64_t taken = t.allocated[i] + (own ? 0 : t.held[i]) - freed[i];
    if (taken + need[i] <= view.real[i]) continue;
    Excess e;
    e.tenant = tenant;
    e.resource = i;
    e.wanted = need[i];
    e.limit = view.real[i];
    e.left = std::max<std::int64_t>(view.real[i] - taken, 0);
    const bool by_itself = (t.capability_mask & (1U << i)) != 0 && t.capability[i] <= view.real[i];
    const bool shares = state.config().tenant_rule == TenantRule::kProportion;
    e.reason = by_itself ? Reason::kTenantOverLimit
               : shares  ? Reason::kTenantOverDeserved
                         : Reason::kGuaranteedToOthers;
    return e;
  }
  return std::nullopt;
}

std::int64_t Tenants::work_out_share(const State& state, TenantId tenant) const {
  const View& view = views_[tenant.index()];
  const ResourceVector& allocated = state.tenant(tenant).allocated;
  std::int64_t share = 0;
  for (std::size_t i = 0; i < allocated.size(); ++i) {
    if (i == ResourceNames::kPods || allocated[i] <= 0) continue;
    const std::int64_t due = view.deserved[i];
    if (due <= 0) {
      // Nothing deserved: after everybody who is below their due.
      share = std::max<std::int64_t>(share, 1'000'000);
      continue;
    }
    share = std::max(
        share, static_cast<std::int64_t>(static_cast<__int128>(allocated[i]) * 1'000'000 / due));
  }
  return share;
}

bool Tenants::before(const State& state, TenantId a, TenantId b) const {
  const auto& pa = views_[a.index()].path;
  const auto& pb = views_[b.index()].path;
  std::size_t i = 0;
  while (i + 1 < pa.size() && i + 1 < pb.size() && pa[i] == pb[i]) ++i;
  const TenantId x = pa[i];
  const TenantId y = pb[i];
  const auto px = state.tenant(a).spec.priority;
  const auto py = state.tenant(b).spec.priority;
  if (px != py) return px > py;
  if (x != y) {
    const std::int64_t sx = share(state, x);
    const std::int64_t sy = share(state, y);
    if (sx != sy) return sx < sy;
  }
  return state.tenant(a).created < state.tenant(b).created;
}

bool Tenants::may_reclaim(const State& state, TenantId tenant, const ResourceVector& need) const {
  // The queue itself or the nearest ancestor that names what it deserves.
  const auto& path = views_[tenant.index()].path;
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    const View& view = views_[it->index()];
    if (view.deserved_mask == 0) continue;
    bool named = false;
    for (std::size_t i = 0; i < need.size(); ++i) {
      if (need[i] <= 0 || i == ResourceNames::kPods || (view.deserved_mask & (1U << i)) == 0)
        continue;
      named = true;
      if (state.tenant(*it).allocated[i] + state.tenant(*it).held[i] + need[i] > view.deserved[i])
        return false;
    }
    return named;
  }
  return false;
}

bool Tenants::can_give(const State& state,
                       TenantId tenant,
                       const ResourceVector& taken,
                       bool held) const {
  const View& view = views_[tenant.index()];
  const TenantState& t = state.tenant(tenant);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] <= 0 || i == ResourceNames::kPods || (view.deserved_mask & (1U << i)) == 0)
      continue;
    if (t.allocated[i] + (held ? t.held[i] : 0) - taken[i] < view.deserved[i]) return false;
  }
  return true;
}

bool Tenants::keeps_guarantee(const State& state,
                              TenantId tenant,
                              const ResourceVector& taken) const {
  const TenantState& t = state.tenant(tenant);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] <= 0 || i == ResourceNames::kPods || t.guarantee[i] <= 0) continue;
    if (t.allocated[i] - taken[i] < t.guarantee[i]) return false;
  }
  return true;
}

bool Tenants::anybody_can_give(const State& state,
                               TenantId tenant,
                               const ResourceVector& need) const {
  for (std::uint32_t t = 0; t < views_.size(); ++t) {
    const TenantState& other = state.tenant(TenantId(t));
    if (TenantId(t) == tenant || !other.spec.reclaimable || !other.children.empty()) continue;
    for (std::size_t i = 0; i < need.size(); ++i) {
      if (need[i] <= 0 || i == ResourceNames::kPods) continue;
      const std::int64_t due =
          (views_[t].deserved_mask & (1U << i)) != 0 ? views_[t].deserved[i] : 0;
      if (other.allocated[i] > due) return true;
    }
  }
  return false;
}

}  // namespace muster::engine
