#include "engine/victim_index.h"

#include <algorithm>

#include "engine/fit.h"
#include "engine/match.h"

namespace muster::engine {

bool eligible(const State& state, const Tenants& tenants, const Preemptor& who, const PodState& victim) {
  if (victim.phase != PodPhase::kBound || !victim.ours || !victim.preemptable || victim.critical) return false;
  if (victim.gang == who.gang || victim.bound_epoch == state.epoch) return false;
  const GangState& gang = state.gang(victim.gang);
  if (gang.has_group && !gang.spec.preemptable) return false;
  const TenantState& mine = state.tenant(who.tenant);
  const TenantState& theirs = state.tenant(gang.tenant);
  const ResourceVector& request = state.cls(victim.cls).request;
  const bool same = gang.tenant == who.tenant;
  if (who.reclaim) return !same && theirs.spec.reclaimable && tenants.can_give(state, gang.tenant, request);
  if (mine.spec.t9k || theirs.spec.t9k) {
    return !same && theirs.spec.preemptible && theirs.spec.priority < mine.spec.priority;
  }
  if (state.rank_priority(victim) >= who.priority) return false;
  if (same) return true;
  return state.config().preempt_across_queues && tenants.keeps_guarantee(state, gang.tenant, request);
}

namespace {

/// Free parts of each device once the victims (planned and tried) are gone and guests are in.
struct Room {
  ResourceVector free;
  std::vector<std::int32_t> devices;

  Room(const State& state, NodeId id, const EvictionPlan& plan) {
    const NodeState& node = state.node(id);
    free = node.free;
    free += node.releasing;
    for (const auto& d : node.devices) devices.push_back(d.healthy ? d.free_milli : -1);
    // What is leaving already counts as gone.
    if (!node.releasing.is_zero()) {
      for (const PodId p : node.pods) {
        if (state.pod(p).phase == PodPhase::kReleasing) give_devices(state, p);
      }
    }
    const auto it = plan.nodes.find(id);
    if (it == plan.nodes.end()) return;
    for (const PodId p : it->second.victims) give(state, p);
    for (const PodId p : it->second.guests) take(state.cls_of(p));
  }
  void give_devices(const State& state, PodId p) {
    const PodState& pod = state.pod(p);
    const std::int32_t share = state.cls(pod.cls).share_milli;
    for (const auto i : pod.devices) {
      if (devices[i] >= 0) devices[i] = std::min(1000, devices[i] + (share > 0 ? share : 1000));
    }
  }
  void give(const State& state, PodId p) {
    free += state.cls_of(p).request;
    give_devices(state, p);
  }
  void take(const TaskClass& cls) {
    free -= cls.request;
    if (cls.share_milli > 0) {
      for (auto& d : devices) {
        if (d >= cls.share_milli) {
          d -= cls.share_milli;
          break;
        }
      }
    }
    for (std::int32_t n = cls.devices; n > 0; --n) {
      const auto it = std::find(devices.begin(), devices.end(), 1000);
      if (it != devices.end()) *it = 0;
    }
  }
  [[nodiscard]] bool fits(const TaskClass& cls) const {
    if (!cls.request.fits_in(free)) return false;
    if (cls.share_milli > 0) return std::any_of(devices.begin(), devices.end(), [&](auto d) { return d >= cls.share_milli; });
    return cls.devices == 0 || std::count(devices.begin(), devices.end(), 1000) >= cls.devices;
  }
};

/// Less than, equal to or greater than zero; runs of digits count as numbers.
int compare_names(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      while (i < a.size() && a[i] == '0') ++i;
      while (j < b.size() && b[j] == '0') ++j;
      std::size_t m = i;
      std::size_t n = j;
      while (m < a.size() && digit(a[m])) ++m;
      while (n < b.size() && digit(b[n])) ++n;
      if (m - i != n - j) return m - i < n - j ? -1 : 1;
      const int order = a.compare(i, m - i, b, j, n - j);
      if (order != 0) return order;
      i = m;
      j = n;
    } else if (a[i] != b[j]) {
      return a[i] < b[j] ? -1 : 1;
    } else {
      ++i;
      ++j;
    }
  }
  if (i < a.size()) return 1;
  return j < b.size() ? -1 : 0;
}

/// A pod alone, or the whole of its gang, as the unit that must go.
struct Unit {
  PodId pod;
  bool whole = false;
  std::int32_t cost = 1;  ///< Pods lost.
  std::int32_t priority = 0;
  std::int64_t size = 0;
  bool budget = false;
};

bool breaks_budget(const State& state, const PodState& pod, const EvictionPlan& plan) {
  for (const auto& [key, b] : state.budgets()) {
    if (b.ns != pod.ns || !b.selector || !matches(*b.selector, pod.labels)) continue;
    const auto used = plan.budget_used.find(key);
    if (b.disruptions_allowed - (used == plan.budget_used.end() ? 0 : used->second) <= 0) return true;
  }
  return false;
}

}  // namespace

bool goes_before(const State& state, PodId a, PodId b) {
  const PodState& x = state.pod(a);
  const PodState& y = state.pod(b);
  const Time started_x = state.gang(x.gang).started;
  const Time started_y = state.gang(y.gang).started;
  if (started_x != started_y) return started_x > started_y;
  if (x.created != y.created) return x.created > y.created;
  const int names = compare_names(x.key, y.key);
  return names != 0 ? names > 0 : a < b;
}

bool fits_after(const State& state, const TaskClass& cls, NodeId node, const EvictionPlan& plan) {
  if (!fit_static(state, cls, state.node(node)).ok()) return false;
  return Room(state, node, plan).fits(cls);
}

VictimChoice choose_on_node(const State& state, const Tenants& tenants, const Preemptor& who, NodeId id, const EvictionPlan& plan,
                            Time now) {
  VictimChoice choice;
  const TaskClass& cls = state.cls(who.cls);
  const NodeState& node = state.node(id);
  Room room(state, id, plan);
  if (room.fits(cls)) {
    choice.possible = true;
    return choice;
  }
  std::vector<Unit> units;
  std::map<GangId, std::int32_t> surplus;
  std::map<TenantId, ResourceVector> taken = plan.taken_from;
  std::vector<PodId> pods;
  for (const PodId p : node.pods) {
    if (!plan.victims.contains(p) && eligible(state, tenants, who, state.pod(p))) pods.push_back(p);
  }
  // The first ones seen count as the surplus of their gang.
  std::sort(pods.begin(), pods.end(), [&](PodId a, PodId b) { return goes_before(state, a, b); });
  for (const PodId p : pods) {
    const PodState& pod = state.pod(p);
    const GangState& gang = state.gang(pod.gang);
    if (who.reclaim) {
      ResourceVector sum = taken[gang.tenant] + state.cls(pod.cls).request;
      if (!tenants.can_give(state, gang.tenant, sum)) continue;
      taken[gang.tenant] = sum;
    }
    Unit u;
    u.pod = p;
    u.priority = state.rank_priority(pod);
    u.size = state.cls(pod.cls).request[ResourceNames::kDevice] * 1'000'000 + state.cls(pod.cls).request[ResourceNames::kCpu];
    u.budget = !state.budgets().empty() && breaks_budget(state, pod, plan);
    const auto already = plan.evicted_of.find(pod.gang);
    const auto [left, fresh] = surplus.try_emplace(
        pod.gang, gang.bound - gang.spec.min_member - (already == plan.evicted_of.end() ? 0 : already->second));
    if (gang.spec.disruption == DisruptionMode::kSingle) {
      u.cost = 1;
    } else if (gang.spec.disruption == DisruptionMode::kGang && left->second > 0) {
      --left->second;
    } else {
      u.whole = true;
      u.cost = gang.bound;
      if (who.reclaim) {
        if (!tenants.can_give(state, gang.tenant, gang.allocated)) continue;
      }
    }
    units.push_back(u);
  }
  // Lowest priority first, then whatever frees most for least, then the youngest.
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
    if (a.budget != b.budget) return !a.budget;
    if (a.cost != b.cost) return a.cost < b.cost;
    if (a.size != b.size) return a.size > b.size;
    return a.priority < b.priority;
  });
  std::vector<Unit> chosen;
  std::set<GangId> whole;
  for (const Unit& u : units) {
    if (room.fits(cls)) break;
    // One pod that alone does it is never worse than several.
    if (u.whole && whole.contains(state.pod(u.pod).gang)) continue;
    if (u.whole) {
      whole.insert(state.pod(u.pod).gang);
      for (const PodId p : state.gang(state.pod(u.pod).gang).pods) {
        if (state.pod(p).node == id && state.pod(p).phase == PodPhase::kBound) room.give(state, p);
      }
    } else {
      room.give(state, u.pod);
    }
    chosen.push_back(u);
  }
  if (!room.fits(cls)) return choice;
  // Give back what is not needed, the dearest first; then see whether a smaller pod does for the last one.
  const auto rebuilt = [&](const std::vector<Unit>& set) {
    Room r(state, id, plan);
    std::set<GangId> seen;
    for (const Unit& u : set) {
      if (!u.whole) {
        r.give(state, u.pod);
      } else if (seen.insert(state.pod(u.pod).gang).second) {
        for (const PodId p : state.gang(state.pod(u.pod).gang).pods) {
          if (state.pod(p).node == id && state.pod(p).phase == PodPhase::kBound) r.give(state, p);
        }
      }
    }
    return r.fits(cls);
  };
  for (std::size_t i = chosen.size(); i-- > 0;) {
    std::vector<Unit> without = chosen;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    if (rebuilt(without)) chosen = std::move(without);
  }
  for (Unit& u : chosen) {
    for (const Unit& other : units) {
      if (other.whole || u.whole || other.budget != u.budget || other.cost != u.cost || other.pod == u.pod) continue;
      if (std::any_of(chosen.begin(), chosen.end(), [&](const Unit& c) { return c.pod == other.pod; })) continue;
      if (other.priority != u.priority ? other.priority > u.priority : !goes_before(state, other.pod, u.pod)) continue;
      std::vector<Unit> swapped = chosen;
      for (Unit& c : swapped) {
        if (c.pod == u.pod) c = other;
      }
      if (rebuilt(swapped)) u = other;
    }
  }
  choice.possible = true;
  choice.top_priority = std::numeric_limits<std::int32_t>::min();
  const auto add = [&](PodId p) {
    choice.victims.push_back(p);
    choice.work_lost_s += std::max<std::int64_t>((now - state.gang(state.pod(p).gang).started).count(), 0) / 1'000'000;
    if (!choice.first.valid() || goes_before(state, p, choice.first)) choice.first = p;
  };
  for (const Unit& u : chosen) {
    choice.top_priority = std::max(choice.top_priority, u.priority);
    choice.budgets_broken += u.budget ? 1 : 0;
    if (!u.whole) {
      add(u.pod);
      continue;
    }
    for (const PodId p : state.gang(state.pod(u.pod).gang).pods) {
      if (state.pod(p).phase == PodPhase::kBound && !plan.victims.contains(p)) add(p);
      // A gang that is being started by this very plan cannot go whole.
      if (state.pod(p).phase == PodPhase::kBound && state.pod(p).bound_epoch == state.epoch) return VictimChoice{};
    }
  }
  std::sort(choice.victims.begin(), choice.victims.end());
  choice.victims.erase(std::unique(choice.victims.begin(), choice.victims.end()), choice.victims.end());
  return choice;
}

void VictimIndex::update(const State& state, const Tenants& tenants, const Preemptor& who, Table& table, std::uint32_t n, Time now) {
  ++checks;
  std::uint8_t bucket = 255;
  if (fit_static(state, state.cls(who.cls), state.node(NodeId(n))).ok()) {
    static const EvictionPlan kNothing;
    const VictimChoice choice = choose_on_node(state, tenants, who, NodeId(n), kNothing, now);
    if (choice.possible) bucket = static_cast<std::uint8_t>(std::min(choice.victims.size(), kBuckets - 1));
  }
  if (bucket == table.bucket_of[n]) return;
  if (table.bucket_of[n] != 255) table.buckets[table.bucket_of[n]].erase(n);
  if (bucket != 255) table.buckets[bucket].insert(n);
  table.bucket_of[n] = bucket;
}

std::vector<NodeId> VictimIndex::cheapest(const State& state, const Tenants& tenants, const Preemptor& who, Time now,
                                          std::size_t limit) {
  Table& table = tables_[who.key()];
  table.used = ++uses_;
  if (!table.built || table.cursor < state.log_begin() || table.bucket_of.size() != state.node_count()) {
    table.bucket_of.resize(state.node_count(), 255);
    for (auto& b : table.buckets) b.resize(state.node_count());
    for (std::uint32_t n = 0; n < state.node_count(); ++n) update(state, tenants, who, table, n, now);
    table.cursor = state.log_end();
    table.built = true;
  }
  std::set<NodeId> changed;
  for (; table.cursor < state.log_end(); ++table.cursor) changed.insert(state.log_at(table.cursor));
  for (const NodeId n : changed) update(state, tenants, who, table, n.value, now);
  std::vector<NodeId> out;
  for (const auto& bucket : table.buckets) {
    for (std::uint32_t n = bucket.first(); n != NodeId::kNone && out.size() < limit; n = bucket.next(n + 1)) out.push_back(NodeId(n));
    if (out.size() >= limit) break;
  }
  // Tables of preemptors long gone are dropped.
  if (tables_.size() > 256) {
    for (auto it = tables_.begin(); it != tables_.end();) {
      it = it->second.used + 128 < uses_ ? tables_.erase(it) : std::next(it);
    }
  }
  return out;
}

}  // namespace muster::engine
