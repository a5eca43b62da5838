/// How gangs take cells, reserve them, lose them, and are rebuilt from what their pods carry.
///
/// Made for one call. Always: a leaf's using_group and reserving_group name gangs that list the leaf,
/// a leaf is Used or Reserving exactly while it has a user, and Reserved or Reserving exactly while
/// it is reserved.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "engine/cells/cells.h"
#include "engine/cells/groups.h"
#include "engine/cells/promises.h"

namespace muster::engine::cells {

class Bookkeeping {
 public:
  Bookkeeping(Cells& cells, Groups& groups) : cells_(cells), groups_(groups), promises_(cells) {}

  /// Reserves the placement for a gang while those who use it are preempted. False: a cell of it is
  /// not guaranteed any more, and nothing was changed.
  bool reserve(const PodRef& pod, const PodSpec& spec, const Placement& placement);
  /// Gives up what the gang has reserved, and forgets the gang.
  void cancel(Index group);
  /// The gang's first pod is bound: what it has reserved it uses.
  void take_reserved(Index group);
  /// A gang of which a pod is found bound, in that place of its bind info.
  Index restore(const PodSpec& spec, const BindInfo& bind, const Slot& found, Time now);
  /// A pod of a known gang is found bound where the gang has no cells (any more).
  void restore_place(
      Index group, const PodSpec& spec, const BindInfo& bind, const Slot& found, Time now);
  /// Gives up what the gang uses, and forgets the gang.
  void release(Index group);

  /// The gang keeps its cells and loses their guarantee.
  void lazy_preempt(Index group, const std::string& preemptor, Time now);
  /// Takes that back; `virt` is what each member had.
  void revert_lazy(Index group, std::vector<std::vector<Index>> virt);

 private:
  /// What one found gang is restored with, and whether its guarantee is lost.
  struct Restoring {
    Index group = kNone;
    const PodSpec& spec;
    Index chain = kNone;
    Time now;
    bool downgrade = false;
    /// A pod sits in the place: a gang that only keeps it for one of its pods loses it.
    bool sits = false;
  };

  Index add_group(const PodSpec& spec, GroupState state);
  bool reserve_leaf(Index group, Group::Member& member, std::size_t slot);
  void give_back(Index leaf, std::vector<Index>& downgraded);
  bool take_kept_place(Index leaf);
  Group::Member& member_of(Group& group, const MemberPlacement& placement, std::size_t number);
  void restore_pod(Restoring& restoring,
                   Group::Member& member,
                   std::size_t pod,
                   const PodPlacement& place);
  [[nodiscard]] Index promised_to(Restoring& restoring,
                                  Index leaf,
                                  const PodPlacement& place,
                                  std::size_t i);
  void lazy_preempt_inside(Index virtual_cell, const std::string& preemptor, Time now);

  Cells& cells_;
  Groups& groups_;
  Promises promises_;
};

}  // namespace muster::engine::cells
