// Allocation and release of leaves and preassigned cells, health and doomed cells. One piece: each
// of them moves cells between the same lists, and the counters of all levels have to agree after it.

#include "engine/cells/cells.h"

namespace muster::engine::cells {

namespace {
std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
}  // namespace

std::string_view to_string(CellState state) {
  switch (state) {
    case CellState::kFree:
      return "Free";
    case CellState::kUsed:
      return "Used";
    case CellState::kReserving:
      return "Reserving";
    case CellState::kReserved:
      return "Reserved";
  }
  return "Free";
}

void RootList::add(Index cell) {
  const auto position = static_cast<std::int32_t>(cells.size());
  cells.push_back(cell);
  if (cells.size() > unbound.size() * 64) unbound.push_back(0);
  set_unbound(position, true);
}

void RootList::set_unbound(std::int32_t position, bool value) {
  const std::uint64_t bit = std::uint64_t{1} << (position % 64);
  std::uint64_t& word = unbound[at(position / 64)];
  word = value ? (word | bit) : (word & ~bit);
}

Index RootList::first_unbound() const {
  for (std::size_t i = 0; i < unbound.size(); ++i) {
    if (unbound[i] != 0)
      return cells[i * 64 + static_cast<std::size_t>(__builtin_ctzll(unbound[i]))];
  }
  return kNone;
}

Index Cells::find_vc(const std::string& name) const {
  const auto found = vc_index.find(name);
  return found == vc_index.end() ? kNone : found->second;
}

Index Cells::intern_vc(const std::string& name) {
  const auto [it, fresh] = vc_index.try_emplace(name, static_cast<Index>(vcs.size()));
  if (fresh) {
    VirtualCluster ghost;
    ghost.name = name;
    ghost.configured = false;
    ghost.holding_of_chain.assign(chains.size(), kNone);
    vcs.push_back(std::move(ghost));
  }
  return it->second;
}

Holding* Cells::find_holding(Index vc_number, Index chain_number) {
  const Index h = vc(vc_number).holding_of_chain[at(chain_number)];
  return h == kNone ? nullptr : &vc(vc_number).holdings[at(h)];
}

const Holding* Cells::find_holding(Index vc_number, Index chain_number) const {
  return const_cast<Cells*>(this)->find_holding(vc_number, chain_number);
}

Index Cells::find_node(const std::string& name) const {
  const auto found = node_index.find(name);
  return found == node_index.end() ? kNone : found->second;
}

Index Cells::find_leaf(Index node, std::int32_t leaf_index, Index preferred_chain) const {
  if (node == kNone) return kNone;
  Index other = kNone;
  for (const Index leaf : nodes[at(node)].leaves) {
    if (p(leaf).leaf_index != leaf_index) continue;
    if (p(leaf).chain == preferred_chain) return leaf;
    if (other == kNone) other = leaf;
  }
  return other;
}

bool Cells::is_free(Index cell) const {
  while (true) {
    const PhysicalCell& c = p(cell);
    if (c.virt != kNone || c.split) return false;
    if (c.parent == kNone || p(c.parent).split) return true;
    cell = c.parent;
  }
}

void Cells::append(std::vector<Index>& list, Index cell, ListKind kind) {
  if (in_list(cell, kind)) return;
  p(cell).position[kind] = static_cast<std::int32_t>(list.size());
  list.push_back(cell);
}

void Cells::remove(std::vector<Index>& list, Index cell, ListKind kind) {
  // The last element fills the hole: this order decides which cell is taken next.
  const std::int32_t position = p(cell).position[kind];
  if (position < 0) return;
  const Index last = list.back();
  list[at(position)] = last;
  p(last).position[kind] = position;
  list.pop_back();
  p(cell).position[kind] = -1;
}

void Cells::set_priority(Index cell, std::int32_t priority) {
  while (true) {
    PhysicalCell& c = p(cell);
    const std::int32_t old = c.priority;
    c.priority = priority;
    if (c.parent == kNone) return;
    const PhysicalCell& parent = p(c.parent);
    if (priority <= parent.priority) {
      if (old != parent.priority || priority >= old) return;
      priority = kFreePriority;
      for (const Index child : children(parent)) {
        priority = std::max(priority, p(child).priority);
        if (priority == old) return;
      }
    }
    cell = c.parent;
  }
}

void Cells::set_virtual_priority(Index cell, std::int32_t priority) {
  while (true) {
    VirtualCell& c = v(cell);
    const std::int32_t old = c.priority;
    c.priority = priority;
    if (c.parent == kNone) return;
    const VirtualCell& parent = v(c.parent);
    if (priority <= parent.priority) {
      if (old != parent.priority || priority >= old) return;
      priority = kFreePriority;
      for (const Index child : children(parent)) {
        priority = std::max(priority, v(child).priority);
        if (priority == old) return;
      }
    }
    cell = c.parent;
  }
}

void Cells::count_used(Index leaf, std::int32_t priority, std::int32_t delta) {
  View& in_chain = view(chain(p(leaf).chain).view);
  for (Index cell = leaf; cell != kNone; cell = p(cell).parent) {
    PhysicalCell& c = p(cell);
    c.used_total += delta;
    if (priority == kOpportunistic) c.used_opportunistic += delta;
    if (c.view_entry >= 0) in_chain.touch(c.view_entry);
  }
}

void Cells::count_virtual_used(Index leaf, std::int32_t priority, std::int32_t delta) {
  for (Index cell = leaf; cell != kNone; cell = v(cell).parent) {
    VirtualCell& c = v(cell);
    c.used_total += delta;
    if (c.view_entry >= 0) {
      view(c.view).count_used(c.view_entry, priority, delta);
      view(c.view).touch(c.view_entry);
    }
  }
}

void Cells::set_state(Index cell, CellState state) {
  while (true) {
    PhysicalCell& c = p(cell);
    const CellState old = c.state;
    c.state = state;
    if (c.virt != kNone) v(c.virt).state = state;
    if (c.parent == kNone) return;
    PhysicalCell& parent = p(c.parent);
    --parent.child_states[at(static_cast<int>(old))];
    ++parent.child_states[at(static_cast<int>(state))];
    const bool all =
        parent.child_states[at(static_cast<int>(state))] == parent.child_end - parent.child_begin;
    if (state != CellState::kUsed && !all) return;
    cell = c.parent;
  }
}

void Cells::bind(Index physical_cell, Index virtual_cell) {
  PhysicalCell& c = p(physical_cell);
  VirtualCell& w = v(virtual_cell);
  c.virt = virtual_cell;
  w.physical = physical_cell;
  w.healthy = c.healthy;
  c.bound_while_bad = !c.healthy;
  if (w.view_entry >= 0) view(w.view).touch(w.view_entry);
  if (w.root_position >= 0)
    find_holding(w.vc, w.chain)->roots[at(w.level)].set_unbound(w.root_position, false);
}

void Cells::unbind(Index physical_cell) {
  PhysicalCell& c = p(physical_cell);
  VirtualCell& w = v(c.virt);
  c.virt = kNone;
  w.physical = kNone;
  w.healthy = true;
  w.state = CellState::kFree;
  if (w.view_entry >= 0) view(w.view).touch(w.view_entry);
  if (w.root_position >= 0)
    find_holding(w.vc, w.chain)->roots[at(w.level)].set_unbound(w.root_position, true);
}

void Cells::bind_path(Index leaf, Index virtual_leaf) {
  while (v(virtual_leaf).physical == kNone) {
    bind(leaf, virtual_leaf);
    if (v(virtual_leaf).parent == kNone) return;
    leaf = p(leaf).parent;
    virtual_leaf = v(virtual_leaf).parent;
  }
}

void Cells::unbind_path(Index leaf) {
  Index cell = leaf;
  while (true) {
    if (p(cell).pinned || p(cell).virt == kNone) return;
    const Index virtual_cell = p(cell).virt;
    unbind(cell);
    const Index parent = v(virtual_cell).parent;
    if (parent == kNone) return;
    for (const Index sibling : children(v(parent))) {
      if (v(sibling).physical != kNone) return;
    }
    cell = p(cell).parent;
  }
}

Index Cells::first_unbound_child(Index virtual_cell) const {
  for (const Index child : children(v(virtual_cell))) {
    if (v(child).physical == kNone) return child;
  }
  return kNone;
}

bool Cells::can_bind(Index leaf, Index virtual_leaf) const {
  while (true) {
    const PhysicalCell& c = p(leaf);
    const VirtualCell& w = v(virtual_leaf);
    if (c.level != w.level) return false;
    if (w.physical == leaf) return true;
    if (w.physical != kNone || c.virt != kNone || c.split) return false;
    if (w.parent == kNone) return is_free(leaf);
    if (c.parent == kNone) return false;
    leaf = c.parent;
    virtual_leaf = w.parent;
  }
}

std::int32_t Cells::take_from_free(Index cell) {
  Chain& k = chain(p(cell).chain);
  while (true) {
    const Index parent = p(cell).parent;
    const std::int32_t level = p(cell).level;
    bool go_on = false;
    if (parent != kNone && !p(parent).split) {
      for (const Index child : children(p(parent))) append(k.free[at(level)], child, kFreeList);
      p(parent).split = true;
      go_on = true;
    }
    remove(k.free[at(level)], cell, kFreeList);
    if (!go_on) return level;
    cell = parent;
  }
}

std::int32_t Cells::give_to_free(Index cell) {
  Chain& k = chain(p(cell).chain);
  while (true) {
    const Index parent = p(cell).parent;
    const std::int32_t level = p(cell).level;
    bool merge = parent != kNone;
    if (merge) {
      for (const Index child : children(p(parent))) {
        if (child != cell && !in_list(child, kFreeList)) {
          merge = false;
          break;
        }
      }
    }
    if (!merge) {
      append(k.free[at(level)], cell, kFreeList);
      return level;
    }
    for (const Index child : children(p(parent))) {
      if (child != cell) remove(k.free[at(level)], child, kFreeList);
    }
    p(parent).split = false;
    cell = parent;
  }
}

bool Cells::allocate_leaf(Index leaf, Index virtual_leaf, std::int32_t priority, Index vc_number) {
  bool safe = true;
  p(leaf).allocated_virtual = virtual_leaf;
  if (virtual_leaf != kNone) {
    set_virtual_priority(virtual_leaf, priority);
    count_virtual_used(virtual_leaf, priority, 1);
    set_priority(leaf, priority);
    count_used(leaf, priority, 1);
    const Index root = v(virtual_leaf).root;
    const bool newly = v(root).physical == kNone;
    if (p(leaf).virt == kNone) bind_path(leaf, virtual_leaf);
    if (newly) safe = allocate_preassigned(v(root).physical, v(root).vc, false);
    return safe;
  }
  set_priority(leaf, kOpportunistic);
  count_used(leaf, kOpportunistic, 1);
  PhysicalCell& c = p(leaf);
  c.opportunistic_vc = vc_number;
  c.used_while_bad = !c.healthy;
  c.opportunistic_position = static_cast<std::int32_t>(vc(vc_number).opportunistic.size());
  vc(vc_number).opportunistic.push_back(leaf);
  return true;
}

void Cells::release_leaf(Index leaf) {
  const Index virtual_leaf = p(leaf).allocated_virtual;
  const std::int32_t priority = p(leaf).priority;
  if (virtual_leaf != kNone) {
    const Index root = v(virtual_leaf).root;
    count_virtual_used(virtual_leaf, v(virtual_leaf).priority, -1);
    set_virtual_priority(virtual_leaf, kFreePriority);
    const Index preassigned = v(root).physical;
    if (p(leaf).healthy) unbind_path(leaf);
    if (!p(preassigned).pinned && v(root).priority < 0 && !in_list(preassigned, kDoomedList)) {
      release_preassigned(preassigned, v(root).vc, false);
    }
    p(leaf).allocated_virtual = kNone;
  } else if (p(leaf).opportunistic_vc != kNone) {
    std::vector<Index>& list = vc(p(leaf).opportunistic_vc).opportunistic;
    const std::int32_t position = p(leaf).opportunistic_position;
    list[at(position)] = list.back();
    p(list.back()).opportunistic_position = position;
    list.pop_back();
    p(leaf).opportunistic_vc = kNone;
    p(leaf).opportunistic_position = -1;
  }
  count_used(leaf, priority, -1);
  set_priority(leaf, kFreePriority);
}

bool Cells::allocate_preassigned(Index cell, Index vc_number, bool doomed) {
  const Index chain_number = p(cell).chain;
  const std::int32_t level = p(cell).level;
  Chain& k = chain(chain_number);
  if (Holding* h = find_holding(vc_number, chain_number)) --h->free[at(level)];
  --k.all_vc_free[at(level)];
  --k.total_left[at(level)];
  const std::int32_t top = take_from_free(cell);
  bool safe = true;
  Index ancestor = cell;
  for (std::int32_t l = level + 1; l <= top; ++l) {
    ancestor = p(ancestor).parent;
    --k.total_left[at(l)];
    safe = safe && k.total_left[at(l)] >= k.all_vc_free[at(l)];
    if (!p(ancestor).healthy)
      remove(k.bad_free[at(l)], ancestor, kBadFreeList);
    else
      bind_doomed(chain_number, l);
  }
  if (!p(cell).healthy) {
    mark_allocated_bad(cell);
    if (!doomed) unbind_doomed(chain_number, level);
  } else {
    bind_doomed(chain_number, level);
  }
  std::int32_t inside = p(cell).child_end - p(cell).child_begin;
  for (std::int32_t l = level - 1; l >= 1; --l) {
    k.total_left[at(l)] -= inside;
    safe = safe && k.total_left[at(l)] >= k.all_vc_free[at(l)];
    if (!doomed) bind_doomed(chain_number, l);
    const auto& full = k.full[at(l)];
    inside *= full.empty() ? 0 : p(full[0]).child_end - p(full[0]).child_begin;
  }
  return safe;
}

void Cells::release_preassigned(Index cell, Index vc_number, bool doomed) {
  const Index chain_number = p(cell).chain;
  const std::int32_t level = p(cell).level;
  Chain& k = chain(chain_number);
  if (Holding* h = find_holding(vc_number, chain_number)) ++h->free[at(level)];
  ++k.all_vc_free[at(level)];
  ++k.total_left[at(level)];
  const std::int32_t top = give_to_free(cell);
  Index ancestor = cell;
  for (std::int32_t l = level + 1; l <= top; ++l) {
    ancestor = p(ancestor).parent;
    ++k.total_left[at(l)];
    if (!p(ancestor).healthy)
      append(k.bad_free[at(l)], ancestor, kBadFreeList);
    else
      unbind_doomed(chain_number, l);
  }
  if (!p(cell).healthy) {
    unmark_released_bad(cell);
    if (!doomed) bind_doomed(chain_number, level);
  } else {
    unbind_doomed(chain_number, level);
  }
  std::int32_t inside = p(cell).child_end - p(cell).child_begin;
  for (std::int32_t l = level - 1; l >= 1; --l) {
    k.total_left[at(l)] += inside;
    if (!doomed) unbind_doomed(chain_number, l);
    const auto& full = k.full[at(l)];
    inside *= full.empty() ? 0 : p(full[0]).child_end - p(full[0]).child_begin;
  }
}

void Cells::mark_allocated_bad(Index cell) {
  PhysicalCell& c = p(cell);
  remove(chain(c.chain).bad_free[at(c.level)], cell, kBadFreeList);
  if (c.virt == kNone && c.parent != kNone && p(c.parent).virt != kNone) {
    const Index child = first_unbound_child(p(c.parent).virt);
    if (child != kNone) bind(cell, child);
  }
  for (const Index child : children(c)) {
    if (!p(child).healthy) mark_allocated_bad(child);
  }
}

void Cells::unmark_released_bad(Index cell) {
  PhysicalCell& c = p(cell);
  append(chain(c.chain).bad_free[at(c.level)], cell, kBadFreeList);
  if (c.virt != kNone) unbind(cell);
  for (const Index child : children(c)) {
    if (!p(child).healthy) unmark_released_bad(child);
  }
}

Index Cells::choose_doomed(const Chain& k, std::int32_t level) const {
  // A doomed cell of several nodes can be used through its healthy ones, so it must not open a
  // larger cell that is promised to somebody. A bad node serves nobody: the first is as good as
  // any. If every bad cell opens a promised one, the first.
  const std::vector<Index>& bad = k.bad_free[at(level)];
  if (!type(p(bad.front()).type).multi_node) return bad.front();
  for (const Index cell : bad) {
    bool safe = true;
    for (Index above = p(cell).parent; safe && above != kNone && !p(above).split;
         above = p(above).parent) {
      safe = k.total_left[at(p(above).level)] > k.all_vc_free[at(p(above).level)];
    }
    if (safe) return cell;
  }
  return bad.front();
}

void Cells::bind_doomed(Index chain_number, std::int32_t level) {
  Chain& k = chain(chain_number);
  if (k.bad_free[at(level)].empty()) return;
  for (const Index number : k.vcs) {
    Holding& h = *find_holding(number, chain_number);
    // An empty list of bad cells means that a reconfiguration promised more than there is: nothing
    // to doom.
    while (!k.bad_free[at(level)].empty() &&
           h.free[at(level)] >
               k.total_left[at(level)] - static_cast<std::int32_t>(k.bad_free[at(level)].size())) {
      const Index root = h.roots[at(level)].first_unbound();
      if (root == kNone) break;
      const Index cell = choose_doomed(k, level);
      bind(cell, root);
      append(h.doomed[at(level)], cell, kDoomedList);
      ++k.all_vc_doomed[at(level)];
      (void)allocate_preassigned(cell, number, true);
    }
  }
}

void Cells::unbind_doomed(Index chain_number, std::int32_t level) {
  Chain& k = chain(chain_number);
  if (k.all_vc_doomed[at(level)] == 0) return;
  for (const Index number : k.vcs) {
    Holding& h = *find_holding(number, chain_number);
    while (h.free[at(level)] <
           k.total_left[at(level)] - static_cast<std::int32_t>(k.bad_free[at(level)].size())) {
      // A doomed cell of several nodes may be in use through its healthy ones; it stays bound.
      Index cell = kNone;
      for (const Index candidate : h.doomed[at(level)]) {
        if (v(p(candidate).virt).priority < 0) {
          cell = candidate;
          break;
        }
      }
      if (cell == kNone) break;
      release_doomed(cell);
    }
  }
}

void Cells::remove_doomed(Index cell) {
  const VirtualCell& root = v(p(cell).virt);
  remove(find_holding(root.vc, root.chain)->doomed[at(root.level)], cell, kDoomedList);
  --chain(root.chain).all_vc_doomed[at(root.level)];
}

void Cells::release_doomed(Index cell) {
  const Index vc_number = v(p(cell).virt).vc;
  remove_doomed(cell);
  unbind(cell);
  release_preassigned(cell, vc_number, true);
}

void Cells::set_bad(Index cell) {
  PhysicalCell& c = p(cell);
  if (!c.healthy) return;
  c.healthy = false;
  if (c.virt != kNone) {
    VirtualCell& w = v(c.virt);
    w.healthy = false;
    if (w.view_entry >= 0) view(w.view).touch(w.view_entry);
  }
  Chain& k = chain(c.chain);
  if (c.view_entry >= 0) view(k.view).touch(c.view_entry);
  if (c.parent != kNone) {
    ++p(c.parent).bad_children;
    set_bad(c.parent);
  }
  const std::size_t l = at(c.level);
  if (is_free(cell)) {
    append(k.bad_free[l], cell, kBadFreeList);
    if (k.all_vc_free[l] > k.total_left[l] - static_cast<std::int32_t>(k.bad_free[l].size()))
      bind_doomed(c.chain, c.level);
  } else if (c.virt == kNone && !c.split && c.parent != kNone && p(c.parent).virt != kNone) {
    const Index child = first_unbound_child(p(c.parent).virt);
    if (child != kNone) bind(cell, child);
  }
}

void Cells::set_healthy(Index cell) {
  while (cell != kNone) {
    PhysicalCell& c = p(cell);
    if (c.healthy) return;
    c.healthy = true;
    c.bound_while_bad = false;
    if (c.virt != kNone) {
      VirtualCell& w = v(c.virt);
      w.healthy = true;
      if (w.view_entry >= 0) view(w.view).touch(w.view_entry);
    }
    Chain& k = chain(c.chain);
    if (c.view_entry >= 0) view(k.view).touch(c.view_entry);
    if (is_free(cell)) {
      remove(k.bad_free[at(c.level)], cell, kBadFreeList);
      unbind_doomed(c.chain, c.level);
    } else if (c.virt != kNone && !c.pinned) {
      const Index virtual_cell = c.virt;
      const bool doomed = in_list(cell, kDoomedList);
      if (c.priority < 0) {
        if (doomed) {
          release_doomed(cell);
        } else {
          unbind(cell);
          if (v(virtual_cell).parent == kNone) release_preassigned(cell, v(virtual_cell).vc, true);
        }
      } else if (doomed) {
        // Healthy and in use: an ordinary allocation from now on.
        remove_doomed(cell);
      }
    }
    const Index parent = c.parent;
    if (parent != kNone && --p(parent).bad_children > 0) return;
    cell = parent;
  }
}

bool Cells::set_node(Index node, bool healthy) {
  Node& n = nodes[at(node)];
  if (n.healthy == healthy) return false;
  n.healthy = healthy;
  for (const Index leaf : n.leaves) {
    if (healthy)
      set_healthy(leaf);
    else
      set_bad(leaf);
  }
  return true;
}

void Cells::bind_pinned() {
  for (std::size_t i = 0; i < vcs.size(); ++i) {
    for (PinnedHolding& pin : vcs[i].pinned) {
      (void)allocate_preassigned(pin.physical, static_cast<Index>(i), false);
      bind(pin.physical, pin.root);
      p(pin.physical).pinned = true;
    }
  }
}

}  // namespace muster::engine::cells
