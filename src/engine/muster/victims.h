/// Who goes when room must be made: sets of victims, what they cost, and the cheapest set for one
/// node.
///
/// A set is always closed under the rules of gangs: a member above the minimum may go alone, one
/// more takes the whole gang with it, a gang or a group of groups that goes only whole goes whole,
/// and a group of groups that would fall below its minimum of groups goes too. No set takes from a
/// queue what it is guaranteed or, when reclaiming, what it deserves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/model/ids.h"
#include "engine/state/state.h"
#include "engine/state/tenants.h"

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

/// What is compared, in this order.
struct VictimCost {
  std::int32_t budgets_broken = 0;
  std::int32_t pods = 0;
  std::int32_t top_priority = std::numeric_limits<std::int32_t>::min();
  std::int64_t work_lost_s = 0;

  auto operator<=>(const VictimCost&) const = default;
};

/// What every question about victims needs to know.
struct Asking {
  const State& state;
  const Tenants& tenants;
  Preemptor who;
  Time now;
  /// For indexes: what changes without a change of the node (amounts of queues, what was bound just
  /// now) is left out.
  bool lasting = false;
};

/// May this pod go for that preemptor, amounts of its queue apart?
bool eligible(const Asking& asking, const PodState& victim);

/// Which of two equally good victims goes first: that of the younger gang, then the member created
/// last, then the last by name, numbers in names compared as numbers (worker-10, worker-9, …,
/// master-0).
bool goes_before(const State& state, PodId a, PodId b);

/// What has been planned so far in one attempt, on top of the state.
class EvictionPlan {
 public:
  /// One of the preemptor's own pods, with the devices it will get: victims that join the plan
  /// later do not move it.
  struct Guest {
    PodId pod;
    Positions devices;
  };
  struct OnNode {
    std::vector<PodId> victims;
    std::vector<Guest> guests;

    [[nodiscard]] bool hosts(PodId pod) const {
      return std::any_of(
          guests.begin(), guests.end(), [&](const Guest& g) { return g.pod == pod; });
    }
  };
  std::map<NodeId, OnNode> nodes;
  std::set<PodId> victims;
  VictimCost cost;

  /// Adds the pod and everybody who must go with it. False when one of them may not: the plan is
  /// then of no use.
  bool add(const Asking& asking, PodId pod);
  /// Gives the pod, which must fit, its place.
  void seat(const State& state, NodeId node, PodId pod);
  /// Adds every running member of the gang, and what must go with them.
  bool add_whole(const Asking& asking, GangId gang);
  [[nodiscard]] std::int32_t evicted_of(GangId gang) const;
  /// Freed below the tenant, by victims of its own gangs and of its children's.
  [[nodiscard]] const ResourceVector& taken_from(TenantId tenant) const;

 private:
  void take(const Asking& asking, PodId pod);
  [[nodiscard]] bool amounts_hold(const Asking& asking, TenantId tenant) const;
  [[nodiscard]] std::vector<PodId> goes_with(const State& state, PodId pod) const;
  [[nodiscard]] bool runs(const State& state, GangId group, GangId without) const;

  std::map<GangId, std::int32_t> evicted_;
  std::map<TenantId, ResourceVector> taken_;
  std::map<std::string, std::int32_t> budget_used_;
};

/// The room on one node once the planned victims and those that leave already are gone and the
/// guests are in.
class Room {
 public:
  Room(const State& state, NodeId node, const EvictionPlan& plan);
  void give(PodId pod);
  void take(const TaskClass& cls, const Positions& devices);
  /// The devices that a pod of the class would get.
  [[nodiscard]] Positions pick(const TaskClass& cls) const;
  /// One of these has too little left for a pod of the class.
  [[nodiscard]] bool lacks_any(const TaskClass& cls, const Positions& devices) const;
  [[nodiscard]] bool fits(const TaskClass& cls) const;
  /// How many pods of the class fit beside each other, at most `limit`.
  [[nodiscard]] std::int32_t count(const TaskClass& cls, std::int32_t limit) const;
  /// Of each resource, how much the class lacks here; absent = enough.
  [[nodiscard]] ResourceVector lacks(const TaskClass& cls) const;

 private:
  void give_devices(const PodState& pod);

  const State& state_;
  const NodeState& node_;
  ResourceVector free_;
  std::vector<std::int32_t> devices_;  ///< Open milli of each.
  std::vector<PodId> gone_;
};

/// Room for one pod of the class on the node with nobody evicted any more, given the plan so far.
bool fits_after(const State& state, const TaskClass& cls, NodeId node, const EvictionPlan& plan);

struct VictimChoice {
  bool possible = false;
  /// On every node, when gangs go whole. Empty with `possible`: fits already.
  std::vector<PodId> victims;
  VictimCost cost;  ///< Of these victims, on top of the plan.
  /// Of the victims, the one that goes before all others; decides between equal choices.
  PodId first;
};
/// The cheapest pods to remove so that one pod of the preemptor's class fits on the node: exact
/// while a few hundred sets decide it, otherwise greedy and then pruned.
VictimChoice choose_on_node(const Asking& asking, NodeId node, const EvictionPlan& plan);

}  // namespace muster::engine
