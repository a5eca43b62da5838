/// Muster's own policy: event driven, indexed, with reservations and cheapest victims.
///
/// What waits is grouped by shape (the same classes of pods in the same numbers). A shape that
/// found no room is blocked as a whole until a node gains room for one of its classes; a queue that
/// is at a limit is blocked until it gives something back. So a release costs in proportion to what
/// it can enable, not to what waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/model/durations.h"
#include "engine/model/views.h"
#include "engine/muster/fragmentation.h"
#include "engine/state/node_index.h"
#include "engine/state/state.h"
#include "engine/state/tenants.h"
#include "engine/state/victim_index.h"

namespace muster::engine {

/// Order inside a queue; the least is served first.
struct Rank {
  std::int64_t low_priority = 0;  ///< Priority negated.
  bool surplus = false;           ///< Members above the minimum come after everybody's minimum.
  std::int64_t drf = 0;           ///< Dominant share in millionths, where DRF is asked for.
  std::int64_t created_us = 0;
  std::uint64_t seq = 0;

  auto operator<=>(const Rank&) const = default;
};

class Planner {
 public:
  explicit Planner(State& state) : state_(state) {}

  Plan decide(Time now);

  [[nodiscard]] std::optional<WaitView> why(GangId gang);
  [[nodiscard]] std::vector<WaitView> waiting(TenantId tenant, std::size_t limit);
  /// The queues with their limits, brought up to date.
  [[nodiscard]] const Tenants& tenants() {
    tenants_.refresh(state_);
    return tenants_;
  }
  [[nodiscard]] std::int64_t node_checks() const { return index_.checks + victims_.checks; }

 private:
  // ------------------------------------------------------------------ what waits (waiting.cc)
  struct Shape {
    std::vector<std::pair<ClassId, std::int32_t>> parts;
    bool alone = false;       ///< Depends on more than its classes: shared with no other gang.
    bool blocked = false;     ///< Found no room; waits for a gain.
    std::uint64_t gains = 0;  ///< Of all its classes when it was blocked.
    std::uint64_t log_seen = 0;
    std::int32_t waiting = 0;
    std::set<TenantId> tenants;
    Refusal refusal;
    Time refusal_at;
    bool has_refusal = false;
  };
  using ByRank = std::set<std::pair<Rank, GangId>>;
  struct Bucket {
    ByRank by_rank;
    /// Of the highest priority the shortest first, for filling gaps.
    std::set<std::tuple<std::int64_t, std::int64_t, Rank, GangId>> by_duration;
    bool over_limit = false;
    std::uint64_t limit_seen = 0;
    bool filling = false;  ///< Its head may not start before a reservation; shorter ones still may.
    bool held = false;     ///< Not even the shortest may.
    std::uint64_t held_seen = 0;
  };
  struct TenantWait {
    std::map<ShapeId, Bucket> buckets;
    bool active = false;
    bool limited = false;  ///< Listed in limited_.
  };
  struct GangWait {
    bool listed = false;  ///< In a bucket.
    TenantId tenant;
    ShapeId shape;
    Rank rank;
    std::int64_t duration_us = 0;
    Refusal refusal;
    bool told = false;  ///< The caller knows the refusal.
    std::string told_group;
    std::string told_pod;
    Time since;
    bool nominated = false;
    std::uint64_t preempt_seen = 0;
    std::uint64_t preempt_epoch =
        0;  ///< Decision in which it last got room by evictions or over nominations; once in each.
    std::uint64_t seq = 0;  ///< Of the gang the record is about; ids are used again.
  };

  void reclassify(GangId id);
  void list(GangId id);
  void unlist(GangId id);
  [[nodiscard]] Reason unready(const GangState& gang, Refusal& refusal) const;
  ShapeId shape_of(GangId id);
  void wake();
  void wake_limited();
  void activate(TenantId tenant);
  [[nodiscard]] std::uint64_t gains_of(const Shape& shape);
  [[nodiscard]] std::uint64_t released_of(TenantId tenant) const;
  struct Candidate {
    GangId gang;
    bool filling = false;  ///< The shortest of those behind a reservation, not the first.
  };
  void let_pass(const Candidate& candidate);
  [[nodiscard]] bool behind_reservation(const Rank& rank) const;
  [[nodiscard]] NodeId pick_by_end(const ClassIndex& index,
                                   const TaskClass& cls,
                                   GangId gang,
                                   Time end);
  [[nodiscard]] std::optional<Candidate> pick();
  [[nodiscard]] std::optional<Candidate> pick_again(bool& again);
  [[nodiscard]] std::optional<Candidate> pick_in(TenantId tenant);
  void update_phase(GangId id);
  [[nodiscard]] bool admitted(GangId id);

  // ------------------------------------------------------------------ placing (place.cc)
  struct Need {
    std::int32_t total = 0;
    std::vector<std::pair<std::string, std::int32_t>> roles;
  };
  [[nodiscard]] Need need_of(const GangState& gang) const;
  [[nodiscard]] std::vector<PodId> tasks_of(GangId id) const;
  [[nodiscard]] ResourceVector request_of(GangId id, const Need& need) const;
  enum class Outcome : std::uint8_t { kPlaced, kNoRoom, kHeld, kOverLimit, kTopology };
  Outcome attempt(GangId id, std::vector<PodId>& placed);
  bool place_tasks(GangId id,
                   const std::vector<PodId>& tasks,
                   const Need& need,
                   const std::vector<NodeId>* domain,
                   std::vector<PodId>& placed);
  bool place_level(GangId group,
                   std::size_t level,
                   const std::vector<NodeId>& nodes,
                   std::vector<PodId>& placed);
  bool place_inside(GangId group, const std::vector<NodeId>& nodes, std::vector<PodId>& placed);
  [[nodiscard]] bool group_runs(GangId id) const;
  [[nodiscard]] std::set<std::string> pinned(GangId group, const std::string& key) const;
  [[nodiscard]] std::vector<NodeId> nodes_for(GangId id) const;
  NodeId pick_node(PodId pod, GangId gang, const std::vector<NodeId>* domain);
  NodeId scan_node(PodId pod, GangId gang, const std::vector<NodeId>* domain);
  [[nodiscard]] std::int64_t preference(PodId pod, NodeId node) const;
  [[nodiscard]] std::vector<TopologyLevel> levels_of(const GangState& gang) const;
  void undo(std::vector<PodId>& placed);
  void emit(GangId id, const std::vector<PodId>& placed);
  bool place_at_once(GangId id);

  // ------------------------------------------------------------------ reservations (backfill.cc)
  struct Slot {
    std::uint32_t reservation = 0;
    ResourceVector amount;
    ClassId cls;  ///< Of the largest members, which all are counted in.
    std::int32_t members = 0;
  };
  struct Hold {
    GangId gang;
    Rank rank;
    Time since;
    Time start;          ///< Zero: cannot be told.
    std::string member;  ///< Key of the member that slots count.
    std::vector<NodeId> nodes;
    bool live = false;
  };
  void reserve(GangId id);
  [[nodiscard]] bool worth_more(GangId id, const Rank& rank) const;
  void fill_reservations();
  void release(std::uint32_t reservation);
  void release_of(GangId id);
  [[nodiscard]] bool holds(GangId id) const;
  [[nodiscard]] bool may_use(NodeId node,
                             const TaskClass& cls,
                             GangId gang,
                             const EvictionPlan* evictions = nullptr) const;
  [[nodiscard]] bool leaves_devices(NodeId node,
                                    const TaskClass& cls,
                                    const Slot& slot,
                                    Time then,
                                    const EvictionPlan* evictions) const;
  [[nodiscard]] Time end_of(const PodState& pod) const;
  [[nodiscard]] std::int64_t duration_of(GangId id) const;  ///< Microseconds; INT64_MAX = unknown.
  void compute(Hold& hold, std::uint32_t index);
  [[nodiscard]] std::vector<PodId> starting_with(GangId id) const;
  [[nodiscard]] std::vector<PodId> starting_below(GangId group, GangId id) const;
  [[nodiscard]] std::vector<std::vector<NodeId>> places_of(GangId id) const;
  void refresh_reservations();

  // ------------------------------------------------------------------ which victims (make_room.cc)
  struct Wish;
  [[nodiscard]] std::vector<PodId> needed(const Wish& wish) const;
  [[nodiscard]] NodeId free_place(const Wish& wish, PodId task, const EvictionPlan& plan);
  [[nodiscard]] bool may_take(const Wish& wish, PodId task, NodeId node, const EvictionPlan& plan);
  [[nodiscard]] bool tolerates_others(PodId task, NodeId node, const EvictionPlan& plan) const;
  [[nodiscard]] std::vector<NodeId> candidates(const Wish& wish, const EvictionPlan& plan);
  [[nodiscard]] std::int32_t lets_in(const Wish& wish,
                                     PodId task,
                                     const EvictionPlan& plan,
                                     std::int32_t limit) const;
  bool let_in(Wish& wish, PodId task, std::int32_t left, bool each, EvictionPlan& plan);
  bool plan_members(Wish& wish, bool each, EvictionPlan& plan);
  bool reseat(const Wish& wish,
              const EvictionPlan& old,
              const EvictionPlan& base,
              EvictionPlan& plan);
  void give_back(Wish& wish, const EvictionPlan& base, EvictionPlan& plan);
  void search_cheaper(Wish& wish, const EvictionPlan& base, EvictionPlan& plan);
  bool make_room_in_queue(Wish& wish, EvictionPlan& plan);
  bool plan_gang(Wish& wish, EvictionPlan& plan);
  [[nodiscard]] bool queue_takes(const Wish& wish, const EvictionPlan& plan) const;
  [[nodiscard]] std::vector<std::vector<NodeId>> domains_of(
      GangId group, const std::vector<NodeId>* inside) const;
  bool plan_group(GangId group, Wish& wish, const std::vector<NodeId>* inside, EvictionPlan& plan);
  bool plan_inside(GangId group, Wish& wish, const std::vector<NodeId>* inside, EvictionPlan& plan);
  bool plan_evictions(GangId root,
                      const Preemptor& who,
                      const ResourceVector* over_limit,
                      bool undone,
                      EvictionPlan& plan);

  // ------------------------------------------------------------------ evictions (preempt.cc)
  bool preempt(GangId id, bool over_limit);
  [[nodiscard]] bool family_short(GangId id, const std::vector<GangId>& starting) const;
  void tell_nomination(PodId id);
  void carry_out(GangId id, const EvictionPlan& plan, PodId any_task, bool reclaim);
  struct Lifted {
    GangId gang;
    PodId pod;
    NodeId node;
    Positions devices;
  };
  [[nodiscard]] bool may_lift(const Preemptor& who, GangId id) const;
  std::vector<Lifted> lift_lower(const Preemptor& who);
  void put_back(std::vector<Lifted> lifted, bool taken);
  [[nodiscard]] bool nominated_below(std::int32_t priority) const;
  void try_nominated();
  void try_nominated(GangId id);
  void drop_nominations(GangId id);
  void try_bereft();

  // ------------------------------------------------------------------ reasons (explain.cc)
  void refuse(GangId id, Refusal refusal);
  void tell(GangId id);
  [[nodiscard]] Refusal explain_nodes(GangId id);
  [[nodiscard]] Refusal story_of(const Shape& shape, GangId id) const;
  [[nodiscard]] bool never_preempts(GangId id) const;
  [[nodiscard]] Refusal explain_held(GangId id) const;
  [[nodiscard]] Refusal explain_leavers(GangId id) const;
  void explain_domains(GangId id, PodId pod, Refusal& refusal) const;
  [[nodiscard]] Refusal explain_limit(GangId id, const Tenants::Excess& excess);
  void add_ahead(GangId id, Refusal& refusal);

  State& state_;
  Time now_;
  Plan plan_;
  NodeIndex index_;
  VictimIndex victims_;
  Fragmentation fragmentation_;
  Tenants tenants_;
  Durations durations_;
  std::uint64_t tenants_seen_ = 0;
  std::uint64_t config_epoch_ = 0;

  std::vector<Shape> shapes_;
  std::unordered_map<std::string, ShapeId> shape_ids_;  // looked up, never iterated
  std::vector<ShapeId> blocked_;
  std::vector<TenantWait> tenant_waits_;
  std::vector<TenantId> active_;
  std::vector<TenantId> limited_;
  std::vector<GangWait> waits_;
  std::int64_t waiting_count_ = 0;
  std::set<GangId>
      parked_queue_;  ///< Refused for their queue's state; looked at again when queues change.
  std::set<GangId> unadmitted_;
  std::uint64_t admission_seen_ = 0;
  std::set<GangId> nominated_;
  bool dropped_ = false;  ///< Somebody lost the room held for it since those that were blocked were
                          ///< last looked at.
  std::set<GangId> bereft_;  ///< Nominated; a group of their family is not any more.
  std::vector<GangId> untold_;

  std::vector<Hold> holds_;
  std::vector<std::vector<Slot>> slots_;  ///< By node.
  std::uint64_t holds_version_ = 1;
  std::uint64_t holds_seen_ = 0;
  std::size_t live_holds_ = 0;
  bool holds_changed_ = false;
  std::int32_t picked_device_ =
      -1;  ///< With the node pick_node() answered last: which device a share should go to.
  bool was_held_ =
      false;  ///< In the last attempt to place or to make room a reservation was in the way.
};

}  // namespace muster::engine
