// Properties of cells against programs too slow and simple to be wrong: the order of a view against
// a stable sort, splitting and merging against a fresh tree, mapping against exhaustive search.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "base/random.h"
#include "books.h"
#include "cell_config.h"
#include "engine/cells/allocator.h"

namespace muster::dst {
namespace {

using namespace engine::cells;

constexpr Time kNow{1'700'000'000'000'000};

RC_GTEST_PROP(CellView, OrderEqualsAStableSortAtEverySearch, ()) {
  const auto size = *rc::gen::inRange(1, 12);
  View view;
  std::vector<std::int32_t> order;
  std::vector<View::Key> keys(static_cast<std::size_t>(size));
  for (std::int32_t i = 0; i < size; ++i) {
    view.add(i, *rc::gen::element(2, 4));
    order.push_back(i);
  }
  const auto changes = *rc::gen::container<std::vector<std::tuple<int, int, int, bool, bool>>>(
      rc::gen::tuple(rc::gen::inRange(0, size),
                     rc::gen::inRange(0, 3),
                     rc::gen::inRange(0, 2),
                     rc::gen::arbitrary<bool>(),
                     rc::gen::arbitrary<bool>()));
  for (const auto& [entry, same, higher, bad, search] : changes) {
    keys[static_cast<std::size_t>(entry)] = {bad, false, same, higher};
    view.touch(entry);
    if (!search) continue;
    const auto key_of = [&](std::int32_t i) { return keys[static_cast<std::size_t>(i)]; };
    view.refresh(key_of);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return View::pack(key_of(a)) < View::pack(key_of(b));
    });
    RC_ASSERT(view.order() == order);
  }
}

struct Placed {
  PodRef ref;
  PodSpec spec;
  BindInfo bind;
};

std::optional<Placed> place(CellAllocator& cells,
                            const std::string& vc,
                            std::int32_t priority,
                            std::int32_t leaves,
                            const std::string& name) {
  Placed out;
  out.ref = {name, "ns/" + name};
  out.spec.vc = vc;
  out.spec.priority = priority;
  out.spec.leaves = leaves;
  out.spec.group = name;
  out.spec.members = {{1, leaves}};
  Decision decision = cells.schedule({out.ref, out.spec, Phase::kFiltering, nullptr, kNow});
  if (decision.kind != Decision::Kind::kBind) return std::nullopt;
  out.bind = decision.bind;
  if (!cells.add_allocated(out.ref, out.spec, out.bind, kNow)) return std::nullopt;
  return out;
}

RC_GTEST_PROP(Cells, WhatWasSplitMergesAgain, (std::uint32_t seed)) {
  Random random(seed);
  const Config config = random_config(random, false);
  auto cells = CellAllocator::create(config, Options{true, false});
  RC_PRE(cells.has_value());
  auto fresh = CellAllocator::create(config, Options{true, false});
  std::vector<Placed> placed;
  for (int i = 0; i < 30; ++i) {
    if (!placed.empty() && random.chance(40)) {
      std::swap(placed[random.below(placed.size())], placed.back());
      RC_ASSERT(cells->delete_allocated(placed.back().ref, placed.back().spec, placed.back().bind)
                    .has_value());
      placed.pop_back();
    } else {
      const auto& vc = config.virtual_clusters[random.below(config.virtual_clusters.size())];
      if (auto one = place(*cells,
                           vc.name,
                           random.chance(30) ? -1 : 0,
                           1 + static_cast<std::int32_t>(random.below(3)),
                           "p" + std::to_string(i)))
        placed.push_back(std::move(*one));
    }
    RC_ASSERT(check_books(*cells) == "");
  }
  for (const Placed& pod : placed)
    RC_ASSERT(cells->delete_allocated(pod.ref, pod.spec, pod.bind).has_value());
  RC_ASSERT(check_same(*cells, *fresh) == "");
  for (std::size_t k = 0; k < cells->cells().chains.size(); ++k) {
    for (std::size_t l = 1; l < cells->cells().chains[k].free.size(); ++l) {
      auto a = cells->cells().chains[k].free[l];
      auto b = fresh->cells().chains[k].free[l];
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      RC_ASSERT(a == b);
    }
  }
}

/// One rack of `nodes` nodes with 2 switches of 2 devices, wholly owned; some nodes are not
/// suggested and some devices are used opportunistically. Pods ask for whole nodes: a mapping
/// exists iff enough nodes are suggested.
RC_GTEST_PROP(CellMapping, FindsAPlacementWheneverExhaustiveSearchDoes, (std::uint32_t seed)) {
  Random random(seed);
  const int nodes = 2 + static_cast<int>(random.below(4));
  Config config;
  config.cell_types = {{"SWITCH", "GPU", 2, false, 0},
                       {"NODE", "SWITCH", 2, true, 0},
                       {"RACK", "NODE", nodes, false, 0}};
  PhysicalCellSpec rack;
  rack.type = "RACK";
  for (int n = 0; n < nodes; ++n) {
    PhysicalCellSpec node;
    node.address = "n" + std::to_string(n);
    rack.children.push_back(node);
  }
  config.physical_cells = {rack};
  config.virtual_clusters = {{"a", {{random.chance(50) ? "RACK" : "RACK.NODE", 1, 0}}, {}, 0}};
  if (config.virtual_clusters[0].cells[0].path == "RACK.NODE")
    config.virtual_clusters[0].cells[0].number = nodes;
  auto cells = CellAllocator::create(config, Options{true, false});
  RC_ASSERT(cells.has_value());
  std::vector<std::string> suggested;
  for (int n = 0; n < nodes; ++n) {
    if (random.chance(60)) suggested.push_back("n" + std::to_string(n));
  }
  PodSpec spec;
  spec.vc = "a";
  spec.leaves = 4;
  spec.group = "gang";
  spec.ignore_suggested = false;
  spec.members = {
      {1 + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(nodes))), 4}};
  const PodRef pod{"u", "ns/u"};
  const Decision decision = cells->schedule({pod, spec, Phase::kFiltering, &suggested, kNow});
  // Exhaustive: choose any set of suggested nodes of the right size. It exists iff there are
  // enough.
  const bool possible = static_cast<std::size_t>(spec.members[0].pods) <= suggested.size();
  RC_ASSERT((decision.kind == Decision::Kind::kBind) == possible);
  if (!possible) return;
  std::vector<std::string> used;
  for (const PodPlacement& one : (*decision.bind.group)[0].pods) {
    RC_ASSERT(std::find(suggested.begin(), suggested.end(), one.node) != suggested.end());
    RC_ASSERT(std::find(used.begin(), used.end(), one.node) == used.end());
    used.push_back(one.node);
  }
}

/// Whether a wanted virtual cell can be given the physical cell, trying every assignment of its
/// wanted children.
class Exhaustive {
 public:
  Exhaustive(const Cells& cells, const std::set<std::string>& suggested)
      : cells_(cells), suggested_(suggested) {}

  void want(Index leaf) {
    for (Index cell = leaf; cell != kNone; cell = cells_.v(cell).parent) wanted_.insert(cell);
  }

  bool fits(Index v, Index p) const {
    if (cells_.v(v).physical != kNone || cells_.p(p).virt != kNone) {
      if (cells_.v(v).physical != p) return false;
    } else if (!usable(p)) {
      return false;
    }
    std::vector<Index> children;
    for (const Index child : cells_.children(cells_.v(v))) {
      if (wanted_.contains(child)) children.push_back(child);
    }
    std::set<Index> taken;
    return assign(children, 0, p, taken);
  }

 private:
  bool usable(Index p) const {
    const auto nodes = cells_.nodes_of(cells_.p(p));
    if (nodes.size() == 1 && !cells_.p(p).healthy) return false;
    return std::any_of(nodes.begin(), nodes.end(), [&](Index n) {
      return suggested_.contains(cells_.nodes[static_cast<std::size_t>(n)].name);
    });
  }

  bool assign(const std::vector<Index>& children,
              std::size_t i,
              Index parent,
              std::set<Index>& taken) const {
    if (i == children.size()) return true;
    for (const Index candidate : cells_.children(cells_.p(parent))) {
      if (taken.contains(candidate) || !fits(children[i], candidate)) continue;
      taken.insert(candidate);
      if (assign(children, i + 1, parent, taken)) return true;
      taken.erase(candidate);
    }
    return false;
  }

  const Cells& cells_;
  const std::set<std::string>& suggested_;
  std::set<Index> wanted_;
};

/// A pinned tree of any shape, some of it in use; gangs of mixed sizes; some nodes bad or not
/// suggested. The virtual placement is the search's own; if it cannot be mapped, no assignment of
/// siblings maps it.
RC_GTEST_PROP(CellMapping, SiblingsAreMappedWheneverExhaustiveSearchCan, (std::uint32_t seed)) {
  Random random(seed);
  Config config;
  const auto wide = [&] { return 1 + static_cast<std::int32_t>(random.below(3)); };
  config.cell_types = {{"SWITCH", "GPU", wide(), false, 0},
                       {"NODE", "SWITCH", wide(), true, 0},
                       {"ROW", "NODE", wide(), false, 0},
                       {"RACK", "ROW", wide() + 1, false, 0}};
  PhysicalCellSpec rack;
  rack.type = "RACK";
  rack.pinned_id = "pin";
  int n = 0;
  for (std::int32_t r = 0; r < config.cell_types[3].child_number; ++r) {
    PhysicalCellSpec row;
    for (std::int32_t k = 0; k < config.cell_types[2].child_number; ++k) {
      PhysicalCellSpec node;
      node.address = "n" + std::to_string(n++);
      row.children.push_back(node);
    }
    rack.children.push_back(row);
  }
  config.physical_cells = {rack};
  config.virtual_clusters = {{"a", {}, {{"pin", 0}}, 0}};
  auto cells = CellAllocator::create(config, Options{true, false});
  RC_ASSERT(cells.has_value());
  for (int i = 0; i < n; ++i) {
    if (random.chance(15)) cells->set_node("n" + std::to_string(i), false);
  }
  std::set<std::string> suggested;
  std::vector<std::string> list;
  for (int i = 0; i < n; ++i) {
    if (random.chance(70)) list.push_back("n" + std::to_string(i));
  }
  suggested.insert(list.begin(), list.end());
  for (int i = 0; i < 6; ++i) {
    PodSpec spec;
    spec.vc = "a";
    spec.priority = random.chance(20) ? -1 : 0;
    if (spec.priority == 0) spec.pinned_cell = "pin";
    spec.ignore_suggested = i % 2 == 0;
    spec.group = "g" + std::to_string(i);
    spec.members = {{wide(), wide()}, {1, wide()}};
    spec.leaves = spec.members[0].leaves;
    const PodRef pod{spec.group, "ns/" + spec.group};
    const std::set<std::string> everywhere = [&] {
      std::set<std::string> all;
      for (int k = 0; k < n; ++k) all.insert("n" + std::to_string(k));
      return all;
    }();
    const Decision decision = cells->schedule({pod, spec, Phase::kFiltering, &list, kNow});
    if (decision.kind == Decision::Kind::kBind) {
      RC_ASSERT(cells->add_allocated(pod, spec, decision.bind, kNow).has_value());
      RC_ASSERT(check_books(*cells) == "");
      continue;
    }
    const auto json = decision.reason.find("(virtual placement : ");
    if (json == std::string::npos) continue;
    Exhaustive search(cells->cells(), spec.ignore_suggested ? everywhere : suggested);
    std::size_t wanted = 0;
    for (std::size_t v = 0; v < cells->cells().virtuals.size(); ++v) {
      if (cells->cells().virtuals[v].level != 1 ||
          decision.reason.find('"' + cells->cells().virtual_address[v] + '"', json) ==
              std::string::npos)
        continue;
      search.want(static_cast<Index>(v));
      ++wanted;
    }
    RC_ASSERT(wanted > 0);
    const Index root = cells->cells().vcs[0].pinned[0].root;
    RC_ASSERT(!search.fits(root, cells->cells().v(root).physical));
  }
}

/// Devices of a node picked for one pod: the level of their common cell is the lowest that any set
/// of free devices reaches.
RC_GTEST_PROP(CellMapping, PicksDevicesAsCloseTogetherAsAnySet, (std::uint32_t seed)) {
  Random random(seed);
  Config config;
  config.cell_types = {
      {"PAIR", "GPU", 2, false, 0}, {"QUAD", "PAIR", 2, false, 0}, {"NODE", "QUAD", 2, true, 0}};
  PhysicalCellSpec node;
  node.type = "NODE";
  node.address = "n0";
  config.physical_cells = {node};
  config.virtual_clusters = {{"a", {{"NODE", 1, 0}}, {}, 0}};
  auto cells = CellAllocator::create(config, Options{true, false});
  RC_ASSERT(cells.has_value());
  std::vector<Placed> singles;
  for (int i = 0; i < 8; ++i) singles.push_back(*place(*cells, "a", 0, 1, "s" + std::to_string(i)));
  std::vector<int> free;
  for (const Placed& one : singles) {
    if (!random.chance(60)) continue;
    free.push_back(one.bind.leaves[0]);
    RC_ASSERT(cells->delete_allocated(one.ref, one.spec, one.bind).has_value());
  }
  const int want = 1 + static_cast<int>(random.below(4));
  const auto got = place(*cells, "a", 0, want, "pod");
  RC_ASSERT(got.has_value() == (static_cast<int>(free.size()) >= want));
  if (!got) return;
  const auto level = [](const std::vector<int>& set) {
    for (int l = 0; l < 4; ++l) {
      if (std::all_of(set.begin(), set.end(), [&](int d) { return d >> l == set[0] >> l; }))
        return l;
    }
    return 4;
  };
  int best = 4;
  for (std::uint32_t mask = 1; mask < (1U << free.size()); ++mask) {
    std::vector<int> set;
    for (std::size_t i = 0; i < free.size(); ++i) {
      if ((mask >> i & 1U) != 0) set.push_back(free[i]);
    }
    if (static_cast<int>(set.size()) == want) best = std::min(best, level(set));
  }
  RC_ASSERT(level(got->bind.leaves) == best);
}

}  // namespace
}  // namespace muster::dst
