#include "engine/state/gang_view.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::engine {

std::vector<GangId> gangs_by_sight(const State& state) {
  std::vector<GangId> out;
  for (std::uint32_t g = 0; g < state.gang_count(); ++g) {
    if (is_alive(state.gang(GangId(g)))) out.push_back(GangId(g));
  }
  std::sort(out.begin(), out.end(), [&](GangId a, GangId b) {
    return state.gang(a).seq < state.gang(b).seq;
  });
  return out;
}

namespace {

/// What its pods say together: a duration counts when all say one.
void add_pods(const State& state, const GangState& gang, GangView& view) {
  bool declared = true, limited = true;
  std::vector<NodeId> nodes;
  for (const PodId p : gang.pods) {
    const PodState& pod = state.pod(p);
    if (pod.phase == PodPhase::kFinished) continue;
    const TaskClass& cls = state.cls(pod.cls);
    view.pods.push_back(pod.key);
    if (pod.node.valid()) nodes.push_back(pod.node);
    std::int64_t milli = cls.request[ResourceNames::kDevice];
    // What HiveD's pods ask for is in their note alone.
    if (milli == 0 && pod.by_cells && pod.cells && pod.cells->spec)
      milli = 1000 * pod.cells->spec->leaves;
    view.device_milli += milli;
    view.evicted = view.evicted || pod.evicting;
    view.by_cells = view.by_cells || pod.by_cells;
    if (view.model.empty()) view.model = join(cls.spec.device_models, ",");
    declared = declared && pod.expected_duration.count() > 0;
    limited = limited && pod.limit.count() > 0;
    view.declared = std::max(view.declared, pod.expected_duration);
    view.limit = std::max(view.limit, pod.limit);
    if (pod.phase == PodPhase::kReleasing) view.leaves = std::max(view.leaves, pod.leaves);
    const Time latest = state.latest_end(gang.tenant, pod.created);
    if (latest != kNever) view.latest_end = std::max(view.latest_end, latest);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (const NodeId node : nodes) view.nodes.push_back(state.node(node).spec->name);
  if (!declared) view.declared = Duration{};
  if (!limited) view.limit = Duration{};
  if (gang.spec->expected_duration.count() > 0) view.declared = gang.spec->expected_duration;
}

}  // namespace

GangView gang_view(const State& state, GangId id) {
  const GangState& gang = state.gang(id);
  GangView view;
  view.key = gang.key;
  view.is_group = gang.has_group;
  view.queue = state.tenant(gang.tenant).name;
  view.team = view.queue;
  if (gang.origin != nullptr) {
    view.user = gang.origin->user;
    view.stem = gang.origin->stem;
    if (!gang.origin->team.empty()) view.team = gang.origin->team;
  }
  view.priority = gang.spec->priority;
  view.min_member = gang.spec->min_member;
  view.bound = gang.bound;
  view.releasing = gang.releasing;
  view.waiting = gang.standing == Standing::kWaiting;
  view.running = gang.standing == Standing::kRunning;
  view.created = gang.created;
  if (gang.bound > 0) view.started = gang.started;
  view.kind = state.kind_of(gang);
  add_pods(state, gang, view);
  return view;
}

Pod pod_as_told(const State& state, PodId id) {
  const PodState& pod = state.pod(id);
  const GangState& gang = state.gang(pod.gang);
  Pod out = state.cls(pod.cls).spec;
  out.key = pod.key;
  out.uid = pod.uid;
  out.ns = pod.ns;
  out.labels = pod.labels;
  out.group = gang.has_group || gang.key != pod.key ? *gang.key : "";
  out.role = pod.role;
  out.queue = state.tenant(gang.tenant).name;
  out.priority = pod.priority;
  out.preemption_policy = pod.preemption_policy;
  out.preemptable = pod.preemptable;
  out.critical = pod.critical;
  out.cells = pod.cells;
  out.gated = pod.held_back;
  out.ours = pod.ours;
  out.node = pod.node.valid() ? state.node(pod.node).spec->name : "";
  out.device_indexes.clear();
  if (pod.node.valid()) {
    for (const auto i : pod.devices)
      out.device_indexes.push_back(state.node(pod.node).devices[i].index);
  }
  out.nominated_node = pod.nominated_hint;
  out.terminating = pod.phase == PodPhase::kReleasing;
  out.terminating_until = pod.leaves;
  out.finished = pod.phase == PodPhase::kFinished;
  out.succeeded = pod.succeeded;
  out.created = pod.created;
  out.started = pod.started;
  out.expected_duration = pod.expected_duration;
  out.limit = pod.limit;
  out.origin = gang.origin;
  return out;
}

}  // namespace muster::engine
