// From virtual leaves to physical ones: which free cells to bind, split as buddies.
//
// Unbound virtual cells on the way up from the wanted leaves form trees of requests. The root of a
// tree is a preassigned cell, to be given a free cell of its level, or hangs below a bound cell, to
// be given a child of it. Siblings are given distinct candidates; candidates without opportunistic
// users come first.

#include <fmt/core.h>

#include <algorithm>

#include "engine/cells/allocator.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// The rule of all lists of cells: the last element fills the hole.
void remove_from(std::vector<Index>& list, Index cell) {
  const auto found = std::find(list.begin(), list.end(), cell);
  if (found == list.end()) return;
  *found = list.back();
  list.pop_back();
}

/// Kuhn's augmenting path from request j, among candidates that are not `fixed`.
bool augment(std::size_t j,
             const std::vector<std::vector<char>>& fit,
             const std::vector<char>& fixed,
             std::vector<char>& seen,
             std::vector<Index>& owner) {
  for (std::size_t c = 0; c < fixed.size(); ++c) {
    if (fixed[c] != 0 || seen[c] != 0 || fit[j][c] == 0) continue;
    seen[c] = 1;
    if (owner[c] == kNone || augment(at(owner[c]), fit, fixed, seen, owner)) {
      owner[c] = static_cast<Index>(j);
      return true;
    }
  }
  return false;
}

bool rest_can_match(std::size_t first,
                    const std::vector<std::vector<char>>& fit,
                    const std::vector<char>& fixed) {
  std::vector<Index> owner(fixed.size(), kNone);
  for (std::size_t j = first; j < fit.size(); ++j) {
    std::vector<char> seen(fixed.size(), 0);
    if (!augment(j, fit, fixed, seen, owner)) return false;
  }
  return true;
}

}  // namespace

Index CellAllocator::add_vertex(Index virtual_cell) {
  const auto index = static_cast<Index>(vertices_.size());
  Vertex vertex;
  vertex.cell = virtual_cell;
  vertices_.push_back(vertex);
  if (virtual_cell != kNone) vertex_of_[at(virtual_cell)] = index;
  return index;
}

void CellAllocator::append_child(Index parent, Index child) {
  Vertex& above = vertices_[at(parent)];
  if (above.last_child == kNone)
    above.first_child = child;
  else
    vertices_[at(above.last_child)].next = child;
  above.last_child = child;
  ++above.children;
}

bool CellAllocator::usable(Index cell) const {
  const PhysicalCell& c = cells_.p(cell);
  if (c.virt != kNone) return false;
  if (!c.healthy && c.node_end - c.node_begin == 1) return false;
  if (ignore_suggested_) return true;
  for (Index i = c.node_begin; i < c.node_end; ++i) {
    if (is_suggested(cells_.cell_nodes[at(i)])) return true;
  }
  return false;
}

bool CellAllocator::fits(Index vertex, Index candidate) {
  const PhysicalCell& c = cells_.p(candidate);
  if (c.level > 1) {
    const auto children = cells_.children(c);
    if (!map_siblings(vertices_[at(vertex)].first_child,
                      vertices_[at(vertex)].children,
                      std::vector<Index>(children.begin(), children.end())))
      return false;
  }
  vertices_[at(vertex)].physical = candidate;
  return true;
}

bool CellAllocator::map_siblings(Index first_vertex,
                                 std::int32_t count,
                                 const std::vector<Index>& candidates) {
  std::vector<Index> cells;
  cells.reserve(candidates.size());
  bool mixed = false;
  for (const Index c : candidates) {
    if (!usable(c)) continue;
    mixed = mixed || cells_.p(c).used_opportunistic != 0;
    cells.push_back(c);
  }
  if (cells.size() < at(count)) return false;
  if (mixed) {
    std::stable_sort(cells.begin(), cells.end(), [&](Index a, Index b) {
      return cells_.p(a).used_opportunistic < cells_.p(b).used_opportunistic;
    });
  }
  std::vector<char> taken(cells.size(), 0);
  for (Index vertex = first_vertex; vertex != kNone; vertex = vertices_[at(vertex)].next) {
    bool found = false;
    for (std::size_t i = 0; i < cells.size() && !found; ++i) {
      if (taken[i] == 0 && fits(vertex, cells[i])) {
        taken[i] = 1;
        found = true;
      }
    }
    if (found) continue;
    std::vector<Index> vertices;
    for (Index w = first_vertex; w != kNone; w = vertices_[at(w)].next) vertices.push_back(w);
    return vertices.size() > 1 && match_siblings(vertices, cells);
  }
  return true;
}

bool CellAllocator::match_siblings(const std::vector<Index>& vertices,
                                   const std::vector<Index>& usable_cells) {
  // First fit met a dead end. Candidates are disjoint, so this is a bipartite matching; the
  // assignment that backtracking would find first is the lexicographically first one.
  std::vector<std::vector<char>> fit(vertices.size(), std::vector<char>(usable_cells.size(), 0));
  for (std::size_t j = 0; j < vertices.size(); ++j) {
    for (std::size_t c = 0; c < usable_cells.size(); ++c)
      fit[j][c] = fits(vertices[j], usable_cells[c]) ? 1 : 0;
  }
  std::vector<char> fixed(usable_cells.size(), 0);
  std::vector<std::size_t> choice;
  for (std::size_t j = 0; j < vertices.size(); ++j) {
    bool found = false;
    for (std::size_t c = 0; c < usable_cells.size() && !found; ++c) {
      if (fixed[c] != 0 || fit[j][c] == 0) continue;
      fixed[c] = 1;
      found = rest_can_match(j + 1, fit, fixed);
      if (found)
        choice.push_back(c);
      else
        fixed[c] = 0;
    }
    if (!found) return false;
  }
  for (std::size_t j = 0; j < vertices.size(); ++j)
    (void)fits(vertices[j], usable_cells[choice[j]]);
  return true;
}

Index CellAllocator::map_one(Index vertex, const std::vector<Index>& candidates) {
  std::vector<Index> later;
  for (const Index c : candidates) {
    if (cells_.p(c).used_opportunistic != 0)
      later.push_back(c);
    else if (usable(c) && fits(vertex, c))
      return c;
  }
  std::stable_sort(later.begin(), later.end(), [&](Index a, Index b) {
    return cells_.p(a).used_opportunistic < cells_.p(b).used_opportunistic;
  });
  for (const Index c : later) {
    if (usable(c) && fits(vertex, c)) return c;
  }
  return kNone;
}

bool CellAllocator::buddy(Index vertex,
                          std::int32_t level,
                          std::int32_t want,
                          std::vector<std::vector<Index>>& free) {
  if (level == want) {
    const Index cell = map_one(vertex, free[at(level)]);
    if (cell == kNone) return false;
    remove_from(free[at(level)], cell);
    return true;
  }
  std::vector<Index>& below = free[at(level - 1)];
  const auto split = [&](Index candidate) {
    if (!usable(candidate)) return false;
    const auto children = cells_.children(cells_.p(candidate));
    below.insert(below.end(), children.begin(), children.end());
    if (buddy(vertex, level - 1, want, free)) {
      remove_from(free[at(level)], candidate);
      return true;
    }
    below.clear();
    return false;
  };
  std::vector<Index> later;
  for (std::size_t i = 0; i < free[at(level)].size(); ++i) {
    const Index candidate = free[at(level)][i];
    if (cells_.p(candidate).used_opportunistic != 0)
      later.push_back(candidate);
    else if (split(candidate))
      return true;
  }
  std::stable_sort(later.begin(), later.end(), [&](Index a, Index b) {
    return cells_.p(a).used_opportunistic < cells_.p(b).used_opportunistic;
  });
  return std::any_of(later.begin(), later.end(), split);
}

bool CellAllocator::relaxed_buddy(Index vertex,
                                  Index chain,
                                  std::int32_t want,
                                  std::vector<std::vector<Index>>& free,
                                  const std::vector<std::int32_t>& all_vc_free) {
  // Larger cells may be split too, as many as no promise of their level (or above) needs.
  const Chain& k = cells_.chain(chain);
  std::vector<std::int32_t> splittable(at(k.top) + 2, 0);
  bool met = false;
  for (std::int32_t l = k.top; l > want; --l) {
    const auto size = static_cast<std::int32_t>(free[at(l)].size());
    splittable[at(l)] = size - all_vc_free[at(l)];
    if (met) {
      const PhysicalCell& above = cells_.p(k.full[at(l + 1)][0]);
      splittable[at(l)] += splittable[at(l + 1)] * (above.child_end - above.child_begin);
    }
    met = met || size > 0;
    splittable[at(l)] = std::max(splittable[at(l)], 0);
  }
  for (std::int32_t l = want + 1; l <= k.top; ++l) {
    const std::int32_t count =
        std::min(static_cast<std::int32_t>(free[at(l)].size()), splittable[at(l)]);
    // Splitting one cell down to `want` costs one cell of every level between; splitting all of
    // `count` to the end costs all that is inside them. Promises of those levels bound both.
    if (count <= 0) {
      if (splittable[at(l)] <= 0)
        return false;  // whatever is split above would pass through this level
      continue;
    }
    bool all_may_stay_split = true;
    std::int64_t inside = count;
    for (std::int32_t level = l - 1; level > want; --level) {
      inside *=
          static_cast<std::int64_t>(cells_.children(cells_.p(k.full[at(level + 1)][0])).size());
      all_may_stay_split = all_may_stay_split && inside <= splittable[at(level)];
    }
    const std::vector<Index> larger = free[at(l)], present = free[at(want)];
    std::vector<Index> expanded;
    for (std::int32_t i = 0; i < count; ++i) {
      expanded.push_back(free[at(l)].front());
      remove_from(free[at(l)], free[at(l)].front());
    }
    for (std::int32_t level = l; level > want; --level) {
      std::vector<Index> next;
      for (const Index c : expanded) {
        const auto children = cells_.children(cells_.p(c));
        next.insert(next.end(), children.begin(), children.end());
      }
      expanded = std::move(next);
    }
    expanded.insert(expanded.end(), present.begin(), present.end());
    free[at(want)] = std::move(expanded);
    const Index cell = map_one(vertex, free[at(want)]);
    if (all_may_stay_split) {
      if (cell != kNone) {
        remove_from(free[at(want)], cell);
        return true;
      }
      // Nothing usable in them, but they stay open; what they held is no longer there to be split.
      inside = count;
      for (std::int32_t level = l; level > want; --level) {
        splittable[at(level)] -= static_cast<std::int32_t>(inside);
        inside *= static_cast<std::int64_t>(cells_.children(cells_.p(k.full[at(level)][0])).size());
      }
      continue;
    }
    free[at(l)] = larger;
    free[at(want)] = present;
    if (cell == kNone) continue;
    // Only what the chosen cell needs is split: the gang's next cell must not find the others open.
    split_to(cell, l, free);
    return true;
  }
  return false;
}

void CellAllocator::split_to(Index cell,
                             std::int32_t from,
                             std::vector<std::vector<Index>>& free) const {
  while (cells_.p(cell).level < from) {
    const Index parent = cells_.p(cell).parent;
    for (const Index sibling : cells_.children(cells_.p(parent))) {
      if (sibling != cell) free[at(cells_.p(cell).level)].push_back(sibling);
    }
    cell = parent;
  }
  remove_from(free[at(from)], cell);
}

bool CellAllocator::map_virtual(Index chain, Placement& placement) {
  vertices_.clear();
  if (vertex_of_.size() < cells_.virtuals.size()) vertex_of_.resize(cells_.virtuals.size(), kNone);
  std::vector<Index> preassigned;
  struct Below {
    Index parent;  // bound virtual cell
    Index head;    // a vertex without a cell, whose children are the requests
  };
  std::vector<Below> groups;
  std::vector<Index> path;
  for (const Placement::Member& member : placement.members) {
    for (const Index leaf : member.virt) {
      if (cells_.v(leaf).physical != kNone) continue;
      path.assign(1, leaf);
      Index top = leaf;
      while (cells_.v(top).parent != kNone && cells_.v(cells_.v(top).parent).physical == kNone &&
             vertex_of_[at(cells_.v(top).parent)] == kNone) {
        top = cells_.v(top).parent;
        path.push_back(top);
      }
      const Index parent = cells_.v(top).parent;
      Index above = add_vertex(top);
      if (parent == kNone) {
        preassigned.push_back(above);
      } else if (cells_.v(parent).physical != kNone) {
        auto group = std::find_if(
            groups.begin(), groups.end(), [&](const Below& g) { return g.parent == parent; });
        if (group == groups.end()) {
          groups.push_back({parent, add_vertex(kNone)});
          group = std::prev(groups.end());
        }
        append_child(group->head, above);
      } else {
        append_child(vertex_of_[at(parent)], above);
      }
      for (std::size_t i = path.size() - 1; i-- > 0;) {
        const Index vertex = add_vertex(path[i]);
        append_child(above, vertex);
        above = vertex;
      }
    }
  }
  bool ok = true;
  if (!preassigned.empty()) {
    const Chain& k = cells_.chain(chain);
    free_scratch_ = k.free;  // tried out on a copy; nothing is taken yet
    std::vector<std::vector<Index>>& free = free_scratch_;
    std::vector<std::int32_t> all_vc_free = k.all_vc_free;
    for (const Index vertex : preassigned) {
      const std::int32_t want = cells_.v(vertices_[at(vertex)].cell).level;
      std::int32_t level = want;
      while (level <= k.top && free[at(level)].empty()) ++level;
      ok = level <= k.top && (buddy(vertex, level, want, free) ||
                              relaxed_buddy(vertex, chain, want, free, all_vc_free));
      if (!ok) break;
      --all_vc_free[at(want)];
    }
  }
  for (std::size_t i = 0; ok && i < groups.size(); ++i) {
    const auto children = cells_.children(cells_.p(cells_.v(groups[i].parent).physical));
    const Vertex& head = vertices_[at(groups[i].head)];
    ok = map_siblings(
        head.first_child, head.children, std::vector<Index>(children.begin(), children.end()));
  }
  for (Placement::Member& member : placement.members) {
    if (!ok) break;
    member.physical.clear();
    for (const Index leaf : member.virt) {
      const Index bound = cells_.v(leaf).physical;
      member.physical.push_back(bound != kNone ? bound
                                               : vertices_[at(vertex_of_[at(leaf)])].physical);
    }
  }
  for (const Vertex& vertex : vertices_) {
    if (vertex.cell != kNone) vertex_of_[at(vertex.cell)] = kNone;
  }
  return ok;
}

bool CellAllocator::map_placement(const ScheduleRequest& request,
                                  Index chain,
                                  Placement& placement,
                                  std::string& reason) {
  struct Saved {
    Index group;
    std::vector<std::vector<Index>> virt;
    std::int32_t allocated;
  };
  std::vector<Saved> preempted;
  for (const Placement::Member& member : placement.members) {
    for (const Index leaf : member.virt) {
      const Index physical = cells_.v(leaf).physical;
      if (physical == kNone || cells_.p(physical).state != CellState::kUsed) continue;
      const Index user = cells_.p(physical).using_group;
      if (user == kNone || !groups_[at(user)]->lazy_preemption || !groups_[at(user)]->has_virtual)
        continue;
      Saved saved{user, {}, 0};
      for (const Group::Member& m : groups_[at(user)]->members) saved.virt.push_back(m.virt);
      preempted.push_back(std::move(saved));
      lazy_preempt(user, request.spec.group, request.now);
    }
  }
  if (map_virtual(chain, placement)) return true;
  for (Saved& saved : preempted) revert_lazy(saved.group, std::move(saved.virt));
  reason = fmt::format(
      "Mapping the virtual placement would need to use at least one {} (virtual placement : {})",
      request.spec.ignore_suggested ? "bad node" : "bad or non-suggested node",
      virtual_placement_json(placement));
  return false;
}

std::string CellAllocator::virtual_placement_json(const Placement& placement) const {
  std::map<std::string, std::vector<std::string>> by_root;
  for (const Placement::Member& member : placement.members) {
    for (const Index leaf : member.virt)
      by_root[cells_.vaddress(cells_.v(leaf).root)].push_back(cells_.vaddress(leaf));
  }
  std::string out = "{";
  for (const auto& [root, leaves] : by_root) {
    if (out.size() > 1) out += ',';
    out += '"' + root + "\":[";
    for (std::size_t i = 0; i < leaves.size(); ++i)
      out += (i == 0 ? "\"" : ",\"") + leaves[i] + "\"";
    out += ']';
  }
  return out + "}";
}

}  // namespace muster::engine::cells
