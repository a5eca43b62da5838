/// Who shares the cluster: virtual clusters where there are cells, queues elsewhere. One list for the
/// topic `tenants` and for samples of use, so that both say the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "portal/topics/topics.h"

namespace muster::portal {

struct TenantFacts {
  std::string name, parent;
  bool vc = false, open = true;
  std::optional<std::int64_t> weight;
  Amounts used;       // under guarantee; what is opportunistic is never in it
  Amounts oppo;       // on what others were promised
  Amounts lent;       // of its own promise, in use by others
  Amounts guarantee;  // of what is not bad
  std::optional<Amounts> deserved, capability;
  Amounts total;
  std::int64_t waiting = 0, waiting_gpus = 0, running = 0, bad_cells = 0;
};

/// By name.
std::vector<TenantFacts> tenants_of(World& world);

}  // namespace muster::portal
