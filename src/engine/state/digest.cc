// The digest of the state: every table, and what the next decision starts from.
#include "engine/model/digest.h"

#include "engine/state/state.h"

namespace muster::engine {

// Of this file alone, but not in a namespace of their own: Digest finds them by where it is itself.
static void digest(Digest& d, const Requirement& r) { d.add(r.key, r.op, r.values); }
static void digest(Digest& d, const Selector& s) { d.add(s.all); }
static void digest(Digest& d, const NodeTerm& t) { d.add(t.labels, t.fields); }
static void digest(Digest& d, const PreferredNodeTerm& t) { d.add(t.term, t.weight); }
static void digest(Digest& d, const PodTerm& t) {
  d.add(t.selector, t.namespaces, t.namespace_selector, t.topology_key, t.weight);
}
static void digest(Digest& d, const Taint& t) { d.add(t.key, t.value, t.effect); }
static void digest(Digest& d, const Toleration& t) { d.add(t.key, t.value, t.exists, t.effect); }
static void digest(Digest& d, const TopologySpread& s) {
  d.add(s.max_skew, s.topology_key, s.required, s.selector, s.min_domains);
  d.add(s.honor_node_affinity, s.honor_taints);
}
static void digest(Digest& d, const HostPort& p) { d.add(p.ip, p.protocol, p.port); }
static void digest(Digest& d, const TopologyLevel& l) { d.add(l.key, l.required); }
static void digest(Digest& d, const DisruptionBudget& b) {
  d.add(b.key, b.ns, b.selector, b.disruptions_allowed);
}
static void digest(Digest& d, const VolcanoPlugin& p) {
  d.add(p.name, p.off, p.hierarchy, p.arguments);
}
static void digest(Digest& d, const VolcanoAction& a) { d.add(a.name, a.arguments); }
static void digest(Digest& d, const Config& c) {
  d.add(c.policy, c.volcano.actions, c.volcano.configurations, c.volcano.tiers);
  d.add(c.scheduler_name, c.default_queue, c.device_resource, c.tenant_rule, c.placement);
  d.add(c.preempt, c.reclaim, c.admission, c.drf, c.preempt_across_queues);
  d.add(c.reservations, c.patience, c.reason_limit);
}

static void digest(Digest& d, const DeviceState& s) {
  d.add(s.index, s.free_milli, s.model, s.healthy, s.held_milli);
}

static void digest(Digest& d, const TaskClass& c) {
  const Pod& p = c.spec;
  d.add(p.requests, p.device_share_milli, p.device_models, p.node_selector, p.node_affinity);
  d.add(p.preferred_node_affinity, p.pod_affinity, p.pod_anti_affinity);
  d.add(p.preferred_pod_affinity, p.preferred_pod_anti_affinity, p.tolerations);
  d.add(p.topology_spread, p.host_ports, p.allowed_nodes);
  d.add(c.request, c.tenant_nodes, c.models, c.unknown_resource);
}

static void digest(Digest& d, const NodeState& n) {
  d.add(n.live, n.spec->name, n.spec->labels, n.spec->taints, n.spec->unschedulable, n.spec->ready);
  d.add(n.allocatable, n.used, n.releasing, n.held, n.free, n.devices);
  d.add(n.pods, n.nominees, n.busy_until);
}

static void digest(Digest& d, const PodState& p) {
  d.add(p.live);
  if (!p.live) return;
  d.add(p.key, p.uid, p.ns, p.labels, p.role, p.cls, p.gang, p.phase, p.node, p.devices);
  d.add(p.priority, p.preemption_policy, p.preemptable, p.critical, p.gated, p.held_back);
  d.add(p.by_cells, p.ours, p.succeeded, p.evicting, p.nominated, p.nominated_hint, p.created);
  d.add(p.started, p.ends, p.leaves, p.expected_duration, p.limit, p.cells, p.seq, p.bound_epoch);
}

static void digest(Digest& d, const Origin& o) { d.add(o.user, o.stem, o.team); }

static void digest(Digest& d, const GangState& g) {
  d.add(g.live, g.dirty);
  if (!g.live) return;
  const Group& s = g.spec;
  d.add(g.key, g.has_group, g.tenant, g.pods, g.pending, g.bound, g.releasing, g.succeeded);
  d.add(g.failed, g.gated, g.wanted, g.standing, g.allocated, g.phase, g.created, g.started);
  d.add(g.seq,
        g.origin,
        g.run_milli,
        g.cut_off,
        g.finished,
        s.min_member,
        s.min_task_member,
        s.min_resources,
        s.priority);
  d.add(s.preemption_policy, s.topology, s.disruption, s.preemptable, s.parent, s.min_groups);
  d.add(s.is_parent, s.sla_waiting_time, s.expected_duration, s.admitted, s.hold);
}

static void digest(Digest& d, const TenantState& t) {
  const Queue& s = t.spec;
  d.add(t.name, t.live, t.parent, t.children, t.capability, t.capability_mask, t.guarantee);
  d.add(t.deserved, t.allocated, t.held, t.pending, t.created, t.released, t.gangs_waiting);
  d.add(t.gangs_running, s.weight, s.priority, s.reclaimable, s.state, s.hierarchy);
  d.add(s.hierarchy_weights, s.backfill, s.t9k, s.preemptible, s.max_duration, s.node_selector);
  d.add(s.virtual_cluster);
}

static void digest(Digest& d, const Completion& c) {
  d.add(c.kind.user, c.kind.stem, c.kind.team, c.kind.shape, c.started, c.ended, c.declared);
  d.add(c.stopped);
}

void State::digest(Digest& d) const {
  d.add(config_, config_changed_, cells_, total_, models_);
  for (std::size_t i = 0; i < names_.size(); ++i) d.add(names_.name(i));
  d.add(nodes_, pods_, free_pods_, gangs_, free_gangs_, tenants_, classes_);
  d.add(budgets_, namespaces_, anti_pods_, evictable_, families_, dirty_gangs_, completions_);
  history_.get().digest(d);
  for (const auto& [pod, devices] : devices_told_) d.add(pod, devices);
  d.add(tenants_version_, victims_version_, next_seq_, epoch, attempts, binds, evictions);
}

}  // namespace muster::engine
