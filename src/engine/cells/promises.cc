#include "engine/cells/promises.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Index Promises::renew(Index leaf, Index virtual_leaf, std::int32_t priority) {
  if (virtual_leaf == kNone || cells_.can_bind(leaf, virtual_leaf)) return virtual_leaf;
  // Meanwhile the virtual cell was doomed: bound to a bad cell in advance. Another of its kind will
  // do.
  const VirtualCell& root = cells_.v(cells_.v(virtual_leaf).root);
  if (root.root_position < 0) return kNone;
  const RootList& roots = cells_.find_holding(root.vc, root.chain)->roots[at(root.level)];
  const Index other = inverse(leaf,
                              {.list = roots.cells,
                               .roots = &roots,
                               .level = root.level,
                               .priority = priority,
                               .vc = root.vc,
                               .healthy = cells_.p(leaf).healthy});
  return other != kNone && cells_.v(other).priority == kFreePriority && cells_.can_bind(leaf, other)
             ? other
             : kNone;
}

Index Promises::choose(std::span<const Index> list,
                       const RootList* roots,
                       std::int32_t priority) const {
  if (roots != nullptr) {
    const Index unbound = roots->first_unbound();
    if (unbound != kNone) return unbound;
  }
  Index lowest = kNone;
  for (const Index cell : list) {
    const VirtualCell& c = cells_.v(cell);
    if (c.priority == kFreePriority) {
      if (c.physical == kNone) return cell;
      continue;  // doomed
    }
    if (c.priority < priority && (lowest == kNone || c.priority < cells_.v(lowest).priority))
      lowest = cell;
  }
  return lowest;
}

Index Promises::inverse(Index physical_cell, const Wanted& wanted) {
  const PhysicalCell& c = cells_.p(physical_cell);
  if (c.virt != kNone) {
    const VirtualCell& bound = cells_.v(c.virt);
    if (bound.vc == wanted.vc && cells_.v(bound.root).level == wanted.level) return c.virt;
    // Bound for another promise. If only because it is bad, that one can be shown another bad
    // cell.
    const Index root = cells_.v(bound.root).physical;
    const bool idle = cells_.v(bound.root).priority < 0 && cells_.in_list(root, kDoomedList);
    // Within one virtual cluster only for a promise that is free: sharing the other is better
    // than losing the guarantee.
    const bool better =
        bound.vc != wanted.vc || choose(wanted.list, wanted.roots, wanted.priority) != kNone;
    if (!idle || !better) return bound.vc == wanted.vc ? c.virt : kNone;
    cells_.release_doomed(root);
  }
  if (cells_.p(physical_cell).level == wanted.level) return inverse_at_level(physical_cell, wanted);
  if (c.parent == kNone) return kNone;
  const Index parent = inverse(c.parent, wanted);
  if (parent == kNone) return kNone;
  return choose(cells_.children(cells_.v(parent)), nullptr, wanted.priority);
}

/// The cell is as large as the promise.
Index Promises::inverse_at_level(Index physical_cell, const Wanted& wanted) {
  const Index chosen = choose(wanted.list, wanted.roots, wanted.priority);
  if (wanted.roots == nullptr || !wanted.healthy ||
      (chosen != kNone && cells_.v(chosen).priority == kFreePriority))
    return chosen;
  // A cell of several nodes, bad in part, may be used through its healthy ones while the promise
  // it answers was already counted as lost with another bad cell. Any bad cell will do for that.
  const Holding* holding = cells_.find_holding(wanted.vc, cells_.p(physical_cell).chain);
  for (const Index doomed : holding->doomed[at(wanted.level)]) {
    if (cells_.v(cells_.p(doomed).virt).priority >= 0) continue;
    cells_.release_doomed(doomed);
    return wanted.roots->first_unbound();
  }
  return chosen;
}

Index Promises::find(const Group& group,
                     const PodSpec& spec,
                     Index leaf,
                     const std::string& preassigned_type) {
  const Chain& chain = cells_.chain(cells_.p(leaf).chain);
  std::int32_t level = 0;
  for (std::int32_t l = 1; l <= chain.top; ++l) {
    if (cells_.type(chain.types[at(l)]).name == preassigned_type) level = l;
  }
  if (level == 0) return kNone;
  const std::vector<Index>* list = nullptr;
  const RootList* roots = nullptr;
  if (!spec.pinned_cell.empty()) {
    for (const PinnedHolding& pinned : cells_.vc(group.vc).pinned) {
      if (pinned.id == spec.pinned_cell && at(level) < pinned.full.size())
        list = &pinned.full[at(level)];
    }
  } else if (const Holding* holding = cells_.find_holding(group.vc, cells_.p(leaf).chain);
             holding != nullptr && holding->has_cells) {
    roots = &holding->roots[at(level)];
    list = &roots->cells;
  }
  if (list == nullptr) return kNone;
  return inverse(leaf,
                 {.list = *list,
                  .roots = roots,
                  .level = level,
                  .priority = spec.priority,
                  .vc = group.vc,
                  .healthy = cells_.p(leaf).healthy});
}

}  // namespace muster::engine::cells
