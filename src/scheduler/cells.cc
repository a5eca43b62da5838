#include "scheduler/cells.h"

#include <fmt/core.h>

#include "hived/annotations.h"
#include "kube/meta.h"
#include "kube/pod.h"

namespace muster::scheduler {

namespace cells = engine::cells;

CellQueue::CellQueue(cells::CellAllocator allocator) : allocator_(std::make_unique<cells::CellAllocator>(std::move(allocator))) {}

Result<std::unique_ptr<CellQueue>> CellQueue::create(const cells::Config& config) {
  auto allocator = cells::CellAllocator::create(config, {});
  if (!allocator) return fail(allocator.error());
  return std::unique_ptr<CellQueue>(new CellQueue(std::move(*allocator)));
}

bool CellQueue::wants_cells(const json::Value& pod) { return !kube::annotation(pod, hived::kSchedulingSpec).empty(); }

void CellQueue::pod_seen(const json::Value& pod) {
  const std::string ns(kube::namespace_of(pod)), name(kube::name_of(pod));
  const std::string key = ns + "/" + name;
  const std::string uid(kube::uid_of(pod));
  if (const auto known = pods_.find(key); known != pods_.end() && known->second.ref.uid != uid) pod_gone(key);
  // A finished pod holds nothing any more.
  if (kube::pod_finished(pod)) {
    pod_gone(key);
    return;
  }
  const bool fresh = !pods_.contains(key);
  Pod& entry = pods_[key];
  if (fresh) {
    entry.ref = {uid, key};
    entry.created = kube::creation_time(pod);
    auto spec = hived::parse_scheduling_spec(kube::annotation(pod, hived::kSchedulingSpec), ns, name);
    if (spec) entry.spec = std::move(*spec);
    else entry.spec_error = spec.error().message;
    dirty_ = true;
  }
  const bool bound = !json::as_string(json::at(pod, "spec", "nodeName")).empty();
  if (bound && !entry.bound) {
    auto info = hived::parse_bind_info(kube::annotation(pod, hived::kBindInfo));
    waiting_.erase({entry.spec.priority, entry.created, key});
    if (info && entry.spec_error.empty()) add_bound(entry, std::move(*info), {});
    dirty_ = true;
  } else if (!bound && !entry.bound && fresh) {
    waiting_.insert({entry.spec.priority, entry.created, key});
  }
  if (kube::is_deleting(pod)) entry.evicting = true;
}

void CellQueue::add_bound(Pod& pod, cells::BindInfo bind, Time now) {
  const auto added = allocator_->add_allocated(pod.ref, pod.spec, bind, now);
  // The allocator ignores a pod whose cells are not configured any more; it keeps running outside of them.
  if (added) pod.bound = std::move(bind);
}

void CellQueue::release(Pod& pod) {
  if (pod.bound) {
    [[maybe_unused]] const auto released = allocator_->delete_allocated(pod.ref, pod.spec, *pod.bound);
    pod.bound.reset();
  } else if (pod.spec_error.empty()) {
    allocator_->delete_unallocated(pod.ref, pod.spec.group);
  }
}

void CellQueue::pod_gone(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  waiting_.erase({found->second.spec.priority, found->second.created, key});
  release(found->second);
  pods_.erase(found);
  dirty_ = true;
}

void CellQueue::node_seen(const std::string& name, bool healthy) {
  const auto [entry, fresh] = nodes_.insert_or_assign(name, healthy);
  if (allocator_->set_node(name, healthy) || fresh) dirty_ = true;
}

void CellQueue::bind_failed(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  release(found->second);
  waiting_.insert({found->second.spec.priority, found->second.created, key});
  dirty_ = true;
}

void CellQueue::evict_failed(const std::string& key) {
  const auto found = pods_.find(key);
  if (found != pods_.end()) found->second.evicting = false;
  dirty_ = true;
}

void CellQueue::wait(const std::string& key, Pod& pod, std::string reason, CellPlan& plan) {
  if (pod.reason == reason) return;
  pod.reason = reason;
  plan.waits.push_back({key, std::move(reason)});
}

void CellQueue::try_pod(const std::string& key, Pod& pod, Time now, CellPlan& plan) {
  if (!pod.spec_error.empty()) {
    wait(key, pod, fmt::format("annotation {}: {}", hived::kSchedulingSpec, pod.spec_error), plan);
    return;
  }
  cells::Decision decision = allocator_->schedule({pod.ref, pod.spec, cells::Phase::kFiltering, nullptr, now});
  // Filtering only says that victims would help; the preempting phase reserves their cells for this gang.
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
      plan.binds.push_back({key, pod.ref.uid, decision.bind.node, hived::format_bind_info(decision.bind), hived::format_isolation(decision.bind)});
      pod.bound = std::move(decision.bind);
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
    case cells::Decision::Kind::kError:
      wait(key, pod, decision.reason, plan);
      return;
  }
}

CellPlan CellQueue::decide(Time now) {
  CellPlan plan;
  if (!dirty_) return plan;
  dirty_ = false;
  for (auto rank = waiting_.begin(); rank != waiting_.end();) {
    const auto found = pods_.find(rank->key);
    if (found != pods_.end() && !found->second.evicting) try_pod(rank->key, found->second, now, plan);
    const bool placed = found == pods_.end() || found->second.bound.has_value();
    rank = placed ? waiting_.erase(rank) : std::next(rank);
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
    add_bound(pod, std::move(bind), now);
  }
  dirty_ = true;
  return {};
}

}  // namespace muster::scheduler
