// What always holds between the tables.
#include <array>

#include "base/result.h"
#include "engine/state/state.h"

namespace muster::engine {

void State::check() const {
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) check_node(NodeId(n));
  for (std::uint32_t g = 0; g < gangs_.size(); ++g) {
    if (gangs_[g].live) check_gang(GangId(g));
  }
}

void State::check_node(NodeId id) const {
  const NodeState& node = nodes_[id.index()];
  ResourceVector used;
  ResourceVector releasing;
  ResourceVector held;
  for (std::size_t i = 0; i < node.pods.size(); ++i) {
    const PodState& pod = pods_[node.pods[i].index()];
    MUSTER_CHECK(pod.live && pod.node == id && pod.in_node == i,
                 "a pod knows its node and its place in the node's list");
    used += classes_[pod.cls.index()].request;
    if (pod.phase == PodPhase::kReleasing) releasing += classes_[pod.cls.index()].request;
  }
  for (const PodId p : node.nominees) {
    const PodState& pod = pods_[p.index()];
    MUSTER_CHECK(pod.live && pod.nominated == id && pod.phase == PodPhase::kPending,
                 "room is held for pods that wait and are nominated there");
    held += classes_[pod.cls.index()].request;
  }
  MUSTER_CHECK(used == node.used, "a node's use is the sum over its pods");
  MUSTER_CHECK(releasing == node.releasing, "what leaves is the sum over those that leave");
  MUSTER_CHECK(held == node.held, "what is held is the sum over those it is held for");
}

void State::check_gang(GangId id) const {
  const GangState& gang = gangs_[id.index()];
  std::array<std::int32_t, 5> count{};
  std::int32_t gated = 0;
  for (std::size_t i = 0; i < gang.pods.size(); ++i) {
    const PodState& pod = pods_[gang.pods[i].index()];
    MUSTER_CHECK(pod.live && pod.gang == id && pod.in_gang == i,
                 "a pod knows its gang and its place in the gang's list");
    MUSTER_CHECK(
        pod.node.valid() == (pod.phase == PodPhase::kBound || pod.phase == PodPhase::kReleasing),
        "a pod has a node exactly while it is bound or leaves");
    const bool failed = pod.phase == PodPhase::kFinished && !pod.succeeded;
    ++count[static_cast<std::size_t>(pod.phase) + (failed ? 1 : 0)];
    if (pod.phase == PodPhase::kPending && pod.gated) ++gated;
  }
  MUSTER_CHECK(
      (count == std::array{gang.pending, gang.bound, gang.releasing, gang.succeeded, gang.failed}),
      "a gang counts its pods by their phase");
  MUSTER_CHECK(gated == gang.gated, "a gang counts its pods that are gated");
}

}  // namespace muster::engine
