/// The gangs that hold or reserve cells, and what their pods carry about them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "engine/cells/cells.h"
#include "engine/model/cell_request.h"

namespace muster::engine {
class Digest;
}

namespace muster::engine::cells {

struct PodRef {
  std::string uid;
  /// namespace/name
  std::string name;
  bool operator==(const PodRef&) const = default;
};

enum class GroupState : std::uint8_t { kAllocated, kPreempting, kBeingPreempted };
std::string_view to_string(GroupState state);

struct AllocatedPod {
  PodRef pod;
  BindInfo bind;
};

/// Where all pods of a gang sit, as written on each of them.
using GroupPlacement = std::shared_ptr<const std::vector<MemberPlacement>>;

/// A gang that is known: allocated, or reserving cells whose users are being preempted.
struct Group {
  struct Member {
    std::int32_t leaves = 0;
    std::vector<std::optional<AllocatedPod>> slots;
    /// Slot by slot, `leaves` each; kNone where the cell is no longer configured.
    std::vector<Index> physical;
    /// The same shape; meaningful while has_virtual.
    std::vector<Index> virt;

    /// Nobody sits there, and its cells are the gang's.
    [[nodiscard]] bool is_free(std::size_t slot) const;
  };
  std::string name;
  Index vc = kNone;
  std::int32_t priority = 0;
  bool lazy_preemption = false;
  bool ignore_suggested = true;
  bool has_virtual = false;
  /// A tree of pod groups: members are those of the spec, not one for each size.
  bool tree = false;
  GroupState state = GroupState::kAllocated;
  /// Ascending leaves, or as the tree has them.
  std::vector<Member> members;
  std::vector<PodRef> preempting_pods;
  /// Empty: not lazily preempted.
  std::string lazy_preemptor;
  Time lazy_time;
  std::int32_t allocated_pods = 0;
  /// Cache of what bind info says.
  GroupPlacement placement;
};

/// Leaf cells for all pods of a gang, not yet taken.
struct Placement {
  struct Member {
    std::int32_t leaves = 0;
    std::int32_t pods = 0;
    std::vector<Index> physical;
    std::vector<Index> virt;
  };
  /// Ascending leaves, or as the tree of pod groups has them.
  std::vector<Member> members;
  bool has_virtual = false;
};
/// The pods that the gang asks for, none of them placed.
[[nodiscard]] Placement empty_placement(const PodSpec& spec);

/// By index, which cells remember, and by name.
class Groups {
 public:
  /// A gang that is not known yet.
  Index add(const std::string& name);
  void drop(Index index);

  [[nodiscard]] Group& at(Index index) { return *groups_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const Group& at(Index index) const {
    return *groups_[static_cast<std::size_t>(index)];
  }
  /// kNone when it is not known.
  [[nodiscard]] Index index_of(const std::string& name) const;
  [[nodiscard]] const Group* find(const std::string& name) const;
  /// In order of their names.
  [[nodiscard]] std::vector<const Group*> all() const;
  /// The gang that uses a leaf; null if none does.
  [[nodiscard]] const Group* user_of(const Cells& cells, Index leaf) const;

  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

 private:
  /// Holes are in free_. References to groups stay good while others come.
  std::deque<std::optional<Group>> groups_;
  std::vector<Index> free_;
  /// Looked up, never iterated.
  std::unordered_map<std::string, Index> names_;
};

/// What the gang's pods carry. Where a cell is no longer configured, `group`'s other pods say.
[[nodiscard]] GroupPlacement describe(const Cells& cells,
                                      const std::vector<Group::Member>& members,
                                      bool has_virtual,
                                      const Group* group);
/// The same for a known gang, worked out once.
[[nodiscard]] GroupPlacement placement_of(const Cells& cells, Group& group);
/// Which pod of its gang the bound one is.
struct Slot {
  /// Among the members of its bind info.
  std::size_t member = 0;
  /// -1 when its bind info does not say.
  std::int32_t pod = -1;
};
[[nodiscard]] Slot find_slot(const BindInfo& bind);
/// The member that pods of this spec belong to; null when there is none.
[[nodiscard]] const Group::Member* find_member(const std::vector<Group::Member>& members,
                                               const PodSpec& spec);

}  // namespace muster::engine::cells
