#include "engine/muster/victims.h"

#include <algorithm>

#include "engine/state/fit.h"
#include "engine/state/match.h"

namespace muster::engine {

bool eligible(const Asking& asking, const PodState& victim) {
  const State& state = asking.state;
  const Preemptor& who = asking.who;
  if (victim.phase != PodPhase::kBound || !victim.ours || !victim.preemptable || victim.critical)
    return false;
  if (victim.gang == who.gang || (victim.bound_epoch == state.epoch && !asking.lasting))
    return false;
  const GangState& gang = state.gang(victim.gang);
  if (gang.has_group && !gang.spec->preemptable) return false;
  const TenantState& mine = state.tenant(who.tenant);
  const TenantState& theirs = state.tenant(gang.tenant);
  const bool same = gang.tenant == who.tenant;
  if (who.reclaim) return !same && theirs.spec.reclaimable;
  if (mine.spec.t9k || theirs.spec.t9k) {
    return !same && theirs.spec.preemptible && theirs.spec.priority < mine.spec.priority;
  }
  if (state.rank_priority(victim) >= who.priority) return false;
  return same || state.config().preempt_across_queues;
}

namespace {

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

// ------------------------------------------------------------------------------------------- plans

std::int32_t EvictionPlan::evicted_of(GangId gang) const {
  const auto it = evicted_.find(gang);
  return it == evicted_.end() ? 0 : it->second;
}

const ResourceVector& EvictionPlan::taken_from(TenantId tenant) const {
  static const ResourceVector kNothing{};
  const auto it = taken_.find(tenant);
  return it == taken_.end() ? kNothing : it->second;
}

void EvictionPlan::take(const Asking& asking, PodId id) {
  if (!victims.insert(id).second) return;
  const State& state = asking.state;
  const PodState& pod = state.pod(id);
  const GangState& gang = state.gang(pod.gang);
  nodes[pod.node].victims.push_back(id);
  ++evicted_[pod.gang];
  for (TenantId t = gang.tenant; t.valid(); t = state.tenant(t).parent)
    taken_[t] += state.cls(pod.cls).request;
  bool broken = false;
  for (const auto& [key, budget] : state.budgets()) {
    if (budget.ns != pod.ns || !budget.selector || !matches(*budget.selector, pod.labels)) continue;
    broken |= ++budget_used_[key] > budget.disruptions_allowed;
  }
  cost.budgets_broken += broken ? 1 : 0;
  ++cost.pods;
  cost.top_priority = std::max(cost.top_priority, state.rank_priority(pod));
  cost.work_lost_s += std::max<std::int64_t>((asking.now - gang.started).count(), 0) / 1'000'000;
}

/// Does the queue keep its due (when reclaiming) or its guarantee, and every queue above it that is
/// not above the preemptor as well? What moves inside a common ancestor takes nothing from that
/// one.
bool EvictionPlan::amounts_hold(const Asking& asking, TenantId tenant) const {
  if (asking.lasting) return true;
  const State& state = asking.state;
  const auto above_preemptor = [&](TenantId t) {
    for (TenantId up = asking.who.tenant; up.valid(); up = state.tenant(up).parent) {
      if (up == t) return true;
    }
    return false;
  };
  for (TenantId t = tenant; t.valid() && !above_preemptor(t); t = state.tenant(t).parent) {
    const ResourceVector& taken = taken_from(t);
    // Where queues take back their due, priority takes none of it from another queue: the two would
    // evict each other forever.
    const bool due = asking.who.reclaim || state.config().reclaim;
    if (due && !asking.tenants.can_give(state, t, taken)) return false;
    if (!due && !asking.tenants.keeps_guarantee(state, t, taken)) return false;
  }
  return true;
}

/// A gang that has its minimum, or a group of groups that has enough such groups, without what the
/// plan takes.
bool EvictionPlan::runs(const State& state, GangId group, GangId without) const {
  if (group == without) return false;
  const GangState& gang = state.gang(group);
  if (!gang.spec->is_parent) {
    const std::int32_t left = gang.bound - evicted_of(group);
    return left > 0 && left + gang.succeeded >= gang.spec->min_member;
  }
  std::int32_t running = 0;
  for (const GangId child : state.children_of(gang.key))
    running += runs(state, child, without) ? 1 : 0;
  return running >= std::max(1, gang.spec->min_groups);
}

std::vector<PodId> EvictionPlan::goes_with(const State& state, PodId id) const {
  const GangId leaf = state.pod(id).gang;
  const GangState& gang = state.gang(leaf);
  if (!gang.has_group) return {id};
  // The widest group that must go: it says so itself, or it would not have its minimum any more.
  GangId top;
  if (gang.spec->disruption == DisruptionMode::kWhole) top = leaf;
  if (gang.spec->disruption == DisruptionMode::kGang &&
      gang.bound - evicted_of(leaf) <= gang.spec->min_member)
    top = leaf;
  GangId below = leaf;
  for (int depth = 0; depth < 8; ++depth) {
    const GangId up = state.parent_of(below);
    if (!up.valid()) break;
    const GangState& group = state.gang(up);
    const bool falls = top == below && group.spec->disruption == DisruptionMode::kGang &&
                       runs(state, up, GangId{}) && !runs(state, up, below);
    if (group.spec->disruption == DisruptionMode::kWhole || falls) top = up;
    below = up;
  }
  if (!top.valid()) return {id};
  std::vector<PodId> all;
  for (const GangId member : state.leaves_of(top)) {
    for (const PodId p : state.gang(member).pods) {
      if (state.pod(p).phase == PodPhase::kBound && !victims.contains(p)) all.push_back(p);
    }
  }
  return all;
}

bool EvictionPlan::add(const Asking& asking, PodId pod) {
  for (const PodId p : goes_with(asking.state, pod)) {
    if (!eligible(asking, asking.state.pod(p))) return false;
    take(asking, p);
    if (!amounts_hold(asking, asking.state.gang(asking.state.pod(p).gang).tenant)) return false;
  }
  return true;
}

void EvictionPlan::seat(const State& state, NodeId node, PodId pod) {
  Positions devices = Room(state, node, *this).pick(state.cls_of(pod));
  nodes[node].guests.push_back({pod, std::move(devices)});
}

bool EvictionPlan::add_whole(const Asking& asking, GangId gang) {
  for (const PodId p : asking.state.gang(gang).pods) {
    if (asking.state.pod(p).phase == PodPhase::kBound && !victims.contains(p) && !add(asking, p))
      return false;
  }
  return true;
}

// -------------------------------------------------------------------------------------------- room

Room::Room(const State& state, NodeId id, const EvictionPlan& plan)
    : state_(state), node_(state.node(id)) {
  free_ = node_.unheld();
  free_ += node_.releasing;
  devices_.reserve(node_.devices.size());
  for (const auto& d : node_.devices) devices_.push_back(d.open_milli());
  // What is leaving already counts as gone.
  if (!node_.releasing.is_zero()) {
    for (const PodId p : node_.pods) {
      if (state.pod(p).phase != PodPhase::kReleasing) continue;
      give_devices(state.pod(p));
      gone_.push_back(p);
    }
  }
  const auto it = plan.nodes.find(id);
  if (it == plan.nodes.end()) return;
  for (const PodId p : it->second.victims) give(p);
  for (const auto& guest : it->second.guests) take(state.cls_of(guest.pod), guest.devices);
}

void Room::give_devices(const PodState& pod) {
  const std::int32_t milli = state_.cls(pod.cls).device_milli();
  for (const auto i : pod.devices) devices_[i] = std::min(1000, devices_[i] + milli);
}

void Room::give(PodId pod) {
  free_ += state_.cls_of(pod).request;
  give_devices(state_.pod(pod));
  gone_.push_back(pod);
}

void Room::take(const TaskClass& cls, const Positions& devices) {
  free_ -= cls.request;
  for (const auto i : devices) devices_[i] -= cls.device_milli();
}

Positions Room::pick(const TaskClass& cls) const {
  return pick_devices(cls, node_.devices, [&](std::size_t i) { return devices_[i]; });
}

bool Room::lacks_any(const TaskClass& cls, const Positions& devices) const {
  return std::any_of(
      devices.begin(), devices.end(), [&](auto i) { return devices_[i] < cls.device_milli(); });
}

bool Room::fits(const TaskClass& cls) const {
  if (cls.unknown_resource || !cls.request.fits_in(free_)) return false;
  if (cls.share_milli > 0) {
    bool any = false;
    for (std::size_t i = 0; i < devices_.size() && !any; ++i)
      any = devices_[i] >= cls.share_milli && cls.allows(node_.devices[i]);
    if (!any) return false;
  }
  if (cls.devices > 0) {
    std::int32_t whole = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i)
      whole += devices_[i] == 1000 && cls.allows(node_.devices[i]) ? 1 : 0;
    if (whole < cls.devices) return false;
  }
  for (const auto& wanted : cls.spec.host_ports) {
    for (const PodId p : node_.pods) {
      if (std::find(gone_.begin(), gone_.end(), p) != gone_.end()) continue;
      for (const auto& taken : state_.cls_of(p).spec.host_ports) {
        if (ports_conflict(wanted, taken)) return false;
      }
    }
  }
  return true;
}

std::int32_t Room::count(const TaskClass& cls, std::int32_t limit) const {
  Room trial = *this;
  std::int32_t n = 0;
  while (n < limit && trial.fits(cls)) {
    trial.take(cls, trial.pick(cls));
    ++n;
    if (!cls.spec.host_ports.empty()) break;
  }
  return n;
}

ResourceVector Room::lacks(const TaskClass& cls) const {
  ResourceVector missing;
  for (std::size_t i = 0; i < cls.request.size(); ++i) {
    if (cls.request[i] > 0 && cls.request[i] > free_[i]) missing.set(i, cls.request[i] - free_[i]);
  }
  return missing;
}

bool fits_after(const State& state, const TaskClass& cls, NodeId node, const EvictionPlan& plan) {
  if (!fit_static(state, cls, state.node(node)).ok()) return false;
  return Room(state, node, plan).fits(cls);
}

// ---------------------------------------------------------------------------------------- one node

namespace {

/// The search for the cheapest set on one node. Sets are lists of positions in `options_`; what
/// must go with a member of the set goes, too, and is counted.
class NodeSearch {
 public:
  NodeSearch(const Asking& asking, NodeId node, const EvictionPlan& plan)
      : asking_(asking),
        state_(asking.state),
        cls_(asking.state.cls(asking.who.cls)),
        node_(node),
        plan_(plan),
        empty_(state_, node, plan) {}

  VictimChoice run() {
    VictimChoice choice;
    if (empty_.fits(cls_)) {
      choice.possible = true;
      return choice;
    }
    gather();
    greedy();
    if (!found_) return choice;
    prune();
    if (best_.cost.budgets_broken > 0 || best_.cost.pods > least()) search({}, 0);
    swap_equals();
    choice.possible = true;
    choice.cost = best_.cost;
    choice.victims = best_.victims;
    std::sort(choice.victims.begin(), choice.victims.end());
    for (const PodId p : choice.victims) {
      if (!choice.first.valid() || goes_before(state_, p, choice.first)) choice.first = p;
    }
    return choice;
  }

 private:
  static constexpr int kSteps = 400;

  struct Option {
    PodId pod;
    VictimCost cost;  ///< If it were the only one, on top of the plan.
    std::int64_t size = 0;
  };
  struct Found {
    std::vector<std::size_t> set;
    std::vector<PodId> victims;
    VictimCost cost;
  };

  /// Each may go alone: then a set costs what its members cost, and no plan has to be worked out to
  /// know it.
  bool alone(const PodState& pod) const {
    const GangState& gang = state_.gang(pod.gang);
    return !gang.has_group ||
           (gang.spec->disruption == DisruptionMode::kSingle && gang.spec->parent.empty());
  }

  VictimCost difference(const VictimCost& whole) const {
    VictimCost d = whole;
    d.budgets_broken -= plan_.cost.budgets_broken;
    d.pods -= plan_.cost.pods;
    d.work_lost_s -= plan_.cost.work_lost_s;
    return d;
  }

  void gather() {
    simple_ = state_.budgets().empty() && (!asking_.who.reclaim || asking_.lasting);
    for (const PodId p : state_.node(node_).pods) {
      if (plan_.victims.contains(p) || !eligible(asking_, state_.pod(p))) continue;
      simple_ =
          simple_ && alone(state_.pod(p)) &&
          (asking_.lasting || !asking_.tenants.guarded(state_.gang(state_.pod(p).gang).tenant));
      options_.push_back({p, {}, 0});
    }
    std::erase_if(options_, [&](Option& o) {
      const PodState& pod = state_.pod(o.pod);
      o.size = state_.cls(pod.cls).request[ResourceNames::kDevice] * 1'000'000 +
               state_.cls(pod.cls).request[ResourceNames::kCpu];
      if (simple_) {
        o.cost = {0,
                  1,
                  state_.rank_priority(pod),
                  std::max<std::int64_t>((asking_.now - state_.gang(pod.gang).started).count(), 0) /
                      1'000'000};
        return false;
      }
      EvictionPlan trial = plan_;
      if (!trial.add(asking_, o.pod)) return true;
      o.cost = difference(trial.cost);
      return false;
    });
    // Whatever frees most for least first, then the lowest priority, then the youngest.
    std::sort(options_.begin(), options_.end(), [&](const Option& a, const Option& b) {
      if (a.cost.budgets_broken != b.cost.budgets_broken)
        return a.cost.budgets_broken < b.cost.budgets_broken;
      if (a.cost.pods != b.cost.pods) return a.cost.pods < b.cost.pods;
      if (a.size != b.size) return a.size > b.size;
      const auto pa = state_.rank_priority(state_.pod(a.pod));
      const auto pb = state_.rank_priority(state_.pod(b.pod));
      return pa != pb ? pa < pb : goes_before(state_, a.pod, b.pod);
    });
  }

  /// The closed set with its cost and whether the pod then fits; nothing when somebody in it may
  /// not go.
  struct Tried {
    bool allowed = false;
    bool fits = false;
    VictimCost cost;
    std::vector<PodId> victims;
  };
  Tried try_set(const std::vector<std::size_t>& set) const {
    Tried t;
    Room room = empty_;
    if (simple_) {
      for (const std::size_t i : set) {
        room.give(options_[i].pod);
        t.victims.push_back(options_[i].pod);
        ++t.cost.pods;
        t.cost.top_priority = std::max(t.cost.top_priority, options_[i].cost.top_priority);
        t.cost.work_lost_s += options_[i].cost.work_lost_s;
      }
      t.allowed = true;
      t.fits = room.fits(cls_);
      return t;
    }
    EvictionPlan trial = plan_;
    for (const std::size_t i : set) {
      if (!trial.victims.contains(options_[i].pod) && !trial.add(asking_, options_[i].pod))
        return t;
    }
    t.allowed = true;
    t.cost = difference(trial.cost);
    for (const PodId p : trial.victims) {
      if (plan_.victims.contains(p)) continue;
      t.victims.push_back(p);
      if (state_.pod(p).node == node_) room.give(p);
    }
    t.fits = room.fits(cls_);
    return t;
  }

  bool keep(const std::vector<std::size_t>& set, Tried&& t) {
    if (found_ && !(t.cost < best_.cost)) return false;
    found_ = true;
    best_ = {set, std::move(t.victims), t.cost};
    return true;
  }

  void greedy() {
    std::vector<std::size_t> set;
    for (std::size_t i = 0; i < options_.size(); ++i) {
      set.push_back(i);
      Tried t = try_set(set);
      if (!t.allowed) {
        set.pop_back();
      } else if (t.fits) {
        keep(set, std::move(t));
        return;
      }
    }
  }

  /// Gives back what is not needed, the dearest first.
  void prune() {
    for (std::size_t i = best_.set.size(); i-- > 0 && best_.set.size() > 1;) {
      std::vector<std::size_t> without = best_.set;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      Tried t = try_set(without);
      if (t.allowed && t.fits) keep(without, std::move(t));
    }
  }

  /// No set of fewer pods can do: even the largest free too little.
  std::int32_t least() const {
    const ResourceVector missing = empty_.lacks(cls_);
    std::int32_t least = 1;
    for (std::size_t r = 0; r < missing.size(); ++r) {
      if (missing[r] <= 0) continue;
      std::vector<std::int64_t> sizes;
      for (const Option& o : options_) sizes.push_back(state_.cls_of(o.pod).request[r]);
      std::sort(sizes.rbegin(), sizes.rend());
      std::int64_t sum = 0;
      std::int32_t n = 0;
      for (const auto s : sizes) {
        if (sum >= missing[r]) break;
        sum += s;
        ++n;
      }
      least = std::max(least, n);
    }
    return least;
  }

  /// Depth first over sets that cost less in budgets and pods than the best known.
  void search(std::vector<std::size_t> set, std::size_t from) {
    for (std::size_t i = from; i < options_.size(); ++i) {
      if (++steps_ > kSteps) return;
      set.push_back(i);
      Tried t = try_set(set);
      const bool cheaper = std::tie(t.cost.budgets_broken, t.cost.pods) <
                           std::tie(best_.cost.budgets_broken, best_.cost.pods);
      if (t.allowed && cheaper) {
        if (t.fits) {
          keep(set, std::move(t));
        } else {
          search(set, i + 1);
        }
      }
      set.pop_back();
    }
  }

  /// Others that cost as much may be of lower rank, or younger.
  void swap_equals() {
    for (std::size_t k = 0; k < best_.set.size(); ++k) {
      for (std::size_t i = 0; i < options_.size(); ++i) {
        if (std::find(best_.set.begin(), best_.set.end(), i) != best_.set.end()) continue;
        const PodId mine = options_[best_.set[k]].pod;
        const PodId other = options_[i].pod;
        const auto p = state_.rank_priority(state_.pod(mine));
        const auto q = state_.rank_priority(state_.pod(other));
        if (q > p || (q == p && !goes_before(state_, other, mine))) continue;
        std::vector<std::size_t> swapped = best_.set;
        swapped[k] = i;
        Tried t = try_set(swapped);
        if (!t.allowed || !t.fits) continue;
        if (std::tie(t.cost.budgets_broken, t.cost.pods) >
            std::tie(best_.cost.budgets_broken, best_.cost.pods))
          continue;
        best_ = {swapped, std::move(t.victims), t.cost};
      }
    }
  }

  const Asking& asking_;
  const State& state_;
  const TaskClass& cls_;
  NodeId node_;
  const EvictionPlan& plan_;
  Room empty_;
  bool simple_ = false;
  std::vector<Option> options_;
  bool found_ = false;
  Found best_;
  int steps_ = 0;
};

}  // namespace

VictimChoice choose_on_node(const Asking& asking, NodeId node, const EvictionPlan& plan) {
  return NodeSearch(asking, node, plan).run();
}

}  // namespace muster::engine
