/// Pods that ask for cells of a HiveD virtual cluster (annotation pod-scheduling-spec): who waits, in which order they are
/// tried, what was promised to whom. Decides through engine::cells::CellAllocator; touches nothing.
///
/// State lives in the pods: after a restart it is rebuilt from their pod-bind-info annotations alone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/cells/allocator.h"
#include "json/json.h"

namespace muster::scheduler {

struct CellBind {
  std::string pod, uid, node;
  std::string bind_info;   // YAML for the annotation
  std::string isolation;   // "0,1"
};

struct CellEvict {
  std::string pod, uid, node;
  std::string for_whom;
};

struct CellWait {
  std::string pod;
  std::string reason;
};

struct CellPlan {
  std::vector<CellBind> binds;
  std::vector<CellEvict> evicts;
  std::vector<CellWait> waits;  // only those whose reason changed
};

class CellQueue {
 public:
  static Result<std::unique_ptr<CellQueue>> create(const engine::cells::Config& config);

  /// True when the pod carries a scheduling spec, so that it is ours to place by cells.
  static bool wants_cells(const json::Value& pod);

  void pod_seen(const json::Value& pod);
  void pod_gone(const std::string& key);
  void node_seen(const std::string& name, bool healthy);
  void bind_failed(const std::string& key);
  void evict_failed(const std::string& key);
  [[nodiscard]] CellPlan decide(Time now);
  /// Takes a new configuration over: running pods keep what they hold where the new cells still have it.
  Result<void> reconfigure(const engine::cells::Config& config, Time now);

  [[nodiscard]] const engine::cells::CellAllocator& allocator() const { return *allocator_; }
  [[nodiscard]] bool dirty() const { return dirty_; }

 private:
  struct Pod {
    engine::cells::PodRef ref;
    engine::cells::PodSpec spec;
    std::string spec_error;           // a spec that cannot be read is told to its owner
    Time created;
    std::optional<engine::cells::BindInfo> bound;  // by us (assumed) or as the pod says
    bool evicting = false;
    std::string reason;
  };
  struct Rank {
    std::int32_t priority;
    Time created;
    std::string key;
    bool operator<(const Rank& other) const {
      if (priority != other.priority) return priority > other.priority;
      if (created != other.created) return created < other.created;
      return key < other.key;
    }
  };

  explicit CellQueue(engine::cells::CellAllocator allocator);
  void add_bound(Pod& pod, engine::cells::BindInfo bind, Time now);
  void release(Pod& pod);
  void try_pod(const std::string& key, Pod& pod, Time now, CellPlan& plan);
  void wait(const std::string& key, Pod& pod, std::string reason, CellPlan& plan);

  std::unique_ptr<engine::cells::CellAllocator> allocator_;
  std::map<std::string, Pod> pods_;
  std::set<Rank> waiting_;
  std::map<std::string, bool> nodes_;
  bool dirty_ = false;
};

}  // namespace muster::scheduler
