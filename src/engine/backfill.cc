// Reservations: the first blocked gangs hold a place in the future, and later work passes only if it cannot
// delay them.
//
// Example: 4 nodes of 8 GPUs, all busy; two become free at 10:00, the others at 11:00. A gang that needs 3 nodes is
// reserved for 11:00 on the first two and one more. At 10:00 a job of 50 minutes may use the two free nodes (it
// ends before 11:00); one of two hours may not. Where nothing is known about run times, nothing is held back
// until the gang has waited for `patience`; then free room is kept for it.
#include <algorithm>

#include "engine/fit.h"
#include "engine/planner.h"

namespace muster::engine {

std::int64_t Planner::duration_of(GangId id) const {
  const GangState& gang = state_.gang(id);
  if (gang.spec.expected_duration.count() > 0) return gang.spec.expected_duration.count();
  std::int64_t longest = 0;
  ClassId cls;
  for (const PodId p : gang.pods) {
    const PodState& pod = state_.pod(p);
    if (!cls.valid()) cls = pod.cls;
    if (pod.expected_duration.count() == 0) {
      longest = 0;
      break;
    }
    longest = std::max<std::int64_t>(longest, pod.expected_duration.count());
  }
  if (longest > 0) return longest;
  return cls.valid() ? durations_.estimate(gang.tenant, cls) : Durations::kUnknown;
}

/// When the pod will have left; far in the future when nobody knows.
Time Planner::end_of(const PodState& pod) const {
  constexpr Time kNever{std::numeric_limits<std::int64_t>::max()};
  if (pod.phase == PodPhase::kReleasing) return pod.leaves ? pod.leaves : now_ + std::chrono::seconds(30);
  std::int64_t us = pod.expected_duration.count();
  const GangState& gang = state_.gang(pod.gang);
  if (us == 0) us = gang.spec.expected_duration.count();
  if (us == 0) {
    const std::int64_t estimate = durations_.estimate(gang.tenant, pod.cls);
    if (estimate == Durations::kUnknown) return kNever;
    us = estimate;
  }
  const Time end = pod.started + Duration(us);
  // Late already: it will take about as long again as it is late.
  if (end <= now_) return now_ + Duration(std::max<std::int64_t>((now_ - end).count(), 60'000'000));
  return end;
}

bool Planner::holds(GangId id) const {
  return std::any_of(holds_.begin(), holds_.end(), [&](const Hold& h) { return h.live && h.gang == id; });
}

/// May a pod of this gang use the node, or would that delay a reservation of somebody ahead?
bool Planner::may_use(NodeId node, const TaskClass& cls, GangId gang) const {
  if (node.index() >= slots_.size() || slots_[node.index()].empty()) return true;
  const GangWait& wait = waits_[gang.index()];
  const Time end = wait.duration_us == Durations::kUnknown ? Time{std::numeric_limits<std::int64_t>::max()}
                                                           : now_ + Duration(wait.duration_us);
  const NodeState& n = state_.node(node);
  for (const Slot& slot : slots_[node.index()]) {
    const Hold& hold = holds_[slot.reservation];
    if (hold.gang == gang || wait.rank < hold.rank) continue;
    if (!hold.start) {
      // Nobody knows when; only work that is surely short passes.
      if (end > now_ + state_.config().patience) return false;
      continue;
    }
    if (end <= hold.start) continue;
    ResourceVector free = n.allocatable;
    free -= slot.amount;
    for (const PodId p : n.pods) {
      const PodState& pod = state_.pod(p);
      if (end_of(pod) > hold.start) free -= state_.cls(pod.cls).request;
    }
    if (!cls.request.fits_in(free)) return false;
  }
  return true;
}

/// The earliest time at which the gang fits, if everybody leaves as expected, and where.
void Planner::compute(Hold& hold, std::uint32_t index) {
  const std::vector<PodId> tasks = tasks_of(hold.gang);
  hold.nodes.clear();
  hold.start = Time{};
  if (tasks.empty()) return;
  const TaskClass& cls = state_.cls_of(tasks.front());
  const std::int32_t wanted = std::max(need_of(state_.gang(hold.gang)).total, 1);

  struct Release {
    Time at;
    NodeId node;
    PodId pod;
  };
  std::vector<Release> releases;
  std::map<NodeId, ResourceVector> room;
  std::map<NodeId, std::int32_t> fits;
  const auto count = [&](const ResourceVector& free) {
    std::int64_t n = wanted;
    for (std::size_t i = 0; i < cls.request.size(); ++i) {
      if (cls.request[i] > 0) n = std::min(n, std::max<std::int64_t>(free[i], 0) / cls.request[i]);
    }
    return static_cast<std::int32_t>(n);
  };
  std::int64_t total = 0;
  for (std::uint32_t i = 0; i < state_.node_count(); ++i) {
    const NodeState& node = state_.node(NodeId(i));
    if (!fit_static(state_, cls, node).ok() || count(node.allocatable) == 0) continue;
    ResourceVector free = node.free;
    for (const Slot& slot : i < slots_.size() ? slots_[i] : std::vector<Slot>{}) {
      if (slot.reservation != index && holds_[slot.reservation].rank < hold.rank) free -= slot.amount;
    }
    fits[NodeId(i)] = count(free);
    total += fits[NodeId(i)];
    room[NodeId(i)] = free;
    for (const PodId p : node.pods) {
      const Time end = end_of(state_.pod(p));
      if (end.us != std::numeric_limits<std::int64_t>::max()) releases.push_back({end, NodeId(i), p});
    }
  }
  std::sort(releases.begin(), releases.end(), [](const Release& a, const Release& b) {
    return a.at != b.at ? a.at < b.at : a.node != b.node ? a.node < b.node : a.pod < b.pod;
  });
  Time start = now_;
  for (std::size_t i = 0; i < releases.size() && total < wanted; ++i) {
    const Release& r = releases[i];
    ResourceVector& free = room[r.node];
    free += state_.cls_of(r.pod).request;
    const std::int32_t n = count(free);
    total += n - fits[r.node];
    fits[r.node] = n;
    start = r.at;
  }
  const bool known = total >= wanted;
  if (!known && now_ < hold.since + state_.config().patience) {
    plan_.wake = plan_.wake ? std::min(*plan_.wake, hold.since + state_.config().patience) : hold.since + state_.config().patience;
    return;
  }
  // Nodes that take most members first; unknown times: those with most room now.
  std::vector<std::pair<std::int32_t, NodeId>> order;
  for (const auto& [node, n] : fits) {
    if (known) {
      if (n > 0) order.emplace_back(-n, node);
    } else {
      order.emplace_back(-std::max(n, count(state_.node(node).allocatable)), node);
    }
  }
  std::sort(order.begin(), order.end());
  std::int32_t left = wanted;
  for (const auto& [negative, node] : order) {
    if (left <= 0) break;
    const std::int32_t n = std::min(-negative, left);
    left -= n;
    ResourceVector amount = cls.request;
    amount.scale(n);
    if (slots_.size() <= node.index()) slots_.resize(state_.node_count());
    slots_[node.index()].push_back({index, amount});
    hold.nodes.push_back(node);
  }
  if (known) hold.start = start;
}

void Planner::release(std::uint32_t index) {
  Hold& hold = holds_[index];
  if (!hold.live) return;
  for (const NodeId n : hold.nodes) {
    std::erase_if(slots_[n.index()], [&](const Slot& s) { return s.reservation == index; });
  }
  hold = Hold{};
  --live_holds_;
  ++holds_version_;
  holds_changed_ = true;
}

void Planner::release_of(GangId id) {
  for (std::uint32_t i = 0; i < holds_.size(); ++i) {
    if (holds_[i].live && holds_[i].gang == id) release(i);
  }
}

/// Gives the gang a reservation if one is free or it outranks somebody who has one.
void Planner::reserve(GangId id) {
  const auto limit = static_cast<std::size_t>(std::max(state_.config().reservations, 0));
  const GangWait& wait = waits_[id.index()];
  if (limit == 0 || wait.rank.surplus || holds(id)) return;
  if (state_.tenant(wait.tenant).spec.backfill != BackfillMode::kReservation) return;
  if (live_holds_ >= limit) {
    std::uint32_t last = 0;
    bool found = false;
    for (std::uint32_t i = 0; i < holds_.size(); ++i) {
      if (holds_[i].live && (!found || holds_[last].rank < holds_[i].rank)) {
        last = i;
        found = true;
      }
    }
    if (!found || !(wait.rank < holds_[last].rank)) return;
    release(last);
  }
  std::uint32_t index = 0;
  while (index < holds_.size() && holds_[index].live) ++index;
  if (index == holds_.size()) holds_.emplace_back();
  Hold& hold = holds_[index];
  hold.gang = id;
  hold.rank = wait.rank;
  hold.since = wait.since;
  hold.live = true;
  ++live_holds_;
  compute(hold, index);
  ++holds_version_;
  holds_changed_ = true;
}

/// A free place goes to the best of those that are blocked.
void Planner::fill_reservations() {
  const auto limit = static_cast<std::size_t>(std::max(state_.config().reservations, 0));
  while (live_holds_ < limit) {
    const std::pair<Rank, GangId>* best = nullptr;
    for (std::uint32_t t = 0; t < tenant_waits_.size(); ++t) {
      if (tenant_waits_[t].buckets.empty() || state_.tenant(TenantId(t)).spec.backfill != BackfillMode::kReservation) continue;
      for (const auto& [shape, bucket] : tenant_waits_[t].buckets) {
        if (!shapes_[shape.index()].blocked || bucket.over_limit) continue;
        for (const auto& entry : bucket.by_rank) {
          if (entry.first.surplus) break;
          if (holds(entry.second)) continue;
          if (best == nullptr || entry < *best) best = &entry;
          break;
        }
      }
    }
    if (best == nullptr) return;
    const std::size_t before = live_holds_;
    reserve(best->second);
    if (live_holds_ == before) return;
  }
}

/// Times that passed, or that may have become known, are computed again.
void Planner::refresh_reservations() {
  for (std::uint32_t i = 0; i < holds_.size(); ++i) {
    Hold& hold = holds_[i];
    if (!hold.live) continue;
    const bool late = hold.start && hold.start <= now_;
    const bool patience_over = !hold.start && hold.nodes.empty() && now_ >= hold.since + state_.config().patience;
    if (!late && !patience_over) {
      if (!hold.start && hold.nodes.empty()) {
        const Time at = hold.since + state_.config().patience;
        plan_.wake = plan_.wake ? std::min(*plan_.wake, at) : at;
      }
      continue;
    }
    for (const NodeId n : hold.nodes) {
      std::erase_if(slots_[n.index()], [&](const Slot& s) { return s.reservation == i; });
    }
    compute(hold, i);
    ++holds_version_;
    holds_changed_ = true;
  }
}

}  // namespace muster::engine
