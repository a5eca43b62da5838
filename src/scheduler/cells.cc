#include "scheduler/cells.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "hived/annotations.h"

namespace muster::scheduler {

namespace cells = engine::cells;

namespace {

/// A gang waits this long before later ones are held back for it: most waits end sooner, and
/// holding back costs throughput.
constexpr Duration kPatience = std::chrono::minutes(5);

/// Explaining looks at all nodes of a view; so many gangs get one in a round.
constexpr std::size_t kExplainedMax = 64;

/// HiveD's range: a class below 0 is opportunistic, everything above 1000 counts as 1000.
std::int32_t hived_priority(std::int32_t priority) {
  return priority < 0 ? cells::kOpportunistic : std::min(priority, cells::kMaxPriority);
}

/// Where a pod sits that was bound without cells: on devices nobody promised it.
cells::BindInfo found_at(const CellRequest& request) {
  cells::BindInfo bind;
  bind.node = request.node;
  bind.leaves = request.device_indexes;
  cells::PodPlacement place{request.node,
                            request.device_indexes,
                            std::vector<std::string>(request.device_indexes.size())};
  bind.group = std::make_shared<std::vector<cells::MemberPlacement>>(
      1, cells::MemberPlacement{{std::move(place)}});
  return bind;
}

}  // namespace

std::string gang_name(const std::string& group_key) {
  return group_key.substr(group_key.find(':') + 1);
}

CellQueue::CellQueue(cells::CellAllocator allocator, std::string device_resource)
    : allocator_(std::make_unique<cells::CellAllocator>(std::move(allocator))),
      tenants_(std::move(device_resource)) {}

Result<std::unique_ptr<CellQueue>> CellQueue::create(const cells::Config& config,
                                                     std::string device_resource) {
  auto allocator = cells::CellAllocator::create(config, {});
  if (!allocator) return fail(allocator.error());
  return std::unique_ptr<CellQueue>(
      new CellQueue(std::move(*allocator), std::move(device_resource)));
}

void CellQueue::read_spec(Pod& pod, const CellRequest& request) const {
  pod.derived = request.scheduling_spec.empty();
  pod.spec_error.clear();
  if (!pod.derived) {
    auto spec = hived::parse_scheduling_spec(request.scheduling_spec, request.ns, request.name);
    if (spec)
      pod.spec = std::move(*spec);
    else
      pod.spec_error = spec.error().message;
    return;
  }
  pod.spec = {};
  pod.spec.vc = request.virtual_cluster;
  pod.spec.priority = hived_priority(request.priority);
  pod.spec.leaf_type = request.leaf_type;
  pod.spec.leaves = request.leaves;
  pod.spec.group = pod.ref.name;
  pod.spec.members = {{1, request.leaves}};
}

void CellQueue::pod_seen(const CellRequest& request, Time now) {
  const std::string key = request.ns + "/" + request.name;
  if (const auto known = pods_.find(key);
      known != pods_.end() && known->second.ref.uid != request.uid)
    pod_gone(key);
  Pod& pod = pods_[key];
  pod.ref = {request.uid, key};
  if (!pod.bound) {
    pod.queue = request.queue;
    pod.gang = request.gang;
    pod.created = request.created;
    pod.expected_duration = request.expected_duration;
    read_spec(pod, request);
    dirty_ = true;
  }
  if (pod.expected_duration.count() > 0 && request.started != Time{})
    pod.ends = request.started + pod.expected_duration;
  if (request.node.empty()) {
    if (!pod.bound) waiting_.insert(key);
  } else if (!pod.bound) {
    waiting_.erase(key);
    auto bind = hived::parse_bind_info(request.bind_info);
    if (!bind && pod.derived && !request.device_indexes.empty()) {
      // It came before the cells did. It runs on; whoever is promised the place may have it.
      pod.spec.priority = cells::kOpportunistic;
      pod.spec.leaves = static_cast<std::int32_t>(request.device_indexes.size());
      pod.spec.members = {{1, pod.spec.leaves}};
      bind = found_at(request);
    }
    if (bind && pod.spec_error.empty()) add_bound(pod, std::move(*bind), now);
  }
  pod.evicting = pod.evicting || request.terminating;
}

void CellQueue::add_bound(Pod& pod, cells::BindInfo bind, Time now) {
  const auto added = allocator_->add_allocated(pod.ref, pod.spec, bind, now);
  // The allocator ignores a pod whose cells are not configured any more; it keeps running outside
  // of them.
  if (!added) return;
  pod.bound = std::move(bind);
  count(pod, pod.spec.leaves);
}

void CellQueue::count(Pod& pod, std::int64_t devices) {
  tenants_.count(pod.queue, devices - pod.counted);
  pod.counted = devices;
}

void CellQueue::release(Pod& pod) {
  count(pod, 0);
  if (pod.bound) {
    [[maybe_unused]] const auto released =
        allocator_->delete_allocated(pod.ref, pod.spec, *pod.bound);
    pod.bound.reset();
  } else if (pod.spec_error.empty()) {
    allocator_->delete_unallocated(pod.ref, pod.spec.group);
  }
}

void CellQueue::pod_gone(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  waiting_.erase(key);
  release(found->second);
  pods_.erase(found);
  dirty_ = true;
}

void CellQueue::node_seen(const std::string& name, bool healthy) {
  const auto [entry, fresh] = nodes_.insert_or_assign(name, healthy);
  if (allocator_->set_node(name, healthy) || fresh) dirty_ = true;
}

bool CellQueue::queue_seen(const engine::Queue& queue) {
  if (!tenants_.queue_seen(queue)) return false;
  dirty_ = true;
  return true;
}

void CellQueue::queue_gone(const std::string& name) {
  tenants_.queue_gone(name);
  dirty_ = true;
}

void CellQueue::bind_failed(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  release(found->second);
  waiting_.insert(key);
  dirty_ = true;
}

void CellQueue::evict_failed(const std::string& key) {
  const auto found = pods_.find(key);
  if (found != pods_.end()) found->second.evicting = false;
  dirty_ = true;
}

std::string CellQueue::virtual_cluster_of(const std::string& queue) const {
  return tenants_.virtual_cluster_of(queue, [this](const std::string& name) {
    const cells::Index vc = allocator_->cells().find_vc(name);
    return vc != cells::kNone && allocator_->cells().vc(vc).configured;
  });
}

std::string CellQueue::virtual_clusters() const {
  std::vector<std::string> names;
  for (const cells::VirtualCluster& vc : allocator_->cells().vcs) {
    if (vc.configured) names.push_back(vc.name);
  }
  return join(names, ", ");
}

bool CellQueue::has_leaf_type(const std::string& name) const {
  const auto& types = allocator_->cells().leaf_types;
  return std::find(types.begin(), types.end(), name) != types.end();
}

void CellQueue::wait(const std::string& key, Pod& pod, std::string reason, CellPlan& plan) {
  if (pod.reason == reason) return;
  pod.reason = reason;
  plan.waits.push_back({key, std::move(reason)});
}

void CellQueue::wait_for_cells(const std::string& key,
                               Pod& pod,
                               const std::string& reason,
                               CellPlan& plan) {
  auto explained = explained_.find(pod.spec.group);
  if (explained == explained_.end()) {
    // Who is far behind in a long backlog keeps the explanation he had.
    if (explained_.size() >= kExplainedMax && pod.reason.starts_with(reason)) return;
    std::string text = explained_.size() < kExplainedMax ? allocator_->explain(pod.spec) : "";
    explained = explained_.emplace(pod.spec.group, std::move(text)).first;
  }
  wait(key,
       pod,
       explained->second.empty() ? reason : fmt::format("{}: {}", reason, explained->second),
       plan);
}

void CellQueue::settle_gang(Pod& pod) const {
  if (!pod.derived || pod.gang.empty()) return;
  std::map<std::int32_t, std::int32_t> pods_of_size;
  const std::string name = gang_name(pod.gang);
  if (const cells::Group* known = allocator_->find_group(name)) {
    bool room = known->state == cells::GroupState::kPreempting;
    for (const cells::Group::Member& member : known->members) {
      pods_of_size[member.leaves] = static_cast<std::int32_t>(member.slots.size());
      const bool free_slot = std::any_of(
          member.slots.begin(), member.slots.end(), [](const auto& slot) { return !slot; });
      room = room || (member.leaves == pod.spec.leaves && free_slot);
    }
    if (!room || !pods_of_size.contains(pod.spec.leaves)) {
      // The gang started without it: it comes on top, alone.
      pod.spec.group = pod.ref.name;
      pod.spec.members = {{1, pod.spec.leaves}};
      return;
    }
  } else {
    for (const std::string& key : waiting_) {
      const Pod& other = pods_.at(key);
      if (other.derived && other.gang == pod.gang && !other.evicting)
        ++pods_of_size[other.spec.leaves];
    }
  }
  pod.spec.group = name;
  pod.spec.members.clear();
  for (const auto& [leaves, number] : pods_of_size) pod.spec.members.push_back({number, leaves});
}

std::optional<std::string> CellQueue::held_back(const Pod& pod,
                                                Time now,
                                                const GangGate& gate) const {
  if (pod.derived && !pod.gang.empty()) {
    if (auto why = gate(pod.gang)) return why;
  }
  // A gang that holds cells already (or has them reserved) has passed.
  if (allocator_->find_group(pod.spec.group) != nullptr) return std::nullopt;
  std::int64_t devices = 0;
  for (const cells::GroupMember& member : pod.spec.members)
    devices += std::int64_t{member.pods} * member.leaves;
  if (auto why = tenants_.excess(pod.queue, devices)) return why;
  const auto reserved = reservations_.find(pod.spec.vc);
  if (reserved == reservations_.end() || pod.spec.priority < 0 ||
      reserved->second.gang == pod.spec.group)
    return std::nullopt;
  const bool in_time = pod.expected_duration.count() > 0 && reserved->second.until &&
                       now + pod.expected_duration <= *reserved->second.until;
  if (in_time) return std::nullopt;
  return fmt::format(
      "{} is kept free for {}, which has waited longer; a gang that says (annotation muster.dev/expected-duration) that it ends before "
      "any other there may go first",
      pod.spec.vc,
      reserved->second.gang);
}

void CellQueue::reserve(const Pod& pod, Time now, CellPlan& plan) {
  const engine::BackfillMode mode = tenants_.backfill(pod.queue);
  if (pod.spec.priority < 0 || mode == engine::BackfillMode::kSkip ||
      reservations_.contains(pod.spec.vc) || !allocator_->could_hold(pod.spec))
    return;
  const Time due = pod.created + kPatience;
  if (mode == engine::BackfillMode::kReservation && now < due) {
    if (!plan.wake || due < *plan.wake) plan.wake = due;
    return;
  }
  Reservation reservation{pod.spec.group, std::nullopt};
  if (mode == engine::BackfillMode::kReservation) {
    bool known = true;
    for (const auto& [key, other] : pods_) {
      if (!other.bound || other.spec.vc != pod.spec.vc || other.spec.priority < 0) continue;
      known = known && other.ends != Time{};
      if (known && (!reservation.until || other.ends < *reservation.until))
        reservation.until = other.ends;
    }
    if (!known) reservation.until.reset();
  }
  reservations_.emplace(pod.spec.vc, std::move(reservation));
}

void CellQueue::try_pod(
    const std::string& key, Pod& pod, Time now, const GangGate& gate, CellPlan& plan) {
  if (!pod.spec_error.empty()) {
    wait(key, pod, pod.spec_error, plan);
    return;
  }
  settle_gang(pod);
  if (auto why = held_back(pod, now, gate)) {
    wait(key, pod, std::move(*why), plan);
    return;
  }
  cells::Decision decision =
      allocator_->schedule({pod.ref, pod.spec, cells::Phase::kFiltering, nullptr, now});
  // Filtering only says that victims would help; the preempting phase reserves their cells for this
  // gang.
  if (decision.kind == cells::Decision::Kind::kPreempt) {
    decision = allocator_->schedule({pod.ref, pod.spec, cells::Phase::kPreempting, nullptr, now});
  }
  switch (decision.kind) {
    case cells::Decision::Kind::kBind: {
      const auto added = allocator_->add_allocated(pod.ref, pod.spec, decision.bind, now);
      if (!added) {
        wait(key, pod, added.error().message, plan);
        return;
      }
      plan.binds.push_back({key,
                            pod.ref.uid,
                            decision.bind.node,
                            hived::format_bind_info(decision.bind),
                            hived::format_isolation(decision.bind),
                            pod.derived ? hived::format_scheduling_spec(pod.spec) : ""});
      pod.bound = std::move(decision.bind);
      count(pod, pod.spec.leaves);
      pod.reason.clear();
      return;
    }
    case cells::Decision::Kind::kPreempt:
      for (const cells::Victims& victims : decision.victims) {
        for (const cells::PodRef& victim : victims.pods) {
          const auto found = pods_.find(victim.name);
          if (found == pods_.end() || found->second.evicting) continue;
          found->second.evicting = true;
          plan.evicts.push_back({victim.name, victim.uid, victims.node, key});
        }
      }
      wait(key, pod, "waiting for the pods it preempts to leave their cells", plan);
      return;
    case cells::Decision::Kind::kWait:
      wait_for_cells(key, pod, decision.reason, plan);
      reserve(pod, now, plan);
      return;
    case cells::Decision::Kind::kError:
      wait(key, pod, decision.reason, plan);
      return;
  }
}

CellPlan CellQueue::decide(Time now, const GangGate& gate) {
  CellPlan plan;
  if (!dirty_) return plan;
  dirty_ = false;
  reservations_.clear();
  explained_.clear();
  std::vector<Rank> order;
  for (const std::string& key : waiting_) {
    const Pod& pod = pods_.at(key);
    if (!pod.evicting)
      order.push_back({pod.spec.priority, tenants_.share(pod.queue), pod.created, key});
  }
  std::sort(order.begin(), order.end());
  for (const Rank& rank : order) {
    Pod& pod = pods_.at(rank.key);
    try_pod(rank.key, pod, now, gate, plan);
    if (pod.bound) waiting_.erase(rank.key);
  }
  return plan;
}

Result<void> CellQueue::reconfigure(const cells::Config& config, Time now) {
  auto fresh = cells::CellAllocator::create(config, {});
  if (!fresh) return fail(fresh.error());
  allocator_ = std::make_unique<cells::CellAllocator>(std::move(*fresh));
  for (const auto& [name, healthy] : nodes_) allocator_->set_node(name, healthy);
  for (auto& [key, pod] : pods_) {
    if (!pod.bound) continue;
    cells::BindInfo bind = std::move(*pod.bound);
    pod.bound.reset();
    count(pod, 0);
    add_bound(pod, std::move(bind), now);
  }
  dirty_ = true;
  return {};
}

}  // namespace muster::scheduler
