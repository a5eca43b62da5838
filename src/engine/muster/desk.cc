#include "engine/muster/desk.h"

#include <utility>

namespace muster::engine {

void Desk::tell_binds(const std::vector<PodId>& placed) {
  for (const PodId p : placed) {
    const PodState& pod = state->pod(p);
    const NodeState& node = state->node(pod.node);
    Bind b;
    b.pod = pod.key;
    b.uid = pod.uid;
    b.node = node.spec->name;
    b.devices.reserve(pod.devices.size());
    for (const auto i : pod.devices) b.devices.push_back(node.devices[i].index);
    b.device_share_milli = state->cls(pod.cls).share_milli;
    plan.binds.push_back(std::move(b));
  }
}

}  // namespace muster::engine
