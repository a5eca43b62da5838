// Reservations: the first blocked gangs hold a place in the future, and later work passes only if
// it cannot delay them.
//
// Example: 4 nodes of 8 GPUs, all busy; two become free at 10:00, the others at 11:00. A gang that
// needs 3 nodes is reserved for 11:00 on the first two and one more. At 10:00 a job of 50 minutes
// may use the two free nodes (it ends before 11:00); one of two hours may not. Where nothing is
// known about run times, nothing is held back until the gang has waited for `patience`; then free
// room is kept for it.
#include <algorithm>
#include <tuple>

#include "engine/muster/planner.h"
#include "engine/state/match.h"

namespace muster::engine {

namespace {

constexpr std::int32_t kUnusable = DeviceState::kUnusable;

/// What a node has free at some time, whole devices and shares of them told apart.
struct Free {
  ResourceVector amounts;
  std::vector<std::int32_t> devices;

  void give(const PodState& pod, const TaskClass& cls) {
    amounts += cls.request;
    for (const auto i : pod.devices) devices[i] = std::min(1000, devices[i] + cls.device_milli());
  }
  void take(const TaskClass& cls, const Positions& at) {
    amounts -= cls.request;
    for (const auto i : at) devices[i] -= cls.device_milli();
  }
  /// How many pods of the class fit, at most `wanted`.
  [[nodiscard]] std::int32_t count(const TaskClass& cls, std::int64_t wanted) const {
    for (std::size_t i = 0; i < cls.request.size(); ++i) {
      if (cls.request[i] > 0 && amounts[i] < cls.request[i]) return 0;
    }
    std::int64_t n = wanted;
    for (std::size_t i = 0; i < cls.request.size(); ++i) {
      // Divisions are dear, and this is asked for every pod that leaves.
      if (cls.request[i] > 0 && amounts[i] < cls.request[i] * n) n = amounts[i] / cls.request[i];
    }
    if (cls.devices == 0 && cls.share_milli == 0) return static_cast<std::int32_t>(n);
    std::int64_t fit = 0;
    for (const auto d : devices)
      fit += cls.share_milli > 0 ? std::max(d, 0) / cls.share_milli : d == 1000 ? 1 : 0;
    if (cls.devices > 1) fit /= cls.devices;
    return static_cast<std::int32_t>(std::min(n, fit));
  }
};

}  // namespace

std::int64_t Planner::duration_of(GangId id) const {
  const GangState& gang = state_.gang(id);
  const auto expected = [&]() -> std::int64_t {
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
  };
  if (state_.tenant(gang.tenant).spec.max_duration.count() == 0) return expected();
  // Its queue ends pods of a certain age, whatever they had in mind; the youngest is the last to
  // go.
  Time latest;
  for (const PodId p : gang.pods)
    latest = std::max(latest, state_.latest_end(gang.tenant, state_.pod(p).created));
  const std::int64_t left =
      latest == kNever ? Durations::kUnknown : std::max<std::int64_t>((latest - now_).count(), 1);
  return std::min(expected(), left);
}

/// When the pod will have left; far in the future when nobody knows.
Time Planner::end_of(const PodState& pod) const {
  if (pod.phase == PodPhase::kBound && pod.ends != kNever && pod.ends > now_) return pod.ends;
  if (pod.phase == PodPhase::kReleasing)
    return pod.leaves ? pod.leaves : now_ + std::chrono::seconds(30);
  std::int64_t us = pod.expected_duration.count();
  const GangState& gang = state_.gang(pod.gang);
  if (us == 0) us = gang.spec.expected_duration.count();
  const Time latest = state_.latest_end(gang.tenant, pod.created);
  if (us == 0) {
    const std::int64_t estimate = durations_.estimate(gang.tenant, pod.cls);
    if (estimate == Durations::kUnknown && latest == kNever) return kNever;
    us = estimate;
  }
  const Time end =
      us == Durations::kUnknown ? latest : std::min(pod.started + Duration(us), latest);
  // Late already: it will take about as long again as it is late.
  if (end <= now_) return now_ + Duration(std::max<std::int64_t>((now_ - end).count(), 60'000'000));
  return end;
}

bool Planner::holds(GangId id) const {
  return std::any_of(
      holds_.begin(), holds_.end(), [&](const Hold& h) { return h.live && h.gang == id; });
}

/// May a pod of this gang use the node, or would that delay a reservation of somebody ahead?
/// With `evictions` once these are carried out.
bool Planner::may_use(NodeId node,
                      const TaskClass& cls,
                      GangId gang,
                      const EvictionPlan* evictions) const {
  if (node.index() >= slots_.size() || slots_[node.index()].empty()) return true;
  const GangWait& wait = waits_[gang.index()];
  const Time end =
      wait.duration_us == Durations::kUnknown ? kNever : now_ + Duration(wait.duration_us);
  const NodeState& n = state_.node(node);
  for (const Slot& slot : slots_[node.index()]) {
    const Hold& hold = holds_[slot.reservation];
    if (hold.gang == gang || wait.rank < hold.rank) continue;
    if (state_.parent_of(gang).valid() && state_.root_of(gang) == state_.root_of(hold.gang))
      continue;  // Its own family's.
    if (!hold.start) {
      // Nobody knows when; only work that is surely short passes.
      if (end > now_ + state_.config().patience) return false;
      continue;
    }
    if (end <= hold.start) continue;
    ResourceVector free = n.allocatable;
    free -= slot.amount;
    free -= n.held;
    for (const PodId p : n.pods) {
      const PodState& pod = state_.pod(p);
      const bool stays =
          end_of(pod) > hold.start && (evictions == nullptr || !evictions->victims.contains(p));
      if (stays) free -= state_.cls(pod.cls).request;
    }
    if (evictions != nullptr && evictions->nodes.contains(node)) {
      for (const auto& guest : evictions->nodes.at(node).guests)
        free -= state_.cls_of(guest.pod).request;
    }
    if (!cls.request.fits_in(free)) return false;
    const bool shares = cls.share_milli > 0 || n.shared || state_.cls(slot.cls).share_milli > 0;
    if (shares && !leaves_devices(node, cls, slot, hold.start, evictions)) return false;
  }
  return true;
}

/// Sums say little where devices are shared: with the pod there, are there still enough whole ones,
/// or large enough parts, by then?
bool Planner::leaves_devices(NodeId node,
                             const TaskClass& cls,
                             const Slot& slot,
                             Time then,
                             const EvictionPlan* evictions) const {
  const NodeState& n = state_.node(node);
  const TaskClass& holder = state_.cls(slot.cls);
  if (holder.devices == 0 && holder.share_milli == 0) return true;
  Free free{n.unheld(), {}};
  for (const auto& d : n.devices) free.devices.push_back(d.open_milli());
  Positions devices;
  const auto goes = [&](PodId p) { return evictions != nullptr && evictions->victims.contains(p); };
  if (evictions != nullptr) {
    devices = Room(state_, node, *evictions).pick(cls);
    if (const auto on = evictions->nodes.find(node); on != evictions->nodes.end()) {
      for (const auto& guest : on->second.guests)
        free.take(state_.cls_of(guest.pod), guest.devices);
    }
  } else if (picked_device_ >= 0) {
    devices = {static_cast<std::uint16_t>(picked_device_)};
  } else {
    devices = pick_devices(cls, n.devices, [&](std::size_t i) { return free.devices[i]; });
  }
  free.take(cls, devices);
  for (const PodId p : n.pods) {
    if (goes(p) || end_of(state_.pod(p)) <= then) free.give(state_.pod(p), state_.cls_of(p));
  }
  for (std::size_t i = 0; i < n.devices.size(); ++i) {
    if (!holder.allows(n.devices[i])) free.devices[i] = kUnusable;
  }
  return free.count(holder, slot.members) >= slot.members;
}

/// The members below `group` without which the gang does not start: at every level as many groups
/// as are short of the minimum, its own first, then those that ask for the fewest devices.
std::vector<PodId> Planner::starting_below(GangId group, GangId id) const {
  const GangState& gang = state_.gang(group);
  std::vector<PodId> out;
  if (!gang.spec.is_parent) {
    out = tasks_of(group);
    out.resize(std::min<std::size_t>(out.size(),
                                     static_cast<std::size_t>(std::max(need_of(gang).total, 1))));
    return out;
  }
  struct Child {
    bool others;
    std::int64_t devices = 0;
    std::uint64_t seq;
    std::vector<PodId> tasks;
  };
  std::vector<Child> waiting;
  std::int32_t left = std::max(1, gang.spec.min_groups);
  for (const GangId child : state_.children_of(gang.key)) {
    const std::vector<GangId> leaves = state_.leaves_of(child);
    const bool own = std::find(leaves.begin(), leaves.end(), id) != leaves.end();
    if (!own && (group_runs(child) || nominated_.contains(child))) {
      --left;
      continue;
    }
    Child c{!own, 0, state_.gang(child).seq, starting_below(child, id)};
    for (const PodId p : c.tasks) c.devices += state_.cls_of(p).request[ResourceNames::kDevice];
    if (!c.tasks.empty()) waiting.push_back(std::move(c));
  }
  std::sort(waiting.begin(), waiting.end(), [](const Child& a, const Child& b) {
    return std::tie(a.others, a.devices, a.seq) < std::tie(b.others, b.devices, b.seq);
  });
  for (const Child& c : waiting) {
    if (c.others && left <= 0) break;
    --left;
    out.insert(out.end(), c.tasks.begin(), c.tasks.end());
  }
  return out;
}

/// The members that must start together, of the gang and of its family. The largest first.
std::vector<PodId> Planner::starting_with(GangId id) const {
  const bool family = need_of(state_.gang(id)).total > 0 && state_.parent_of(id).valid();
  std::vector<PodId> out = starting_below(family ? state_.root_of(id) : id, id);
  std::stable_sort(out.begin(), out.end(), [&](PodId a, PodId b) {
    return state_.cls_of(a).request[ResourceNames::kDevice] >
           state_.cls_of(b).request[ResourceNames::kDevice];
  });
  return out;
}

/// Sets of nodes of which one must take all: the domains of required levels, or all nodes.
std::vector<std::vector<NodeId>> Planner::places_of(GangId id) const {
  std::vector<std::string> keys;
  for (const auto& level : levels_of(state_.gang(id))) {
    if (level.required) keys.push_back(level.key);
  }
  std::map<std::vector<std::string>, std::vector<NodeId>> by_values;
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    std::vector<std::string> values;
    for (const auto& key : keys) {
      const std::string* value = find_label(state_.node(NodeId(n)).spec.labels, key);
      if (value == nullptr) break;
      values.push_back(*value);
    }
    if (values.size() == keys.size()) by_values[values].push_back(NodeId(n));
  }
  std::vector<std::vector<NodeId>> out;
  for (auto& [values, nodes] : by_values) out.push_back(std::move(nodes));
  return out;
}

/// The earliest time at which the gang fits, if everybody leaves as expected, and where.
void Planner::compute(Hold& hold, std::uint32_t index) {
  hold.nodes.clear();
  hold.start = Time{};
  const std::vector<PodId> tasks = starting_with(hold.gang);
  if (tasks.empty()) return;
  // Counted in members like the largest; smaller ones count for what they are of it, a launcher
  // beside its workers for nothing.
  hold.member = state_.pod(tasks.front()).key;
  const TaskClass& cls = state_.cls_of(tasks.front());
  std::int64_t parts = 0;
  for (const PodId p : tasks) {
    const ResourceVector& request = state_.cls_of(p).request;
    std::int64_t part = 0;
    for (std::size_t i = 0; i < request.size(); ++i) {
      if (i != ResourceNames::kPods && cls.request[i] > 0)
        part = std::max(part, request[i] * 100 / cls.request[i]);
    }
    parts += std::min<std::int64_t>(part, 100);
  }
  const auto wanted = static_cast<std::int32_t>(std::max<std::int64_t>((parts + 75) / 100, 1));
  /// From then on the node takes so many more.
  struct Step {
    Time at;
    NodeId node;
    std::int32_t more;
  };
  struct Found {
    bool known = false;
    Time start;
    std::vector<std::pair<NodeId, std::int32_t>> fits;  ///< At that time.
  };
  ClassIndex& usable = index_.of(state_.pod(tasks.front()).cls);
  usable.catch_up(state_, index_.checks);
  std::vector<Step> steps;
  std::vector<std::pair<Time, PodId>> ends;
  Free free;
  const auto earliest = [&](const std::vector<NodeId>& nodes) {
    Found found;
    steps.clear();
    std::int64_t total = 0;
    for (const NodeId id : nodes) {
      const NodeState& node = state_.node(id);
      if (!usable.allowed(id) || !cls.request.fits_in(node.allocatable)) continue;
      free.amounts = node.unheld();
      free.devices.clear();
      for (const auto& d : node.devices)
        free.devices.push_back(cls.allows(d) ? d.open_milli() : kUnusable);
      if (id.index() < slots_.size()) {
        for (const Slot& slot : slots_[id.index()]) {
          if (slot.reservation != index && holds_[slot.reservation].rank < hold.rank)
            free.amounts -= slot.amount;
        }
      }
      std::int32_t now_fits = free.count(cls, wanted);
      found.fits.emplace_back(id, now_fits);
      total += now_fits;
      if (now_fits >= wanted) continue;
      ends.clear();
      for (const PodId p : node.pods) {
        const Time end = end_of(state_.pod(p));
        if (end != kNever) ends.emplace_back(end, p);
      }
      std::sort(ends.begin(), ends.end());
      for (const auto& [at, p] : ends) {
        free.give(state_.pod(p), state_.cls_of(p));
        const std::int32_t n = free.count(cls, wanted);
        if (n > now_fits) steps.push_back({at, id, n - now_fits});
        now_fits = std::max(now_fits, n);
      }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
      return a.at != b.at ? a.at < b.at : a.node < b.node;
    });
    found.start = now_;
    for (std::size_t i = 0; i < steps.size() && total < wanted; ++i) {
      const auto it = std::lower_bound(
          found.fits.begin(), found.fits.end(), steps[i].node, [](const auto& f, NodeId n) {
            return f.first < n;
          });
      it->second += steps[i].more;
      total += steps[i].more;
      found.start = steps[i].at;
    }
    found.known = total >= wanted;
    return found;
  };
  Found best;
  bool any = false;
  for (const auto& nodes : places_of(hold.gang)) {
    Found found = earliest(nodes);
    const bool better = !any || (found.known && (!best.known || found.start < best.start));
    if (better) best = std::move(found);
    any = true;
  }
  if (!best.known && now_ < hold.since + state_.config().patience) {
    plan_.wake = plan_.wake ? std::min(*plan_.wake, hold.since + state_.config().patience)
                            : hold.since + state_.config().patience;
    return;
  }
  // Nodes that take most members first; unknown times: those with most room when empty.
  std::vector<std::pair<std::int32_t, NodeId>> order;
  for (const auto& [id, n] : best.fits) {
    Free empty{state_.node(id).allocatable,
               std::vector<std::int32_t>(state_.node(id).devices.size(), 1000)};
    const std::int32_t takes = best.known ? n : std::max(n, empty.count(cls, wanted));
    if (takes > 0) order.emplace_back(-takes, id);
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
    slots_[node.index()].push_back({index, amount, state_.pod(tasks.front()).cls, n});
    hold.nodes.push_back(node);
  }
  if (best.known) hold.start = best.start;
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

/// The first to be blocked always gets a reservation. Behind it only gangs do: a single pod finds
/// room soon enough, and each reservation more keeps others waiting.
bool Planner::worth_more(GangId id, const Rank& rank) const {
  if (need_of(state_.gang(id)).total > 1) return true;
  return std::none_of(
      holds_.begin(), holds_.end(), [&](const Hold& h) { return h.live && h.rank < rank; });
}

/// Gives the gang a reservation if one is free or it outranks somebody who has one.
void Planner::reserve(GangId id) {
  const auto limit = static_cast<std::size_t>(std::max(state_.config().reservations, 0));
  const GangWait& wait = waits_[id.index()];
  if (limit == 0 || wait.rank.surplus || holds(id)) return;
  if (live_holds_ > 0 && !worth_more(id, wait.rank)) return;
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
      if (tenant_waits_[t].buckets.empty() ||
          state_.tenant(TenantId(t)).spec.backfill != BackfillMode::kReservation)
        continue;
      for (const auto& [shape, bucket] : tenant_waits_[t].buckets) {
        if (!shapes_[shape.index()].blocked || bucket.over_limit) continue;
        for (const auto& entry : bucket.by_rank) {
          if (entry.first.surplus) break;
          if (holds(entry.second)) continue;
          if (live_holds_ > 0 && !worth_more(entry.second, entry.first)) break;
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
    const bool patience_over =
        !hold.start && hold.nodes.empty() && now_ >= hold.since + state_.config().patience;
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
