/// Queues below virtual clusters: which virtual cluster a queue belongs to, and how much of it the
/// queue may hold.
///
/// A queue belongs to the virtual cluster that its annotation muster.dev/virtual-cluster names,
/// else to the one of its own name, else to its parent's. Where in the virtual cluster its gangs
/// sit is the cell allocator's business.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "engine/model/model.h"

namespace muster::scheduler {

class CellTenants {
 public:
  explicit CellTenants(std::string device_resource)
      : device_resource_(std::move(device_resource)) {}

  /// False: nothing that matters here is new.
  bool queue_seen(const engine::Queue& queue);
  void queue_gone(const std::string& name);
  /// Devices taken or given back by a gang of the queue.
  void count(const std::string& queue, std::int64_t devices);

  /// Empty: none. `exists` knows the configured virtual clusters.
  [[nodiscard]] std::string virtual_cluster_of(
      const std::string& queue, const std::function<bool(const std::string&)>& exists) const;
  /// Why the queue, or one above it, may not take so many devices more; nothing: it may.
  [[nodiscard]] std::optional<std::string> excess(const std::string& queue,
                                                  std::int64_t devices) const;
  /// Held devices against what is deserved (or the weight), in millionths: who is served first
  /// among equals.
  [[nodiscard]] std::int64_t share(const std::string& queue) const;
  [[nodiscard]] engine::BackfillMode backfill(const std::string& queue) const;

 private:
  struct Tenant {
    std::string parent;
    std::string virtual_cluster;
    std::optional<std::int64_t> capability, deserved;  // devices
    std::int64_t weight = 1;
    bool open = true;
    engine::BackfillMode backfill = engine::BackfillMode::kReservation;
    bool operator==(const Tenant&) const = default;
  };
  [[nodiscard]] const Tenant* find(const std::string& name) const;
  [[nodiscard]] std::int64_t held(const std::string& name) const;

  std::string device_resource_;
  std::map<std::string, Tenant> tenants_;
  std::map<std::string, std::int64_t> held_;  // with all below
};

}  // namespace muster::scheduler
