/// What happened, as the engine hears it. Events about the same object may repeat; an upsert
/// replaces all.
#pragma once

#include <string>
#include <variant>

#include "engine/model/config.h"
#include "engine/model/model.h"

namespace muster::engine {

struct NodeUpsert {
  Node node;
};
struct NodeRemove {
  std::string name;
};
struct PodUpsert {
  Pod pod;
};
struct PodRemove {
  std::string key;
};
struct GroupUpsert {
  Group group;
};
struct GroupRemove {
  std::string key;
};
struct QueueUpsert {
  Queue queue;
};
struct QueueRemove {
  std::string name;
};
struct BudgetUpsert {
  DisruptionBudget budget;
};
struct BudgetRemove {
  std::string key;
};
struct NamespaceUpsert {
  Namespace ns;
};
struct NamespaceRemove {
  std::string name;
};
/// The engine counts a Bind of its own plan as done. Tell it only failures (or both, if easier). A
/// failure says that the pod has no node, also when a PodUpsert has named the planned one
/// meanwhile.
struct BindResult {
  std::string pod;
  bool ok = true;
};
/// Same for evictions: after a failure the pod counts as running again and another plan is made.
struct EvictResult {
  std::string pod;
  bool ok = true;
};
struct ConfigChange {
  Config config;
};

/// A run of before this engine's time, from a record of it.
struct PastRun {
  Origin origin;  ///< With its team, or its queue.
  std::int64_t device_milli = 0;
  std::vector<std::string> models;
  Duration ran{};
  bool ended = true;  ///< False: it was cut off, and would have taken longer.
  Duration declared{};
  bool stopped = false;  ///< Somebody deleted it before any of it had finished.
};

using Event = std::variant<NodeUpsert,
                           NodeRemove,
                           PodUpsert,
                           PodRemove,
                           GroupUpsert,
                           GroupRemove,
                           QueueUpsert,
                           QueueRemove,
                           BudgetUpsert,
                           BudgetRemove,
                           NamespaceUpsert,
                           NamespaceRemove,
                           BindResult,
                           EvictResult,
                           ConfigChange,
                           PastRun>;

}  // namespace muster::engine
