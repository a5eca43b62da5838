/// The engine's hands and eyes: objects of the cluster become engine events; its plan becomes
/// bindings, evictions, conditions and events. Knows no more of the cluster than client/ shows.
///
/// Everything runs on the loop. Changes are applied as they arrive; decide() runs once for a burst
/// of them. Bindings and evictions go out at once, at most `in_flight_max` together; status texts
/// follow behind in a queue of their own and never delay a binding.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "client/client.h"
#include "client/informer.h"
#include "engine/engine.h"
#include "engine/model/cell_config.h"
#include "scheduler/counters.h"

namespace muster::scheduler {

struct Options {
  engine::Config engine;
  /// Of queues that do not say it themselves.
  engine::BackfillMode backfill = engine::BackfillMode::kReservation;
  /// Pods with these schedulerNames are ours. Empty: every pod (the embedded cluster).
  std::set<std::string, std::less<>> scheduler_names;
  /// What events and conditions name as their source.
  std::string name = "muster";
  /// HiveD's cells: pods that name a virtual cluster are placed by them. Absent: no cells.
  std::optional<engine::cells::Config> cells;
  /// Nothing is placed in cells until stop_cells(false).
  bool cells_stopped = false;
  /// Pods' volumes are looked at, by the in-tree rules. The embedded cluster has no volumes that
  /// care where they are.
  bool volumes = false;
  int in_flight_max = 256;
  /// How long a wait must last before it is written on objects; short waits are not worth a write.
  Duration report_after = std::chrono::milliseconds(300);
  /// Told to whoever keeps records, null or not: what people are told of a wait, with one of the pods
  /// that wait (empty: there is none yet), and which pods have to leave.
  std::function<void(const engine::Wait& wait, const std::string& pod, const std::string& message)>
      on_wait;
  std::function<void(const engine::Evict& evict)> on_evict;
  /// False: another replica may decide by now, so nothing is decided, bound or evicted here. Null: there
  /// is no other.
  std::function<bool()> leads;
  /// Told to whoever follows the engine, null or not, in the order in which it happens to it: what it
  /// hears, when it decides and what came of that, and its new cells.
  std::function<void(const engine::Event& event)> on_event;
  std::function<void(Time now, const engine::Plan& plan)> on_decision;
  std::function<void(const engine::cells::Config& config, Time now)> on_cells;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual void start() = 0;
  /// Before stop(), by one who leaves in good order: decides nothing more and lets what was decided
  /// be bound, so that no gang is left in part.
  virtual Task<void> finish(Duration most) = 0;
  virtual Task<void> stop() = 0;
  /// For metrics and tests: only what reads and nothing else (Engine::stats, told, nodes_refused) may
  /// be asked of it, since a worker may be copying it. Valid between start and stop.
  [[nodiscard]] virtual const engine::Engine& engine() const = 0;
  /// Why a gang waits; while the engine is being copied, as it was last told.
  [[nodiscard]] virtual std::optional<engine::WaitView> why(std::string_view gang) const = 0;
  /// Copies the engine on a worker. Nothing is told to it or decided meanwhile; `take` gets the copy
  /// on the loop before anything else happens to the engine.
  virtual Task<void> copy_engine(std::function<void(engine::Engine)> take) = 0;
  [[nodiscard]] virtual const Counters& counters() const = 0;
  /// Every queue that exists, by name; while the engine is being copied, as they were before.
  [[nodiscard]] virtual std::vector<engine::QueueView> queues() const = 0;
  /// The first picture of the cluster is complete.
  [[nodiscard]] virtual bool ready() const = 0;
  /// The kinds that it misses, "plural.group".
  [[nodiscard]] virtual std::vector<std::string> unknown() const = 0;
  /// Takes new cells over live; the old ones stay when the configuration is wrong.
  virtual Result<void> reconfigure_cells(const engine::cells::Config& config) = 0;
  /// Pods of virtual clusters wait, or wait no more; those that run go on.
  virtual void stop_cells(bool stopped) = 0;
  /// Decides by this policy from now on; `backfill` is for queues that do not say it themselves.
  /// Names and the device resource stay. Fails when it is of the other kind: Volcano's instead of
  /// Muster's own, or the other way round.
  virtual Result<void> reconfigure(const engine::Config& policy, engine::BackfillMode backfill) = 0;
  /// What happened before the engine was there: it learns from it as if it had seen it.
  virtual void remember(const engine::PastRun& run) = 0;
  /// What the engine would be told of PodGroups and pods that are not there, groups first.
  [[nodiscard]] virtual std::vector<engine::Event> events_of(
      const std::vector<json::Value>& groups, const std::vector<json::Value>& pods) const = 0;
  /// Bindings or evictions are under way: what can wait, should.
  [[nodiscard]] virtual bool binding() const = 0;
  /// Nothing to decide, bind, evict or report.
  [[nodiscard]] virtual bool idle() const = 0;
};

/// Fails when the cells' configuration is wrong; the error says where.
Result<std::unique_ptr<Scheduler>> make_scheduler(Env& env,
                                                  client::Client& client,
                                                  client::Informers& informers,
                                                  Options options);

}  // namespace muster::scheduler
