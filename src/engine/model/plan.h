/// What the engine wants done. The caller carries it out and reports failures; everything in a plan
/// counts as done for the engine the moment it is returned.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/model/cell_request.h"
#include "engine/model/reason.h"

namespace muster::engine {

struct Bind {
  std::string pod;  ///< key
  std::string uid;
  std::string node;
  std::vector<std::int32_t> devices;    ///< Device indexes on that node.
  std::int32_t device_share_milli = 0;  ///< 1..999 when it gets a share of devices[0].
  /// Placed by cells: what the pod is to carry besides. Null: by nodes.
  std::shared_ptr<const cells::Seat> cells;

  bool operator==(const Bind& other) const {
    const bool same_cells =
        cells == other.cells || (cells && other.cells && *cells == *other.cells);
    return same_cells && pod == other.pod && uid == other.uid && node == other.node &&
           devices == other.devices && device_share_milli == other.device_share_milli;
  }
};

enum class EvictKind : std::uint8_t { kPreempt, kReclaim };

struct Evict {
  std::string pod;
  std::string uid;
  std::string node;
  EvictKind kind = EvictKind::kPreempt;
  std::string for_whom;      ///< Key of the gang or pod that gets the room.
  std::string for_whom_pod;  ///< One member of it.
  std::string message;       ///< "Preempted by ns/name on node N"

  bool operator==(const Evict&) const = default;
};

/// The room on `node` is held for `pod` until its victims are gone. Empty node: the nomination is
/// over.
struct Nominate {
  std::string pod;
  std::string node;
  std::vector<std::int32_t> devices;  ///< Device indexes that are held for it.

  bool operator==(const Nominate&) const = default;
};

/// A gang or a pod without a gang waits, and why. Listed when the story changed. Reason kNone:
/// waits no more without having been bound by this plan (it went away, or was bound elsewhere).
struct Wait {
  std::string group;  ///< Key of the group; empty for a pod without one.
  std::string pod;    ///< Key of the pod; empty for a group.
  Refusal refusal;
};

enum class GroupPhase : std::uint8_t { kPending, kInqueue, kRunning, kUnknown, kCompleted };

struct PhaseChange {
  std::string group;
  GroupPhase phase = GroupPhase::kPending;

  bool operator==(const PhaseChange&) const = default;
};

struct Reservation {
  std::string holder;  ///< group or pod key
  Time start;          ///< Expected start; zero = unknown.
  std::vector<std::string> nodes;
  std::string member;                 ///< Key of one of the largest members, which are counted:
  std::vector<std::int32_t> members;  ///< How many like it each of the nodes is to take.
};

struct Plan {
  std::vector<Bind> binds;
  std::vector<Evict> evicts;
  std::vector<Nominate> nominations;
  std::vector<Wait> waits;
  std::vector<PhaseChange> phases;
  bool reservations_changed = false;
  std::vector<Reservation> reservations;  ///< When they changed: all that hold now.
  std::optional<Time> wake;               ///< Call decide() again then, if nothing happens before.

  /// True when there is nothing to carry out.
  [[nodiscard]] bool empty() const {
    return binds.empty() && evicts.empty() && nominations.empty() && waits.empty() &&
           phases.empty();
  }
};

std::string_view phase_name(GroupPhase phase);  ///< "Pending", "Inqueue" …

}  // namespace muster::engine
