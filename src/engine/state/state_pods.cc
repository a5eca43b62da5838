// Pods: how they come, take and give back their place, and go. One piece: each of these steps undoes
// another, and the two are read side by side.
#include <algorithm>
#include <utility>

#include "base/result.h"
#include "engine/state/state.h"

namespace muster::engine {

namespace {
Duration declared_by(const GangState& gang, const PodState& pod) {
  return gang.spec->expected_duration.count() > 0 ? gang.spec->expected_duration
                                                  : pod.expected_duration;
}

void note_origin(GangState& gang, const Pod& spec) {
  if (spec.origin == nullptr || spec.origin == gang.origin) return;
  const bool same = gang.origin != nullptr && *gang.origin == *spec.origin;
  gang.origin = spec.origin;
  if (same) return;
  const auto hashed = [](const std::string& name) { return name.empty() ? 0 : hash_name(name); };
  gang.user = hashed(spec.origin->user);
  gang.stem = hashed(spec.origin->stem);
  gang.team = hashed(spec.origin->team);
}
}  // namespace

void State::count(const PodState& pod, std::int32_t sign) {
  GangState& gang = gangs_[pod.gang.index()];
  switch (pod.phase) {
    case PodPhase::kPending: {
      gang.pending += sign;
      ResourceVector& pending = tenants_[gang.tenant.index()].pending;
      if (sign > 0) {
        pending += classes_[pod.cls.index()].request;
      } else {
        pending -= classes_[pod.cls.index()].request;
      }
      if (pod.gated) gang.gated += sign;
      if (pod.ours && !pod.held_back) gang.wanted += sign;
      break;
    }
    case PodPhase::kBound:
      gang.bound += sign;
      break;
    case PodPhase::kReleasing:
      gang.releasing += sign;
      break;
    case PodPhase::kFinished:
      (pod.succeeded ? gang.succeeded : gang.failed) += sign;
      break;
  }
}

void State::count_standing(const GangState& gang, std::int32_t sign) {
  TenantState& tenant = tenants_[gang.tenant.index()];
  if (gang.standing == Standing::kRunning) tenant.gangs_running += sign;
  if (gang.standing != Standing::kWaiting) return;
  tenant.gangs_waiting += sign;
  gangs_waiting_ += sign;
}

/// After any change of what its standing follows from.
void State::restand(GangState& gang) {
  const bool runs = gang.bound > 0 && gang.bound + gang.succeeded >= gang.spec->min_member;
  const Standing standing = runs              ? Standing::kRunning
                            : gang.wanted > 0 ? Standing::kWaiting
                                              : Standing::kNone;
  if (standing == gang.standing) return;
  count_standing(gang, -1);
  gang.standing = standing;
  count_standing(gang, +1);
}

namespace {

/// Adds to, or takes from, one amount of a tenant and of all above it.
void charge_upwards(std::vector<TenantState>& tenants,
                    TenantId t,
                    ResourceVector TenantState::* amount,
                    const ResourceVector& request,
                    bool add) {
  for (int depth = 0; t.valid() && depth < 32; ++depth) {
    TenantState& tenant = tenants[t.index()];
    ++tenant.charged;
    if (add) {
      tenant.*amount += request;
    } else {
      tenant.*amount -= request;
      ++tenant.released;
    }
    t = tenant.parent;
  }
}

}  // namespace

void State::charge(const GangState& gang, const ResourceVector& request, bool add) {
  charge_upwards(tenants_, gang.tenant, &TenantState::allocated, request, add);
}

void State::charge_held(const GangState& gang, const ResourceVector& request, bool add) {
  charge_upwards(tenants_, gang.tenant, &TenantState::held, request, add);
}

/// Room held for others is left alone, unless the pod is there already, whatever was held.
Positions State::choose_devices(const TaskClass& cls, const NodeState& node) const {
  Positions open =
      pick_devices(cls, node.devices, [&](std::size_t i) { return node.devices[i].open_milli(); });
  if (open.size() == cls.device_count() || node.nominees.empty()) return open;
  return pick_devices(cls, node.devices, [&](std::size_t i) {
    return node.devices[i].healthy ? node.devices[i].free_milli : 0;
  });
}

Positions State::devices_at(const NodeState& node, const std::vector<std::int32_t>& indexes) {
  Positions out;
  for (const std::int32_t index : indexes) {
    const auto it = std::find_if(node.devices.begin(),
                                 node.devices.end(),
                                 [&](const DeviceState& d) { return d.index == index; });
    if (it != node.devices.end())
      out.push_back(static_cast<std::uint16_t>(it - node.devices.begin()));
  }
  return out;
}

/// Those that the node has; the rest is remembered until it has them.
Positions State::devices_told(PodId id,
                              const NodeState& node,
                              const std::vector<std::int32_t>& indexes) {
  Positions found = devices_at(node, indexes);
  if (found.size() < indexes.size())
    devices_told_[id.index()] = indexes;
  else
    devices_told_.erase(id.index());
  return found;
}

void State::take_devices(PodState& pod, NodeState& node, const Positions& devices) {
  const std::int32_t milli = classes_[pod.cls.index()].device_milli();
  for (const auto i : devices) {
    if (node.devices[i].free_milli < milli) continue;
    node.devices[i].free_milli -= milli;
    pod.devices.push_back(i);
  }
}

void State::give_devices(PodState& pod, NodeState& node) {
  const std::int32_t milli = classes_[pod.cls.index()].device_milli();
  for (const auto i : pod.devices) {
    if (i < node.devices.size())
      node.devices[i].free_milli = std::min(1000, node.devices[i].free_milli + milli);
  }
  pod.devices.clear();
}

void State::place(PodId id, NodeId node_id, const Positions& devices) {
  PodState& pod = pods_[id.index()];
  NodeState& node = nodes_[node_id.index()];
  pod.node = node_id;
  pod.in_node = static_cast<std::uint32_t>(node.pods.size());
  node.pods.push_back(id);
  pod.ends = expected_end(pod);
  note_end(id, false);
  node.used += classes_[pod.cls.index()].request;
  take_devices(pod, node, devices);
  refresh_free(node_id);
}

void State::lift(PodId id) {
  PodState& pod = pods_[id.index()];
  if (!pod.node.valid()) return;
  NodeState& node = nodes_[pod.node.index()];
  note_end(id, true);
  node.used -= classes_[pod.cls.index()].request;
  give_devices(pod, node);
  devices_told_.erase(id.index());
  const PodId last = node.pods.back();
  node.pods[pod.in_node] = last;
  pods_[last.index()].in_node = pod.in_node;
  node.pods.pop_back();
  refresh_free(pod.node);
  pod.node = NodeId{};
}

void State::count_evictable(PodState& pod) {
  const bool counts =
      pod.live && pod.phase == PodPhase::kBound && pod.ours && pod.preemptable && !pod.critical;
  const std::int32_t priority = counts ? rank_priority(pod) : 0;
  if (counts == pod.counted && (!counts || priority == pod.counted_priority)) return;
  if (pod.counted && --evictable_[pod.counted_priority] == 0)
    evictable_.erase(pod.counted_priority);
  pod.counted = counts;
  pod.counted_priority = priority;
  if (counts) ++evictable_[priority];
}

void State::set_phase(PodId id, PodPhase phase) {
  PodState& pod = pods_[id.index()];
  if (pod.phase == phase) {
    count_evictable(pod);
    return;
  }
  GangState& gang = gangs_[pod.gang.index()];
  const ResourceVector& request = classes_[pod.cls.index()].request;
  if (pod.phase == PodPhase::kBound) note_leaving(pod, phase);
  count(pod, -1);
  if (pod.phase == PodPhase::kBound) {
    gang.allocated -= request;
    charge(gang, request, false);
  }
  if (pod.phase == PodPhase::kReleasing && pod.node.valid()) {
    nodes_[pod.node.index()].releasing -= request;
    touch(pod.node);
  }
  pod.phase = phase;
  count(pod, +1);
  if (phase == PodPhase::kBound) {
    gang.started = gang.bound == 1 ? pod.started : std::min(gang.started, pod.started);
    gang.allocated += request;
    charge(gang, request, true);
  }
  if (phase == PodPhase::kReleasing && pod.node.valid()) {
    nodes_[pod.node.index()].releasing += request;
    touch(pod.node);
  }
  restand(gang);
  count_evictable(pod);
  if (gang.has_group) touch_gang(pod.gang);
  mark_ends(pod.gang, gang);
  mark(pod.gang, gang);
}

void State::join_gang(PodId id, GangId gang_id) {
  PodState& pod = pods_[id.index()];
  GangState& gang = gangs_[gang_id.index()];
  pod.gang = gang_id;
  pod.in_gang = static_cast<std::uint32_t>(gang.pods.size());
  gang.pods.push_back(id);
  count(pod, +1);
  restand(gang);
  mark_ends(gang_id, gang);
  mark(gang_id, gang);
}

void State::leave_gang(PodId id) {
  PodState& pod = pods_[id.index()];
  GangState& gang = gangs_[pod.gang.index()];
  count(pod, -1);
  restand(gang);
  const PodId last = gang.pods.back();
  gang.pods[pod.in_gang] = last;
  pods_[last.index()].in_gang = pod.in_gang;
  gang.pods.pop_back();
  mark_ends(pod.gang, gang);
  mark(pod.gang, gang);
  if (gang.pods.empty() && !gang.has_group) {
    gang.live = false;
    gang_ids_.erase(gang_ids_.hash(*gang.key), pod.gang);
    free_gangs_.push_back(pod.gang);
  }
}

void State::drop_pod(PodId id, std::uint32_t hash) {
  PodState& pod = pods_[id.index()];
  give_up_nomination(id);
  set_phase(id, PodPhase::kFinished);
  lift(id);
  const auto it = std::find(anti_pods_.begin(), anti_pods_.end(), id);
  if (it != anti_pods_.end()) anti_pods_.erase(it);
  leave_gang(id);
  pod_ids_.erase(hash, id);
  pod.live = false;
  --live_pods_;
  free_pods_.push_back(id);
}

namespace {
/// Asks for the memory of what is about to be changed, all at once instead of one wait after the
/// other.
template <typename T>
void fetch(const T& object) {
  const auto* at = reinterpret_cast<const char*>(&object);
  for (std::size_t i = 0; i < sizeof(T); i += 64) __builtin_prefetch(at + i, 1);
}
}  // namespace

void State::on(const PodRemove& e) {
  const std::uint32_t hash = pod_ids_.hash(e.key);
  const PodId id = find_pod(e.key, hash);
  if (!id.valid()) return;
  const PodState& pod = pods_[id.index()];
  fetch(gangs_[pod.gang.index()].allocated);
  fetch(gangs_[pod.gang.index()].key);
  if (pod.node.valid()) {
    const NodeState& node = nodes_[pod.node.index()];
    for (const ResourceVector* v : {&node.allocatable, &node.used, &node.held, &node.free})
      __builtin_prefetch(v, 1);
    fetch(node.devices);
    fetch(rows_[pod.node.index()]);
  }
  drop_pod(id, hash);
}

void State::on(const PodUpsert& e) {
  const Pod& spec = e.pod;
  const std::uint32_t hash = pod_ids_.hash(spec.key);
  PodId id = find_pod(spec.key, hash);
  if (id.valid() && pods_[id.index()].uid != spec.uid) {
    drop_pod(id, hash);
    id = PodId{};
  }
  const GangId gang = gang_for(spec, hash);
  const ClassId cls = class_of(spec, gangs_[gang.index()].tenant);
  if (id.valid()) {
    rejoin(id, spec, gang, cls);
  } else {
    id = add_pod(spec, hash, gang, cls);
  }
  note_facts(id, spec);
  mark_ends(gang);
  if (spec.finished) {
    finish(id, spec.succeeded);
  } else {
    follow(id, spec);
  }
}

/// What a gang of one pod says.
const Shared<Group>& State::lone_spec(const Pod& pod) {
  // Nobody else makes them, so the rest of it is as below.
  const Group& last = *lone_spec_;
  if (last.disruption == DisruptionMode::kSingle && last.priority == pod.priority &&
      last.preemption_policy == pod.preemption_policy &&
      last.expected_duration == pod.expected_duration)
    return lone_spec_;
  Group lone;
  lone.priority = pod.priority;
  lone.preemption_policy = pod.preemption_policy;
  lone.disruption = DisruptionMode::kSingle;
  lone.expected_duration = pod.expected_duration;
  lone_spec_ = std::move(lone);
  return lone_spec_;
}

/// The pod's group, or a gang of its own, which says what the pod says.
GangId State::gang_for(const Pod& spec, std::uint32_t hash) {
  const GangId id = spec.group.empty() ? intern_gang(spec.key, hash)
                                       : intern_gang(spec.group, gang_ids_.hash(spec.group));
  GangState& gang = gangs_[id.index()];
  if (gang.has_group || !spec.group.empty()) return id;
  gang.described = true;
  gang.spec = lone_spec(spec);
  restand(gang);
  gang.created = spec.created;
  const TenantId tenant = intern_tenant(spec.queue.empty() ? config_.default_queue : spec.queue);
  if (gang.tenant != tenant) move_gang_tenant(id, tenant);
  return id;
}

PodId State::add_pod(const Pod& spec, std::uint32_t hash, GangId gang, ClassId cls) {
  PodId id;
  if (free_pods_.empty()) {
    id = PodId(static_cast<std::uint32_t>(pods_.size()));
    pods_.emplace_back();
  } else {
    id = free_pods_.back();
    free_pods_.pop_back();
    MUSTER_CHECK(!pods_[id.index()].live, "only the row of a pod that is gone is used again");
    renew(pods_[id.index()]);
  }
  PodState& pod = pods_[id.index()];
  pod.live = true;
  pod.key = spec.group.empty() ? gangs_[gang.index()].key : Name(spec.key);
  pod.uid = spec.uid;
  pod.seq = next_seq_++;
  pod.cls = cls;
  pod.cells = spec.cells;
  set_gates(pod, spec.gated);
  pod.ours = spec.ours;
  pod_ids_.insert(hash, id);
  ++live_pods_;
  join_gang(id, gang);
  if (!spec.pod_anti_affinity.empty()) anti_pods_.push_back(id);
  return id;
}

/// A known pod may have changed its gang and, while it waits, what it asks for.
void State::rejoin(PodId id, const Pod& spec, GangId gang, ClassId cls) {
  PodState& pod = pods_[id.index()];
  if (pod.gang != gang) {
    give_up_nomination(id);
    leave_gang(id);
    join_gang(id, gang);
  }
  const bool noted = (pod.cells != nullptr) != (spec.cells != nullptr);
  pod.cells = spec.cells;
  const bool other =
      pod.cls != cls || pod.held_back != spec.gated || pod.ours != spec.ours || noted;
  if (pod.phase != PodPhase::kPending || !other) return;
  if (pod.cls != cls) give_up_nomination(id);
  count(pod, -1);
  pod.cls = cls;
  set_gates(pod, spec.gated);
  pod.ours = spec.ours;
  count(pod, +1);
  restand(gangs_[pod.gang.index()]);
  mark(pod.gang);
}

/// Takes over what the spec says beside gang, class and place.
void State::note_facts(PodId id, const Pod& spec) {
  PodState& pod = pods_[id.index()];
  if (pod.node.valid() &&
      (pod.priority != spec.priority || pod.preemptable != spec.preemptable ||
       pod.critical != spec.critical || pod.ours != spec.ours || pod.labels != spec.labels)) {
    touch(pod.node);  // As a victim it is another one now.
    // Who waits for room is woken by room; that somebody may be evicted from now on is seen by
    // looking at all of them again.
    if ((spec.preemptable && !pod.preemptable) || spec.priority < pod.priority)
      config_changed_ = true;
  }
  if (*pod.ns != spec.ns) {
    ns_.become(spec.ns);
    pod.ns = ns_;
  }
  pod.labels.become(spec.labels);
  pod.role.become(spec.role);
  if (pod.priority != spec.priority || pod.preemptable != spec.preemptable) mark(pod.gang);
  pod.priority = spec.priority;
  pod.preemption_policy = spec.preemption_policy;
  pod.preemptable = spec.preemptable;
  pod.critical = spec.critical;
  pod.ours = spec.ours;
  pod.created = spec.created;
  if (spec.started) pod.started = spec.started;
  pod.leaves = spec.terminating_until;
  // While it waits, its turn depends on how long it takes.
  if (pod.phase == PodPhase::kPending &&
      (pod.expected_duration != spec.expected_duration || pod.limit != spec.limit))
    mark(pod.gang);
  pod.expected_duration = spec.expected_duration;
  pod.limit = spec.limit;
  note_origin(gangs_[pod.gang.index()], spec);
  pod.nominated_hint.become(spec.nominated_node);
}

void State::finish(PodId id, bool succeeded) {
  PodState& pod = pods_[id.index()];
  if (pod.phase == PodPhase::kFinished) return;
  pod.succeeded = succeeded;
  if (pod.phase == PodPhase::kBound) gangs_[pod.gang.index()].finished = true;
  give_up_nomination(id);
  set_phase(id, PodPhase::kFinished);
  lift(id);
}

/// Brings place and phase to where the spec says the pod is.
void State::follow(PodId id, const Pod& spec) {
  PodState& pod = pods_[id.index()];
  const NodeId node = spec.node.empty() ? pod.node : intern_node(spec.node);
  if (pod.node != node) {
    give_up_nomination(id);
    if (pod.node.valid()) {
      set_phase(id, PodPhase::kPending);
      lift(id);
    }
    if (!pod.started) pod.started = pod.created;
    const NodeState& there = nodes_[node.index()];
    place(id,
          node,
          spec.device_indexes.empty() ? choose_devices(classes_[pod.cls.index()], there)
                                      : devices_told(id, there, spec.device_indexes));
    set_phase(id, PodPhase::kBound);
  }
  if (pod.node.valid()) {
    if (pod.ends != expected_end(pod)) {
      note_end(id, true);
      pod.ends = expected_end(pod);
      note_end(id, false);
    }
    set_phase(id, spec.terminating || pod.evicting ? PodPhase::kReleasing : PodPhase::kBound);
  } else if (spec.terminating) {
    // Leaving without ever having had a node: it holds nothing and wants nothing.
    set_phase(id, PodPhase::kFinished);
  }
}

bool State::wants_cells(const PodState& pod) const {
  const TaskClass& cls = classes_[pod.cls.index()];
  return cells_ && (cls.devices > 0 || cls.share_milli > 0 || pod.cells != nullptr);
}

void State::set_gates(PodState& pod, bool held_back) const {
  pod.held_back = held_back;
  pod.by_cells = wants_cells(pod);
  pod.gated = pod.held_back || pod.by_cells;
}

void State::use_cells() {
  cells_ = true;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    PodState& pod = pods_[i];
    if (!pod.live) continue;
    const bool counts = pod.phase == PodPhase::kPending;
    if (counts) count(pod, -1);
    set_gates(pod, pod.held_back);
    if (counts) count(pod, +1);
    mark(pod.gang);
  }
}

RunKind State::kind_of(const GangState& gang) const {
  RunKind kind;
  kind.stem = gang.stem;
  kind.team = gang.team != 0 ? gang.team : tenants_[gang.tenant.index()].name_hash;
  kind.user = gang.user != 0 ? gang.user : kind.team;
  std::int64_t milli = gang.run_milli;
  const TaskClass* first = nullptr;
  for (const PodId p : gang.pods) {
    const PodState& pod = pods_[p.index()];
    const TaskClass& cls = classes_[pod.cls.index()];
    if (first == nullptr || cls.devices > first->devices) first = &cls;
    if (gang.run_milli == 0 && pod.phase != PodPhase::kFinished)
      milli += cls.request[ResourceNames::kDevice];
  }
  kind.shape = mix_shape(milli, first == nullptr ? 0 : first->models_hash);
  return kind;
}

/// A member stops to run. With the last of them the run of its gang is over: it has ended, or it was
/// cut off because it had to make way or lost its node. One that is taken back never ran.
void State::note_leaving(const PodState& pod, PodPhase next) {
  if (rehearsal_ || next == PodPhase::kPending) return;
  GangState& gang = gangs_[pod.gang.index()];
  const NodeState& node = nodes_[pod.node.index()];
  gang.run_milli = std::max(gang.run_milli, gang.allocated[ResourceNames::kDevice]);
  gang.cut_off = gang.cut_off || pod.evicting || !node.live || !node.spec->ready;
  if (gang.bound > 1 || !gang.started) return;
  completions_.push_back(
      {kind_of(gang), gang.started, !gang.cut_off, declared_by(gang, pod), !gang.finished});
  gang.run_milli = 0;
  gang.cut_off = gang.finished = false;
}

void State::learn(Time now) {
  if (!config_.learn) completions_.clear();
  if (completions_.empty()) return;
  History& history = history_.own();
  for (const Completion& c : completions_) {
    if (c.started >= now) continue;
    history.learn(c.kind, {(now - c.started).count(), c.ended, c.declared.count(), c.stopped});
  }
  completions_.clear();
}

void State::on(const PastRun& e) {
  if (!config_.learn) return;
  RunKind kind;
  kind.team = hash_name(e.origin.team);
  kind.user = e.origin.user.empty() ? kind.team : hash_name(e.origin.user);
  kind.stem = e.origin.stem.empty() ? 0 : hash_name(e.origin.stem);
  kind.shape = mix_shape(e.device_milli, hash_models(e.models));
  history_.own().learn(kind, {e.ran.count(), e.ended, e.declared.count(), e.stopped});
}

void State::bind(PodId id, NodeId node_id, Time now, std::int32_t device) {
  give_up_nomination(id);
  const NodeState& node = nodes_[node_id.index()];
  bind_on(id,
          node_id,
          now,
          device >= 0 ? Positions{static_cast<std::uint16_t>(device)}
                      : choose_devices(cls_of(id), node));
}

void State::bind_nominated(PodId id, Time now) {
  const NodeId node = pods_[id.index()].nominated;
  const Positions devices = pods_[id.index()].devices;
  give_up_nomination(id);
  bind_on(id, node, now, devices);
}

void State::bind_at(PodId id, NodeId node, Time now, const std::vector<std::int32_t>& devices) {
  give_up_nomination(id);
  bind_on(id, node, now, devices_at(nodes_[node.index()], devices));
}

void State::bind_on(PodId id, NodeId node, Time now, const Positions& devices) {
  PodState& pod = pods_[id.index()];
  MUSTER_CHECK(pod.phase == PodPhase::kPending, "bind of a pod that does not wait: " + *pod.key);
  pod.started = now;
  place(id, node, devices);
  pod.bound_epoch = epoch;
  set_phase(id, PodPhase::kBound);
  ++binds;
}

void State::unbind(PodId id) {
  PodState& pod = pods_[id.index()];
  if (!pod.node.valid()) return;
  set_phase(id, PodPhase::kPending);
  lift(id);
  pod.evicting = false;
}

void State::evict(PodId id) {
  pods_[id.index()].evicting = true;
  set_phase(id, PodPhase::kReleasing);
  ++evictions;
}

void State::nominate(PodId id, NodeId node_id, Positions devices) {
  PodState& pod = pods_[id.index()];
  if (pod.nominated.valid()) give_up_nomination(id);
  NodeState& node = nodes_[node_id.index()];
  const TaskClass& c = classes_[pod.cls.index()];
  pod.nominated = node_id;
  pod.devices = std::move(devices);
  node.nominees.push_back(id);
  node.held += c.request;
  charge_held(gangs_[pod.gang.index()], c.request, true);
  for (const auto i : pod.devices) node.devices[i].held_milli += c.device_milli();
  refresh_free(node_id);
  mark(pod.gang);
}

void State::give_up_nomination(PodId id) {
  PodState& pod = pods_[id.index()];
  if (!pod.nominated.valid()) return;
  const NodeId node_id = std::exchange(pod.nominated, NodeId{});
  NodeState& node = nodes_[node_id.index()];
  const TaskClass& c = classes_[pod.cls.index()];
  std::erase(node.nominees, id);
  node.held -= c.request;
  charge_held(gangs_[pod.gang.index()], c.request, false);
  for (const auto i : pod.devices) node.devices[i].held_milli -= c.device_milli();
  pod.devices.clear();
  refresh_free(node_id);
  mark(pod.gang);
}

void State::on(const BindResult& e) {
  const PodId id = find_pod(e.pod);
  if (id.valid() && !e.ok) unbind(id);
}

void State::on(const EvictResult& e) {
  const PodId id = find_pod(e.pod);
  if (!id.valid() || e.ok || !pods_[id.index()].evicting) return;
  pods_[id.index()].evicting = false;
  if (pods_[id.index()].node.valid()) set_phase(id, PodPhase::kBound);
}

}  // namespace muster::engine
