#include "engine/muster/desk.h"

#include <utility>

namespace muster::engine {

void Desk::tell_binds(std::span<const PodId> placed) {
  if (plan.binds.empty()) plan.binds.reserve(placed.size());
  for (const PodId p : placed) {
    const PodState& pod = state->pod(p);
    const NodeState& node = state->node(pod.node);
    Bind& b = plan.binds.emplace_back();
    b.pod = pod.key;
    b.uid = pod.uid;
    b.node = node.spec->name;
    b.devices.reserve(pod.devices.size());
    for (const auto i : pod.devices) b.devices.push_back(node.devices[i].index);
    b.device_share_milli = state->cls(pod.cls).share_milli;
  }
}

}  // namespace muster::engine
