/// Why something waits, with numbers. Texts for node causes are those of kube-scheduler, so
/// `kubectl describe` reads as people know it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace muster::engine {

enum class Reason : std::uint8_t {
  kNone,
  kNotEnoughMembers,  ///< Fewer pods exist than the gang (or a role) needs.
  kGated,             ///< Scheduling gates, suspended, or its group does not exist yet.
  kGroupMissing,
  kParentMissing,
  kQueueMissing,
  kQueueNotOpen,
  kNotAdmitted,         ///< minResources do not fit into the queue (Volcano's Pending).
  kTenantOverLimit,     ///< Capability or quota of the queue or an ancestor.
  kTenantOverDeserved,  ///< Proportion's share used up.
  kGuaranteedToOthers,  ///< Free, but withheld for other queues' guarantees.
  kNoNodeFits,          ///< Too little room now.
  kNeverFits,           ///< No node could hold a member even when empty.
  kTopology,            ///< No single domain has room for all members.
  kBehindOthers,        ///< A first-in-first-out queue, and others are ahead.
  kHeldForReservation,  ///< Room is free, but starting now would delay those ahead.
  kWaitingForVictims,   ///< Evictions are under way; its room is held.
  kInvalidGroup,  ///< Members disagree with their group (priority, policy), or a cycle of parents.
};
std::string_view reason_name(Reason reason);  ///< "NotEnoughMembers" …

/// One cause over the nodes: "3 Insufficient nvidia.com/gpu".
struct NodeCount {
  std::string cause;
  std::int32_t nodes = 0;

  bool operator==(const NodeCount&) const = default;
};

/// How much is missing of what. Outer units (cpu milli-cores, others units).
struct Shortage {
  std::string resource;
  std::int64_t wanted = 0;  ///< For one member (node causes), or for the whole gang (queue limits).
  /// Most free on one node (kNeverFits: most there is on one), or left under the limit.
  std::int64_t available = 0;
  std::int64_t limit = 0;  ///< The queue's limit; 0 for node causes.

  bool operator==(const Shortage&) const = default;
};

struct Refusal {
  static constexpr std::int32_t kAheadCounted = 100;

  Reason reason = Reason::kNone;
  std::int32_t nodes_total = 0;
  std::vector<NodeCount> by_cause;  ///< Sorted by text.
  std::vector<Shortage> shortages;
  std::string queue;  ///< The queue (or ancestor) whose limit refused.
  /// For kNotEnoughMembers: wanted and found; for kNoNodeFits: placeable.
  std::int32_t members_wanted = 0;
  std::int32_t members_found = 0;
  std::vector<std::string> ahead;  ///< Keys of the first few that are served before it.
  std::int32_t ahead_count = 0;    ///< Counted up to kAheadCounted.
  std::optional<Time> expected_start;
  /// What the reason is about: the role that lacks members, the group that is missing, the domain
  /// that has most room, the holder of the reservation, a victim that has yet to leave.
  std::string subject;
  /// When the reservation in the way starts, or the last victim must have left.
  std::optional<Time> until;
  /// Why eviction did not help, in kube-scheduler's words; ends with a full stop.
  std::string preemption;

  /// The story in the policy's own words, where it has better ones than the reason's (cells); ends
  /// without a full stop.
  std::string words;

  /// Same story? Numbers that move all the time (ahead, expected start) do not make a new one.
  [[nodiscard]] bool same_story(const Refusal& other) const;
  bool operator==(const Refusal&) const = default;
};

/// "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable." — the
/// FailedScheduling text.
std::string node_message(const Refusal& refusal);
/// One such sentence: "0/3 nodes are available: 1 …, 2 …."
std::string none_available(std::int32_t nodes_total, const std::vector<NodeCount>& by_cause);
/// One sentence for people and status messages; ends without a full stop.
std::string describe(const Refusal& refusal);

}  // namespace muster::engine
