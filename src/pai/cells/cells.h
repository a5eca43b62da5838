/// The virtual clusters as OpenPAI shows them: which there are, what each has and uses, and the GPUs
/// of each node. With HiveD's cells from the live cells (configuration, nodes, bound pods); without,
/// a virtual cluster is a queue. On the loop; the cells are counted on a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "client/informer.h"
#include "hived/config.h"
#include "hived/tree.h"
#include "pai/protocol/facts.h"

namespace muster::pai {

struct Amounts {
  std::int64_t gpu = 0;
  std::int64_t cpu = 0;
  std::int64_t memory_mb = 0;
};

struct VcUse {
  Amounts total;
  Amounts guaranteed;  // what is not bad
  Amounts used;        // by guaranteed jobs; opportunistic ones use nobody's share
  Amounts lent;        // of what is free, on which others sit who would have to leave
  std::int64_t bad_cells = 0;
};

struct NodeUse {
  std::int64_t gpu_used = 0;  // by anybody
  std::int64_t gpu_total = 0;
  bool healthy = true;
};

struct Use {
  std::map<std::string, VcUse> vcs;
  std::map<std::string, NodeUse> nodes;
  Amounts cluster;
};

/// Counts the cells. `tree`: hived::tree_json.
Use count_cells(const json::Value& tree, const Facts& facts);

class Cells {
 public:
  Cells(Env& env, client::Informers& informers);
  void follow();

  /// By name.
  [[nodiscard]] std::vector<std::string> vcs() const;
  /// The cluster as a submission sees it.
  [[nodiscard]] const Facts& facts() const { return facts_; }
  /// By name.
  [[nodiscard]] const std::map<std::string, client::ObjectPtr>& nodes() const {
    return nodes_->objects();
  }
  Task<std::shared_ptr<const Use>> use();
  /// The last count of cells; null where there are none, or not yet.
  [[nodiscard]] std::shared_ptr<const Use> last_use() const { return config_ ? use_ : nullptr; }
  /// Whether something has happened since the last count.
  [[nodiscard]] bool behind() const { return !counting_ && (!use_ || counted_ != changes_); }
  /// Called after the virtual clusters may have changed.
  void on_change(std::function<void()> told) { told_.push_back(std::move(told)); }

 private:
  struct Seat {
    client::ObjectPtr pod;
    std::shared_ptr<const hived::RunningPod> read;  // null: not yet
  };

  void config_changed(const client::ObjectPtr& map);
  void queues_changed();
  void pod_changed(const client::ObjectPtr& old_pod, const client::ObjectPtr& pod);
  struct Moment;
  static Use count_seats(Moment& moment);
  static Use count_queues(const Moment& moment);
  Task<void> count();

  Env& env_;
  client::Informers& informers_;
  client::Informer* nodes_ = nullptr;
  client::Informer* pods_ = nullptr;
  client::Informer* queues_ = nullptr;
  std::shared_ptr<const hived::Config> config_;  // null: no cells
  Facts facts_;
  std::map<std::string, Seat> seats_;  // pods on cells, by key
  std::vector<std::function<void()>> told_;
  // The last count; `changes_` counts what happened since the start, `counted_` how much of it the
  // count knows.
  std::shared_ptr<const Use> use_;
  std::uint64_t changes_ = 1, counted_ = 0;
  bool counting_ = false;
  std::unique_ptr<Signal> counted_signal_;
};

}  // namespace muster::pai
