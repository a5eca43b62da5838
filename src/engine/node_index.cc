#include "engine/node_index.h"

#include <algorithm>

#include "engine/fit.h"

namespace muster::engine {

namespace {

constexpr std::int16_t kRoomBound = 64;

/// Lower is better. Pods that need devices go where the fewest are left over; pods that do not, away from free
/// devices and then where the least cpu is left.
std::size_t bucket_for(const State& state, const TaskClass& cls, const NodeState& node) {
  std::size_t b = 0;
  const std::int64_t cpu_all = std::max<std::int64_t>(node.allocatable[ResourceNames::kCpu], 1);
  const std::int64_t cpu_left = std::max<std::int64_t>(node.free[ResourceNames::kCpu], 0);
  if (cls.devices > 0) {
    b = static_cast<std::size_t>(std::min(node.devices_whole - cls.devices, 16));
  } else if (cls.share_milli > 0) {
    bool shared = false;
    for (const auto& d : node.devices) shared |= d.healthy && d.free_milli < 1000 && d.free_milli >= cls.share_milli;
    b = shared ? 0 : 1 + static_cast<std::size_t>(std::clamp(node.devices_whole, 0, 15));
  } else {
    const auto eighth = static_cast<std::size_t>(std::min<std::int64_t>(cpu_left * 8 / cpu_all, 7));
    b = (node.devices_whole > 0 ? 9 : 0) + eighth;
  }
  return state.config().placement == PlacementRule::kSpread ? ClassIndex::kBuckets - 1 - b : b;
}

}  // namespace

void ClassIndex::update(const State& state, std::uint32_t n) {
  const NodeState& node = state.node(NodeId(n));
  const TaskClass& cls = state.cls(cls_);
  if (static_seen_[n] != node.spec_changed + 1) {
    static_seen_[n] = node.spec_changed + 1;
    static_ok_[n] = fit_static(state, cls, node).ok() ? 1 : 0;
  }
  std::uint8_t bucket = kNowhere;
  std::int16_t room = 0;
  if (static_ok_[n] != 0 && fit_room(state, cls, node).ok()) {
    bucket = static_cast<std::uint8_t>(bucket_for(state, cls, node));
    std::int64_t fits = kRoomBound;
    for (std::size_t i = 0; i < cls.request.size(); ++i) {
      if (cls.request[i] > 0) fits = std::min(fits, node.free[i] / cls.request[i]);
    }
    room = static_cast<std::int16_t>(fits);
  }
  if (room > room_[n]) ++gains_;
  room_[n] = room;
  if (bucket == bucket_of_[n]) return;
  if (bucket_of_[n] != kNowhere) {
    buckets_[bucket_of_[n]].erase(n);
    --feasible_;
  }
  if (bucket != kNowhere) {
    buckets_[bucket].insert(n);
    ++feasible_;
  }
  bucket_of_[n] = bucket;
}

void ClassIndex::rebuild(const State& state, std::int64_t& checks) {
  const std::uint32_t n = state.node_count();
  bucket_of_.resize(n, kNowhere);
  room_.resize(n, 0);
  static_seen_.resize(n, 0);
  static_ok_.resize(n, 0);
  for (auto& b : buckets_) b.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) update(state, i);
  checks += n;
  cursor_ = state.log_end();
  built_ = true;
}

void ClassIndex::catch_up(const State& state, std::int64_t& checks, bool undone) {
  const std::uint64_t gains = gains_;
  if (!built_ || cursor_ < state.log_begin() || bucket_of_.size() != state.node_count()) {
    rebuild(state, checks);
    return;
  }
  for (; cursor_ < state.log_end(); ++cursor_) {
    update(state, state.log_at(cursor_).value);
    ++checks;
  }
  if (undone) gains_ = gains;
}

NodeId ClassIndex::next(Cursor& cursor) const {
  for (; cursor.bucket < kBuckets; ++cursor.bucket, cursor.from = 0) {
    const std::uint32_t n = buckets_[cursor.bucket].next(cursor.from);
    if (n == NodeId::kNone) continue;
    cursor.from = n + 1;
    return NodeId(n);
  }
  return NodeId{};
}

ClassIndex& NodeIndex::of(ClassId cls) {
  while (by_class_.size() <= cls.index()) by_class_.emplace_back(ClassId(static_cast<std::uint32_t>(by_class_.size())));
  return by_class_[cls.index()];
}

}  // namespace muster::engine
