#include "engine/fragmentation.h"

#include <algorithm>
#include <limits>

#include "engine/fit.h"

namespace muster::engine {

namespace {

constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();
/// The most frequent kinds stand for the mix; the rest changes no order.
constexpr std::size_t kKinds = 48;

}  // namespace

void Fragmentation::learn(const State& state, ClassId cls) {
  if (seen_.size() <= cls.index()) seen_.resize(state.class_count());
  ++seen_[cls.index()];
  if (++total_ < next_mix_) return;
  next_mix_ = std::min(total_ * 2, total_ + 4096);
  ++mix_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> order;
  for (std::uint32_t c = 0; c < seen_.size(); ++c) {
    const TaskClass& k = state.cls(ClassId(c));
    if (seen_[c] > 0 && (k.devices > 0 || k.share_milli > 0)) order.emplace_back(-seen_[c], c);
  }
  std::sort(order.begin(), order.end());
  kinds_.clear();
  for (std::size_t i = 0; i < order.size() && i < kKinds; ++i) {
    const TaskClass& k = state.cls(ClassId(order[i].second));
    kinds_.push_back({k.request[ResourceNames::kCpu], k.request[ResourceNames::kMemory], k.devices, k.share_milli, -order[i].first});
  }
}

std::int64_t Fragmentation::fragments(std::int64_t cpu, std::int64_t memory, const std::vector<std::int32_t>& devices) const {
  std::int64_t all = 0;
  std::int64_t partial = 0;
  std::int32_t whole = 0;
  std::int32_t most = 0;
  for (const auto d : devices) {
    all += d;
    most = std::max(most, d);
    if (d == 1000) {
      ++whole;
    } else {
      partial += d;
    }
  }
  if (all == 0) return 0;
  std::int64_t sum = 0;
  for (const Kind& k : kinds_) {
    if (k.cpu > cpu || k.memory > memory || whole < k.devices || most < k.share) {
      sum += k.weight * all;
    } else if (k.devices > 0) {
      sum += k.weight * partial;
    } else {
      std::int64_t lost = 0;
      for (const auto d : devices) lost += d < k.share ? d : 0;
      sum += k.weight * lost;
    }
  }
  return sum;
}

std::int64_t Fragmentation::increase(const State& state, const TaskClass& cls, const NodeState& node) const {
  if (!fit_static(state, cls, node).ok() || !fit_room(state, cls, node).ok()) return kImpossible;
  std::vector<std::int32_t> devices;
  devices.reserve(node.devices.size());
  for (const auto& d : node.devices) devices.push_back(d.healthy ? d.free_milli : 0);
  const std::int64_t cpu = node.free[ResourceNames::kCpu];
  const std::int64_t memory = node.free[ResourceNames::kMemory];
  const std::int64_t before = fragments(cpu, memory, devices);
  // The devices the state would give: the fullest that fits, or the first whole ones.
  if (cls.share_milli > 0) {
    std::size_t best = devices.size();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (devices[i] >= cls.share_milli && (best == devices.size() || devices[i] < devices[best])) best = i;
    }
    if (best < devices.size()) devices[best] -= cls.share_milli;
  }
  std::int32_t left = cls.devices;
  for (auto& d : devices) {
    if (left == 0) break;
    if (d != 1000) continue;
    d = 0;
    --left;
  }
  return fragments(cpu - cls.request[ResourceNames::kCpu], memory - cls.request[ResourceNames::kMemory], devices) - before;
}

NodeId Fragmentation::pick(const State& state, ClassId id, std::int64_t& checks) {
  learn(state, id);
  if (tables_.size() <= id.index()) tables_.resize(state.class_count());
  Table& table = tables_[id.index()];
  const TaskClass& cls = state.cls(id);
  if (table.mix != mix_ || table.increase.size() != state.node_count() || table.cursor < state.log_begin()) {
    table.increase.resize(state.node_count());
    for (std::uint32_t n = 0; n < state.node_count(); ++n) table.increase[n] = increase(state, cls, state.node(NodeId(n)));
    checks += state.node_count();
    table.mix = mix_;
    table.cursor = state.log_end();
  }
  for (; table.cursor < state.log_end(); ++table.cursor) {
    const NodeId n = state.log_at(table.cursor);
    table.increase[n.index()] = increase(state, cls, state.node(n));
    ++checks;
  }
  NodeId best;
  std::int64_t best_left = 0;
  for (std::uint32_t n = 0; n < state.node_count(); ++n) {
    const std::int64_t f = table.increase[n];
    if (f == kImpossible) continue;
    const std::int64_t left = state.node(NodeId(n)).free[ResourceNames::kDevice];
    if (best.valid() && (f > table.increase[best.index()] || (f == table.increase[best.index()] && left >= best_left))) continue;
    best = NodeId(n);
    best_left = left;
  }
  return best;
}

}  // namespace muster::engine
