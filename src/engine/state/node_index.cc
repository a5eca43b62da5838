#include "engine/state/node_index.h"

#include <algorithm>
#include <optional>

#include "engine/state/fit.h"

namespace muster::engine {

namespace {

constexpr std::int16_t kRoomBound = 64;

std::size_t cpu_eighth(std::int64_t left, std::int64_t all) {
  return static_cast<std::size_t>(std::min<std::int64_t>(
      std::max<std::int64_t>(left, 0) * 8 / std::max<std::int64_t>(all, 1), 7));
}

/// Lower is better. Pods that need devices go where the fewest are left over; pods that do not,
/// away from free devices and then where the least cpu is left.
std::size_t bucket_for(const State& state, const TaskClass& cls, const NodeState& node) {
  std::size_t b = 0;
  if (cls.devices > 0) {
    b = static_cast<std::size_t>(std::min(node.devices_whole - cls.devices, 16));
  } else if (cls.share_milli > 0) {
    bool shared = false;
    for (const auto& d : node.devices)
      shared |= d.open_milli() < 1000 && d.open_milli() >= cls.share_milli;
    b = shared ? 0 : 1 + static_cast<std::size_t>(std::clamp(node.devices_whole, 0, 15));
  } else {
    b = (node.devices_whole > 0 ? 9 : 0) +
        cpu_eighth(node.free[ResourceNames::kCpu], node.allocatable[ResourceNames::kCpu]);
  }
  return state.config().placement == PlacementRule::kSpread ? ClassIndex::kBuckets - 1 - b : b;
}

/// How many of the class the devices take, whatever else there is.
std::int64_t device_room(const TaskClass& cls, const NodeState& node) {
  std::int64_t fits = 0;
  for (const auto& d : node.devices) {
    if (!cls.allows(d)) continue;
    fits += cls.share_milli > 0      ? std::max(d.open_milli(), 0) / cls.share_milli
            : d.open_milli() == 1000 ? 1
                                     : 0;
  }
  return cls.devices > 1 ? fits / cls.devices : fits;
}

/// The same from the row alone, for classes it says all about. Without room: nothing.
struct Place {
  std::size_t bucket = 0;
  std::int16_t room = 0;
};
[[gnu::always_inline]] inline std::optional<Place> place_of(const ClassIndex::Wanted& cls,
                                                            const NodeRow& row) {
  if (row.devices_whole < cls.devices) return std::nullopt;
  // Sums include parts of shared devices; only whole ones count. Devices are what is short, so they
  // come first: a division that would not lower the number is not made.
  std::int32_t whole = kRoomBound;
  if (cls.devices > 0)
    whole = row.devices_whole < 2 * cls.devices ? 1 : row.devices_whole / cls.devices;
  std::int64_t fits = std::min<std::int32_t>(whole, kRoomBound);
  for (std::size_t i = 0; i < cls.amounts.size(); ++i) {
    const std::int64_t wanted = cls.amounts[i];
    if (wanted <= 0) continue;
    if (wanted > row.free[i]) return std::nullopt;
    if (row.free[i] < wanted * fits) fits = row.free[i] / wanted;
  }
  std::size_t b = 0;
  if (cls.devices > 0) {
    b = static_cast<std::size_t>(std::min(row.devices_whole - cls.devices, 16));
  } else {
    b = (row.devices_whole > 0 ? 9 : 0) + cpu_eighth(row.free[ResourceNames::kCpu], row.cpu_all);
  }
  return Place{cls.spread ? ClassIndex::kBuckets - 1 - b : b, static_cast<std::int16_t>(fits)};
}

}  // namespace

ClassIndex::Wanted::Wanted(const State& state, const TaskClass& c)
    : cls(c), devices(c.devices), spread(state.config().placement == PlacementRule::kSpread) {
  for (std::size_t i = 0; i < amounts.size(); ++i) amounts[i] = c.request[i];
}

void ClassIndex::look_at_spec(const State& state, const TaskClass& cls, std::uint32_t n) {
  Entry& entry = entries_[n];
  entry.static_seen = state.row(n).spec_changed + 1;
  const NodeState& node = state.node(NodeId(n));
  entry.static_ok = fit_static(state, cls, node).ok();
  entry.ever_fits = entry.static_ok && cls.request.fits_in(node.allocatable);
}

[[gnu::always_inline]] inline void ClassIndex::update(const State& state,
                                                      const Wanted& wanted,
                                                      std::uint32_t n) {
  const TaskClass& cls = wanted.cls;
  const NodeRow& row = state.row(n);
  Entry& entry = entries_[n];
  if (entry.static_seen != row.spec_changed + 1) look_at_spec(state, cls, n);
  std::uint8_t bucket = kNowhere;
  std::int16_t room = 0;
  if (entry.static_ok && cls.plain) {
    if (const auto place = place_of(wanted, row)) {
      bucket = static_cast<std::uint8_t>(place->bucket);
      room = place->room;
    }
  } else if (const NodeState& node = state.node(NodeId(n));
             entry.static_ok && fit_room(state, cls, node).ok()) {
    bucket = static_cast<std::uint8_t>(bucket_for(state, cls, node));
    std::int64_t fits = kRoomBound;
    for (std::size_t i = 0; i < cls.request.size(); ++i) {
      if (cls.request[i] > 0) fits = std::min(fits, node.free[i] / cls.request[i]);
    }
    if (cls.devices > 0 || cls.share_milli > 0) fits = std::min(fits, device_room(cls, node));
    room = static_cast<std::int16_t>(fits);
  }
  if (room > entry.room) ++gains_;
  entry.room = room;
  if (bucket == entry.bucket) return;
  if (entry.bucket != kNowhere) {
    buckets_[entry.bucket].erase(n);
    --feasible_;
  }
  if (bucket != kNowhere) {
    buckets_[bucket].insert(n);
    ++feasible_;
  }
  entry.bucket = bucket;
}

void ClassIndex::rebuild(const State& state, std::int64_t& checks) {
  const std::uint32_t n = state.node_count();
  entries_.resize(n);
  for (auto& b : buckets_) b.resize(n);
  const Wanted wanted(state, state.cls(cls_));
  for (std::uint32_t i = 0; i < n; ++i) update(state, wanted, i);
  checks += n;
  cursor_ = state.log_end();
  built_ = true;
}

void ClassIndex::catch_up(const State& state, std::int64_t& checks, bool undone) {
  const std::uint64_t gains = gains_;
  if (!built_ || cursor_ < state.log_begin() || entries_.size() != state.node_count()) {
    rebuild(state, checks);
    return;
  }
  const std::uint64_t end = state.log_end();
  if (cursor_ == end) return;
  const Wanted wanted(state, state.cls(cls_));
  checks += static_cast<std::int64_t>(end - cursor_);
  for (; cursor_ < end; ++cursor_) update(state, wanted, state.log_at(cursor_).value);
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
  while (by_class_.size() <= cls.index())
    by_class_.emplace_back(ClassId(static_cast<std::uint32_t>(by_class_.size())));
  return by_class_[cls.index()];
}

}  // namespace muster::engine
