/// CellAllocator: HiveD's decisions, pure.
///
/// A pod asks for leaf cells of a virtual cluster, alone or as one of a gang (affinity group).
/// schedule() decides for the pod's whole gang and answers one of bind, preempt, wait, error; the
/// caller then carries it out and reports back: add_allocated() when the pod is bound (or assumed
/// bound), delete_allocated() when a bound pod is gone, delete_unallocated() when a waiting pod is
/// gone, set_node() when a node's health changes. After a restart the state is rebuilt by
/// set_node() and add_allocated() of every bound pod, in any order.
///
///   CellAllocator cells = *CellAllocator::create(config, {});
///   cells.set_node("node-1", true);  // all nodes are bad until told otherwise
///   const Decision d = cells.schedule({pod, spec, Phase::kFiltering, nullptr, now});
///   if (d.kind == Decision::Kind::kBind) cells.add_allocated(pod, spec, d.bind, now);
///
/// The same calls give the same answers. One call costs what it changes, not the size of the
/// cluster: nodes are kept in order of preference (view.h), free cells in lists with positions
/// (cells.h).
///
/// Owned by one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/cells/cells.h"
#include "engine/model/cell_config.h"
#include "engine/model/cell_request.h"

namespace muster::engine {
class Digest;
}

namespace muster::engine::cells {

struct PodRef {
  std::string uid;
  std::string name;  // namespace/name
  bool operator==(const PodRef&) const = default;
};

enum class Phase : std::uint8_t { kFiltering, kPreempting };

struct Victims {
  std::string node;
  std::vector<PodRef> pods;
};

struct Decision {
  enum class Kind : std::uint8_t { kBind, kPreempt, kWait, kError };
  Kind kind = Kind::kWait;
  BindInfo bind;
  std::vector<Victims> victims;  // by node; the original asks Kubernetes for the first node only
  std::string reason;            // of a wait or an error
  std::int32_t slot = -1;        // of a bind: which pod of the gang
};

struct ScheduleRequest {
  const PodRef& pod;
  const PodSpec& spec;
  Phase phase = Phase::kFiltering;
  const std::vector<std::string>* suggested = nullptr;  // nullptr: all
  Time now;
};

enum class GroupState : std::uint8_t { kAllocated, kPreempting, kBeingPreempted };
std::string_view to_string(GroupState state);

struct AllocatedPod {
  PodRef pod;
  BindInfo bind;
};

/// A gang that is known: allocated, or reserving cells whose users are being preempted.
struct Group {
  struct Member {
    std::int32_t leaves = 0;
    std::vector<std::optional<AllocatedPod>> slots;
    std::vector<Index>
        physical;  // slot by slot, `leaves` each; kNone where the cell is no longer configured
    std::vector<Index> virt;  // same shape; meaningful while has_virtual
  };
  std::string name;
  Index vc = kNone;
  std::int32_t priority = 0;
  bool lazy_preemption = false;
  bool ignore_suggested = true;
  bool has_virtual = false;
  GroupState state = GroupState::kAllocated;
  std::vector<Member> members;  // ascending leaves
  std::vector<PodRef> preempting_pods;
  std::string lazy_preemptor;  // empty: not lazily preempted
  Time lazy_time;
  std::int32_t allocated_pods = 0;
  std::shared_ptr<const std::vector<MemberPlacement>> placement;  // cache of what bind info says
};

struct Options {
  bool descending_chains = true;  // order in which chains of one leaf type are tried
  bool nodes_start_bad = true;    // as the original: bad until reported
};

class CellAllocator {
 public:
  static Result<CellAllocator> create(const Config& config, const Options& options);

  Decision schedule(const ScheduleRequest& request);
  /// A pod was bound by our decision, or was found bound at start. An error means that the pod was
  /// ignored.
  Result<void> add_allocated(const PodRef& pod,
                             const PodSpec& spec,
                             const BindInfo& bind,
                             Time now);
  Result<void> delete_allocated(const PodRef& pod, const PodSpec& spec, const BindInfo& bind);
  /// A pod that was never bound is gone; cancels its gang's preemption with its last pod.
  void delete_unallocated(const PodRef& pod, const std::string& group);
  /// False: no such node, or nothing new.
  bool set_node(const std::string& node, bool healthy);

  /// For people, when a gang waits: what it needs, what there is, who holds it. Looks at the nodes
  /// of the view; not for hot paths.
  std::string explain(const PodSpec& spec) const;
  /// Whether the gang would find room in its virtual cluster's cells (opportunistic: anywhere) if
  /// nobody else used them.
  bool could_hold(const PodSpec& spec) const;

  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

  const Cells& cells() const { return cells_; }
  /// Known gangs by name.
  std::vector<const Group*> groups() const;
  const Group* find_group(const std::string& name) const;
  const Group& group(Index index) const { return *groups_[static_cast<std::size_t>(index)]; }
  /// The gang that uses a leaf, and the one that has reserved it; nullptr if none.
  const Group* user_of(Index leaf) const;

 private:
  explicit CellAllocator(Cells cells) : cells_(std::move(cells)) {}

  struct Placement {
    struct Member {
      std::int32_t leaves = 0;
      std::int32_t pods = 0;
      std::vector<Index> physical, virt;
    };
    std::vector<Member> members;  // ascending leaves
    bool has_virtual = false;
  };

  // schedule.cc
  Decision schedule_existing(const ScheduleRequest& request, Index group, bool& gone);
  Decision schedule_new(const ScheduleRequest& request);
  bool attempt_leaf_type(const ScheduleRequest& request,
                         Index leaf_type,
                         Placement& out,
                         std::string& reason,
                         bool& vc_has_type);
  bool attempt_chain(const ScheduleRequest& request,
                     Index vc,
                     Index chain,
                     const PinnedHolding* pinned,
                     Placement& out,
                     std::string& reason);
  Decision answer(const ScheduleRequest& request, const Placement& placement, bool last);
  Decision plan_new(const ScheduleRequest& request, bool last);
  bool still_possible(const Placement& placement) const;
  Decision bind_or_preempt(const ScheduleRequest& request,
                           const std::vector<Group::Member>& members,
                           std::int32_t slot,
                           std::shared_ptr<const std::vector<MemberPlacement>> placement,
                           const std::vector<Index>& victims);
  Placement empty_placement(const PodSpec& spec) const;
  void collect_victims(const std::vector<Index>& leaves,
                       std::vector<Index>& victims,
                       std::vector<Index>& preemptors) const;
  bool has_bad_or_unsuggested(const Group& group) const;

  // placement.cc
  bool search_view(View& view,
                   bool physical,
                   const ScheduleRequest& request,
                   Placement& out,
                   std::string& reason,
                   const std::string& where);
  bool search_pass(View& view,
                   bool physical,
                   std::int32_t priority,
                   Placement& out,
                   std::string& reason,
                   const std::string& where);
  void refresh_view(View& view, bool physical);
  bool pick_leaves(bool physical,
                   Index entry_cell,
                   std::int32_t priority,
                   std::int32_t count,
                   std::vector<Index>& out);
  void load_candidates(bool physical, Index entry_cell, std::int32_t priority);

  // mapping.cc
  struct Vertex {
    Index cell = kNone;
    Index first_child = kNone, last_child = kNone, next = kNone;
    std::int32_t children = 0;
    Index physical = kNone;
  };
  bool map_placement(const ScheduleRequest& request,
                     Index chain,
                     Placement& placement,
                     std::string& reason);
  bool map_virtual(Index chain, Placement& placement);
  Index add_vertex(Index virtual_cell);
  void append_child(Index parent, Index child);
  bool usable(Index cell) const;
  bool fits(Index vertex, Index candidate);
  bool map_siblings(Index first_vertex, std::int32_t count, const std::vector<Index>& candidates);
  bool match_siblings(const std::vector<Index>& vertices, const std::vector<Index>& usable_cells);
  Index map_one(Index vertex, const std::vector<Index>& candidates);
  bool buddy(Index vertex,
             std::int32_t level,
             std::int32_t want,
             std::vector<std::vector<Index>>& free);
  bool relaxed_buddy(Index vertex,
                     Index chain,
                     std::int32_t want,
                     std::vector<std::vector<Index>>& free,
                     const std::vector<std::int32_t>& all_vc_free);
  /// Takes `cell` out of the free cell of level `from` it lies in; its siblings on the way become
  /// free cells.
  void split_to(Index cell, std::int32_t from, std::vector<std::vector<Index>>& free) const;
  std::string virtual_placement_json(const Placement& placement) const;

  // explain.cc
  struct Place {
    const View* view;
    bool physical;
    std::string where;
  };
  /// The views a gang may be placed on.
  std::vector<Place> places(const PodSpec& spec) const;
  /// One cell of a view with the room in it.
  struct Room {
    Index cell;
    std::int32_t total, used, free, taken = 0;
  };
  std::vector<Index> to_be_freed(std::vector<Room> rooms, std::vector<std::int32_t> pods) const;
  void note_holders(const Place& place, Index cell, std::vector<std::string>& names) const;
  std::string explain_place(const Place& place, const std::vector<std::int32_t>& pods) const;

  // groups.cc
  Index new_group(const PodSpec& spec, GroupState state);
  void drop_group(Index group);
  Index rebind(Index leaf, Index virtual_leaf, std::int32_t priority);
  bool create_preempting(const ScheduleRequest& request, const Placement& placement);
  void cancel_preempting(Index group);
  Index create_allocated(const PodSpec& spec, const BindInfo& bind, Time now);
  Index find_virtual(const Group& group,
                     const PodSpec& spec,
                     Index leaf,
                     const std::string& preassigned_type,
                     bool& downgrade);
  Index inverse_map(Index physical_cell,
                    const std::vector<Index>& list,
                    const RootList* roots,
                    std::int32_t preassigned_level,
                    std::int32_t priority,
                    Index vc,
                    bool healthy);
  Index choose_virtual(std::span<const Index> list,
                       const RootList* roots,
                       std::int32_t priority) const;
  void lazy_preempt(Index group, const std::string& preemptor, Time now);
  void revert_lazy(Index group, std::vector<std::vector<Index>> virt);
  void lazy_preempt_inside(Index virtual_cell, const std::string& preemptor, Time now);
  void delete_group_cells(Index group);
  std::shared_ptr<const std::vector<MemberPlacement>> placement_of(Index group);
  std::shared_ptr<const std::vector<MemberPlacement>> describe(
      const std::vector<Group::Member>& members, bool has_virtual, const Group* group) const;
  static std::int32_t find_slot(const BindInfo& bind);
  Index group_index(const std::string& name) const;

  bool is_suggested(Index node) const {
    return ignore_suggested_ || suggested_stamp_[static_cast<std::size_t>(node)] == stamp_;
  }
  void load_suggested(const ScheduleRequest& request);

  Cells cells_;
  // By index; holes are in free_groups_. References to groups stay good while others come.
  std::deque<std::optional<Group>> groups_;
  std::vector<Index> free_groups_;
  std::unordered_map<std::string, Index> group_names_;  // looked up, never iterated

  // Scratch of one call, kept to save allocations.
  bool ignore_suggested_ = true;
  std::uint32_t stamp_ = 0;
  std::vector<std::uint32_t> suggested_stamp_;
  std::vector<Index> candidates_, ancestors_;
  std::vector<std::int32_t> counts_physical_, counts_virtual_;
  std::vector<Vertex> vertices_;
  std::vector<Index> vertex_of_;
  std::vector<std::vector<Index>> free_scratch_;
};

}  // namespace muster::engine::cells
