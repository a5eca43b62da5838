/// What an engine shows of itself to status, metrics and `explain`. Plain values in outer units.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/model/history.h"
#include "engine/model/reason.h"
#include "engine/model/resources.h"

namespace muster::engine {

/// What a queue holds and may hold; for status, metrics and `explain`. Outer units.
struct QueueView {
  std::string name;
  std::string parent;
  /// Whose cells guarantee it what it has; empty: amounts do.
  std::string virtual_cluster;
  ResourceList allocated;
  ResourceList requested;  ///< Allocated and waiting.
  ResourceList deserved;
  ResourceList real_capability;     ///< Only what is limited.
  std::int64_t share_permille = 0;  ///< Dominant allocated / deserved.
  /// Of its own gangs: those with a member that waits for us to place it while less than their
  /// minimum runs, and those whose minimum runs.
  std::int32_t gangs_waiting = 0;
  std::int32_t gangs_running = 0;
};

struct NodeView {
  std::string name;
  ResourceList allocatable;
  ResourceList used;
  std::vector<std::string> pods;
  std::vector<std::int32_t> free_devices;  ///< Wholly free ones.
};

struct WaitView {
  std::string key;  ///< group key, or pod key without one
  bool is_group = false;
  std::string queue;
  std::int32_t priority = 0;
  Time since;
  std::int32_t rank = 0;  ///< 0 = next in its queue.
  Refusal refusal;
};

/// A gang that waits or runs, with what its end is foretold from.
struct GangView {
  std::string key;  ///< group key, or pod key without one
  bool is_group = false;
  std::string queue;
  std::string user;
  std::string stem;
  std::string team;
  std::string model;  ///< Models it asks for, joined by commas; empty: any.
  std::vector<std::string> pods;
  std::vector<std::string> nodes;  ///< Where its bound pods are; each once.
  RunKind kind;                    ///< What it has in common with others that ended.
  std::int64_t device_milli = 0;   ///< Of all pods that are not finished.
  std::int32_t priority = 0;
  std::int32_t min_member = 1;
  std::int32_t bound = 0;      ///< Pods that run.
  std::int32_t releasing = 0;  ///< Pods on their way out.
  bool waiting = false;   ///< A member waits for us to place it, and less than the minimum runs.
  bool running = false;   ///< Its minimum runs.
  bool evicted = false;   ///< One of those on their way out makes way for others.
  bool by_cells = false;  ///< Cells place it.
  Time created;
  Time started;         ///< When its first member began to run; zero while none does.
  Duration declared{};  ///< How long its owner says it lasts; zero: not said.
  Duration limit{};     ///< It is ended when it has run for so long; zero: never.
  Time latest_end;      ///< Its queue ends it then at the latest; zero: never.
  Time leaves;          ///< When the last of those on their way out is gone; zero: not known.
};

struct Stats {
  std::int64_t nodes = 0;
  std::int64_t pods = 0;
  std::int64_t pods_bound = 0;
  std::int64_t gangs_waiting = 0;  ///< In all queues.
  std::int64_t attempts = 0;       ///< Gangs tried since the start.
  std::int64_t binds = 0;
  std::int64_t evictions = 0;
  /// Single (class, node) evaluations; what indexes are there to keep low.
  std::int64_t node_checks = 0;
};

}  // namespace muster::engine
