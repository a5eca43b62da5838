// predicates: Kubernetes' own rules of where a pod may go.
#include <algorithm>

#include "engine/state/fit.h"
#include "engine/state/match.h"
#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

class Predicates : public Plugin {
 public:
  using Plugin::Plugin;

  /// `preempting`: ports, slots and other pods may yet make way.
  [[nodiscard]] bool predicate(TaskIx t, NodeId node, bool preempting) const override {
    const PodId pod = snapshot_.tasks[t].pod;
    if (!fit_static(state_, state_.cls_of(pod), state_.node(node)).ok()) return false;
    if (preempting) return true;
    return ports_free(t, node) && slot_free(t, node) &&
           (!needs_between(state_, pod) || fit_between(state_, pod, node, &snapshot_.gone).ok());
  }

 private:
  [[nodiscard]] bool ports_free(TaskIx t, NodeId node) const {
    const auto& ports = state_.cls_of(snapshot_.tasks[t].pod).spec.host_ports;
    if (ports.empty()) return true;
    for (const TaskIx other : snapshot_.rooms[node.index()].tasks) {
      const bool just_evicted = snapshot_.tasks[other].status == Status::kReleasing &&
                                snapshot_.pod_of(other).phase == PodPhase::kBound;
      if (just_evicted) continue;
      for (const auto& taken : state_.cls_of(snapshot_.tasks[other].pod).spec.host_ports) {
        if (std::any_of(ports.begin(), ports.end(), [&](const auto& wanted) {
              return ports_conflict(wanted, taken);
            }))
          return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool slot_free(TaskIx t, NodeId node) const {
    constexpr std::size_t kPods = ResourceNames::kPods;
    const NodeRoom& room = snapshot_.rooms[node.index()];
    return room.used[kPods] + room.pipelined[kPods] - room.releasing[kPods] +
               snapshot_.tasks[t].request[kPods] <=
           room.allocatable[kPods];
  }
};

}  // namespace

std::unique_ptr<Plugin> make_predicates(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Predicates>(config, snapshot);
}

}  // namespace muster::engine::volcano
