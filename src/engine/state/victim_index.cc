#include "engine/state/victim_index.h"

#include <algorithm>
#include <set>

#include "engine/state/fit.h"

namespace muster::engine {

namespace {

constexpr std::uint8_t kNowhere = 255;

}  // namespace

void VictimIndex::update(const Asking& asking, Table& table, std::uint32_t n) {
  ++checks;
  const State& state = asking.state;
  std::uint8_t bucket = kNowhere;
  if (fit_static(state, state.cls(asking.who.cls), state.node(NodeId(n))).ok()) {
    static const EvictionPlan kNothing{};
    const VictimChoice choice = choose_on_node(asking, NodeId(n), kNothing);
    // Nodes where a disruption budget would be broken come after all others.
    constexpr std::size_t kHalf = kBuckets / 2;
    if (choice.possible) {
      bucket = static_cast<std::uint8_t>(
          std::min<std::size_t>(static_cast<std::size_t>(choice.cost.pods), kHalf - 1));
      if (choice.cost.budgets_broken > 0) bucket = static_cast<std::uint8_t>(bucket + kHalf);
    }
  }
  if (bucket == table.bucket_of[n]) return;
  if (table.bucket_of[n] != kNowhere) table.buckets[table.bucket_of[n]].erase(n);
  if (bucket != kNowhere) table.buckets[bucket].insert(n);
  table.bucket_of[n] = bucket;
}

void VictimIndex::catch_up(const Asking& exact) {
  Asking asking = exact;
  asking.lasting = true;
  const State& state = asking.state;
  Table& table = tables_[asking.who.key()];
  table.used = ++uses_;
  const bool behind =
      table.cursor < state.log_begin() || table.gang_cursor < state.gang_log_begin();
  if (!table.built || behind || table.version != state.victims_version() ||
      table.bucket_of.size() != state.node_count()) {
    table.bucket_of.resize(state.node_count(), kNowhere);
    for (auto& b : table.buckets) b.resize(state.node_count());
    for (std::uint32_t n = 0; n < state.node_count(); ++n) update(asking, table, n);
    table.cursor = state.log_end();
    table.gang_cursor = state.gang_log_end();
    table.version = state.victims_version();
    table.built = true;
  }
  std::set<NodeId> changed;
  for (; table.cursor < state.log_end(); ++table.cursor) changed.insert(state.log_at(table.cursor));
  std::set<GangId> gangs;
  for (; table.gang_cursor < state.gang_log_end(); ++table.gang_cursor)
    gangs.insert(state.gang_log_at(table.gang_cursor));
  for (const GangId g : gangs) {
    const GangId root = state.root_of(g);
    for (const GangId leaf : state.leaves_of(root)) {
      for (const PodId p : state.gang(leaf).pods) {
        if (state.pod(p).phase == PodPhase::kBound) changed.insert(state.pod(p).node);
      }
    }
  }
  for (const NodeId n : changed) update(asking, table, n.value);
  // Tables of preemptors long gone are dropped.
  if (tables_.size() > 256) {
    for (auto it = tables_.begin(); it != tables_.end();) {
      it = it->second.used + 128 < uses_ ? tables_.erase(it) : std::next(it);
    }
  }
}

NodeId VictimIndex::next(const Preemptor& who, Cursor& cursor) const {
  const Table& table = tables_.at(who.key());
  for (; cursor.bucket < kBuckets; ++cursor.bucket, cursor.from = 0) {
    const std::uint32_t n = table.buckets[cursor.bucket].next(cursor.from);
    if (n == NodeId::kNone) continue;
    cursor.from = n + 1;
    return NodeId(n);
  }
  return NodeId{};
}

}  // namespace muster::engine
