#include "engine/muster/departures.h"

#include <algorithm>
#include <limits>

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

void Departures::forget_all(std::size_t nodes) {
  nodes_.assign(nodes, Leavers{});
  kinds_.clear();
  kind_numbers_.clear();
}

void Departures::catch_up(Desk& desk) {
  State& state = desk.state;
  taught_ = static_cast<std::uint32_t>(state.history().taught());
  const std::vector<GangId> gangs = state.take_changed_ends();
  const bool anew = nodes_.size() != state.node_count() || cursor_ < state.log_begin() ||
                    tenants_seen_ != state.tenants_version() || desk.now < now_ ||
                    kinds_.size() > kKindsGone + Leavers::kKept * nodes_.size();
  now_ = desk.now;
  if (anew) {
    tenants_seen_ = state.tenants_version();
    cursor_ = state.log_end();
    forget_all(state.node_count());
    return;
  }
  const auto forget = [&](NodeId node) {
    nodes_[node.index()].same_until_ = Time(INT64_MIN);
    nodes_[node.index()].again_ = false;
  };
  for (; cursor_ < state.log_end(); ++cursor_) forget(state.log_at(cursor_));
  for (const GangId gang : gangs) {
    for (const PodId pod : state.gang(gang).pods) {
      if (state.pod(pod).node.valid()) forget(state.pod(pod).node);
    }
  }
}

const Departures::Leavers& Departures::at(Desk& desk, NodeId node) {
  Leavers& kept = nodes_[node.index()];
  const bool good = now_ < kept.same_until_ && (!kept.asked_ || kept.taught_ == taught_);
  if (good) return kept;
  if (kept.again_ && now_ < kept.told_until_) {
    estimate_again(desk, kept);
  } else {
    kept = work_out(desk, node);
  }
  return kept;
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
void Departures::estimate_again(const Desk& desk, Leavers& kept) {
  const History& history = desk.state->history();
  kept.same_until_ = kept.told_until_;
  kept.taught_ = taught_;
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
    kept.same_until_ = std::min(kept.same_until_, end.same_until);
    kept.estimated_ |= end.estimated;
  }
}

Departures::Leavers Departures::work_out(Desk& desk, NodeId id) {
  const State& state = desk.state;
  const NodeState& node = state.node(id);
  Leavers out;
  out.same_until_ = kNever;
  out.told_until_ = kNever;
  out.again_ = true;
  out.taught_ = static_cast<std::uint32_t>(state.history().taught());
  out.devices_ = static_cast<std::int32_t>(std::min<std::int64_t>(
      node.allocatable[ResourceNames::kDevice], std::numeric_limits<std::int32_t>::max()));
  for (const PodId p : node.pods) {
    const End end = end_of(desk, state.pod(p), Ends::kEarly);
    out.same_until_ = std::min(out.same_until_, end.same_until);
    out.asked_ |= end.asked;
    out.estimated_ |= end.estimated;
    if (!end.asked) out.told_until_ = std::min(out.told_until_, end.same_until);
    const std::int64_t devices = state.cls_of(p).request[ResourceNames::kDevice];
    out.many_ |= devices != 0 && out.count_ == Leavers::kKept;
    if (devices == 0 || out.many_) {
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
  return out;
}

void Departures::check(Desk& desk) {
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    const Leavers& kept = at(desk, NodeId(n));
    const Leavers anew = work_out(desk, NodeId(n));
    MUSTER_CHECK(kept.estimated_ == anew.estimated_ && kept.many_ == anew.many_ &&
                     kept.devices_ == anew.devices_ && kept.count_ == anew.count_ &&
                     kept.taken_ == anew.taken_ && kept.ends_ == anew.ends_,
                 "what is kept of those who leave a node is what its pods say");
  }
}

}  // namespace muster::engine
