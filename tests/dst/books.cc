#include "books.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace muster::dst {
namespace {

using namespace engine::cells;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

std::string check_physical(const Cells& cells) {
  for (std::size_t i = 0; i < cells.physical.size(); ++i) {
    const PhysicalCell& c = cells.physical[i];
    const std::string& name = cells.physical_address[i];
    std::int32_t used = 0, opportunistic = 0, priority = kFreePriority;
    bool healthy = true;
    for (Index l = c.leaf_begin; l < c.leaf_end; ++l) {
      const PhysicalCell& leaf = cells.p(cells.leaves[at(l)]);
      used += leaf.priority != kFreePriority ? 1 : 0;
      opportunistic += leaf.priority == kOpportunistic ? 1 : 0;
      priority = std::max(priority, leaf.priority);
      healthy = healthy && leaf.healthy;
    }
    if (c.used_total != used || c.used_opportunistic != opportunistic)
      return fmt::format("{}: used {} ({} opportunistic), counted {} ({})",
                         name,
                         c.used_total,
                         c.used_opportunistic,
                         used,
                         opportunistic);
    if (c.priority != priority)
      return fmt::format("{}: priority {}, highest below {}", name, c.priority, priority);
    if (c.healthy != healthy) return fmt::format("{}: health {}", name, c.healthy);
    if (c.virt != kNone &&
        (cells.v(c.virt).physical != static_cast<Index>(i) || cells.v(c.virt).level != c.level ||
         cells.v(c.virt).healthy != c.healthy)) {
      return fmt::format("{}: bound to {} which does not agree", name, cells.vaddress(c.virt));
    }
    bool any_child_taken = false;
    for (const Index child : cells.children(c))
      any_child_taken =
          any_child_taken || cells.p(child).split ||
          (cells.p(child).virt != kNone && cells.v(cells.p(child).virt).parent == kNone);
    if (c.virt == kNone && c.split != any_child_taken)
      return fmt::format("{}: split {}, a child is taken {}", name, c.split, any_child_taken);
    const bool listed =
        c.virt == kNone && !c.split && (c.parent == kNone || cells.p(c.parent).split);
    if (listed != cells.in_list(static_cast<Index>(i), kFreeList))
      return fmt::format("{}: in the free list {}, should be {}", name, !listed, listed);
    const bool bad_free = !c.healthy && cells.is_free(static_cast<Index>(i));
    if (bad_free != cells.in_list(static_cast<Index>(i), kBadFreeList))
      return fmt::format("{}: in the bad-free list {}, should be {}", name, !bad_free, bad_free);
  }
  return "";
}

std::string check_virtual(const Cells& cells) {
  for (std::size_t i = 0; i < cells.virtuals.size(); ++i) {
    const VirtualCell& c = cells.virtuals[i];
    std::int32_t used = 0, priority = kFreePriority;
    for (Index l = c.leaf_begin; l < c.leaf_end; ++l) {
      const std::int32_t p = cells.v(cells.virtual_leaves[at(l)]).priority;
      used += p != kFreePriority ? 1 : 0;
      priority = std::max(priority, p);
    }
    if (c.used_total != used || c.priority != priority)
      return fmt::format("{}: used {} priority {}, counted {} {}",
                         cells.virtual_address[i],
                         c.used_total,
                         c.priority,
                         used,
                         priority);
    if (c.physical != kNone && cells.p(c.physical).virt != static_cast<Index>(i))
      return fmt::format("{}: bound one way only", cells.virtual_address[i]);
    if (c.physical != kNone && c.parent != kNone && cells.v(c.parent).physical == kNone)
      return fmt::format("{}: bound below an unbound cell", cells.virtual_address[i]);
    if (used > 0 && c.physical == kNone)
      return fmt::format("{}: used but not bound", cells.virtual_address[i]);
    if (c.view_entry >= 0) {
      std::int32_t free = cells.view(c.view).free_at(c.view_entry, kFreePriority);
      if (free != cells.type(c.type).leaf_count - used)
        return fmt::format("{}: the view counts {} free", cells.virtual_address[i], free);
    }
  }
  return "";
}

std::string check_counters(const Cells& cells) {
  for (std::size_t k = 0; k < cells.chains.size(); ++k) {
    const Chain& chain = cells.chains[k];
    for (std::int32_t l = 1; l <= chain.top; ++l) {
      std::int32_t left = 0, bad = 0;
      for (const Index c : chain.full[at(l)]) {
        const bool free = cells.is_free(c);
        left += free ? 1 : 0;
        bad += free && !cells.p(c).healthy ? 1 : 0;
      }
      if (left != chain.total_left[at(l)] ||
          bad != static_cast<std::int32_t>(chain.bad_free[at(l)].size())) {
        return fmt::format(
            "chain {} level {}: total left {} (counted {}), bad free {} (counted {})",
            chain.name,
            l,
            chain.total_left[at(l)],
            left,
            chain.bad_free[at(l)].size(),
            bad);
      }
      std::int32_t all = 0, doomed = 0;
      for (const Index number : chain.vcs) {
        const Holding& h = *cells.find_holding(number, static_cast<Index>(k));
        std::int32_t unbound = 0;
        for (const Index root : h.roots[at(l)].cells)
          unbound += cells.v(root).physical == kNone ? 1 : 0;
        if (unbound != h.free[at(l)])
          return fmt::format("chain {} level {}: VC {} has {} free, counted {}",
                             chain.name,
                             l,
                             cells.vc(number).name,
                             h.free[at(l)],
                             unbound);
        all += unbound;
        doomed += static_cast<std::int32_t>(h.doomed[at(l)].size());
        for (const Index cell : h.doomed[at(l)]) {
          if (cells.p(cell).healthy || cells.p(cell).virt == kNone ||
              cells.v(cells.p(cell).virt).vc != number)
            return fmt::format("{} is doomed for no reason", cells.address(cell));
        }
      }
      if (all != chain.all_vc_free[at(l)] || doomed != chain.all_vc_doomed[at(l)])
        return fmt::format("chain {} level {}: all free {} (counted {}), doomed {} ({})",
                           chain.name,
                           l,
                           chain.all_vc_free[at(l)],
                           all,
                           chain.all_vc_doomed[at(l)],
                           doomed);
    }
  }
  return "";
}

}  // namespace

std::string check_books(const CellAllocator& allocator) {
  std::string wrong = check_physical(allocator.cells());
  if (wrong.empty()) wrong = check_virtual(allocator.cells());
  if (wrong.empty()) wrong = check_counters(allocator.cells());
  return wrong;
}

std::string check_leaves(const CellAllocator& allocator) {
  const Cells& cells = allocator.cells();
  std::vector<const Group*> users(cells.physical.size(), nullptr),
      reservers(cells.physical.size(), nullptr);
  for (const Group* group : allocator.groups()) {
    const bool preempting = group->state == GroupState::kPreempting;
    for (const Group::Member& member : group->members) {
      for (std::size_t i = 0; i < member.physical.size(); ++i) {
        const Index leaf = member.physical[i];
        if (leaf == kNone) continue;
        if (group->has_virtual && cells.p(leaf).allocated_virtual == kNone &&
            (preempting || cells.p(leaf).state == CellState::kUsed))
          return fmt::format(
              "{} is guaranteed but its leaf {} is not", group->name, cells.address(leaf));
        auto& owners = preempting ? reservers : users;
        if (owners[at(leaf)] != nullptr)
          return fmt::format("leaf {} is given to {} and {}",
                             cells.address(leaf),
                             owners[at(leaf)]->name,
                             group->name);
        owners[at(leaf)] = group;
      }
    }
    if (!preempting && group->allocated_pods == 0)
      return fmt::format("{} has no pod but stays", group->name);
  }
  for (const Index leaf : cells.leaves) {
    const PhysicalCell& c = cells.p(leaf);
    const bool used = users[at(leaf)] != nullptr, reserved = reservers[at(leaf)] != nullptr;
    const CellState want = used       ? (reserved ? CellState::kReserving : CellState::kUsed)
                           : reserved ? CellState::kReserved
                                      : CellState::kFree;
    if (c.state != want)
      return fmt::format(
          "leaf {} is {}, should be {}", cells.address(leaf), to_string(c.state), to_string(want));
    if ((c.priority != kFreePriority) != (used || reserved))
      return fmt::format("leaf {} has priority {}", cells.address(leaf), c.priority);
    if (used && allocator.user_of(leaf) != users[at(leaf)])
      return fmt::format("leaf {} names another user", cells.address(leaf));
    if (c.allocated_virtual != kNone && c.virt != c.allocated_virtual)
      return fmt::format("leaf {} is bound to another cell than it was allocated with",
                         cells.address(leaf));
  }
  return "";
}

std::string check_promises(const CellAllocator& allocator) {
  const Cells& cells = allocator.cells();
  // What is taken for good: the physical cell of every preassigned cell that a gang uses, and
  // pinned cells.
  std::map<Index, Index> taken;  // physical cell -> VC
  for (const VirtualCluster& vc : cells.vcs) {
    for (const PinnedHolding& pinned : vc.pinned) taken[pinned.physical] = cells.find_vc(vc.name);
  }
  for (const Index leaf : cells.leaves) {
    const Index v = cells.p(leaf).allocated_virtual;
    if (v == kNone) continue;
    Index cell = leaf;
    while (cells.p(cell).level < cells.v(cells.v(v).root).level) cell = cells.p(cell).parent;
    const auto [it, fresh] = taken.emplace(cell, cells.v(v).vc);
    if (!fresh && it->second != cells.v(v).vc)
      return fmt::format("{} serves two virtual clusters", cells.address(cell));
  }
  // taken_before[i]: how many of the first i leaves lie in a taken cell.
  std::vector<std::int32_t> taken_before(cells.leaves.size() + 1, 0);
  for (const auto& [cell, vc] : taken) {
    for (Index l = cells.p(cell).leaf_begin; l < cells.p(cell).leaf_end; ++l)
      taken_before[at(l) + 1] = 1;
  }
  for (std::size_t i = 1; i < taken_before.size(); ++i) taken_before[i] += taken_before[i - 1];
  const auto blocked = [&](Index cell) {
    return taken_before[at(cells.p(cell).leaf_end)] > taken_before[at(cells.p(cell).leaf_begin)];
  };
  for (std::size_t k = 0; k < cells.chains.size(); ++k) {
    const Chain& chain = cells.chains[k];
    std::int64_t carried = 0;  // cells of this level out of larger free ones
    for (std::int32_t l = chain.top; l >= 1; --l) {
      std::int64_t owned = 0, used = 0, whole = 0;
      for (const Index number : chain.vcs)
        owned += static_cast<std::int64_t>(
            cells.find_holding(number, static_cast<Index>(k))->roots[at(l)].cells.size());
      for (const auto& [cell, vc] : taken)
        used += cells.p(cell).chain == static_cast<Index>(k) && cells.p(cell).level == l &&
                        !cells.p(cell).pinned
                    ? 1
                    : 0;
      for (const Index cell : chain.full[at(l)])
        whole += !blocked(cell) && (cells.p(cell).parent == kNone || blocked(cells.p(cell).parent))
                     ? 1
                     : 0;
      const std::int64_t left = whole + carried - (owned - used);
      if (left < 0)
        return fmt::format("chain {} level {}: {} promised and not used, {} can be carved",
                           chain.name,
                           l,
                           owned - used,
                           whole + carried);
      carried =
          left *
          (chain.full[at(l)].empty()
               ? 0
               : static_cast<std::int64_t>(cells.children(cells.p(chain.full[at(l)][0])).size()));
    }
  }
  return "";
}

std::string check_same(const CellAllocator& a, const CellAllocator& b) {
  const Cells& x = a.cells();
  const Cells& y = b.cells();
  for (std::size_t i = 0; i < x.leaves.size(); ++i) {
    const PhysicalCell& c = x.p(x.leaves[i]);
    const PhysicalCell& d = y.p(y.leaves[i]);
    if (c.priority != d.priority || c.state != d.state)
      return fmt::format("leaf {}: priority {} {}, rebuilt {} {}",
                         x.address(x.leaves[i]),
                         c.priority,
                         to_string(c.state),
                         d.priority,
                         to_string(d.state));
    if ((a.user_of(x.leaves[i]) == nullptr) != (b.user_of(y.leaves[i]) == nullptr))
      return fmt::format("leaf {}: user differs after a rebuild", x.address(x.leaves[i]));
  }
  for (std::size_t k = 0; k < x.chains.size(); ++k) {
    const auto shown = [](const auto& counts) {
      std::string text;
      for (const auto n : counts) text += fmt::format(" {}", n);
      return text;
    };
    if (x.chains[k].total_left != y.chains[k].total_left)
      return fmt::format("chain {}: cells left by level{}, rebuilt{}",
                         x.chains[k].name,
                         shown(x.chains[k].total_left),
                         shown(y.chains[k].total_left));
    if (x.chains[k].all_vc_free != y.chains[k].all_vc_free)
      return fmt::format("chain {}: cells free in all VCs by level{}, rebuilt{}",
                         x.chains[k].name,
                         shown(x.chains[k].all_vc_free),
                         shown(y.chains[k].all_vc_free));
  }
  if (a.groups().size() != b.groups().size()) return "gangs are missing after a rebuild";
  return "";
}

}  // namespace muster::dst
