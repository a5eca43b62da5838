#include "engine/muster/reservations.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/result.h"
#include "engine/muster/gang.h"
#include "engine/state/match.h"

namespace muster::engine {

namespace {
/// A place that was found by what others took is looked for again after this.
constexpr Duration kLooksAgain = std::chrono::seconds(60);
/// All nodes and what runs on them are looked at: in clusters up to this size for every reservation at
/// once, up to the second for one a decision. In larger ones only for one a decision whose time has
/// come and which has not started.
constexpr std::uint32_t kNodesForAll = 200;
constexpr std::uint32_t kNodesForOne = 1000;
}  // namespace

void Reservations::begin_decision() {
  changed_ = false;
  if (slots_.size() < state_->node_count()) slots_.resize(state_->node_count());
}

void Reservations::note_change() {
  ++version_;
  changed_ = true;
}

std::size_t Reservations::limit() const {
  return static_cast<std::size_t>(std::max(state_->config().reservations, 0));
}

bool Reservations::holds(GangId id) const {
  return std::any_of(
      holds_.begin(), holds_.end(), [&](const Hold& h) { return h.live && h.gang == id; });
}

std::optional<Rank> Reservations::first_rank() const {
  std::optional<Rank> first;
  if (live_ == 0) return first;
  for (const Hold& hold : holds_) {
    if (hold.live && (!first || hold.rank < *first)) first = hold.rank;
  }
  return first;
}

std::optional<Rank> Reservations::last_rank() const {
  std::optional<Rank> last;
  for (const Hold& hold : holds_) {
    if (hold.live && (!last || *last < hold.rank)) last = hold.rank;
  }
  return last;
}

const Reservations::Hold* Reservations::first_of_others(GangId id) const {
  const Hold* first = nullptr;
  for (const Hold& hold : holds_) {
    if (hold.live && hold.gang != id && (first == nullptr || hold.rank < first->rank))
      first = &hold;
  }
  return first;
}

std::optional<Time> Reservations::expected_start(GangId id) const {
  for (const Hold& hold : holds_) {
    if (hold.live && hold.gang == id && hold.start) return hold.start;
  }
  return std::nullopt;
}

/// For those who want to pass: what most are over with. Where estimates count no more, only what was
/// declared, or what is on its way out, leaves.
Time Reservations::end_for(const Hold& hold, PodId id) const {
  const PodState& pod = state_->pod(id);
  if (trusts_estimates(hold) || pod.phase != PodPhase::kBound)
    return expected_end(desk_, pod, Ends::kLate);
  return pod.ends > desk_->now ? pod.ends : kNever;
}

// ------------------------------------------------------------------ passing a reservation

bool Reservations::allow_beside(const Use& use) const {
  const WaitRecord& record = waiting_->foretell(use.gang);
  const Time now = desk_->now;
  const Time end =
      record.at_most_us == History::kUnknown ? kNever : now + Duration(record.at_most_us);
  const NodeState& node = state_->node(use.node);
  for (const Slot& slot : slots_[use.node.index()]) {
    const Hold& hold = holds_[slot.reservation];
    if (hold.gang == use.gang || record.rank < hold.rank) continue;
    const bool own_family = state_->parent_of(use.gang).valid() &&
                            state_->root_of(use.gang) == state_->root_of(hold.gang);
    if (own_family) continue;
    if (!hold.start) {
      // Nobody knows when; only work that is surely short passes.
      if (!record.sure || end > now + state_->config().patience) return false;
      continue;
    }
    if (end <= hold.start && (record.sure || trusts_estimates(hold))) continue;
    if (!use.cls.request.fits_in(left_at(use, slot, hold.start))) return false;
    const bool shares =
        use.cls.share_milli > 0 || node.shared || state_->cls(slot.cls).share_milli > 0;
    if (shares && !leaves_devices(use, slot, hold.start)) return false;
  }
  return true;
}

/// A holder that is late against what it was first promised is passed on somebody's word alone: what
/// others took was not true often enough.
bool Reservations::trusts_estimates(const Hold& hold) const {
  return !hold.promised || desk_->now <= hold.promised + state_->config().patience;
}

/// What the node has then beside the slot and those that stay.
ResourceVector Reservations::left_at(const Use& use, const Slot& slot, Time then) const {
  const NodeState& node = state_->node(use.node);
  ResourceVector left = node.allocatable;
  left -= slot.amount;
  left -= node.held;
  for (const PodId p : node.pods) {
    const bool stays = end_for(holds_[slot.reservation], p) > then &&
                       (use.evictions == nullptr || !use.evictions->victims.contains(p));
    if (stays) left -= state_->cls_of(p).request;
  }
  if (use.evictions == nullptr) return left;
  const auto on = use.evictions->nodes.find(use.node);
  if (on == use.evictions->nodes.end()) return left;
  for (const auto& guest : on->second.guests) left -= state_->cls_of(guest.pod).request;
  return left;
}

/// Sums say little where devices are shared: with the pod there, are there still enough whole ones,
/// or large enough parts, by then?
bool Reservations::leaves_devices(const Use& use, const Slot& slot, Time then) const {
  const NodeState& node = state_->node(use.node);
  const TaskClass& holder = state_->cls(slot.cls);
  if (holder.devices == 0 && holder.share_milli == 0) return true;
  FreeRoom free{node.unheld(), {}};
  for (const auto& d : node.devices) free.devices.push_back(d.open_milli());
  Positions devices;
  if (use.evictions != nullptr) {
    devices = Room(state_, use.node, *use.evictions).pick(use.cls);
    if (const auto on = use.evictions->nodes.find(use.node); on != use.evictions->nodes.end()) {
      for (const auto& guest : on->second.guests)
        free.take(state_->cls_of(guest.pod), guest.devices);
    }
  } else if (use.device >= 0) {
    devices = {static_cast<std::uint16_t>(use.device)};
  } else {
    devices = pick_devices(use.cls, node.devices, [&](std::size_t i) { return free.devices[i]; });
  }
  free.take(use.cls, devices);
  for (const PodId p : node.pods) {
    const bool goes = use.evictions != nullptr && use.evictions->victims.contains(p);
    if (goes || end_for(holds_[slot.reservation], p) <= then)
      free.give(state_->pod(p), state_->cls_of(p));
  }
  for (std::size_t i = 0; i < node.devices.size(); ++i) {
    if (!holder.allows(node.devices[i])) free.devices[i] = DeviceState::kUnusable;
  }
  return free.count(holder, slot.members) >= slot.members;
}

// ------------------------------------------------------------------ where and when

/// The members below `group` without which the gang does not start: at every level as many groups
/// as are short of the minimum, its own first, then those that ask for the fewest devices.
std::vector<PodId> Reservations::starting_below(GangId group, GangId id) const {
  const GangState& gang = state_->gang(group);
  std::vector<PodId> out;
  if (!gang.spec->is_parent) {
    out = tasks_of(state_, group);
    out.resize(std::min<std::size_t>(
        out.size(), static_cast<std::size_t>(std::max(need_of(state_, gang).total, 1))));
    return out;
  }
  struct Child {
    bool others;
    std::int64_t devices = 0;
    std::uint64_t seq;
    std::vector<PodId> tasks;
  };
  std::vector<Child> waiting;
  std::int32_t left = std::max(1, gang.spec->min_groups);
  for (const GangId child : state_->children_of(gang.key)) {
    const std::vector<GangId> leaves = state_->leaves_of(child);
    const bool own = std::find(leaves.begin(), leaves.end(), id) != leaves.end();
    if (!own && (group_runs(state_, child) || waiting_->is_nominated(child))) {
      --left;
      continue;
    }
    Child c{!own, 0, state_->gang(child).seq, starting_below(child, id)};
    for (const PodId p : c.tasks) c.devices += state_->cls_of(p).request[ResourceNames::kDevice];
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
std::vector<PodId> Reservations::starting_with(GangId id) const {
  const bool family = need_of(state_, state_->gang(id)).total > 0 && state_->parent_of(id).valid();
  std::vector<PodId> out = starting_below(family ? state_->root_of(id) : id, id);
  std::stable_sort(out.begin(), out.end(), [&](PodId a, PodId b) {
    return state_->cls_of(a).request[ResourceNames::kDevice] >
           state_->cls_of(b).request[ResourceNames::kDevice];
  });
  return out;
}

/// Keys of the levels of which one domain must take all.
std::vector<std::string> Reservations::required_levels(GangId id) const {
  std::vector<std::string> keys;
  for (const auto& level : levels_of(state_, state_->gang(id))) {
    if (level.required) keys.push_back(level.key);
  }
  return keys;
}

std::vector<std::vector<NodeId>> Reservations::domains_of(
    const std::vector<std::string>& keys) const {
  std::map<std::vector<std::string>, std::vector<NodeId>> by_values;
  for (std::uint32_t n = 0; n < state_->node_count(); ++n) {
    std::vector<std::string> values;
    for (const auto& key : keys) {
      const std::string* value = find_label(state_->node(NodeId(n)).spec->labels, key);
      if (value == nullptr) break;
      values.push_back(*value);
    }
    if (values.size() == keys.size()) by_values[values].push_back(NodeId(n));
  }
  std::vector<std::vector<NodeId>> out;
  for (auto& [values, nodes] : by_values) out.push_back(std::move(nodes));
  return out;
}

/// Counted in members like the largest; smaller ones count for what they are of it, a launcher
/// beside its workers for nothing.
std::int32_t Reservations::members_like_largest(const std::vector<PodId>& tasks) const {
  const ResourceVector& largest = state_->cls_of(tasks.front()).request;
  std::int64_t parts = 0;
  for (const PodId p : tasks) {
    const ResourceVector& request = state_->cls_of(p).request;
    std::int64_t part = 0;
    for (std::size_t i = 0; i < request.size(); ++i) {
      if (i != ResourceNames::kPods && largest[i] > 0)
        part = std::max(part, request[i] * 100 / largest[i]);
    }
    parts += std::min<std::int64_t>(part, 100);
  }
  return static_cast<std::int32_t>(std::max<std::int64_t>((parts + 75) / 100, 1));
}

/// On all nodes, or on those of the domain that takes all of it first.
Forecast::Start Reservations::earliest_for(GangId id, Forecast& forecast) {
  const std::vector<std::string> levels = required_levels(id);
  if (levels.empty()) {
    for (auto n = static_cast<std::uint32_t>(all_nodes_.size()); n < state_->node_count(); ++n)
      all_nodes_.emplace_back(n);
    return forecast.earliest(all_nodes_);
  }
  Forecast::Start best;
  bool any = false;
  for (const auto& nodes : domains_of(levels)) {
    Forecast::Start found = forecast.earliest(nodes);
    const bool better = !any || (found.known && (!best.known || found.at < best.at));
    if (better) best = std::move(found);
    any = true;
  }
  return best;
}

/// The earliest time at which the gang fits, if everybody leaves as expected, and where. It must
/// have no slots.
void Reservations::find_place(std::uint32_t reservation) {
  Hold& hold = holds_[reservation];
  hold.found = desk_->now;
  desk_->estimated = false;
  hold.nodes.clear();
  hold.start = Time{};
  const std::vector<PodId> tasks = starting_with(hold.gang);
  if (tasks.empty()) return;
  const PodId largest = tasks.front();
  hold.member = state_->pod(largest).key;
  const std::int32_t wanted = members_like_largest(tasks);
  Forecast forecast(
      desk_, state_->pod(largest).cls, wanted, [&](NodeId node, ResourceVector& amounts) {
        if (node.index() >= slots_.size()) return;
        for (const Slot& slot : slots_[node.index()]) {
          if (slot.reservation != reservation && holds_[slot.reservation].rank < hold.rank)
            amounts -= slot.amount;
        }
      });
  const Forecast::Start best = earliest_for(hold.gang, forecast);
  const Time patience_ends = hold.since + state_->config().patience;
  if (!best.known && desk_->now < patience_ends) {
    desk_->wake_at(patience_ends);
    return;
  }
  keep_slots(reservation, best, state_->pod(largest).cls, wanted);
  if (best.known) hold.start = best.at;
  hold.estimated = desk_->estimated;
  hold.promised = waiting_->record(hold.gang).promised;
}

/// On the nodes that take most members first; unknown times: those with most room when empty.
void Reservations::keep_slots(std::uint32_t reservation,
                              const Forecast::Start& start,
                              ClassId cls_id,
                              std::int32_t wanted) {
  const TaskClass& cls = state_->cls(cls_id);
  std::vector<std::pair<std::int32_t, NodeId>> order;
  FreeRoom empty;
  for (const auto& [id, n] : start.fits) {
    std::int32_t takes = n;
    if (!start.known) {
      empty.amounts = state_->node(id).allocatable;
      empty.devices.assign(state_->node(id).devices.size(), 1000);
      takes = std::max(n, empty.count(cls, wanted));
    }
    if (takes > 0) order.emplace_back(-takes, id);
  }
  std::sort(order.begin(), order.end());
  if (slots_.size() < state_->node_count()) slots_.resize(state_->node_count());
  std::int32_t left = wanted;
  for (const auto& [negative, node] : order) {
    if (left <= 0) break;
    const std::int32_t n = std::min(-negative, left);
    left -= n;
    ResourceVector amount = cls.request;
    amount.scale(n);
    slots_[node.index()].push_back({reservation, amount, cls_id, n});
    holds_[reservation].nodes.push_back(node);
  }
}

// ------------------------------------------------------------------ who holds one

void Reservations::clear_slots(std::uint32_t reservation) {
  for (const NodeId n : holds_[reservation].nodes) {
    const std::size_t gone = std::erase_if(
        slots_[n.index()], [&](const Slot& s) { return s.reservation == reservation; });
    MUSTER_CHECK(gone == 1, "a reservation has one slot at each of its nodes");
  }
}

void Reservations::release(std::uint32_t reservation) {
  if (!holds_[reservation].live) return;
  clear_slots(reservation);
  holds_[reservation] = Hold{};
  --live_;
  note_change();
}

void Reservations::release_of(GangId id) {
  for (std::uint32_t i = 0; i < holds_.size(); ++i) {
    if (holds_[i].live && holds_[i].gang == id) release(i);
  }
}

/// The first to be blocked always gets a reservation. Behind it only gangs do: a single pod finds
/// room soon enough, and each reservation more keeps others waiting.
bool Reservations::worth_another(GangId id, const Rank& rank) const {
  if (live_ == 0 || need_of(state_, state_->gang(id)).total > 1) return true;
  return std::none_of(
      holds_.begin(), holds_.end(), [&](const Hold& h) { return h.live && h.rank < rank; });
}

void Reservations::reserve_for(GangId id) {
  const WaitRecord& record = waiting_->record(id);
  if (limit() == 0 || record.rank.surplus || holds(id)) return;
  if (!worth_another(id, record.rank)) return;
  if (state_->tenant(record.tenant).spec.backfill != BackfillMode::kReservation) return;
  if (live_ >= limit()) {
    std::uint32_t last = 0;
    bool found = false;
    for (std::uint32_t i = 0; i < holds_.size(); ++i) {
      if (holds_[i].live && (!found || holds_[last].rank < holds_[i].rank)) {
        last = i;
        found = true;
      }
    }
    if (!found || !(record.rank < holds_[last].rank)) return;
    release(last);
  }
  std::uint32_t index = 0;
  while (index < holds_.size() && holds_[index].live) ++index;
  if (index == holds_.size()) holds_.emplace_back();
  Hold& hold = holds_[index];
  hold.gang = id;
  hold.rank = record.rank;
  hold.since = record.since;
  hold.live = true;
  ++live_;
  find_place(index);
  note_change();
}

void Reservations::fill_places() {
  while (live_ < limit()) {
    const std::pair<Rank, GangId>* best = nullptr;
    for (std::uint32_t t = 0; t < waiting_->tenant_count(); ++t) {
      const auto& buckets = waiting_->buckets(TenantId(t));
      if (buckets.empty() ||
          state_->tenant(TenantId(t)).spec.backfill != BackfillMode::kReservation)
        continue;
      for (const auto& [shape, bucket] : buckets) {
        if (!waiting_->shape(shape).blocked || bucket.over_limit) continue;
        for (const auto& entry : bucket.by_rank) {
          if (entry.first.surplus) break;
          if (holds(entry.second)) continue;
          if (!worth_another(entry.second, entry.first)) break;
          if (best == nullptr || entry < *best) best = &entry;
          break;
        }
      }
    }
    if (best == nullptr) return;
    const std::size_t before = live_;
    reserve_for(best->second);
    if (live_ == before) return;
  }
}

/// Of those whose time has come, the one whose place was found longest ago.
std::optional<std::uint32_t> Reservations::longest_late() const {
  std::optional<std::uint32_t> first;
  for (std::uint32_t i = 0; i < holds_.size(); ++i) {
    const Hold& hold = holds_[i];
    if (is_late(hold) && (!first || hold.found < holds_[*first].found)) first = i;
  }
  return first;
}

void Reservations::refresh() {
  // Others leave earlier or later than was thought.
  const bool large = state_->node_count() > kNodesForOne;
  const auto only = large ? longest_late() : std::nullopt;
  bool again = large;
  for (std::uint32_t i = 0; i < holds_.size(); ++i) {
    const Hold& hold = holds_[i];
    if (!hold.live) continue;
    const Time patience_ends = hold.since + state_->config().patience;
    const bool unplaced = !hold.start && hold.nodes.empty();
    const bool late = is_late(hold) && (!large || only == i);
    const bool stale =
        !again && hold.start && hold.estimated && hold.found + kLooksAgain <= desk_->now;
    again = again || (stale && state_->node_count() > kNodesForAll);
    if (late || stale || (unplaced && desk_->now >= patience_ends)) {
      clear_slots(i);
      find_place(i);
      note_change();
    } else if (unplaced) {
      desk_->wake_at(patience_ends);
    }
  }
}

void Reservations::publish() {
  desk_->plan.reservations_changed = changed_;
  if (!changed_) return;
  for (Hold& hold : holds_) {
    if (!hold.live) continue;
    // What was told first stays told, whoever takes the place for a while.
    Time& promised = waiting_->record(hold.gang).promised;
    if (!promised) promised = hold.start;
    hold.promised = promised;
    Reservation r;
    r.holder = state_->gang(hold.gang).key;
    r.start = hold.start;
    r.member = hold.member;
    for (const NodeId n : hold.nodes) {
      r.nodes.push_back(state_->node(n).spec->name);
      for (const Slot& slot : slots_[n.index()]) {
        if (&holds_[slot.reservation] == &hold) r.members.push_back(slot.members);
      }
    }
    desk_->plan.reservations.push_back(std::move(r));
  }
}

void Reservations::check() const {
  std::size_t live = 0;
  std::size_t places = 0;
  for (const Hold& hold : holds_) {
    live += hold.live ? 1 : 0;
    places += hold.nodes.size();
    MUSTER_CHECK(hold.live || hold.nodes.empty(), "what is released keeps no node");
  }
  MUSTER_CHECK(live == live_, "as many reservations live as are counted");
  std::size_t slots = 0;
  for (std::uint32_t n = 0; n < slots_.size(); ++n) {
    for (const Slot& slot : slots_[n]) {
      const auto& nodes = holds_[slot.reservation].nodes;
      MUSTER_CHECK(std::find(nodes.begin(), nodes.end(), NodeId(n)) != nodes.end(),
                   "a slot stands at a node that its reservation lists");
      ++slots;
    }
  }
  MUSTER_CHECK(slots == places, "each node of a reservation has its slot");
}

}  // namespace muster::engine
