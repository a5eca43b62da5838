#include "engine/cells/mapping.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

Index Mapping::add_vertex(Index virtual_cell) {
  const auto index = static_cast<Index>(scratch_.vertices.size());
  Vertex vertex;
  vertex.cell = virtual_cell;
  scratch_.vertices.push_back(vertex);
  if (virtual_cell != kNone) scratch_.vertex_of[at(virtual_cell)] = index;
  return index;
}

void Mapping::append_child(Index parent, Index child) {
  Vertex& above = scratch_.vertices[at(parent)];
  if (above.last_child == kNone)
    above.first_child = child;
  else
    scratch_.vertices[at(above.last_child)].next = child;
  above.last_child = child;
  ++above.children;
}

bool Mapping::usable(Index cell) const {
  const PhysicalCell& c = cells_.p(cell);
  if (c.virt != kNone) return false;
  if (!c.healthy && c.node_end - c.node_begin == 1) return false;
  if (suggested_.ignored()) return true;
  for (Index i = c.node_begin; i < c.node_end; ++i) {
    if (suggested_.contains(cells_.cell_nodes[at(i)])) return true;
  }
  return false;
}

bool Mapping::fits(Index vertex, Index candidate) {
  const PhysicalCell& c = cells_.p(candidate);
  if (c.level > 1) {
    if (!map_siblings(scratch_.vertices[at(vertex)].first_child,
                      scratch_.vertices[at(vertex)].children,
                      cells_.children(c)))
      return false;
  }
  scratch_.vertices[at(vertex)].physical = candidate;
  return true;
}

bool Mapping::map_siblings(Index first_vertex,
                           std::int32_t count,
                           std::span<const Index> candidates) {
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
  // One alone takes nothing from others.
  std::vector<char> taken(count > 1 ? cells.size() : 0, 0);
  for (Index vertex = first_vertex; vertex != kNone; vertex = scratch_.vertices[at(vertex)].next) {
    bool found = false;
    for (std::size_t i = 0; i < cells.size() && !found; ++i) {
      const bool free = taken.empty() || taken[i] == 0;
      if (!free || !fits(vertex, cells[i])) continue;
      if (!taken.empty()) taken[i] = 1;
      found = true;
    }
    if (found) continue;
    std::vector<Index> vertices;
    for (Index w = first_vertex; w != kNone; w = scratch_.vertices[at(w)].next)
      vertices.push_back(w);
    return vertices.size() > 1 && match_siblings(vertices, cells);
  }
  return true;
}

bool Mapping::match_siblings(const std::vector<Index>& vertices,
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

Index Mapping::map_one(Index vertex, const std::vector<Index>& candidates) {
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

bool Mapping::buddy(Index vertex, std::int32_t level, std::int32_t want, FreeCells& free) {
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

/// Of each level above `want`, how many cells may be split without breaking a promise of that level
/// or above.
std::vector<std::int32_t> Mapping::splittable_of(
    const Chain& chain, std::int32_t want, const std::vector<std::int32_t>& all_vc_free) const {
  std::vector<std::int32_t> out(at(chain.top) + 2, 0);
  bool met = false;
  for (std::int32_t l = chain.top; l > want; --l) {
    const auto size = static_cast<std::int32_t>(scratch_.free[at(l)].size());
    out[at(l)] = size - all_vc_free[at(l)];
    if (met) {
      const PhysicalCell& above = cells_.p(chain.full[at(l + 1)][0]);
      out[at(l)] += out[at(l + 1)] * (above.child_end - above.child_begin);
    }
    met = met || size > 0;
    out[at(l)] = std::max(out[at(l)], 0);
  }
  return out;
}

std::int64_t Mapping::children_at(const Chain& chain, std::int32_t level) const {
  return static_cast<std::int64_t>(cells_.children(cells_.p(chain.full[at(level)][0])).size());
}

/// Takes the first free cells of the level; answers with all of level `want` inside them.
std::vector<Index> Mapping::open_largest(std::int32_t count, std::int32_t from, std::int32_t want) {
  std::vector<Index>& free = scratch_.free[at(from)];
  std::vector<Index> inside;
  for (std::int32_t i = 0; i < count; ++i) {
    inside.push_back(free.front());
    remove_from(free, free.front());
  }
  for (std::int32_t level = from; level > want; --level) {
    std::vector<Index> next;
    for (const Index c : inside) {
      const auto children = cells_.children(cells_.p(c));
      next.insert(next.end(), children.begin(), children.end());
    }
    inside = std::move(next);
  }
  return inside;
}

/// Larger cells may be split too, as many as no promise of their level (or above) needs.
bool Mapping::relaxed_buddy(Index vertex,
                            const Chain& chain,
                            std::int32_t want,
                            const std::vector<std::int32_t>& all_vc_free) {
  FreeCells& free = scratch_.free;
  std::vector<std::int32_t> splittable = splittable_of(chain, want, all_vc_free);
  for (std::int32_t l = want + 1; l <= chain.top; ++l) {
    const std::int32_t count =
        std::min(static_cast<std::int32_t>(free[at(l)].size()), splittable[at(l)]);
    // Splitting one cell down to `want` costs one cell of every level between; splitting all of
    // `count` to the end costs all that is inside them. Promises of those levels bound both.
    if (count <= 0) {
      // Whatever is split above would pass through this level.
      if (splittable[at(l)] <= 0) return false;
      continue;
    }
    bool all_may_stay_split = true;
    std::int64_t inside = count;
    for (std::int32_t level = l - 1; level > want; --level) {
      inside *= children_at(chain, level + 1);
      all_may_stay_split = all_may_stay_split && inside <= splittable[at(level)];
    }
    const std::vector<Index> larger = free[at(l)];
    const std::vector<Index> present = free[at(want)];
    std::vector<Index> open = open_largest(count, l, want);
    open.insert(open.end(), present.begin(), present.end());
    free[at(want)] = std::move(open);
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
        inside *= children_at(chain, level);
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

void Mapping::split_to(Index cell, std::int32_t from, FreeCells& free) const {
  while (cells_.p(cell).level < from) {
    const Index parent = cells_.p(cell).parent;
    for (const Index sibling : cells_.children(cells_.p(parent))) {
      if (sibling != cell) free[at(cells_.p(cell).level)].push_back(sibling);
    }
    cell = parent;
  }
  remove_from(free[at(from)], cell);
}

/// The unbound virtual cells on the way up from the leaf become requests, unless they are already.
void Mapping::add_requests(Index leaf, Requests& requests) {
  std::vector<Index>& path = scratch_.path;
  path.assign(1, leaf);
  Index top = leaf;
  while (cells_.v(top).parent != kNone && cells_.v(cells_.v(top).parent).physical == kNone &&
         scratch_.vertex_of[at(cells_.v(top).parent)] == kNone) {
    top = cells_.v(top).parent;
    path.push_back(top);
  }
  const Index parent = cells_.v(top).parent;
  Index above = add_vertex(top);
  if (parent == kNone) {
    requests.preassigned.push_back(above);
  } else if (cells_.v(parent).physical != kNone) {
    auto below = std::find_if(requests.below.begin(), requests.below.end(), [&](const Below& b) {
      return b.parent == parent;
    });
    if (below == requests.below.end()) {
      requests.below.push_back({parent, add_vertex(kNone)});
      below = std::prev(requests.below.end());
    }
    append_child(below->head, above);
  } else {
    append_child(scratch_.vertex_of[at(parent)], above);
  }
  for (std::size_t i = path.size() - 1; i-- > 0;) {
    const Index vertex = add_vertex(path[i]);
    append_child(above, vertex);
    above = vertex;
  }
}

/// Free cells for whole promises, tried out on a copy of the chain's.
bool Mapping::map_preassigned(Index chain, const std::vector<Index>& vertices) {
  if (vertices.empty()) return true;
  const Chain& k = cells_.chain(chain);
  scratch_.free = k.free;
  std::vector<std::int32_t> all_vc_free = k.all_vc_free;
  for (const Index vertex : vertices) {
    const std::int32_t want = cells_.v(scratch_.vertices[at(vertex)].cell).level;
    std::int32_t level = want;
    while (level <= k.top && scratch_.free[at(level)].empty()) ++level;
    const bool found = level <= k.top && (buddy(vertex, level, want, scratch_.free) ||
                                          relaxed_buddy(vertex, k, want, all_vc_free));
    if (!found) return false;
    --all_vc_free[at(want)];
  }
  return true;
}

bool Mapping::map_below(const Below& below) {
  const Vertex& head = scratch_.vertices[at(below.head)];
  return map_siblings(
      head.first_child, head.children, cells_.children(cells_.p(cells_.v(below.parent).physical)));
}

bool Mapping::run(Index chain, Placement& placement) {
  auto& vertex_of = scratch_.vertex_of;
  scratch_.vertices.clear();
  if (vertex_of.size() < cells_.virtuals.size()) vertex_of.resize(cells_.virtuals.size(), kNone);
  Requests& requests = scratch_.requests;
  requests.preassigned.clear();
  requests.below.clear();
  for (const Placement::Member& member : placement.members) {
    for (const Index leaf : member.virt) {
      if (cells_.v(leaf).physical == kNone) add_requests(leaf, requests);
    }
  }
  const bool ok = map_preassigned(chain, requests.preassigned) &&
                  std::all_of(requests.below.begin(), requests.below.end(), [&](const Below& b) {
                    return map_below(b);
                  });
  for (Placement::Member& member : placement.members) {
    if (!ok) break;
    member.physical.clear();
    member.physical.reserve(member.virt.size());
    for (const Index leaf : member.virt) {
      const Index bound = cells_.v(leaf).physical;
      member.physical.push_back(
          bound != kNone ? bound : scratch_.vertices[at(vertex_of[at(leaf)])].physical);
    }
  }
  for (const Vertex& vertex : scratch_.vertices) {
    if (vertex.cell != kNone) vertex_of[at(vertex.cell)] = kNone;
  }
  return ok;
}

}  // namespace muster::engine::cells
