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

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/model/cell_config.h"
#include "engine/model/config.h"
#include "engine/model/event.h"
#include "engine/model/history.h"
#include "engine/model/plan.h"
#include "engine/model/trial.h"
#include "engine/model/views.h"

namespace muster::engine {

class Engine {
 public:
  explicit Engine(Config config);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// From now on devices are handed out as cells of HiveD's virtual clusters; what asks for none is
  /// placed as before. Called again it takes new cells over: running pods keep what they hold where
  /// the new cells still have it. When the configuration is wrong, everything stays as it was.
  Result<void> configure_cells(const cells::Config& config, Time now);

  /// Cheap: updates tables and indexes, decides nothing.
  void apply(const Event& event);
  /// Decides everything the applied events made possible.
  [[nodiscard]] Plan decide(Time now);

  // Queries, for explanations. None of them changes a later plan.
  /// Why does this group (or pod without one) wait? Absent when it does not wait.
  [[nodiscard]] std::optional<WaitView> why(std::string_view key) const;
  /// The same as it was last told, without a look at the nodes: it reads, and changes nothing at all.
  [[nodiscard]] std::optional<WaitView> told(std::string_view key) const;
  /// The nodes that a cause of that refusal means, in the order in which they came.
  [[nodiscard]] std::vector<std::string> nodes_refused(std::string_view key,
                                                       std::string_view cause) const;
  /// Everything that waits in a queue, next first, at most `limit`.
  [[nodiscard]] std::vector<WaitView> waiting(std::string_view queue, std::size_t limit) const;
  [[nodiscard]] std::optional<QueueView> queue(std::string_view name) const;
  [[nodiscard]] std::vector<QueueView> queues() const;
  [[nodiscard]] std::optional<NodeView> node(std::string_view name) const;
  [[nodiscard]] std::vector<NodeView> nodes() const;
  [[nodiscard]] Stats stats() const;
  /// How long work took that ended: good until the next event or decision.
  [[nodiscard]] const History& history() const;
  /// The same, as it is now, for as long as it is wanted and on any thread.
  [[nodiscard]] std::shared_ptr<const History> shared_history() const;
  /// Every gang that waits or runs, in the order of first sight.
  [[nodiscard]] std::vector<GangView> gangs() const;
  /// One of them; absent when it does neither.
  [[nodiscard]] std::optional<GangView> gang(std::string_view key) const;
  /// What the engine was last told about a pod, and where it has put it since.
  [[nodiscard]] std::optional<Pod> pod(std::string_view key) const;
  /// What the engine was last told about a group.
  [[nodiscard]] std::optional<Group> group(std::string_view key) const;
  /// What it was last told about nodes and queues.
  [[nodiscard]] std::vector<Node> nodes_as_told() const;
  [[nodiscard]] std::optional<Queue> queue_as_told(std::string_view name) const;

  /// Would the gang start now if things were different? Decided on a copy, under all the rules that
  /// hold; nothing changes here.
  [[nodiscard]] TrialResult try_gang(const Trial& trial) const;

  /// An engine of its own that knows the same: it plans the same from here on, and what becomes of
  /// it changes nothing here. For questions of the kind "what if".
  [[nodiscard]] Engine clone() const;
  /// A clone that is only played forward: it binds and evicts as the original would, tells no reasons
  /// and learns nothing from what is made to happen in it.
  [[nodiscard]] Engine rehearsal() const;
  /// A checksum of all that decisions follow from. Equal engines have equal ones, and queries do not
  /// change it.
  [[nodiscard]] std::uint64_t digest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
