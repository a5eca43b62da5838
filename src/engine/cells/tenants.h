/// Queues below virtual clusters: which virtual cluster a queue belongs to, and how much of it the
/// queue may hold.
///
/// A queue belongs to the virtual cluster that its spec names, else to the one of its own name, else
/// to its parent's. Where in the virtual cluster its gangs sit is the cell allocator's business.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/cells/cells.h"
#include "engine/model/ids.h"
#include "engine/model/model.h"
#include "engine/model/reason.h"
#include "engine/state/state.h"

namespace muster::engine::cells {

class CellTenants {
 public:
  /// The queue was seen. False: nothing that matters here is new.
  bool note(const State& state, TenantId tenant);
  /// Devices taken or given back by a gang of the queue.
  void count(const State& state, TenantId tenant, std::int64_t devices);
  /// To be called before a round of the questions below: the tree may have changed.
  void refresh(const State& state);

  /// Empty: none.
  [[nodiscard]] static std::string virtual_cluster_of(const State& state,
                                                      const Cells& cells,
                                                      TenantId tenant);
  /// Why the queue, or one above it, may not take so many devices more; nothing: it may.
  [[nodiscard]] std::optional<Refusal> excess(const State& state,
                                              TenantId tenant,
                                              std::int64_t devices) const;
  /// The first queue whose limit so many devices more would exceed, and by how many.
  struct Over {
    TenantId queue;
    std::int64_t by = 0;
  };
  [[nodiscard]] std::optional<Over> over(const State& state,
                                         TenantId tenant,
                                         std::int64_t devices) const;
  /// It is that queue, or below it.
  [[nodiscard]] static bool within(const State& state, TenantId tenant, TenantId queue);
  /// Held devices against what is deserved (or the weight), in millionths: who is served first
  /// among equals.
  [[nodiscard]] std::int64_t share(const State& state, TenantId tenant) const;
  [[nodiscard]] static BackfillMode backfill(const State& state, TenantId tenant);

 private:
  /// What is remembered of a queue, to see that it changed.
  struct Seen {
    bool live = false;
    TenantId parent;
    std::string virtual_cluster;
    std::optional<std::int64_t> capability, deserved;  ///< Devices.
    std::int64_t weight = 1;
    QueueState state = QueueState::kOpen;
    BackfillMode backfill = BackfillMode::kReservation;
    bool operator==(const Seen&) const = default;
  };
  [[nodiscard]] std::int64_t held(TenantId tenant) const {
    return tenant.index() < held_.size() ? held_[tenant.index()] : 0;
  }

  std::vector<Seen> seen_;          ///< By tenant.
  std::vector<std::int64_t> own_;   ///< Devices that its own gangs hold.
  std::vector<std::int64_t> held_;  ///< With all below, since refresh().
};

}  // namespace muster::engine::cells
