#include "engine/muster/departures.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/result.h"
#include "engine/muster/desk.h"
#include "engine/muster/gang.h"

namespace muster::engine {

std::int64_t Departures::Leavers::devices_by(Time then) const {
  if (many_) return devices_;
  // Nobody knows when those end that never do.
  const Time last = std::min(then, Time(kNever.us - 1));
  std::int64_t free = devices_;
  for (std::size_t i = 0; i < count_; ++i) free -= ends_[i] > last ? taken_[i] : 0;
  return free;
}

Time Departures::Leavers::first_with(std::int64_t amount) const {
  if (amount > devices_) return kNever;
  std::int64_t free = devices_;
  if (!many_) {
    for (std::size_t i = 0; i < count_; ++i) free -= taken_[i];
  }
  if (free >= amount) return kNow;
  Time first = kNever;
  for (std::size_t i = 0; i < count_; ++i) {
    if (ends_[i] < first && devices_by(ends_[i]) >= amount) first = ends_[i];
  }
  return first;
}

void Departures::forget_all(std::size_t nodes) {
  nodes_.assign(nodes, Leavers{});
  good_until_.assign(nodes, Time(INT64_MIN));
  asked_.assign(nodes, 0);
  estimated_.assign(nodes, 0);
  amounts_.clear();
  kinds_.clear();
  kind_numbers_.clear();
}

void Departures::catch_up(Desk& desk) {
  State& state = desk.state;
  const std::uint64_t taught = std::exchange(taught_, state.history().taught());
  const std::vector<GangId> gangs = state.take_changed_ends();
  const bool anew = nodes_.size() != state.node_count() || cursor_ < state.log_begin() ||
                    tenants_seen_ != state.tenants_version() || desk.now < now_ ||
                    kinds_.size() > kKindsGone + Leavers::kKept * nodes_.size();
  const bool later = now_ < desk.now;
  now_ = desk.now;
  if (anew) {
    tenants_seen_ = state.tenants_version();
    cursor_ = state.log_end();
    forget_all(state.node_count());
    return;
  }
  for (; cursor_ < state.log_end(); ++cursor_) changed(state.log_at(cursor_));
  for (const GangId gang : gangs) {
    for (const PodId pod : state.gang(gang).pods) {
      if (state.pod(pod).node.valid()) changed(state.pod(pod).node);
    }
  }
  const bool learned = taught != taught_;
  for (std::size_t n = 0; (later || learned) && n < nodes_.size(); ++n) {
    if (good_until_[n] <= now_ || (learned && asked_[n] != 0)) forget(n);
  }
}

/// When those who are there leave is to be worked out again.
void Departures::forget(std::size_t node) {
  good_until_[node] = Time(INT64_MIN);
  for (Amount& amount : amounts_) amount.soonest[node] = kUnknown;
}

/// Others may be there.
void Departures::changed(NodeId node) {
  forget(node.index());
  nodes_[node.index()].again_ = false;
}

const Departures::Leavers& Departures::at(Desk& desk, NodeId node) {
  const std::size_t n = node.index();
  Leavers& kept = nodes_[n];
  if (now_ < good_until_[n]) return kept;
  if (kept.again_ && now_ < kept.told_until_) {
    good_until_[n] = estimate_again(desk, kept);
  } else {
    const Worked anew = work_out(desk, node);
    kept = anew.leavers;
    good_until_[n] = anew.good_until;
    asked_[n] = anew.asked ? 1 : 0;
  }
  estimated_[n] = kept.estimated_ ? 1 : 0;
  return kept;
}

std::size_t Departures::amount(std::int64_t milli) {
  for (std::size_t i = 0; i < amounts_.size(); ++i) {
    if (amounts_[i].milli == milli) return i;
  }
  const std::size_t place = amounts_.size() < kAmounts ? amounts_.size() : next_amount_;
  next_amount_ = (place + 1) % kAmounts;
  if (place == amounts_.size()) amounts_.emplace_back();
  amounts_[place].milli = milli;
  amounts_[place].soonest.assign(nodes_.size(), kUnknown);
  return place;
}

/// Where less is free now, a pod must leave; where enough is, one may fit at once.
Time Departures::soonest_of(const State& state,
                            NodeId node,
                            const Leavers& leavers,
                            std::int64_t milli) {
  if (milli <= 0 || state.row(node.value).free[ResourceNames::kDevice] >= milli) return kNow;
  return leavers.first_with(milli);
}

Time Departures::find_soonest(Desk& desk, std::size_t amount, NodeId node) {
  const Leavers& leavers = at(desk, node);
  Amount& of = amounts_[amount];
  return of.soonest[node.index()] = soonest_of(desk.state, node, leavers, of.milli);
}

std::uint32_t Departures::number_of(const RunKind& kind) {
  std::uint64_t hash = kind.user;
  for (const std::uint64_t part : {kind.stem, kind.team, kind.shape})
    hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
  const auto [known, fresh] =
      kind_numbers_.try_emplace(hash, static_cast<std::uint32_t>(kinds_.size()));
  if (fresh) kinds_.push_back({.kind = kind});
  // Two kinds with one hash: the second has no number.
  return kinds_[known->second].kind == kind ? known->second : Leavers::kTold;
}

/// Something was learned, or somebody has outlasted one of those like it; nothing else has changed.
Time Departures::estimate_again(const Desk& desk, Leavers& kept) {
  const History& history = desk.state->history();
  Time good_until = kept.told_until_;
  kept.estimated_ = false;
  for (std::size_t i = 0; i < kept.count_; ++i) {
    if (kept.kind_[i] == Leavers::kTold) continue;
    Kind& kind = kinds_[kept.kind_[i]];
    if (kind.version != history.levels_version()) {
      kind.version = history.levels_version();
      kind.levels = history.levels(kind.kind);
    }
    const End end = estimated_end(desk, kept.began_[i], kind.levels);
    kept.ends_[i] = end.at;
    good_until = std::min(good_until, end.same_until);
    kept.estimated_ |= end.estimated;
  }
  return good_until;
}

Departures::Worked Departures::work_out(Desk& desk, NodeId id) {
  const State& state = desk.state;
  const NodeState& node = state.node(id);
  Worked worked{.leavers = {}, .good_until = kNever};
  Leavers& out = worked.leavers;
  out.told_until_ = kNever;
  out.again_ = true;
  out.whole_ = true;
  out.devices_ = static_cast<std::int32_t>(std::min<std::int64_t>(
      node.allocatable[ResourceNames::kDevice], std::numeric_limits<std::int32_t>::max()));
  for (const PodId p : node.pods) {
    const End end = end_of(desk, state.pod(p), Ends::kEarly);
    worked.good_until = std::min(worked.good_until, end.same_until);
    worked.asked |= end.asked;
    out.estimated_ |= end.estimated;
    if (!end.asked) out.told_until_ = std::min(out.told_until_, end.same_until);
    const std::int64_t devices = state.cls_of(p).request[ResourceNames::kDevice];
    out.many_ |= devices != 0 && out.count_ == Leavers::kKept;
    if (devices == 0 || out.many_) {
      out.whole_ = false;
      out.again_ &= !end.asked;
      continue;
    }
    std::uint32_t kind = Leavers::kTold;
    if (end.asked) {
      const GangState& gang = state.gang(state.pod(p).gang);
      if (end.by_kind_alone) kind = number_of(state.kind_of(gang));
      out.again_ &= kind != Leavers::kTold;
      out.began_[out.count_] = gang.started;
    }
    out.kind_[out.count_] = kind;
    out.taken_[out.count_] = static_cast<std::int32_t>(devices);
    out.ends_[out.count_++] = end.at;
  }
  return worked;
}

void Departures::check(Desk& desk) {
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    const NodeId node(n);
    const Leavers& kept = at(desk, node);
    const Leavers anew = work_out(desk, node).leavers;
    MUSTER_CHECK(kept.estimated_ == anew.estimated_ && kept.many_ == anew.many_ &&
                     kept.devices_ == anew.devices_ && kept.count_ == anew.count_ &&
                     kept.taken_ == anew.taken_ && kept.ends_ == anew.ends_,
                 "what is kept of those who leave a node is what its pods say");
    for (std::size_t a = 0; a < amounts_.size(); ++a)
      MUSTER_CHECK(soonest(desk, a, node) == soonest_of(desk.state, node, anew, amounts_[a].milli),
                   "when devices of a node come free is when those who have them leave");
  }
}

}  // namespace muster::engine
