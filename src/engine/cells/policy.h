/// HiveD's cells as a policy: in a cluster that has them, devices are handed out by virtual cluster
/// alone; what asks for none is left to the policy beside it (Muster's own rules or Volcano's).
///
/// A pod asks with a spec of its own (HiveD's annotation), or with nothing but its devices, its gang
/// and its queue: then its spec is made here (`derived`) and goes out with its binding. What must
/// survive a restart is written on pods; the rest is worked out again from their notes.
///
/// Order: priority, then the share of the queue, then age. A gang that its virtual cluster could
/// hold but that has waited for long is given a reservation: later gangs of the virtual cluster
/// start only if they end before anybody there does.
///
/// Events are noted as they come and looked at in decide(), when nodes, queues and gangs that arrive
/// with a pod are known, whatever their order was.
///
/// One piece: it is the policy's interface (half of the methods) and the steps of one decision.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/cells/allocator.h"
#include "engine/cells/tenants.h"
#include "engine/policy.h"

namespace muster::engine::cells {

class CellPolicy final : public Policy {
 public:
  /// The state's nodes and pods are taken in; from now on it says of pods that cells place them.
  CellPolicy(State& state, std::unique_ptr<Policy> rest, CellAllocator allocator);

  /// Takes a new configuration over: running pods keep what they hold where the new cells still have
  /// it. The old one stays when the new one is wrong.
  Result<void> reconfigure(const Config& config, Time now);

  void apply(const Event& event) override;
  [[nodiscard]] Plan decide(Time now) override;
  [[nodiscard]] std::optional<WaitView> why(GangId gang) override;
  [[nodiscard]] std::vector<WaitView> waiting(TenantId tenant, std::size_t limit) override;
  [[nodiscard]] std::vector<QueueView> queues(std::span<const TenantId> tenants) override;
  void count(Stats& stats) const override { rest_->count(stats); }
  [[nodiscard]] std::unique_ptr<Policy> clone(State& state) const override;
  void digest(Digest& digest) const override;

 private:
  /// A pod that cells place or have placed.
  struct Member {
    PodRef ref;
    PodSpec spec;
    std::string spec_error;  ///< A spec that cannot be read is told to its owner.
    bool derived = false;
    TenantId tenant;
    std::string gang;              ///< Key of its group; empty: alone.
    Time created, ends;            ///< ends: zero while unknown.
    Duration expected_duration{};  ///< Zero: unknown.
    std::optional<BindInfo> bound;
    std::int64_t counted = 0;       ///< Devices counted for its queue, that has them or is to.
    bool counted_as_spare = false;  ///< Its priority was an opportunistic one then.
    Refusal refusal;                ///< Why it waits, as last looked at.
    // An eviction that failed is tried again later and later.
    std::int32_t evict_failures = 0;
    std::optional<Time> spared_until;
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
  struct Hold {
    std::string gang;
    std::optional<Time> until;  ///< Nobody there ends before; unknown: all are held back.
    bool operator==(const Hold&) const = default;
  };
  /// What is remembered of a group, to see that it changed.
  struct GangSeen {
    std::uint64_t seq = 0;
    TenantId tenant;
    std::int32_t min_member = 0, priority = 0;
    bool hold = false;
    Time created;
    Duration expected_duration{};
    bool operator==(const GangSeen&) const = default;
  };

  CellPolicy(const CellPolicy& other, State& state);

  // What is seen (policy.cc).
  void on(const PodUpsert& event);
  void on(const NodeUpsert& event);
  void on(const GroupUpsert& event);
  void on(const BindResult& event);
  void on(const EvictResult& event);
  void node_seen(const std::string& name, bool healthy);
  void take_in(Time now);
  [[nodiscard]] bool concerns(PodId pod) const;
  void see(PodId pod, const std::vector<std::int32_t>& devices, Time now);
  void read(Member& member, const PodState& pod) const;
  void add_bound(Member& member, BindInfo bind, Time now);
  void add_found(Member& member,
                 const std::string& node,
                 const std::vector<std::int32_t>& devices,
                 Time now);
  void charge(Member& member, std::int64_t devices);
  void release(Member& member);
  void forget(const std::string& key);

  // What is decided (decide.cc).
  void place_waiting(Time now, Plan& plan);
  void give_up_reserved();
  Decision ask(const Member& member, Phase phase, Time now);
  void charge_kept();
  [[nodiscard]] static std::string joins(const Member& member);
  [[nodiscard]] std::int32_t standing(const Member& member) const;
  void try_member(const std::string& key, Member& member, Time now, Plan& plan);
  void bind(const std::string& key, Member& member, BindInfo seat, Time now, Plan& plan);
  [[nodiscard]] std::optional<Refusal> occupied(const Member& member, const BindInfo& seat) const;
  void evict(const std::string& key, const Decision& decision, Time now, Plan& plan);
  /// A derived pod's gang as its pods are now, or as the allocator has it.
  void settle_gang(Member& member) const;
  [[nodiscard]] std::optional<Refusal> not_for_cells(const std::string& key,
                                                     const Member& member) const;
  [[nodiscard]] std::optional<Refusal> unusable(NodeId id, const std::string& name) const;
  [[nodiscard]] std::optional<Refusal> unready(const Member& member) const;
  [[nodiscard]] std::optional<Refusal> held_back(const Member& member, Time now) const;
  [[nodiscard]] std::optional<Refusal> kept_for_another(const Member& member, Time now) const;
  /// Opportunistic gangs of a queue at its limit make room for one that is guaranteed its cells.
  bool make_room_in_queue(const std::string& key, const Member& member, Time now, Plan& plan);
  void wait_for_cells(Member& member, const std::string& reason);
  void reserve(const Member& member, Time now);
  void wake_at(Time time) { due_ = due_ && *due_ < time ? *due_ : time; }
  void tell(const std::vector<Rank>& order, Plan& plan);
  void publish(Plan& plan, const Plan& rest);
  [[nodiscard]] bool told_about(const Wait& wait) const;
  [[nodiscard]] std::string virtual_clusters() const;
  [[nodiscard]] GangId gang_of(const std::string& pod) const;

  State& state_;
  std::unique_ptr<Policy> rest_;
  CellAllocator allocator_;
  CellTenants tenants_;
  std::map<std::string, Member> members_;  ///< By key of the pod.
  std::int64_t spare_ = 0;                 ///< Devices of opportunistic members.
  std::set<std::string> waiting_;
  /// Pods that something happened to since the last decision, with their devices if told.
  std::map<std::string, std::vector<std::int32_t>> seen_;
  std::vector<GangSeen> gangs_;              ///< By gang.
  std::map<std::string, std::string> told_;  ///< By group, or pod without one: what it was told.
  std::map<std::string, Hold> holds_;        ///< By virtual cluster, of the last round.
  std::vector<Reservation> rest_holds_;      ///< Those of the policy beside.
  std::map<std::string, std::string> explained_;  ///< By gang, of the last round.
  /// Where gangs hold cells for pods that wait until the node is well again.
  std::set<std::string> awaited_nodes_;
  std::optional<Time> due_;  ///< A round is due then though nothing happens.
  bool dirty_ = true;
};

/// "namespace/name" of a group's key, as people know it and as its cells are labelled.
std::string gang_name(const std::string& group_key);

}  // namespace muster::engine::cells
