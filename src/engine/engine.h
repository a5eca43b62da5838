/// Places whole gangs under queues and priorities; decides everything, touches nothing.
///
/// The same events and `now` give the same plan, byte for byte: state lives in vectors indexed by
/// dense ids, every ordering ends in an id, and quantities are integers. One thread owns an Engine;
/// it reads no clock, file or random source and writes no log.
///
/// Usage: apply() every change seen, then decide() once; carry the plan out; report only what
/// failed. Pods named in Evict stay in place until PodRemove (or a PodUpsert with `finished`); the
/// room they leave is held for those that Nominate names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engine/model/config.h"
#include "engine/model/event.h"
#include "engine/model/plan.h"

namespace muster::engine {

/// What a queue holds and may hold; for status, `explain` and portals. Outer units.
struct QueueView {
  std::string name;
  std::string parent;
  ResourceList allocated;
  ResourceList requested;  ///< Allocated and waiting.
  ResourceList deserved;
  ResourceList real_capability;     ///< Only what is limited.
  std::int64_t share_permille = 0;  ///< Dominant allocated / deserved.
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

struct Stats {
  std::int64_t nodes = 0;
  std::int64_t pods = 0;
  std::int64_t pods_bound = 0;
  std::int64_t gangs_waiting = 0;
  std::int64_t attempts = 0;  ///< Gangs tried since the start.
  std::int64_t binds = 0;
  std::int64_t evictions = 0;
  std::int64_t node_checks =
      0;  ///< Single (class, node) evaluations; what indexes are there to keep low.
};

class Engine {
 public:
  explicit Engine(Config config);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Cheap: updates tables and indexes, decides nothing.
  void apply(const Event& event);
  /// Decides everything the applied events made possible.
  [[nodiscard]] Plan decide(Time now);

  // Queries, for explanations. None of them changes a later plan.
  /// Why does this group (or pod without one) wait? Absent when it does not wait.
  [[nodiscard]] std::optional<WaitView> why(std::string_view key) const;
  /// Everything that waits in a queue, next first, at most `limit`.
  [[nodiscard]] std::vector<WaitView> waiting(std::string_view queue, std::size_t limit) const;
  [[nodiscard]] std::optional<QueueView> queue(std::string_view name) const;
  [[nodiscard]] std::vector<QueueView> queues() const;
  [[nodiscard]] std::optional<NodeView> node(std::string_view name) const;
  [[nodiscard]] std::vector<NodeView> nodes() const;
  [[nodiscard]] Stats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
