#include "engine/muster/fragmentation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "engine/state/fit.h"

namespace muster::engine {

namespace {

constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();
/// The most frequent kinds stand for the mix; the rest changes no order.
constexpr std::size_t kKinds = 128;
/// Where nodes differ little in fragmentation, the fuller one is better: a free device counts like
/// 1/200 of itself in fragments, a free cpu like 3/10,000 of a device. Chosen by replays of the
/// openb trace.
constexpr std::int64_t kScale = 10'000;
constexpr std::int64_t kDevicePull = 50;
constexpr std::int64_t kCpuPull = 3;

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
    if (seen_[c] > 0 && (k.devices > 0 || k.share_milli > 0)) order.emplace_back(seen_[c], c);
  }
  // Requests alike in cpu and devices are one kind; memory is seldom what runs out first beside
  // devices.
  std::map<std::tuple<std::int64_t, std::int32_t, std::int32_t>, std::int64_t> weights;
  for (const auto& [n, c] : order) {
    const TaskClass& k = state.cls(ClassId(c));
    weights[{k.request[ResourceNames::kCpu], k.devices, k.share_milli}] += n;
  }
  kinds_.clear();
  for (const auto& [kind, n] : weights)
    kinds_.push_back({std::get<0>(kind), std::get<1>(kind), std::get<2>(kind), n});
  std::sort(kinds_.begin(), kinds_.end(), [](const Kind& x, const Kind& y) {
    return std::tuple(-x.weight, x.cpu, x.devices, x.share) <
           std::tuple(-y.weight, y.cpu, y.devices, y.share);
  });
  if (kinds_.size() > kKinds) kinds_.resize(kKinds);
}

std::int64_t Fragmentation::fragments(std::int64_t cpu,
                                      const std::vector<std::int32_t>& devices) const {
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
    if (k.cpu > cpu || whole < k.devices || most < k.share) {
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

std::int64_t Fragmentation::before(const NodeState& node,
                                   NodeId id,
                                   const std::vector<std::int32_t>& devices) {
  if (before_.size() <= id.index()) before_.resize(id.index() + 1);
  Before& b = before_[id.index()];
  if (!b.known || b.changed != node.changed || b.mix != mix_)
    b = {true, node.changed, mix_, fragments(node.free[ResourceNames::kCpu], devices)};
  return b.fragments;
}

/// What one pod of the class would add, on the device where it adds least.
Fragmentation::Cost Fragmentation::cost(const State& state, const TaskClass& cls, NodeId id) {
  const NodeState& node = state.node(id);
  if (!fit_static(state, cls, node).ok() || !fit_room(state, cls, node).ok())
    return {kImpossible, -1};
  std::vector<std::int32_t> devices;
  devices.reserve(node.devices.size());
  for (const auto& d : node.devices) devices.push_back(std::max(d.open_milli(), 0));
  const std::int64_t now = before(node, id, devices);
  const std::int64_t cpu = node.free[ResourceNames::kCpu] - cls.request[ResourceNames::kCpu];
  if (cls.share_milli == 0) {
    std::int32_t left = cls.devices;
    for (auto& d : devices) {
      if (left == 0) break;
      if (d != 1000) continue;
      d = 0;
      --left;
    }
    return {fragments(cpu, devices) - now, -1};
  }
  Cost best{kImpossible, -1};
  std::int32_t best_free = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::int32_t free = devices[i];
    if (free < cls.share_milli || !cls.allows(node.devices[i])) continue;
    // Devices with the same amount free are alike.
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), free) !=
        devices.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    devices[i] = free - cls.share_milli;
    const std::int64_t added = fragments(cpu, devices) - now;
    devices[i] = free;
    if (best.device >= 0 &&
        (added > best.increase || (added == best.increase && free >= best_free)))
      continue;
    best = {added, static_cast<std::int32_t>(i)};
    best_free = free;
  }
  return best;
}

NodeId Fragmentation::pick(const State& state,
                           ClassId id,
                           std::int64_t& checks,
                           std::int32_t& device) {
  learn(state, id);
  if (tables_.size() <= id.index()) tables_.resize(state.class_count());
  Table& table = tables_[id.index()];
  const TaskClass& cls = state.cls(id);
  if (table.mix != mix_ || table.increase.size() != state.node_count() ||
      table.cursor < state.log_begin()) {
    table.increase.resize(state.node_count());
    for (std::uint32_t n = 0; n < state.node_count(); ++n)
      table.increase[n] = cost(state, cls, NodeId(n)).increase;
    checks += state.node_count();
    table.mix = mix_;
    table.cursor = state.log_end();
  }
  for (; table.cursor < state.log_end(); ++table.cursor) {
    const NodeId n = state.log_at(table.cursor);
    table.increase[n.index()] = cost(state, cls, n).increase;
    ++checks;
  }
  std::int64_t weight = 0;
  for (const Kind& k : kinds_) weight += k.weight;
  NodeId best;
  std::int64_t best_score = 0;
  std::int64_t best_left = 0;
  for (std::uint32_t n = 0; n < state.node_count(); ++n) {
    if (table.increase[n] == kImpossible) continue;
    const ResourceVector& free = state.node(NodeId(n)).free;
    const std::int64_t left = free[ResourceNames::kDevice];
    const std::int64_t score = table.increase[n] * kScale +
                               weight * (kDevicePull * left + kCpuPull * free[ResourceNames::kCpu]);
    if (best.valid() && (score > best_score || (score == best_score && left >= best_left)))
      continue;
    best = NodeId(n);
    best_score = score;
    best_left = left;
  }
  device = best.valid() ? cost(state, cls, best).device : -1;
  return best;
}

}  // namespace muster::engine
