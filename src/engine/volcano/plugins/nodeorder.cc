// nodeorder: kube-scheduler's scores, as far as cpu, memory, preferred node terms and
// PreferNoSchedule taints go.
#include <algorithm>

#include "engine/state/match.h"
#include "engine/volcano/plugins/plugins.h"
#include "engine/volcano/plugins/scores.h"

namespace muster::engine::volcano {

namespace {

class Nodeorder : public Plugin {
 public:
  using Plugin::Plugin;

  [[nodiscard]] std::int64_t node_score(TaskIx t, NodeId node) const override {
    const Pod& pod = state_.cls_of(snapshot_.tasks[t].pod).spec;
    return room_score(t, node) + preference_score(pod, state_.node(node).spec);
  }

 private:
  [[nodiscard]] std::int64_t room_score(TaskIx t, NodeId node) const {
    const NodeRoom& room = snapshot_.rooms[node.index()];
    std::int64_t used = 0;
    std::int64_t low = 1'000'000;
    std::int64_t high = 0;
    std::int64_t counted = 0;
    for (const std::size_t i : {ResourceNames::kCpu, ResourceNames::kMemory}) {
      if (room.allocatable[i] <= 0) continue;
      const std::int64_t share =
          fill(room.used[i] + snapshot_.tasks[t].request[i], room.allocatable[i]);
      used += share;
      low = std::min(low, share);
      high = std::max(high, share);
      ++counted;
    }
    if (counted == 0) return 0;
    return integer("leastrequested.weight", 1) * (1'000'000 - used / counted) +
           integer("mostrequested.weight", 0) * (used / counted) +
           integer("balancedresource.weight", 1) * (1'000'000 - (high - low) / 2);
  }

  [[nodiscard]] std::int64_t preference_score(const Pod& pod, const Node& node) const {
    std::int64_t preferred = 0;
    for (const auto& p : pod.preferred_node_affinity) {
      if (matches(p.term, node.labels, node.name)) preferred += p.weight;
    }
    std::int64_t score =
        integer("nodeaffinity.weight", 2) * std::min(preferred * kPoint, kFullScore);
    const bool unwelcome =
        std::any_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
          return taint.effect == TaintEffect::kPreferNoSchedule &&
                 std::none_of(pod.tolerations.begin(),
                              pod.tolerations.end(),
                              [&](const Toleration& x) { return tolerates(x, taint); });
        });
    if (!unwelcome) score += integer("tainttoleration.weight", 3) * kFullScore;
    return score;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_nodeorder(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Nodeorder>(config, snapshot);
}

}  // namespace muster::engine::volcano
