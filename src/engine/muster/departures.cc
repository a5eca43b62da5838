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

void Departures::catch_up(Desk& desk) {
  State& state = desk.state;
  taught_ = static_cast<std::uint32_t>(state.history().taught());
  const std::vector<GangId> gangs = state.take_changed_ends();
  const bool anew = nodes_.size() != state.node_count() || cursor_ < state.log_begin() ||
                    tenants_seen_ != state.tenants_version() || desk.now < now_;
  now_ = desk.now;
  if (anew) {
    tenants_seen_ = state.tenants_version();
    cursor_ = state.log_end();
    nodes_.assign(state.node_count(), Leavers{});
    return;
  }
  const auto forget = [&](NodeId node) { nodes_[node.index()].same_until_ = Time(INT64_MIN); };
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
  if (!good) kept = work_out(desk, node);
  return kept;
}

Departures::Leavers Departures::work_out(Desk& desk, NodeId id) {
  const State& state = desk.state;
  const NodeState& node = state.node(id);
  Leavers out;
  out.same_until_ = kNever;
  out.taught_ = static_cast<std::uint32_t>(state.history().taught());
  out.devices_ = static_cast<std::int32_t>(std::min<std::int64_t>(
      node.allocatable[ResourceNames::kDevice], std::numeric_limits<std::int32_t>::max()));
  for (const PodId p : node.pods) {
    const End end = end_of(desk, state.pod(p), Ends::kEarly);
    out.same_until_ = std::min(out.same_until_, end.same_until);
    out.asked_ |= end.asked;
    out.estimated_ |= end.estimated;
    const std::int64_t devices = state.cls_of(p).request[ResourceNames::kDevice];
    if (devices == 0) continue;
    out.many_ |= out.count_ == Leavers::kKept;
    if (out.many_) continue;
    out.taken_[out.count_] = static_cast<std::int32_t>(devices);
    out.ends_[out.count_++] = end.at;
  }
  return out;
}

void Departures::check(Desk& desk) const {
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    const Leavers& kept = nodes_[n];
    const bool good = now_ < kept.same_until_ && (!kept.asked_ || kept.taught_ == taught_);
    if (!good) continue;
    const Leavers anew = work_out(desk, NodeId(n));
    MUSTER_CHECK(kept.estimated_ == anew.estimated_ && kept.many_ == anew.many_ &&
                     kept.devices_ == anew.devices_ && kept.count_ == anew.count_ &&
                     kept.taken_ == anew.taken_ && kept.ends_ == anew.ends_,
                 "what is kept of those who leave a node is what its pods say");
  }
}

}  // namespace muster::engine
