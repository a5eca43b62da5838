#include "engine/cells/search.h"

#include <fmt/core.h>

#include <algorithm>

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

void Search::refresh(const Where& where) {
  View& view = where.view;
  const bool physical = where.physical;
  // Suggestions are the call's, not the cluster's: look at all entries, but only when this call or
  // the last one had any.
  std::vector<std::int32_t>& unsuggested = view.unsuggested_entries;
  for (const std::int32_t index : unsuggested) {
    view.entry(index).unsuggested = false;
    view.touch(index);
  }
  unsuggested.clear();
  if (!suggested_.ignored()) {
    for (std::int32_t index = 0; index < static_cast<std::int32_t>(view.size()); ++index) {
      const Index cell =
          physical ? view.entry(index).cell : cells_.v(view.entry(index).cell).physical;
      if (cell == kNone || suggested_.contains(cells_.cell_nodes[at(cells_.p(cell).node_begin)]))
        continue;
      view.entry(index).unsuggested = true;
      view.touch(index);
      unsuggested.push_back(index);
    }
  }
  view.refresh([&](std::int32_t index) {
    const View::Entry& e = view.entry(index);
    View::Key key;
    key.unsuggested = e.unsuggested;
    if (physical) {
      const PhysicalCell& c = cells_.p(e.cell);
      key.bad = !c.healthy;
      key.same = c.used_opportunistic;
      key.higher = c.used_total - c.used_opportunistic;
    } else {
      const VirtualCell& c = cells_.v(e.cell);
      key.bad = !c.healthy;
      key.same = c.used_total;
    }
    return key;
  });
}

bool Search::run(const Where& where, std::int32_t priority, Placement& out, std::string& reason) {
  refresh(where);
  if (pass(where, kOpportunistic, out, reason)) return true;
  // With no one of lower rank in the view, a second pass would end like the first.
  if (priority < 0 || !where.view.used_below(priority)) return false;
  return pass(where, priority, out, reason);
}

bool Search::pass(const Where& where, std::int32_t priority, Placement& out, std::string& reason) {
  const View& view = where.view;
  const bool physical = where.physical;
  View::Walk walk(where.view, priority);
  std::int32_t loaded = -1;
  for (Placement::Member& member : out.members) {
    std::vector<Index>& leaves = physical ? member.physical : member.virt;
    leaves.clear();
    leaves.reserve(at(member.pods) * at(member.leaves));
    for (std::int32_t pod = 0; pod < member.pods; ++pod) {
      const std::int32_t entry = walk.room(member.leaves);
      if (entry < 0) {
        reason = "insufficient capacity when scheduling in " + where.name();
        return false;
      }
      const View::Entry& e = view.entry(entry);
      if (View::bad_of(e.key) || View::unsuggested_of(e.key)) {
        const Index cell = physical ? e.cell : cells_.v(e.cell).physical;
        reason = fmt::format("have to use at least one {} node {} when scheduling in {}",
                             View::bad_of(e.key) ? "bad" : "non-suggested",
                             cell == kNone ? "" : cells_.address(cell),
                             where.name());
        return false;
      }
      if (entry != loaded) {
        load_candidates(physical, e.cell, priority);
        loaded = entry;
      }
      if (!pick_leaves(physical, e.cell, member.leaves, leaves)) {
        // Only when a cell lists fewer children than its type has.
        reason = "insufficient capacity when scheduling in " + where.name();
        return false;
      }
      walk.take(member.leaves);
    }
  }
  return true;
}

void Search::load_candidates(bool physical, Index entry_cell, std::int32_t priority) {
  scratch_.candidates.clear();
  const auto collect =
      [&](const std::vector<Index>& leaves, Index begin, Index end, auto priority_of) {
        for (Index i = begin; i < end; ++i) {
          if (priority_of(leaves[at(i)]) == kFreePriority)
            scratch_.candidates.push_back(leaves[at(i)]);
        }
        if (priority < 0) return;
        for (Index i = begin; i < end; ++i) {
          const std::int32_t p = priority_of(leaves[at(i)]);
          if (p != kFreePriority && p < priority) scratch_.candidates.push_back(leaves[at(i)]);
        }
      };
  if (physical) {
    const PhysicalCell& c = cells_.p(entry_cell);
    collect(cells_.leaves, c.leaf_begin, c.leaf_end, [&](Index leaf) {
      return cells_.p(leaf).priority;
    });
  } else {
    const VirtualCell& c = cells_.v(entry_cell);
    collect(cells_.virtual_leaves, c.leaf_begin, c.leaf_end, [&](Index leaf) {
      return cells_.v(leaf).priority;
    });
  }
}

bool Search::pick_leaves(bool physical,
                         Index entry_cell,
                         std::int32_t count,
                         std::vector<Index>& out) {
  ClosestScratch& scratch = physical ? scratch_.physical : scratch_.virt;
  scratch.counts.resize(physical ? cells_.physical.size() : cells_.virtuals.size(), 0);
  const auto parent_of = [&](Index c) {
    return physical ? cells_.p(c).parent : cells_.v(c).parent;
  };
  return pick_closest(scratch_.candidates, entry_cell, count, scratch, parent_of, out);
}

}  // namespace muster::engine::cells
