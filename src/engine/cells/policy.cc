// What is seen of pods, nodes, groups and queues; what queues and those that wait are shown.
#include "engine/cells/policy.h"

#include <algorithm>
#include <tuple>
#include <variant>

namespace muster::engine::cells {

namespace {

/// HiveD's range: a class below 0 is opportunistic, everything above 1000 counts as 1000.
std::int32_t hived_priority(std::int32_t priority) {
  return priority < 0 ? kOpportunistic : std::min(priority, kMaxPriority);
}

/// Where a pod sits that was bound without cells: on devices nobody promised it.
BindInfo found_at(const std::string& node, const std::vector<std::int32_t>& devices) {
  BindInfo bind;
  bind.node = node;
  bind.leaves = devices;
  PodPlacement place{node, devices, std::vector<std::string>(devices.size())};
  bind.group =
      std::make_shared<std::vector<MemberPlacement>>(1, MemberPlacement{{std::move(place)}});
  return bind;
}

std::vector<std::int32_t> device_indexes(const State& state, const PodState& pod) {
  std::vector<std::int32_t> out;
  if (!pod.node.valid()) return out;
  for (const auto position : pod.devices)
    out.push_back(state.node(pod.node).devices[position].index);
  return out;
}

}  // namespace

std::string gang_name(const std::string& group_key) {
  return group_key.substr(group_key.find(':') + 1);
}

CellPolicy::CellPolicy(State& state, std::unique_ptr<Policy> rest, CellAllocator allocator)
    : state_(state), rest_(std::move(rest)), allocator_(std::move(allocator)) {
  state_.use_cells();
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    const NodeState& node = state_.node(NodeId(n));
    if (node.live) node_seen(node.spec->name, node.spec->ready && !node.spec->unschedulable);
  }
  for (std::uint32_t p = 0; p < state_.pod_count(); ++p) {
    const PodState& pod = state_.pod(PodId(p));
    if (pod.live) seen_[pod.key] = device_indexes(state_, pod);
  }
  for (std::uint32_t t = 0; t < state_.tenant_count(); ++t)
    (void)tenants_.note(state_, TenantId(t));
}

CellPolicy::CellPolicy(const CellPolicy& other, State& state)
    : state_(state),
      rest_(other.rest_->clone(state)),
      allocator_(other.allocator_),
      tenants_(other.tenants_),
      members_(other.members_),
      spare_(other.spare_),
      waiting_(other.waiting_),
      seen_(other.seen_),
      gangs_(other.gangs_),
      told_(other.told_),
      holds_(other.holds_),
      rest_holds_(other.rest_holds_),
      explained_(other.explained_),
      awaited_nodes_(other.awaited_nodes_),
      due_(other.due_),
      dirty_(other.dirty_) {}

std::unique_ptr<Policy> CellPolicy::clone(State& state) const {
  return std::unique_ptr<Policy>(new CellPolicy(*this, state));
}

Result<void> CellPolicy::reconfigure(const Config& config, Time now) {
  auto fresh = CellAllocator::create(config, {});
  if (!fresh) return fail(fresh.error());
  allocator_ = std::move(*fresh);
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    const NodeState& node = state_.node(NodeId(n));
    const bool healthy = node.live && node.spec->ready && !node.spec->unschedulable;
    (void)allocator_.set_node(node.spec->name, healthy);
  }
  for (auto& [key, member] : members_) {
    if (!member.bound) continue;
    BindInfo bind = std::move(*member.bound);
    member.bound.reset();
    charge(member, 0);
    add_bound(member, bind, now);
    if (!member.bound) add_found(member, bind.node, bind.leaves, now);
  }
  dirty_ = true;
  return {};
}

// ------------------------------------------------------------------------------------ what is seen

void CellPolicy::apply(const Event& event) {
  rest_->apply(event);
  if (const auto* pod = std::get_if<PodUpsert>(&event)) return on(*pod);
  if (const auto* pod = std::get_if<PodRemove>(&event); pod && members_.contains(pod->key))
    seen_[pod->key].clear();
  if (const auto* node = std::get_if<NodeUpsert>(&event)) return on(*node);
  if (const auto* node = std::get_if<NodeRemove>(&event)) return node_seen(node->name, false);
  if (const auto* group = std::get_if<GroupUpsert>(&event)) return on(*group);
  if (std::holds_alternative<GroupRemove>(event)) dirty_ = true;
  if (const auto* queue = std::get_if<QueueUpsert>(&event))
    dirty_ = tenants_.note(state_, state_.find_tenant(queue->queue.name)) || dirty_;
  if (const auto* queue = std::get_if<QueueRemove>(&event)) {
    const TenantId tenant = state_.find_tenant(queue->name);
    if (tenant.valid()) dirty_ = tenants_.note(state_, tenant) || dirty_;
  }
  if (const auto* result = std::get_if<BindResult>(&event)) return on(*result);
  if (const auto* result = std::get_if<EvictResult>(&event)) return on(*result);
}

void CellPolicy::on(const PodUpsert& event) {
  // One that asks for no device may be the one that its gang waits for.
  const PodState& pod = state_.pod(state_.find_pod(event.pod.key));
  if (pod.by_cells || members_.contains(pod.key))
    seen_[pod.key] = event.pod.device_indexes;
  else if (!event.pod.group.empty() && !pod.node.valid())
    dirty_ = true;
}

void CellPolicy::on(const NodeUpsert& event) {
  node_seen(event.node.name, event.node.ready && !event.node.unschedulable);
}

void CellPolicy::node_seen(const std::string& name, bool healthy) {
  if (allocator_.set_node(name, healthy) || awaited_nodes_.contains(name)) dirty_ = true;
}

void CellPolicy::on(const GroupUpsert& event) {
  const GangId id = state_.find_gang(event.group.key);
  if (gangs_.size() < state_.gang_count()) gangs_.resize(state_.gang_count());
  const GangState& gang = state_.gang(id);
  GangSeen now{gang.seq,
               gang.tenant,
               gang.spec->min_member,
               gang.spec->priority,
               gang.spec->hold,
               gang.created,
               gang.spec->expected_duration};
  if (gangs_[id.index()] == now) return;
  gangs_[id.index()] = now;
  dirty_ = true;
}

void CellPolicy::on(const BindResult& event) {
  const auto found = members_.find(event.pod);
  if (event.ok || found == members_.end()) return;
  release(found->second);
  waiting_.insert(event.pod);
  seen_.try_emplace(event.pod);
  dirty_ = true;
}

void CellPolicy::on(const EvictResult& event) {
  const auto found = members_.find(event.pod);
  if (event.ok || found == members_.end()) return;
  ++found->second.evict_failures;
  found->second.spared_until.reset();
  dirty_ = true;
}

bool CellPolicy::concerns(PodId id) const {
  const PodState& pod = state_.pod(id);
  if (!pod.by_cells || pod.phase == PodPhase::kFinished) return false;
  return pod.node.valid() || (pod.ours && !pod.held_back);
}

/// Who is gone goes first: those that come may sit where they sat.
void CellPolicy::take_in(Time now) {
  const auto seen = std::exchange(seen_, {});
  for (const auto& [key, devices] : seen) {
    const PodId id = state_.find_pod(key);
    const auto known = members_.find(key);
    if (known == members_.end()) continue;
    if (!id.valid() || !concerns(id) || state_.pod(id).uid != known->second.ref.uid) forget(key);
  }
  for (const auto& [key, devices] : seen) {
    const PodId id = state_.find_pod(key);
    if (id.valid() && concerns(id)) see(id, devices, now);
  }
}

void CellPolicy::see(PodId id, const std::vector<std::int32_t>& devices, Time now) {
  const PodState& pod = state_.pod(id);
  Member& member = members_[pod.key];
  member.ref = {pod.uid, pod.key};
  if (!member.bound) {
    read(member, pod);
    dirty_ = true;
  }
  if (member.expected_duration.count() > 0 && pod.node.valid() && pod.started)
    member.ends = pod.started + member.expected_duration;
  if (member.bound) return;
  if (!pod.node.valid()) {
    waiting_.insert(pod.key);
    return;
  }
  waiting_.erase(pod.key);
  if (member.spec_error.empty() && pod.cells && pod.cells->bind)
    add_bound(member, *pod.cells->bind, now);
  const auto used = devices.empty() ? device_indexes(state_, pod) : devices;
  if (!member.bound) add_found(member, state_.node(pod.node).spec->name, used, now);
}

void CellPolicy::read(Member& member, const PodState& pod) const {
  const GangState& gang = state_.gang(pod.gang);
  const TaskClass& cls = state_.cls(pod.cls);
  member.tenant = gang.tenant;
  // A pod without a group is a gang of its own name.
  member.gang = gang.has_group || gang.key != pod.key ? *gang.key : "";
  member.created = gang.has_group ? gang.created : pod.created;
  member.expected_duration = pod.expected_duration.count() > 0 || !gang.has_group
                                 ? pod.expected_duration
                                 : gang.spec->expected_duration;
  member.derived = !pod.cells || (!pod.cells->spec && pod.cells->error.empty());
  member.spec_error = member.derived ? "" : pod.cells->error;
  if (!member.derived) {
    if (!pod.cells->spec) return;
    member.spec = *pod.cells->spec;
    // One that runs already says in its bind info how large it is.
    if (const auto sized = allocator_.size(member.spec); !sized && !pod.node.valid())
      member.spec_error = sized.error().message;
    return;
  }
  member.spec = {};
  member.spec.vc = CellTenants::virtual_cluster_of(state_, allocator_.cells(), gang.tenant);
  member.spec.priority =
      hived_priority(gang.has_group ? std::max(pod.priority, gang.spec->priority) : pod.priority);
  const auto& types = allocator_.cells().leaf_types;
  for (const std::string& model : cls.spec.device_models) {
    const bool known = std::find(types.begin(), types.end(), model) != types.end();
    if (known || member.spec.leaf_type.empty()) member.spec.leaf_type = model;
    if (known) break;
  }
  member.spec.leaves = cls.devices;
  member.spec.group = pod.key;
  member.spec.members = {{1, cls.devices}};
}

void CellPolicy::add_bound(Member& member, BindInfo bind, Time now) {
  const auto added = allocator_.add_allocated(member.ref, member.spec, bind, now);
  if (!added) return;
  charge(member, static_cast<std::int64_t>(bind.leaves.size()));
  member.bound = std::move(bind);
}

/// One that came before the cells did, or carries what they are not. It runs on; whoever is promised
/// the place may have it.
void CellPolicy::add_found(Member& member,
                           const std::string& node,
                           const std::vector<std::int32_t>& devices,
                           Time now) {
  if (devices.empty()) return;
  member.spec.priority = kOpportunistic;
  member.spec.group = member.ref.name;
  member.spec.leaves = static_cast<std::int32_t>(devices.size());
  member.spec.members = {{1, member.spec.leaves}};
  member.spec.root.clear();
  add_bound(member, found_at(node, devices), now);
}

void CellPolicy::charge(Member& member, std::int64_t devices) {
  if (devices == 0 && member.counted == 0) return;
  tenants_.count(state_, member.tenant, devices - member.counted);
  if (member.counted_as_spare) spare_ -= member.counted;
  member.counted = devices;
  member.counted_as_spare = member.spec.priority < 0;
  if (member.counted_as_spare) spare_ += devices;
}

void CellPolicy::release(Member& member) {
  charge(member, 0);
  member.ends = {};
  if (member.bound) {
    [[maybe_unused]] const auto released =
        allocator_.delete_allocated(member.ref, member.spec, *member.bound);
    member.bound.reset();
  } else if (member.spec_error.empty()) {
    allocator_.delete_unallocated(member.ref, member.spec.group);
  }
}

void CellPolicy::forget(const std::string& key) {
  const auto found = members_.find(key);
  if (found == members_.end()) return;
  waiting_.erase(key);
  release(found->second);
  members_.erase(found);
  dirty_ = true;
}

// ----------------------------------------------------------------------------------- what is shown

GangId CellPolicy::gang_of(const std::string& pod) const {
  const PodId id = state_.find_pod(pod);
  return id.valid() ? state_.pod(id).gang : GangId{};
}

std::optional<WaitView> CellPolicy::why(GangId id) {
  if (!id.valid()) return std::nullopt;
  for (const PodId pod : state_.gang(id).pods) {
    const std::string& key = state_.pod(pod).key;
    const auto found = members_.find(key);
    if (found == members_.end() || !waiting_.contains(key)) continue;
    WaitView view = wait_view(state_, id);
    view.refusal = found->second.refusal;
    for (const WaitView& one : waiting(state_.gang(id).tenant, waiting_.size())) {
      if (one.key == view.key) view.rank = one.rank;
    }
    return view;
  }
  return rest_->why(id);
}

std::vector<WaitView> CellPolicy::waiting(TenantId tenant, std::size_t limit) {
  std::vector<WaitView> out = rest_->waiting(tenant, limit);
  std::set<std::string> listed;
  for (const WaitView& view : out) listed.insert(view.key);
  for (const std::string& key : waiting_) {
    const GangId gang = gang_of(key);
    if (!gang.valid() || state_.gang(gang).tenant != tenant) continue;
    if (!listed.insert(state_.gang(gang).key).second) continue;
    out.push_back(wait_view(state_, gang));
    out.back().refusal = members_.at(key).refusal;
  }
  std::sort(out.begin(), out.end(), [](const WaitView& a, const WaitView& b) {
    return std::tuple(-std::int64_t{a.priority}, a.since, a.key) <
           std::tuple(-std::int64_t{b.priority}, b.since, b.key);
  });
  if (out.size() > limit) out.resize(limit);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].rank = static_cast<std::int32_t>(i);
  return out;
}

std::vector<QueueView> CellPolicy::queues(std::span<const TenantId> tenants) {
  std::vector<QueueView> out = rest_->queues(tenants);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i].virtual_cluster =
        CellTenants::virtual_cluster_of(state_, allocator_.cells(), tenants[i]);
  return out;
}

}  // namespace muster::engine::cells
