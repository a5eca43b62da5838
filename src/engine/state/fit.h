/// May this class of pods go to this node, and if not, why not? Kubernetes' filters, one answer
/// each.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/model/ids.h"
#include "engine/state/state.h"

namespace muster::engine {

enum class Cause : std::uint8_t {
  kNone,
  kGone,
  kNotReady,
  kUnschedulable,
  kTaint,
  kAffinity,
  kAllowedNodes,
  kPorts,
  kTooManyPods,
  kResource,  ///< with the resource's index
  kDevices,   ///< enough in sum, but not as whole (or shareable, or allowed) devices
  kPodAffinity,
  kPodAntiAffinity,
  kExistingAntiAffinity,
  kSpread,
  kSpreadLabel,
};

struct Misfit {
  Cause cause = Cause::kNone;
  std::size_t resource = 0;

  [[nodiscard]] bool ok() const { return cause == Cause::kNone; }
  bool operator==(const Misfit&) const = default;
};

/// kube-scheduler's text for the cause.
std::string misfit_text(const State& state, ClassId cls, NodeId node, const Misfit& misfit);

/// What does not depend on what runs there: readiness, cordon, taints, selectors.
Misfit fit_static(const State& state, const TaskClass& cls, const NodeState& node);
/// Resources, devices and ports, given the room in `node.free`.
Misfit fit_room(const State& state, const TaskClass& cls, const NodeState& node);
/// The same for a nominated pod and the room held for it: has everybody left it?
Misfit fit_held(const State& state, PodId pod);
/// Terms that look at other pods: affinity, anti-affinity (also of pods already there), spread.
/// `gone`: pods that count as gone already.
Misfit fit_between(const State& state,
                   PodId pod,
                   NodeId node,
                   const std::set<PodId>* gone = nullptr);
/// Pods that anti-affinity, theirs or the pod's own, keeps apart from a pod on that node.
std::vector<PodId> repelled(const State& state, PodId pod, NodeId node);
/// True when fit_between can say no to this pod at all.
bool needs_between(const State& state, PodId pod);

/// All three, in kube-scheduler's order.
Misfit fit(const State& state, PodId pod, NodeId node);

/// How many pods of the class fit beside each other (bounded by `limit`); 0 when it may not go
/// there.
std::int32_t fit_count(const State& state,
                       const TaskClass& cls,
                       const NodeState& node,
                       std::int32_t limit);

}  // namespace muster::engine
