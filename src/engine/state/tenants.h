/// The tenant tree seen with limits: what each may take, what it deserves, and who is served first.
///
/// A tenant may take up to its real capability: what its parent may take, less what is guaranteed
/// to its siblings, and at most its own capability. It deserves what its spec says, or its part of
/// the parent's by weight. A tenant whose guarantee is made of cells (a virtual cluster) names it
/// in Queue::virtual_cluster; amounts bound it here, the cell allocator bounds where.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/ids.h"
#include "engine/model/reason.h"
#include "engine/state/state.h"

namespace muster::engine {

class Tenants {
 public:
  /// Cheap when nothing changed.
  void refresh(const State& state);

  struct Excess {
    TenantId tenant;  ///< The queue or ancestor that says no.
    std::size_t resource = 0;
    std::int64_t wanted = 0;  ///< Inner amounts.
    std::int64_t left = 0;
    std::int64_t limit = 0;
    Reason reason = Reason::kTenantOverLimit;
  };
  /// Would `need` more break a limit on the way up? The first that says no. What is held for
  /// nominated pods counts as taken, unless one of them asks for its own.
  [[nodiscard]] std::optional<Excess> excess(const State& state,
                                             TenantId tenant,
                                             const ResourceVector& need,
                                             bool own = false) const {
    static const ResourceVector kNothing{};
    return excess_without(
        state, tenant, need, own, [](TenantId) -> const ResourceVector& { return kNothing; });
  }
  /// The same with `freed(tenant)` given back first.
  template <typename Freed>
  [[nodiscard]] std::optional<Excess> excess_without(const State& state,
                                                     TenantId tenant,
                                                     const ResourceVector& need,
                                                     bool own,
                                                     Freed&& freed) const {
    const auto& path = views_[tenant.index()].path;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      if (views_[it->index()].mask == 0) continue;
      if (auto e = excess_of(state, *it, need, own, freed(*it))) return e;
    }
    return std::nullopt;
  }

  /// Served before: higher priority, then smaller share of what is deserved, then older.
  [[nodiscard]] bool before(const State& state, TenantId a, TenantId b) const;
  /// Allocated / deserved in the dominant resource, in millionths.
  [[nodiscard]] std::int64_t share(const State& state, TenantId tenant) const {
    const View& view = views_[tenant.index()];
    const std::uint64_t charged = state.tenant(tenant).charged;
    if (view.share < 0 || view.share_seen != charged) {
      view.share = work_out_share(state, tenant);
      view.share_seen = charged;
    }
    return view.share;
  }

  /// Stays within what it deserves with `need` more (in what its spec's deserved names): may take
  /// back.
  [[nodiscard]] bool may_reclaim(const State& state,
                                 TenantId tenant,
                                 const ResourceVector& need) const;
  /// Would the tenant itself (ancestors apart) still have what it deserves after giving `taken`, in
  /// all of that? With `held` what is held for nominated pods counts as its own.
  [[nodiscard]] bool can_give(const State& state,
                              TenantId tenant,
                              const ResourceVector& taken,
                              bool held = false) const;
  /// The same for what it is guaranteed.
  [[nodiscard]] bool keeps_guarantee(const State& state,
                                     TenantId tenant,
                                     const ResourceVector& taken) const;

  /// It or an ancestor is guaranteed something.
  [[nodiscard]] bool guarded(TenantId t) const { return views_[t.index()].guarded; }
  /// Some other queue holds more of what `need` asks for than it deserves and may be reclaimed
  /// from.
  [[nodiscard]] bool anybody_can_give(const State& state,
                                      TenantId tenant,
                                      const ResourceVector& need) const;

  [[nodiscard]] const ResourceVector& deserved(TenantId t) const {
    return views_[t.index()].deserved;
  }
  [[nodiscard]] const ResourceVector& real(TenantId t) const { return views_[t.index()].real; }
  [[nodiscard]] std::uint32_t real_mask(TenantId t) const { return views_[t.index()].mask; }
  [[nodiscard]] bool known(TenantId t) const { return t.index() < views_.size(); }

 private:
  struct View {
    ResourceVector real;
    std::uint32_t mask = 0;           ///< Bit i: resource i is limited.
    ResourceVector deserved;          ///< Effective; for order.
    std::uint32_t deserved_mask = 0;  ///< What the spec itself names; for reclaim.
    bool guarded = false;
    std::vector<TenantId> path;  ///< Root-most first, itself last.
    /// share(), and TenantState::charged when it was worked out: every pick compares all queues that
    /// may have somebody to start, and hardly any of them has changed since the last.
    mutable std::int64_t share = -1;
    mutable std::uint64_t share_seen = 0;
  };

  [[nodiscard]] std::optional<Excess> excess_of(const State& state,
                                                TenantId tenant,
                                                const ResourceVector& need,
                                                bool own,
                                                const ResourceVector& freed) const;
  [[nodiscard]] std::int64_t work_out_share(const State& state, TenantId tenant) const;
  void limits(const State& state, const std::vector<TenantId>& siblings, const View* parent);
  void proportion(const State& state);

  std::uint64_t version_ = 0;
  std::size_t count_ = 0;
  std::vector<View> views_;
};

}  // namespace muster::engine
