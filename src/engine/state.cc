#include "engine/state.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace muster::engine {

State::State(Config config) : config_(std::move(config)), names_(config_.device_resource) {}

void State::apply(const Event& event) {
  std::visit([this](const auto& e) { on(e); }, event);
}

// ------------------------------------------------------------------------------------------------- interning

NodeId State::find_node(std::string_view name) const {
  const auto it = node_ids_.find(std::string(name));
  return it == node_ids_.end() ? NodeId{} : it->second;
}
PodId State::find_pod(std::string_view key) const {
  const auto it = pod_ids_.find(std::string(key));
  return it == pod_ids_.end() ? PodId{} : it->second;
}
GangId State::find_gang(std::string_view key) const {
  const auto it = gang_ids_.find(std::string(key));
  return it == gang_ids_.end() ? GangId{} : it->second;
}
TenantId State::find_tenant(std::string_view name) const {
  const auto it = tenant_ids_.find(std::string(name));
  return it == tenant_ids_.end() ? TenantId{} : it->second;
}

NodeId State::intern_node(const std::string& name) {
  const auto [it, fresh] = node_ids_.try_emplace(name, NodeId(static_cast<std::uint32_t>(nodes_.size())));
  if (fresh) {
    nodes_.emplace_back();
    rows_.emplace_back();
    nodes_.back().spec.name = name;
  }
  return it->second;
}

GangId State::intern_gang(const std::string& key) {
  const auto found = gang_ids_.find(key);
  if (found != gang_ids_.end()) return found->second;
  GangId id;
  if (free_gangs_.empty()) {
    id = GangId(static_cast<std::uint32_t>(gangs_.size()));
    gangs_.emplace_back();
  } else {
    id = free_gangs_.back();
    free_gangs_.pop_back();
    const bool dirty = gangs_[id.index()].dirty;
    gangs_[id.index()] = GangState{};
    gangs_[id.index()].dirty = dirty;
  }
  GangState& gang = gangs_[id.index()];
  gang.live = true;
  gang.key = key;
  gang.seq = next_seq_++;
  gang.tenant = intern_tenant(config_.default_queue);
  gang_ids_.emplace(key, id);
  mark(id);
  return id;
}

TenantId State::intern_tenant(const std::string& name) {
  const auto [it, fresh] = tenant_ids_.try_emplace(name, TenantId(static_cast<std::uint32_t>(tenants_.size())));
  if (fresh) {
    tenants_.emplace_back();
    tenants_.back().name = name;
    tenants_.back().spec.name = name;
    tenants_.back().created = static_cast<std::int64_t>(next_seq_++);
  }
  return it->second;
}

std::size_t State::intern_resource(std::string_view name) {
  const std::size_t before = names_.size();
  const std::size_t i = names_.intern(name);
  if (names_.size() != before) {
    // Nodes may have had it all along.
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (!nodes_[n].live) continue;
      add_total(nodes_[n], -1);
      refresh_allocatable(nodes_[n]);
      add_total(nodes_[n], +1);
      refresh_free(NodeId(n));
    }
    ++tenants_version_;
  }
  return i;
}

ResourceVector State::vector_of(const ResourceList& list, std::uint32_t* mask) {
  ResourceVector v;
  for (const auto& amount : list) {
    const std::size_t i = intern_resource(amount.name);
    if (i == ResourceNames::kNone) continue;
    v.add(i, amount.value * names_.factor(i));
    if (mask != nullptr) *mask |= 1U << i;
  }
  return v;
}

ResourceList State::list_of(const ResourceVector& vector) const {
  ResourceList list;
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (vector[i] == 0) continue;
    const std::int64_t factor = names_.factor(i);
    list.push_back({names_.name(i), (vector[i] + factor - 1) / factor});
  }
  return list;
}

const Labels& State::namespace_labels(const std::string& ns) const {
  static const Labels kNone;
  const auto it = namespaces_.find(ns);
  return it == namespaces_.end() ? kNone : it->second;
}

void State::touch(NodeId id) {
  ++nodes_[id.index()].changed;
  log_.push_back(id);
  // An index that fell behind by more than this rebuilds itself from the table, which is no dearer.
  const std::size_t keep = 4 * nodes_.size() + 4096;
  if (log_.size() > 2 * keep) {
    const std::size_t drop = log_.size() - keep;
    log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(drop));
    log_base_ += drop;
  }
}

void State::touch_gang(GangId id) {
  if (!gang_log_.empty() && gang_log_.back() == id) return;
  gang_log_.push_back(id);
  constexpr std::size_t kKeep = 4096;
  if (gang_log_.size() <= 2 * kKeep) return;
  gang_log_.erase(gang_log_.begin(), gang_log_.begin() + kKeep);
  gang_log_base_ += kKeep;
}

const std::vector<GangId>& State::children_of(const std::string& key) const {
  static const std::vector<GangId> kNone;
  const auto it = families_.find(key);
  return it == families_.end() ? kNone : it->second;
}

GangId State::parent_of(GangId id) const {
  const GangState& gang = gangs_[id.index()];
  if (!gang.has_group || gang.spec.parent.empty()) return GangId{};
  const GangId up = find_gang(gang.spec.parent);
  return up.valid() && up != id && gangs_[up.index()].spec.is_parent ? up : GangId{};
}

namespace {
/// Kubernetes allows four levels; a cycle of parents ends here, too.
constexpr int kFamilyDepth = 8;
}  // namespace

GangId State::root_of(GangId id) const {
  for (int depth = 0; depth < kFamilyDepth; ++depth) {
    const GangId up = parent_of(id);
    if (!up.valid()) break;
    id = up;
  }
  return id;
}

std::vector<GangId> State::leaves_of(GangId id) const {
  std::vector<GangId> level = {id};
  std::vector<GangId> leaves;
  for (int depth = 0; depth < kFamilyDepth && !level.empty(); ++depth) {
    std::vector<GangId> next;
    for (const GangId g : level) {
      if (!gangs_[g.index()].spec.is_parent) {
        leaves.push_back(g);
        continue;
      }
      const auto& children = children_of(gangs_[g.index()].key);
      next.insert(next.end(), children.begin(), children.end());
    }
    level = std::move(next);
  }
  return leaves;
}

void State::leave_family(GangId id) {
  const std::string& parent = gangs_[id.index()].spec.parent;
  const auto it = families_.find(parent);
  if (parent.empty() || it == families_.end()) return;
  std::erase(it->second, id);
  if (it->second.empty()) families_.erase(it);
}

void State::mark(GangId id) {
  GangState& gang = gangs_[id.index()];
  if (gang.dirty) return;
  gang.dirty = true;
  dirty_gangs_.push_back(id);
}

std::vector<GangId> State::take_dirty_gangs() {
  std::vector<GangId> out = std::move(dirty_gangs_);
  dirty_gangs_.clear();
  for (const GangId id : out) gangs_[id.index()].dirty = false;
  return out;
}

// ----------------------------------------------------------------------------------------------------- nodes

void State::add_total(const NodeState& node, std::int64_t sign) {
  if (!node.live || !node.spec.ready) return;
  ResourceVector amount = node.allocatable;
  total_ += amount.scale(sign);
}

void State::refresh_allocatable(NodeState& node) {
  node.allocatable = ResourceVector();
  for (const auto& amount : node.spec.allocatable) {
    const std::size_t i = names_.find(amount.name);
    if (i != ResourceNames::kNone) node.allocatable.add(i, amount.value * names_.factor(i));
  }
  if (node.allocatable[ResourceNames::kPods] == 0) node.allocatable.set(ResourceNames::kPods, 110);
}

std::uint16_t State::intern_model(const std::string& model) {
  const auto it = std::find(models_.begin(), models_.end(), model);
  if (it != models_.end()) return static_cast<std::uint16_t>(it - models_.begin());
  models_.push_back(model);
  return static_cast<std::uint16_t>(models_.size() - 1);
}

void State::rebuild_devices(NodeState& node) {
  std::vector<DeviceState> devices;
  if (node.spec.devices.empty()) {
    const std::int64_t n = node.allocatable[ResourceNames::kDevice] / 1000;
    for (std::int32_t i = 0; i < n; ++i) devices.push_back({i, 1000, 0, true});
  } else {
    for (const auto& d : node.spec.devices) devices.push_back({d.index, 1000, intern_model(d.model), d.healthy});
  }
  node.devices = std::move(devices);
}

void State::refresh_free(NodeId id) {
  NodeState& node = nodes_[id.index()];
  node.free = node.allocatable;
  node.free -= node.used;
  node.free -= node.held;
  node.devices_whole = 0;
  node.share_max = 0;
  for (const auto& d : node.devices) {
    if (!d.healthy) continue;
    if (d.free_milli == 1000) ++node.devices_whole;
    node.share_max = std::max(node.share_max, d.free_milli);
  }
  NodeRow& row = rows_[id.index()];
  for (std::size_t i = 0; i < row.free.size(); ++i) row.free[i] = node.free[i];
  row.cpu_all = node.allocatable[ResourceNames::kCpu];
  row.devices_whole = node.devices_whole;
  row.spec_changed = node.spec_changed;
  touch(id);
}

Time State::expected_end(const PodState& pod) const {
  const Duration expected = pod.expected_duration.count() > 0 ? pod.expected_duration : gangs_[pod.gang.index()].spec.expected_duration;
  return expected.count() > 0 && pod.started ? pod.started + expected : kNever;
}

/// Keeps the node's busy_until when a pod came, or is about to leave.
void State::note_end(PodId id, bool leaves) {
  const PodState& pod = pods_[id.index()];
  NodeState& node = nodes_[pod.node.index()];
  if (!leaves) {
    node.busy_until = std::max(node.busy_until, pod.ends);
    return;
  }
  if (pod.ends < node.busy_until) return;
  node.busy_until = Time{};
  for (const PodId p : node.pods) {
    if (p != id) node.busy_until = std::max(node.busy_until, pods_[p.index()].ends);
  }
}

void State::on(const NodeUpsert& e) {
  const NodeId id = intern_node(e.node.name);
  NodeState& node = nodes_[id.index()];
  add_total(node, -1);
  if (!node.live) ++live_nodes_;
  node.live = true;
  ++node.spec_changed;
  node.spec = e.node;
  refresh_allocatable(node);
  // Devices are assigned again to the pods that hold them, by index where it still exists.
  std::vector<std::pair<PodId, std::vector<std::int32_t>>> holders;
  for (const PodId p : node.pods) {
    std::vector<std::int32_t> held;
    for (const auto position : pods_[p.index()].devices) held.push_back(node.devices[position].index);
    holders.emplace_back(p, std::move(held));
  }
  rebuild_devices(node);
  for (auto& [p, held] : holders) {
    pods_[p.index()].devices.clear();
    take_devices(pods_[p.index()], node, &held);
  }
  add_total(node, +1);
  ++tenants_version_;
  refresh_free(id);
}

void State::on(const NodeRemove& e) {
  const NodeId id = find_node(e.name);
  if (!id.valid() || !nodes_[id.index()].live) return;
  NodeState& node = nodes_[id.index()];
  add_total(node, -1);
  node.live = false;
  ++node.spec_changed;
  rows_[id.index()].spec_changed = node.spec_changed;
  --live_nodes_;
  ++tenants_version_;
  // Pods stay on the record until they are removed; a node of that name may come back under them.
  for (std::uint32_t p = 0; p < pods_.size(); ++p) {
    if (pods_[p].live && pods_[p].nominated == id) nominate(PodId(p), NodeId{});
  }
  touch(id);
}

// --------------------------------------------------------------------------------------------------- classes

namespace {

class Hash {
 public:
  void add(std::uint64_t v) {
    h_ ^= v + 0x9e3779b97f4a7c15ULL + (h_ << 6) + (h_ >> 2);
    h_ *= 0xff51afd7ed558ccdULL;
  }
  void add(const std::string& s) { add(std::hash<std::string>{}(s)); }
  [[nodiscard]] std::uint64_t value() const { return h_; }

 private:
  std::uint64_t h_ = 1469598103934665603ULL;
};

bool between_pods(const Pod& p) {
  return !p.pod_affinity.empty() || !p.pod_anti_affinity.empty() || !p.preferred_pod_affinity.empty() ||
         !p.preferred_pod_anti_affinity.empty() || !p.topology_spread.empty();
}

std::uint64_t hash_of(const Pod& p) {
  Hash h;
  for (const auto& a : p.requests) {
    h.add(a.name);
    h.add(static_cast<std::uint64_t>(a.value));
  }
  h.add(static_cast<std::uint64_t>(p.device_share_milli));
  for (const auto& m : p.device_models) h.add(m);
  for (const auto& [k, v] : p.node_selector) {
    h.add(k);
    h.add(v);
  }
  h.add(p.node_affinity.size() * 31 + p.preferred_node_affinity.size());
  for (const auto& t : p.node_affinity) {
    for (const auto& r : t.labels) {
      h.add(r.key);
      for (const auto& v : r.values) h.add(v);
    }
    for (const auto& r : t.fields) {
      for (const auto& v : r.values) h.add(v);
    }
  }
  for (const auto& t : p.tolerations) h.add(t.key);
  for (const auto& port : p.host_ports) h.add(static_cast<std::uint64_t>(port.port));
  if (p.allowed_nodes) {
    for (const auto& n : *p.allowed_nodes) h.add(n);
  }
  if (between_pods(p)) {
    h.add(p.ns);
    for (const auto& [k, v] : p.labels) {
      h.add(k);
      h.add(v);
    }
  }
  return h.value();
}

bool same_placement(const Pod& a, const Pod& b) {
  if (a.requests != b.requests || a.device_share_milli != b.device_share_milli || a.device_models != b.device_models) return false;
  if (a.node_selector != b.node_selector || a.node_affinity != b.node_affinity) return false;
  if (a.preferred_node_affinity != b.preferred_node_affinity || a.tolerations != b.tolerations) return false;
  if (a.host_ports != b.host_ports || a.allowed_nodes != b.allowed_nodes) return false;
  if (a.pod_affinity != b.pod_affinity || a.pod_anti_affinity != b.pod_anti_affinity) return false;
  if (a.preferred_pod_affinity != b.preferred_pod_affinity || a.preferred_pod_anti_affinity != b.preferred_pod_anti_affinity) return false;
  if (a.topology_spread != b.topology_spread) return false;
  return !between_pods(a) || (a.ns == b.ns && a.labels == b.labels);
}

}  // namespace

ClassId State::class_of(const Pod& pod, TenantId tenant) {
  const auto& tenant_nodes = tenants_[tenant.index()].spec.node_selector;
  std::vector<ClassId>& bucket = class_ids_[hash_of(pod)];
  for (const ClassId id : bucket) {
    const TaskClass& c = classes_[id.index()];
    if (same_placement(c.spec, pod) && c.tenant_nodes == tenant_nodes) return id;
  }
  TaskClass c;
  c.spec = pod;
  c.between_pods = between_pods(pod);
  c.tenant_nodes = tenant_nodes;
  c.share_milli = std::clamp(pod.device_share_milli, 0, 999);
  c.request = vector_of(pod.requests);
  for (const auto& amount : pod.requests) {
    if (amount.value > 0 && names_.find(amount.name) == ResourceNames::kNone) c.unknown_resource = true;
  }
  c.devices = static_cast<std::int32_t>(c.request[ResourceNames::kDevice] / 1000);
  if (c.share_milli > 0) c.request.add(ResourceNames::kDevice, c.share_milli);
  c.request.set(ResourceNames::kPods, 0);
  for (const auto& model : pod.device_models) c.models.push_back(intern_model(model));
  c.plain = c.request.size() <= 4 && c.models.empty() && c.share_milli == 0 && pod.host_ports.empty() && !c.unknown_resource;
  c.best_effort = c.request.is_zero();
  c.request.set(ResourceNames::kPods, 1);
  const ClassId id(static_cast<std::uint32_t>(classes_.size()));
  classes_.push_back(std::move(c));
  class_ids_[hash_of(pod)].push_back(id);  // vector_of may have interned; the bucket itself is stable
  return id;
}

// ------------------------------------------------------------------------------------------------------ pods

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

void State::charge(const GangState& gang, const ResourceVector& request, bool add) {
  TenantId t = gang.tenant;
  for (int depth = 0; t.valid() && depth < 32; ++depth) {
    TenantState& tenant = tenants_[t.index()];
    if (add) {
      tenant.allocated += request;
    } else {
      tenant.allocated -= request;
      ++tenant.released;
    }
    t = tenant.parent;
  }
}

void State::take_devices(PodState& pod, NodeState& node, const std::vector<std::int32_t>* wanted) {
  const TaskClass& c = classes_[pod.cls.index()];
  const auto take = [&](std::size_t i, std::int32_t milli) {
    node.devices[i].free_milli -= milli;
    pod.devices.push_back(static_cast<std::uint16_t>(i));
  };
  if (wanted != nullptr && !wanted->empty()) {
    for (const std::int32_t index : *wanted) {
      for (std::size_t i = 0; i < node.devices.size(); ++i) {
        const std::int32_t milli = c.share_milli > 0 ? c.share_milli : 1000;
        if (node.devices[i].index == index && node.devices[i].free_milli >= milli) {
          take(i, milli);
          break;
        }
      }
    }
    return;
  }
  if (c.share_milli > 0) {
    // The fullest device that still has room: shares gather, whole devices stay whole.
    std::size_t best = node.devices.size();
    for (std::size_t i = 0; i < node.devices.size(); ++i) {
      const DeviceState& d = node.devices[i];
      if (!d.healthy || !c.allows(d) || d.free_milli < c.share_milli) continue;
      if (best == node.devices.size() || d.free_milli < node.devices[best].free_milli) best = i;
    }
    if (best < node.devices.size()) take(best, c.share_milli);
    return;
  }
  std::int32_t left = c.devices;
  for (std::size_t i = 0; i < node.devices.size() && left > 0; ++i) {
    const DeviceState& d = node.devices[i];
    if (!d.healthy || !c.allows(d) || d.free_milli < 1000) continue;
    take(i, 1000);
    --left;
  }
}

void State::give_devices(PodState& pod, NodeState& node) {
  const TaskClass& c = classes_[pod.cls.index()];
  const std::int32_t milli = c.share_milli > 0 ? c.share_milli : 1000;
  for (const auto i : pod.devices) {
    if (i < node.devices.size()) node.devices[i].free_milli = std::min(1000, node.devices[i].free_milli + milli);
  }
  pod.devices.clear();
}

void State::place(PodId id, NodeId node_id, const std::vector<std::int32_t>* device_indexes) {
  PodState& pod = pods_[id.index()];
  NodeState& node = nodes_[node_id.index()];
  pod.node = node_id;
  pod.in_node = static_cast<std::uint32_t>(node.pods.size());
  node.pods.push_back(id);
  pod.ends = expected_end(pod);
  note_end(id, false);
  node.used += classes_[pod.cls.index()].request;
  take_devices(pod, node, device_indexes);
  refresh_free(node_id);
}

void State::lift(PodId id) {
  PodState& pod = pods_[id.index()];
  if (!pod.node.valid()) return;
  NodeState& node = nodes_[pod.node.index()];
  note_end(id, true);
  node.used -= classes_[pod.cls.index()].request;
  give_devices(pod, node);
  const PodId last = node.pods.back();
  node.pods[pod.in_node] = last;
  pods_[last.index()].in_node = pod.in_node;
  node.pods.pop_back();
  refresh_free(pod.node);
  pod.node = NodeId{};
}

void State::count_evictable(PodState& pod) {
  const bool counts = pod.live && pod.phase == PodPhase::kBound && pod.ours && pod.preemptable && !pod.critical;
  const std::int32_t priority = counts ? rank_priority(pod) : 0;
  if (counts == pod.counted && (!counts || priority == pod.counted_priority)) return;
  if (pod.counted && --evictable_[pod.counted_priority] == 0) evictable_.erase(pod.counted_priority);
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
  const ResourceVector request = classes_[pod.cls.index()].request;
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
  count_evictable(pod);
  if (gang.has_group) touch_gang(pod.gang);
  mark(pod.gang);
}

void State::join_gang(PodId id, GangId gang_id) {
  PodState& pod = pods_[id.index()];
  GangState& gang = gangs_[gang_id.index()];
  pod.gang = gang_id;
  pod.in_gang = static_cast<std::uint32_t>(gang.pods.size());
  gang.pods.push_back(id);
  count(pod, +1);
  mark(gang_id);
}

void State::leave_gang(PodId id) {
  PodState& pod = pods_[id.index()];
  GangState& gang = gangs_[pod.gang.index()];
  count(pod, -1);
  const PodId last = gang.pods.back();
  gang.pods[pod.in_gang] = last;
  pods_[last.index()].in_gang = pod.in_gang;
  gang.pods.pop_back();
  mark(pod.gang);
  if (gang.pods.empty() && !gang.has_group) {
    gang.live = false;
    gang_ids_.erase(gang.key);
    free_gangs_.push_back(pod.gang);
  }
}

void State::drop_pod(PodId id) {
  PodState& pod = pods_[id.index()];
  if (pod.nominated.valid()) nominate(id, NodeId{});
  set_phase(id, PodPhase::kFinished);
  lift(id);
  const auto it = std::find(anti_pods_.begin(), anti_pods_.end(), id);
  if (it != anti_pods_.end()) anti_pods_.erase(it);
  leave_gang(id);
  pod_ids_.erase(pod.key);
  pod.live = false;
  --live_pods_;
  free_pods_.push_back(id);
}

namespace {
/// Asks for the memory of what is about to be changed, all at once instead of one wait after the other.
template <typename T>
void fetch(const T& object) {
  const auto* at = reinterpret_cast<const char*>(&object);
  for (std::size_t i = 0; i < sizeof(T); i += 64) __builtin_prefetch(at + i, 1);
}
}  // namespace

void State::on(const PodRemove& e) {
  const PodId id = find_pod(e.key);
  if (!id.valid()) return;
  const PodState& pod = pods_[id.index()];
  fetch(gangs_[pod.gang.index()].allocated);
  fetch(gangs_[pod.gang.index()].key);
  if (pod.node.valid()) {
    const NodeState& node = nodes_[pod.node.index()];
    for (const ResourceVector* v : {&node.allocatable, &node.used, &node.held, &node.free}) __builtin_prefetch(v, 1);
    fetch(node.devices);
    fetch(rows_[pod.node.index()]);
  }
  drop_pod(id);
}

void State::on(const PodUpsert& e) {
  const Pod& spec = e.pod;
  PodId id = find_pod(spec.key);
  if (id.valid() && pods_[id.index()].uid != spec.uid) {
    drop_pod(id);
    id = PodId{};
  }
  const GangId gang_id = intern_gang(spec.group.empty() ? spec.key : spec.group);
  {
    GangState& gang = gangs_[gang_id.index()];
    if (!gang.has_group && spec.group.empty()) {
      gang.spec.key = spec.key;
      gang.spec.min_member = 1;
      gang.spec.priority = spec.priority;
      gang.spec.preemption_policy = spec.preemption_policy;
      gang.spec.disruption = DisruptionMode::kSingle;
      gang.spec.expected_duration = spec.expected_duration;
      gang.created = spec.created;
      const TenantId tenant = intern_tenant(spec.queue.empty() ? config_.default_queue : spec.queue);
      if (gang.tenant != tenant) move_gang_tenant(gang_id, tenant);
    }
  }
  const ClassId cls = class_of(spec, gangs_[gang_id.index()].tenant);
  if (!id.valid()) {
    if (free_pods_.empty()) {
      id = PodId(static_cast<std::uint32_t>(pods_.size()));
      pods_.emplace_back();
    } else {
      id = free_pods_.back();
      free_pods_.pop_back();
      pods_[id.index()] = PodState{};
    }
    PodState& pod = pods_[id.index()];
    pod.live = true;
    pod.key = spec.key;
    pod.uid = spec.uid;
    pod.seq = next_seq_++;
    pod.cls = cls;
    pod.gated = spec.gated;
    pod_ids_.emplace(spec.key, id);
    ++live_pods_;
    join_gang(id, gang_id);
    if (!spec.pod_anti_affinity.empty()) anti_pods_.push_back(id);
  } else {
    PodState& pod = pods_[id.index()];
    if (pod.gang != gang_id) {
      leave_gang(id);
      join_gang(id, gang_id);
    }
    if (pod.phase == PodPhase::kPending && (pod.cls != cls || pod.gated != spec.gated)) {
      if (pod.nominated.valid() && pod.cls != cls) nominate(id, NodeId{});
      count(pod, -1);
      pod.cls = cls;
      pod.gated = spec.gated;
      count(pod, +1);
      mark(pod.gang);
    }
  }
  PodState& pod = pods_[id.index()];
  if (pod.node.valid() && (pod.priority != spec.priority || pod.preemptable != spec.preemptable || pod.critical != spec.critical ||
                           pod.ours != spec.ours || pod.labels != spec.labels)) {
    touch(pod.node);  // As a victim it is another one now.
  }
  pod.ns = spec.ns;
  pod.labels = spec.labels;
  pod.role = spec.role;
  if (pod.priority != spec.priority || pod.preemptable != spec.preemptable) mark(pod.gang);
  pod.priority = spec.priority;
  pod.preemption_policy = spec.preemption_policy;
  pod.preemptable = spec.preemptable;
  pod.critical = spec.critical;
  pod.ours = spec.ours;
  pod.created = spec.created;
  if (spec.started) pod.started = spec.started;
  pod.leaves = spec.terminating_until;
  pod.expected_duration = spec.expected_duration;
  pod.nominated_hint = spec.nominated_node;

  if (spec.finished) {
    if (pod.phase != PodPhase::kFinished) {
      pod.succeeded = spec.succeeded;
      if (pod.nominated.valid()) nominate(id, NodeId{});
      const bool ran = pod.phase == PodPhase::kBound;
      set_phase(id, PodPhase::kFinished);
      lift(id);
      if (ran && pod.succeeded) note_completion(pod);
    }
    return;
  }
  if (!spec.node.empty()) {
    const NodeId node = intern_node(spec.node);
    if (pod.node != node) {
      if (pod.nominated.valid()) nominate(id, NodeId{});
      if (pod.node.valid()) {
        set_phase(id, PodPhase::kPending);
        lift(id);
      }
      if (!pod.started) pod.started = pod.created;
      place(id, node, &spec.device_indexes);
      set_phase(id, PodPhase::kBound);
    }
    pod.assumed = false;
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

/// The last member of a gang to succeed tells how long work of its kinds takes.
void State::note_completion(const PodState& last) {
  const GangState& gang = gangs_[last.gang.index()];
  if (gang.pending + gang.bound + gang.releasing > 0 || !gang.started) return;
  std::vector<ClassId> seen;
  for (const PodId p : gang.pods) {
    const ClassId cls = pods_[p.index()].cls;
    if (std::find(seen.begin(), seen.end(), cls) != seen.end()) continue;
    seen.push_back(cls);
    completions_.push_back({gang.tenant, cls, gang.started});
  }
}

std::vector<Completion> State::take_completions() { return std::exchange(completions_, {}); }

void State::bind(PodId id, NodeId node, Time now, std::int32_t device) {
  PodState& pod = pods_[id.index()];
  MUSTER_CHECK(pod.phase == PodPhase::kPending, "bind of a pod that does not wait: " + pod.key);
  if (pod.nominated.valid()) nominate(id, NodeId{});
  std::vector<std::int32_t> wanted;
  if (device >= 0) wanted.push_back(nodes_[node.index()].devices[static_cast<std::size_t>(device)].index);
  pod.started = now;
  place(id, node, wanted.empty() ? nullptr : &wanted);
  pod.assumed = true;
  pod.bound_epoch = epoch;
  set_phase(id, PodPhase::kBound);
  ++binds;
}

void State::unbind(PodId id) {
  PodState& pod = pods_[id.index()];
  if (!pod.assumed || !pod.node.valid()) return;
  set_phase(id, PodPhase::kPending);
  lift(id);
  pod.assumed = false;
  pod.evicting = false;
}

void State::evict(PodId id) {
  pods_[id.index()].evicting = true;
  set_phase(id, PodPhase::kReleasing);
  ++evictions;
}

void State::nominate(PodId id, NodeId node) {
  PodState& pod = pods_[id.index()];
  const ResourceVector request = classes_[pod.cls.index()].request;
  if (pod.nominated.valid()) {
    nodes_[pod.nominated.index()].held -= request;
    refresh_free(pod.nominated);
  }
  pod.nominated = node;
  if (node.valid()) {
    nodes_[node.index()].held += request;
    refresh_free(node);
  }
  mark(pod.gang);
}

void State::on(const BindResult& e) {
  const PodId id = find_pod(e.pod);
  if (!id.valid()) return;
  if (e.ok) {
    pods_[id.index()].assumed = false;
  } else {
    unbind(id);
  }
}

void State::on(const EvictResult& e) {
  const PodId id = find_pod(e.pod);
  if (!id.valid() || e.ok || !pods_[id.index()].evicting) return;
  pods_[id.index()].evicting = false;
  if (pods_[id.index()].node.valid()) set_phase(id, PodPhase::kBound);
}

// --------------------------------------------------------------------------------------------- gangs, tenants

void State::move_gang_tenant(GangId id, TenantId tenant) {
  GangState& gang = gangs_[id.index()];
  ResourceVector waiting;
  for (const PodId p : gang.pods) {
    if (pods_[p.index()].phase == PodPhase::kPending) waiting += classes_[pods_[p.index()].cls.index()].request;
  }
  charge(gang, gang.allocated, false);
  tenants_[gang.tenant.index()].pending -= waiting;
  gang.tenant = tenant;
  tenants_[gang.tenant.index()].pending += waiting;
  charge(gang, gang.allocated, true);
  mark(id);
}

void State::on(const GroupUpsert& e) {
  const GangId id = intern_gang(e.group.key);
  GangState& gang = gangs_[id.index()];
  const bool first = !gang.has_group;
  const bool priority_changed = gang.spec.priority != e.group.priority || first;
  const bool rules_changed = first || gang.spec.min_member != e.group.min_member || gang.spec.disruption != e.group.disruption ||
                             gang.spec.preemptable != e.group.preemptable || gang.spec.parent != e.group.parent || priority_changed;
  if (e.group.is_parent) {
    ++victims_version_;
  } else if (rules_changed) {
    touch_gang(id);
  }
  if (first || gang.spec.parent != e.group.parent) {
    if (!first) leave_family(id);
    if (!e.group.parent.empty()) {
      auto& family = families_[e.group.parent];
      family.insert(std::upper_bound(family.begin(), family.end(), id), id);
    }
  }
  gang.has_group = true;
  gang.spec = e.group;
  gang.created = e.group.created;
  if (priority_changed) {
    for (const PodId p : gang.pods) count_evictable(pods_[p.index()]);
  }
  if (first && e.group.admitted) gang.phase = GroupPhase::kInqueue;
  const TenantId tenant = intern_tenant(e.group.queue.empty() ? config_.default_queue : e.group.queue);
  if (gangs_[id.index()].tenant != tenant) move_gang_tenant(id, tenant);
  mark(id);
}

void State::on(const GroupRemove& e) {
  const GangId id = find_gang(e.key);
  if (!id.valid()) return;
  GangState& gang = gangs_[id.index()];
  if (gang.has_group) leave_family(id);
  gang.has_group = false;
  gang.phase = GroupPhase::kPending;
  touch_gang(id);
  mark(id);
  if (gang.pods.empty()) {
    gang.live = false;
    gang_ids_.erase(gang.key);
    free_gangs_.push_back(id);
  }
}

void State::relink_tenant(TenantId id, const std::string& parent) {
  TenantId wanted;
  if (!parent.empty() && parent != tenants_[id.index()].name) wanted = intern_tenant(parent);
  // A parent below its own child would be a cycle: such a queue hangs below the root instead.
  TenantId up = wanted;
  for (int depth = 0; up.valid() && depth < 32; ++depth) {
    if (up == id) {
      wanted = TenantId{};
      break;
    }
    up = tenants_[up.index()].parent;
  }
  TenantState& tenant = tenants_[id.index()];
  if (tenant.parent == wanted) return;
  const auto move = [&](bool add) {
    TenantId t = tenants_[id.index()].parent;
    for (int depth = 0; t.valid() && depth < 32; ++depth) {
      if (add) {
        tenants_[t.index()].allocated += tenants_[id.index()].allocated;
      } else {
        tenants_[t.index()].allocated -= tenants_[id.index()].allocated;
      }
      t = tenants_[t.index()].parent;
    }
  };
  move(false);
  if (tenant.parent.valid()) {
    auto& siblings = tenants_[tenant.parent.index()].children;
    siblings.erase(std::find(siblings.begin(), siblings.end(), id));
  }
  tenants_[id.index()].parent = wanted;
  if (wanted.valid()) tenants_[wanted.index()].children.push_back(id);
  move(true);
}

void State::on(const QueueUpsert& e) {
  const TenantId id = intern_tenant(e.queue.name);
  relink_tenant(id, e.queue.parent);
  std::uint32_t mask = 0;
  const ResourceVector capability = vector_of(e.queue.capability, &mask);
  const ResourceVector guarantee = vector_of(e.queue.guarantee);
  const ResourceVector deserved = vector_of(e.queue.deserved);
  TenantState& tenant = tenants_[id.index()];
  const Queue& old = tenant.spec;
  if (!tenant.live || old.t9k != e.queue.t9k || old.preemptible != e.queue.preemptible || old.priority != e.queue.priority ||
      old.reclaimable != e.queue.reclaimable) {
    ++victims_version_;
  }
  tenant.live = true;
  tenant.spec = e.queue;
  tenant.capability = capability;
  tenant.capability_mask = mask;
  tenant.guarantee = guarantee;
  tenant.deserved = deserved;
  ++tenants_version_;
}

void State::on(const QueueRemove& e) {
  const TenantId id = find_tenant(e.name);
  if (!id.valid()) return;
  relink_tenant(id, "");
  ++victims_version_;
  TenantState& tenant = tenants_[id.index()];
  tenant.live = false;
  tenant.spec = Queue{};
  tenant.spec.name = tenant.name;
  tenant.capability = ResourceVector();
  tenant.capability_mask = 0;
  tenant.guarantee = ResourceVector();
  tenant.deserved = ResourceVector();
  ++tenants_version_;
}

void State::on(const BudgetUpsert& e) {
  DisruptionBudget& budget = budgets_[e.budget.key];
  if (budget.key.empty() || budget.disruptions_allowed != e.budget.disruptions_allowed || budget.selector != e.budget.selector) ++victims_version_;
  budget = e.budget;
}
void State::on(const BudgetRemove& e) {
  if (budgets_.erase(e.key) > 0) ++victims_version_;
}
void State::on(const NamespaceUpsert& e) { namespaces_[e.ns.name] = e.ns.labels; }
void State::on(const NamespaceRemove& e) { namespaces_.erase(e.name); }

void State::on(const ConfigChange& e) {
  // The device resource is part of every stored vector; it can only be chosen at the start.
  const std::string device = config_.device_resource;
  config_ = e.config;
  config_.device_resource = device;
  config_changed_ = true;
  ++tenants_version_;
  ++victims_version_;
}

}  // namespace muster::engine
