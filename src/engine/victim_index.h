/// For one kind of preemptor: how many pods must go on each node to make room for one of its pods.
///
/// Kept like the class indexes: nodes in buckets by cost, brought up to date from the change log. The cost in the
/// index counts pods (a gang that would fall below its minimum costs all of its pods); the exact choice among the
/// cheapest nodes is made by choose().
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "engine/ids.h"
#include "engine/node_set.h"
#include "engine/state.h"
#include "engine/tenants.h"

namespace muster::engine {

/// Who wants room, as far as eligibility of victims depends on it.
struct Preemptor {
  ClassId cls;
  std::int32_t priority = 0;
  TenantId tenant;
  GangId gang;
  bool reclaim = false;  ///< Takes back across queues instead of by priority.

  [[nodiscard]] auto key() const { return std::make_tuple(cls, priority, tenant, reclaim); }
};

/// What has been planned so far in one attempt, on top of the state.
struct EvictionPlan {
  struct OnNode {
    ResourceVector freed;               ///< By victims.
    ResourceVector taken;               ///< By the preemptor's own pods.
    std::vector<PodId> victims;
    std::vector<PodId> guests;
  };
  std::map<NodeId, OnNode> nodes;
  std::set<PodId> victims;
  std::map<GangId, std::int32_t> evicted_of;         ///< Pods taken from each gang.
  std::map<TenantId, ResourceVector> taken_from;
  std::map<std::string, std::int32_t> budget_used;
};

bool eligible(const State& state, const Tenants& tenants, const Preemptor& who, const PodState& victim);

/// Room for one pod of the class on the node with nobody evicted any more, given the plan so far.
bool fits_after(const State& state, const TaskClass& cls, NodeId node, const EvictionPlan& plan);

/// Which of two equally good victims goes first: that of the younger gang, then the member created last, then the last by
/// name, numbers in names compared as numbers (worker-10, worker-9, …, master-0).
bool goes_before(const State& state, PodId a, PodId b);

struct VictimChoice {
  std::vector<PodId> victims;  ///< On every node, when gangs go whole. Empty with `possible`: fits already.
  bool possible = false;
  std::int32_t budgets_broken = 0;
  std::int32_t top_priority = 0;
  std::int64_t work_lost_s = 0;
  PodId first;  ///< Of the victims, the one that goes before all others; decides between equal choices.
};
/// The cheapest pods to remove so that one pod of the class fits on the node.
VictimChoice choose_on_node(const State& state, const Tenants& tenants, const Preemptor& who, NodeId node, const EvictionPlan& plan,
                            Time now);

class VictimIndex {
 public:
  static constexpr std::size_t kBuckets = 16;

  /// Up to `limit` nodes, the cheapest first.
  std::vector<NodeId> cheapest(const State& state, const Tenants& tenants, const Preemptor& who, Time now, std::size_t limit);
  std::int64_t checks = 0;

 private:
  struct Table {
    bool built = false;
    std::uint64_t cursor = 0;
    std::array<NodeSet, kBuckets> buckets;
    std::vector<std::uint8_t> bucket_of;
    std::uint64_t used = 0;
  };
  void update(const State& state, const Tenants& tenants, const Preemptor& who, Table& table, std::uint32_t node, Time now);

  std::map<decltype(std::declval<Preemptor>().key()), Table> tables_;
  std::uint64_t uses_ = 0;
};

}  // namespace muster::engine
