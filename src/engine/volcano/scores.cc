// Which of the nodes that can take a task is the best. Scores are summed over the plugins; one of
// Volcano's points (a plugin gives 0 to 100 times its weight) is 10,000 here, so that fractions
// need no floating point.
#include <algorithm>

#include "base/strings.h"
#include "engine/state/match.h"
#include "engine/volcano/session.h"

namespace muster::engine::volcano {

namespace {

constexpr std::int64_t kPoint = 10'000;
constexpr std::int64_t kFull = 100 * kPoint;

std::int64_t weight_of(const Plugin& plugin, const std::string& key, std::int64_t fallback) {
  return parse_int(plugin.argument(key)).value_or(fallback);
}

/// Parts per million of the node in use once the task is there; a million at most.
std::int64_t fill(Wide after, Wide allocatable) {
  return static_cast<std::int64_t>(std::min<Wide>(after * 1'000'000 / allocatable, 1'000'000));
}

}  // namespace

std::int64_t Session::binpack_score(const Plugin& plugin, TaskIx t, NodeId node) const {
  const NodeRoom& room = rooms_[node.index()];
  const Amounts& request = tasks_[t].request;
  const auto weight = [&](const std::string& key) {
    const std::int64_t w = weight_of(plugin, key, 1);
    return w < 0 ? 1 : w;
  };
  std::vector<std::pair<std::size_t, std::int64_t>> weights = {
      {ResourceNames::kCpu, weight("binpack.cpu")},
      {ResourceNames::kMemory, weight("binpack.memory")}};
  for (const auto& part : split_nonempty(plugin.argument("binpack.resources"), ',')) {
    const std::string name(trim(part));
    const std::size_t i = state_.names().find(name);
    if (i != ResourceNames::kNone) weights.emplace_back(i, weight("binpack.resources." + name));
  }
  std::int64_t sum = 0;
  std::int64_t points = 0;
  for (const auto& [i, w] : weights) {
    if (request[i] <= 0) continue;
    sum += w;
    const Wide after = room.used[i] + request[i];
    if (room.allocatable[i] > 0 && after <= room.allocatable[i])
      points += w * fill(after, room.allocatable[i]);
  }
  return sum > 0 ? points / sum * weight("binpack.weight") : 0;
}

/// kube-scheduler's scores, as far as cpu, memory, preferred node terms and PreferNoSchedule taints
/// go.
std::int64_t Session::nodeorder_score(const Plugin& plugin, TaskIx t, NodeId node) const {
  const NodeRoom& room = rooms_[node.index()];
  const NodeState& state = state_.node(node);
  const Pod& pod = state_.cls_of(tasks_[t].pod).spec;
  std::int64_t used = 0;
  std::int64_t low = 1'000'000;
  std::int64_t high = 0;
  std::int64_t counted = 0;
  for (const std::size_t i : {ResourceNames::kCpu, ResourceNames::kMemory}) {
    if (room.allocatable[i] <= 0) continue;
    const std::int64_t share = fill(room.used[i] + tasks_[t].request[i], room.allocatable[i]);
    used += share;
    low = std::min(low, share);
    high = std::max(high, share);
    ++counted;
  }
  std::int64_t score = 0;
  if (counted > 0) {
    score += weight_of(plugin, "leastrequested.weight", 1) * (1'000'000 - used / counted);
    score += weight_of(plugin, "mostrequested.weight", 0) * (used / counted);
    score += weight_of(plugin, "balancedresource.weight", 1) * (1'000'000 - (high - low) / 2);
  }
  std::int64_t preferred = 0;
  for (const auto& p : pod.preferred_node_affinity) {
    if (matches(p.term, state.spec.labels, state.spec.name)) preferred += p.weight;
  }
  score += weight_of(plugin, "nodeaffinity.weight", 2) * std::min(preferred * kPoint, kFull);
  const bool unwelcome =
      std::any_of(state.spec.taints.begin(), state.spec.taints.end(), [&](const Taint& taint) {
        return taint.effect == TaintEffect::kPreferNoSchedule &&
               std::none_of(pod.tolerations.begin(),
                            pod.tolerations.end(),
                            [&](const Toleration& x) { return tolerates(x, taint); });
      });
  if (!unwelcome) score += weight_of(plugin, "tainttoleration.weight", 3) * kFull;
  return score;
}

/// nodeorder decides where nobody else has an opinion: next to binpack it would spread what binpack
/// packs.
std::int64_t Session::score(TaskIx t, NodeId node) const {
  constexpr std::int64_t kFirst = 100'000'000;
  std::int64_t total = 0;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p.on("enableNodeOrder")) continue;
      if (p.kind == Kind::kBinpack) total += kFirst * binpack_score(p, t, node);
      if (p.kind == Kind::kNodeorder) total += nodeorder_score(p, t, node);
    }
  }
  return total;
}

}  // namespace muster::engine::volcano
