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
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/cells/attempt.h"
#include "engine/cells/bookkeeping.h"
#include "engine/cells/cells.h"
#include "engine/cells/groups.h"
#include "engine/cells/request.h"
#include "engine/model/cell_config.h"
#include "engine/model/cell_request.h"

namespace muster::engine {
class Digest;
}

namespace muster::engine::cells {

struct Options {
  /// Order in which chains of one leaf type are tried.
  bool descending_chains = true;
  /// As the original: bad until reported.
  bool nodes_start_bad = true;
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

  /// Fills in how many leaf cells the pods of a tree of pod groups need; schedule() does it, too.
  Result<void> size(PodSpec& spec) const;

  /// For people, when a gang waits: what it needs, what there is, who holds it. Looks at the nodes
  /// of the view; not for hot paths.
  std::string explain(const PodSpec& spec) const;
  /// Whether the gang would find room in its virtual cluster's cells (opportunistic: anywhere) if
  /// nobody else used them.
  bool could_hold(const PodSpec& spec) const;

  const Cells& cells() const { return cells_; }
  /// Known gangs by name.
  std::vector<const Group*> groups() const { return groups_.all(); }
  const Group* find_group(const std::string& name) const { return groups_.find(name); }
  const Group& group(Index index) const { return groups_.at(index); }
  /// The gang that uses a leaf; nullptr if none.
  const Group* user_of(Index leaf) const { return groups_.user_of(cells_, leaf); }

  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

 private:
  explicit CellAllocator(Cells cells) : cells_(std::move(cells)) {}

  [[nodiscard]] Bookkeeping books() { return {cells_, groups_}; }
  Decision decide(const ScheduleRequest& request);
  Decision schedule_existing(const ScheduleRequest& request, Index group);
  Decision continue_preempting(const ScheduleRequest& request, Index group);
  Decision plan_new(const ScheduleRequest& request, bool last);
  Decision answer(const ScheduleRequest& request, Placement& placement, bool last);
  [[nodiscard]] bool still_possible(const Placement& placement) const;
  [[nodiscard]] bool has_bad_or_unsuggested(const Group& group) const;
  [[nodiscard]] Decision preempt(const std::vector<Index>& victims) const;
  [[nodiscard]] Decision bind(const PodSpec& spec,
                              const std::vector<Group::Member>& members,
                              std::int32_t slot,
                              GroupPlacement placement) const;

  Cells cells_;
  Groups groups_;
  Suggested suggested_;
  Attempt::Scratch scratch_;
};

}  // namespace muster::engine::cells
