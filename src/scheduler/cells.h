/// Pods that are placed by the cells of a HiveD virtual cluster: who waits, in which order they are
/// tried, what was promised to whom. Decides through engine::cells::CellAllocator; touches nothing.
///
/// A pod asks with HiveD's annotation pod-scheduling-spec, or with nothing but its GPUs, its gang
/// and its queue: then its spec is made here (`derived`) and written on the pod with its binding.
/// State lives in the pods: after a restart it is rebuilt from their annotations alone.
///
/// Order: priority, then the share of the queue, then age. A gang that its virtual cluster could
/// hold but that has waited for long is given a reservation: later gangs of the virtual cluster
/// start only if they end before anybody there does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/cells/allocator.h"
#include "scheduler/cell_tenants.h"

namespace muster::scheduler {

/// What the scheduler knows of a pod that wants cells.
struct CellRequest {
  std::string ns, name, uid;
  std::string node;                          // empty: not bound
  std::string scheduling_spec;               // the annotation; empty: derived from the rest
  std::string bind_info;                     // the annotation; empty: none
  std::vector<std::int32_t> device_indexes;  // of a bound pod without bind info
  std::string virtual_cluster;               // derived
  std::string queue;
  std::string gang;       // key of its group; empty: alone
  std::string leaf_type;  // empty: any
  std::int32_t leaves = 0;
  std::int32_t priority = 0;  // of its PriorityClass
  Time created, started;
  Duration expected_duration{};  // zero: unknown
  bool terminating = false;
};

struct CellBind {
  std::string pod, uid, node;
  std::string bind_info;        // YAML for the annotation
  std::string isolation;        // "0,1"
  std::string scheduling_spec;  // of a derived pod, so that it survives a restart; empty: the pod
                                // has its own
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
  std::optional<Time> wake;     // when a wait turns into a reservation
};

/// "namespace/name" of a group's key, as people know it and as its cells are labelled.
std::string gang_name(const std::string& group_key);

/// Why the gang of derived pods cannot start yet (pods missing, suspended); nothing: it can.
using GangGate = std::function<std::optional<std::string>(const std::string& gang)>;

class CellQueue {
 public:
  static Result<std::unique_ptr<CellQueue>> create(const engine::cells::Config& config,
                                                   std::string device_resource);

  void pod_seen(const CellRequest& request, Time now);
  void pod_gone(const std::string& key);
  void node_seen(const std::string& name, bool healthy);
  /// True: waiting pods must be seen again, their virtual cluster may be another.
  bool queue_seen(const engine::Queue& queue);
  void queue_gone(const std::string& name);
  void bind_failed(const std::string& key);
  void evict_failed(const std::string& key);
  [[nodiscard]] CellPlan decide(Time now, const GangGate& gate);
  /// Takes a new configuration over: running pods keep what they hold where the new cells still
  /// have it.
  Result<void> reconfigure(const engine::cells::Config& config, Time now);

  /// The virtual cluster of a queue; empty: none.
  [[nodiscard]] std::string virtual_cluster_of(const std::string& queue) const;
  /// "a, b, c".
  [[nodiscard]] std::string virtual_clusters() const;
  [[nodiscard]] bool has_leaf_type(const std::string& name) const;
  [[nodiscard]] const engine::cells::CellAllocator& allocator() const { return *allocator_; }
  /// A gang changed in a way that decide() should look at again.
  void touch() { dirty_ = true; }

 private:
  struct Pod {
    engine::cells::PodRef ref;
    engine::cells::PodSpec spec;
    std::string spec_error;  // a spec that cannot be read is told to its owner
    bool derived = false;
    std::string queue, gang;
    Time created, ends;  // ends: zero while unknown
    Duration expected_duration{};
    std::optional<engine::cells::BindInfo> bound;  // by us (assumed) or as the pod says
    std::int64_t counted = 0;                      // devices counted for its queue
    bool evicting = false;
    std::string reason;
  };
  struct Rank {
    std::int32_t priority;
    std::int64_t share;
    Time created;
    std::string key;
    bool operator<(const Rank& other) const {
      if (priority != other.priority) return priority > other.priority;
      if (share != other.share) return share < other.share;
      if (created != other.created) return created < other.created;
      return key < other.key;
    }
  };
  /// A gang for which later ones of its virtual cluster are held back.
  struct Reservation {
    std::string gang;
    std::optional<Time> until;  // nobody in the virtual cluster ends before; unknown: hold all
  };

  CellQueue(engine::cells::CellAllocator allocator, std::string device_resource);
  void read_spec(Pod& pod, const CellRequest& request) const;
  /// A derived pod's gang as its pods are now, or as the allocator has it.
  void settle_gang(Pod& pod) const;
  void add_bound(Pod& pod, engine::cells::BindInfo bind, Time now);
  void count(Pod& pod, std::int64_t devices);
  void release(Pod& pod);
  void try_pod(const std::string& key, Pod& pod, Time now, const GangGate& gate, CellPlan& plan);
  std::optional<std::string> held_back(const Pod& pod, Time now, const GangGate& gate) const;
  void reserve(const Pod& pod, Time now, CellPlan& plan);
  void wait(const std::string& key, Pod& pod, std::string reason, CellPlan& plan);
  void wait_for_cells(const std::string& key, Pod& pod, const std::string& reason, CellPlan& plan);

  std::unique_ptr<engine::cells::CellAllocator> allocator_;
  CellTenants tenants_;
  std::map<std::string, Pod> pods_;
  std::set<std::string> waiting_;
  std::map<std::string, bool> nodes_;
  std::map<std::string, Reservation> reservations_;  // by virtual cluster, of one decide()
  std::map<std::string, std::string> explained_;     // by gang, of one decide()
  bool dirty_ = false;
};

}  // namespace muster::scheduler
