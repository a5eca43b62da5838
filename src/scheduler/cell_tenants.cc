#include "scheduler/cell_tenants.h"

#include <fmt/core.h>

#include <algorithm>

namespace muster::scheduler {

namespace {
/// A tree of queues is a few levels deep; a cycle of parents must not hang the scheduler.
constexpr int kMaxDepth = 32;
}  // namespace

bool CellTenants::queue_seen(const engine::Queue& queue) {
  const auto devices = [&](const engine::ResourceList& list) -> std::optional<std::int64_t> {
    const auto found = std::find_if(list.begin(), list.end(), [&](const engine::Amount& amount) {
      return amount.name == device_resource_;
    });
    return found == list.end() ? std::nullopt : std::optional<std::int64_t>(found->value);
  };
  Tenant tenant;
  tenant.parent = queue.parent;
  tenant.virtual_cluster = queue.virtual_cluster;
  tenant.capability = devices(queue.capability);
  tenant.deserved = devices(queue.deserved);
  tenant.weight = std::max<std::int64_t>(queue.weight, 1);
  tenant.open = queue.state == engine::QueueState::kOpen;
  tenant.backfill = queue.backfill;
  if (const Tenant* known = find(queue.name); known != nullptr && *known == tenant) return false;
  // What its gangs hold moves with it to another parent.
  const std::int64_t own = held(queue.name);
  if (own != 0) count(queue.name, -own);
  tenants_[queue.name] = std::move(tenant);
  if (own != 0) count(queue.name, own);
  return true;
}

void CellTenants::queue_gone(const std::string& name) { tenants_.erase(name); }

const CellTenants::Tenant* CellTenants::find(const std::string& name) const {
  const auto found = tenants_.find(name);
  return found == tenants_.end() ? nullptr : &found->second;
}

std::int64_t CellTenants::held(const std::string& name) const {
  const auto found = held_.find(name);
  return found == held_.end() ? 0 : found->second;
}

void CellTenants::count(const std::string& queue, std::int64_t devices) {
  std::string name = queue;
  for (int depth = 0; depth < kMaxDepth && !name.empty(); ++depth) {
    if ((held_[name] += devices) == 0) held_.erase(name);
    const Tenant* tenant = find(name);
    name = tenant == nullptr ? "" : tenant->parent;
  }
}

std::string CellTenants::virtual_cluster_of(
    const std::string& queue, const std::function<bool(const std::string&)>& exists) const {
  std::string name = queue;
  for (int depth = 0; depth < kMaxDepth && !name.empty(); ++depth) {
    const Tenant* tenant = find(name);
    if (tenant != nullptr && !tenant->virtual_cluster.empty()) return tenant->virtual_cluster;
    if (exists(name)) return name;
    name = tenant == nullptr ? "" : tenant->parent;
  }
  return "";
}

std::optional<std::string> CellTenants::excess(const std::string& queue,
                                               std::int64_t devices) const {
  std::string name = queue;
  for (int depth = 0; depth < kMaxDepth && !name.empty(); ++depth) {
    const Tenant* tenant = find(name);
    if (tenant == nullptr) break;
    if (!tenant->open) return fmt::format("queue {} is closed", name);
    if (tenant->capability && held(name) + devices > *tenant->capability) {
      return fmt::format("queue {} may hold {} {}, holds {}, and this gang needs {}",
                         name,
                         *tenant->capability,
                         device_resource_,
                         held(name),
                         devices);
    }
    name = tenant->parent;
  }
  return std::nullopt;
}

std::int64_t CellTenants::share(const std::string& queue) const {
  const Tenant* tenant = find(queue);
  const std::int64_t part = tenant == nullptr ? 1 : tenant->deserved.value_or(tenant->weight);
  return held(queue) * 1'000'000 / std::max<std::int64_t>(part, 1);
}

engine::BackfillMode CellTenants::backfill(const std::string& queue) const {
  const Tenant* tenant = find(queue);
  return tenant == nullptr ? engine::BackfillMode::kReservation : tenant->backfill;
}

}  // namespace muster::scheduler
