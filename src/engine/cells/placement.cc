// Placement of a gang on the nodes of a view: inside a virtual cluster, a pinned cell, or anywhere.

#include <fmt/core.h>

#include <algorithm>

#include "engine/cells/allocator.h"

namespace muster::engine::cells {

namespace {
std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
}  // namespace

void CellAllocator::load_suggested(const ScheduleRequest& request) {
  ignore_suggested_ = request.spec.ignore_suggested || request.suggested == nullptr;
  if (ignore_suggested_) return;
  if (suggested_stamp_.size() < cells_.nodes.size())
    suggested_stamp_.resize(cells_.nodes.size(), 0);
  ++stamp_;
  for (const std::string& name : *request.suggested) {
    const auto found = cells_.node_index.find(name);
    if (found != cells_.node_index.end()) suggested_stamp_[at(found->second)] = stamp_;
  }
}

void CellAllocator::refresh_view(View& view, bool physical) {
  // Suggestions are the call's, not the cluster's: look at all entries, but only when this call or
  // the last one had any.
  std::vector<std::int32_t>& unsuggested = view.unsuggested_entries;
  for (const std::int32_t index : unsuggested) {
    view.entry(index).unsuggested = false;
    view.touch(index);
  }
  unsuggested.clear();
  if (!ignore_suggested_) {
    for (std::int32_t index = 0; index < static_cast<std::int32_t>(view.size()); ++index) {
      const Index cell =
          physical ? view.entry(index).cell : cells_.v(view.entry(index).cell).physical;
      if (cell == kNone || is_suggested(cells_.cell_nodes[at(cells_.p(cell).node_begin)])) continue;
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

bool CellAllocator::search_view(View& view,
                                bool physical,
                                const ScheduleRequest& request,
                                Placement& out,
                                std::string& reason,
                                const std::string& where) {
  refresh_view(view, physical);
  if (search_pass(view, physical, kOpportunistic, out, reason, where)) return true;
  // With no one of lower rank in the view, a second pass would end like the first.
  if (request.spec.priority < 0 || !view.used_below(request.spec.priority)) return false;
  return search_pass(view, physical, request.spec.priority, out, reason, where);
}

bool CellAllocator::search_pass(View& view,
                                bool physical,
                                std::int32_t priority,
                                Placement& out,
                                std::string& reason,
                                const std::string& where) {
  View::Walk walk(view, priority);
  std::int32_t loaded = -1;
  for (Placement::Member& member : out.members) {
    std::vector<Index>& leaves = physical ? member.physical : member.virt;
    leaves.clear();
    for (std::int32_t pod = 0; pod < member.pods; ++pod) {
      const std::int32_t entry = walk.room(member.leaves);
      if (entry < 0) {
        reason = fmt::format("insufficient capacity when scheduling in {}", where);
        return false;
      }
      const View::Entry& e = view.entry(entry);
      if (View::bad_of(e.key) || View::unsuggested_of(e.key)) {
        const Index cell = physical ? e.cell : cells_.v(e.cell).physical;
        reason = fmt::format("have to use at least one {} node {} when scheduling in {}",
                             View::bad_of(e.key) ? "bad" : "non-suggested",
                             cell == kNone ? "" : cells_.address(cell),
                             where);
        return false;
      }
      if (entry != loaded) {
        load_candidates(physical, e.cell, priority);
        loaded = entry;
      }
      if (!pick_leaves(physical, e.cell, priority, member.leaves, leaves)) {
        // Only when a cell lists fewer children than its type has.
        reason = fmt::format("insufficient capacity when scheduling in {}", where);
        return false;
      }
      walk.take(member.leaves);
    }
  }
  return true;
}

void CellAllocator::load_candidates(bool physical, Index entry_cell, std::int32_t priority) {
  candidates_.clear();
  const auto collect =
      [&](const std::vector<Index>& leaves, Index begin, Index end, auto priority_of) {
        for (Index i = begin; i < end; ++i) {
          if (priority_of(leaves[at(i)]) == kFreePriority) candidates_.push_back(leaves[at(i)]);
        }
        if (priority < 0) return;
        for (Index i = begin; i < end; ++i) {
          const std::int32_t p = priority_of(leaves[at(i)]);
          if (p != kFreePriority && p < priority) candidates_.push_back(leaves[at(i)]);
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

bool CellAllocator::pick_leaves(
    bool physical, Index entry_cell, std::int32_t, std::int32_t count, std::vector<Index>& out) {
  // The first set, in candidate order, whose lowest common ancestor is as low as any: climb level
  // by level until some cell holds enough candidates, and among those take the cell of the earliest
  // candidate.
  const auto n = candidates_.size();
  if (n < at(count)) return false;
  const auto parent_of = [&](Index c) {
    return physical ? cells_.p(c).parent : cells_.v(c).parent;
  };
  std::vector<std::int32_t>& counts = physical ? counts_physical_ : counts_virtual_;
  counts.resize(physical ? cells_.physical.size() : cells_.virtuals.size(), 0);
  ancestors_ = candidates_;
  Index chosen = kNone;
  while (true) {
    for (const Index a : ancestors_) ++counts[at(a)];
    for (const Index a : ancestors_) {
      if (counts[at(a)] >= count) {
        chosen = a;
        break;
      }
    }
    for (const Index a : ancestors_) counts[at(a)] = 0;
    if (chosen != kNone || ancestors_[0] == entry_cell) break;
    for (Index& a : ancestors_) a = parent_of(a);
  }
  if (chosen == kNone) return false;
  std::int32_t taken = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (taken < count && ancestors_[i] == chosen) {
      out.push_back(candidates_[i]);
      ++taken;
    } else {
      candidates_[kept++] = candidates_[i];
    }
  }
  candidates_.resize(kept);
  return true;
}

}  // namespace muster::engine::cells
