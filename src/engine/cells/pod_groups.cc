#include "engine/cells/pod_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

namespace muster::engine::cells {

namespace {

/// Of one gang, far beyond any cluster.
constexpr std::int64_t kMaxLeaves = 10'000'000;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

PodGroupSearch::PodGroupSearch(const Cells& cells, const Where& where, const PodSpec& spec)
    : cells_(cells), where_(where), spec_(spec) {
  is_taken_.resize(where.physical ? cells.leaves.size() : cells.virtual_leaves.size(), 0);
  closest_.counts.resize(where.physical ? cells.physical.size() : cells.virtuals.size(), 0);
}

bool PodGroupSearch::run(Placement& out, std::string& reason) {
  out_ = &out;
  for (const std::int32_t priority : {kOpportunistic, spec_.priority}) {
    priority_ = priority;
    give_back(0);
    if (place_group(spec_.root[0], kNone)) return true;
    if (spec_.priority < 0) break;
  }
  reason = reason_;
  return false;
}

bool PodGroupSearch::place_group(const PodGroup& group, Index within) {
  const std::vector<Index> candidates = candidates_of(group, within);
  if (candidates.empty()) return insufficient();
  for (const Index cell : candidates) {
    // A rack with a bad node has good ones, too.
    if (cell != within && !seen(cell).healthy && !seen(cell).multi_node) return bad(cell);
    const std::size_t before = taken_.size();
    if (place_inside(group, cell)) return true;
    give_back(before);
  }
  return false;
}

bool PodGroupSearch::place_inside(const PodGroup& group, Index within) {
  if (group.member >= 0 && !place_pods(group.member, within)) return false;
  std::vector<const PodGroup*> children;
  for (const PodGroup& child : group.children) children.push_back(&child);
  std::stable_sort(children.begin(), children.end(), [&](const PodGroup* a, const PodGroup* b) {
    return leaves_of(*a) > leaves_of(*b);
  });
  return std::all_of(children.begin(), children.end(), [&](const PodGroup* child) {
    return place_group(*child, within);
  });
}

bool PodGroupSearch::place_pods(std::int32_t number, Index within) {
  const GroupMember& member = spec_.members[at(number)];
  Placement::Member& placed = out_->members[at(number)];
  std::vector<Index>& leaves = where_.physical ? placed.physical : placed.virt;
  leaves.clear();
  const std::int32_t level = level_of(member.cell_type);
  if (level == 0) return insufficient();
  std::int32_t pods = 0;
  for (const Index node : ordered(nodes_of(within))) {
    if (pods == member.pods) break;
    if (!seen(node).healthy) return bad(node);
    if (seen(node).level < level) continue;
    load(node, level);
    std::vector<Index> chosen;
    while (pods < member.pods && pick_closest(
                                     load_,
                                     node,
                                     member.cell_number,
                                     closest_,
                                     [&](Index cell) { return seen(cell).parent; },
                                     chosen)) {
      take(chosen, leaves);
      chosen.clear();
      ++pods;
    }
  }
  return pods == member.pods || insufficient();
}

std::vector<Index> PodGroupSearch::candidates_of(const PodGroup& group, Index within) const {
  if (group.within.empty()) return {within};
  const std::int32_t level = level_of(group.within);
  if (level == 0 || at(level) >= where_.full.size()) return {};
  if (within == kNone) return ordered(where_.full[at(level)]);
  if (level >= seen(within).level) return {within};
  std::vector<Index> out;
  add_inside(within, level, out);
  return ordered(std::move(out));
}

std::vector<Index> PodGroupSearch::nodes_of(Index within) const {
  std::vector<Index> out;
  if (within == kNone) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(where_.view.size()); ++i)
      out.push_back(where_.view.entry(i).cell);
    return out;
  }
  if (!seen(within).multi_node) return {within};
  std::vector<Index> above = {within};
  while (!above.empty()) {
    std::vector<Index> below;
    for (const Index cell : above) {
      for (const Index child : children(cell))
        (seen(child).multi_node ? below : out).push_back(child);
    }
    above = std::move(below);
  }
  return out;
}

void PodGroupSearch::add_inside(Index cell, std::int32_t level, std::vector<Index>& out) const {
  if (seen(cell).level == level) return out.push_back(cell);
  for (const Index child : children(cell)) add_inside(child, level, out);
}

/// The cells of a level in a node that nobody of equal or higher rank uses: the free ones first, and
/// the neighbours of what is used before others.
void PodGroupSearch::load(Index node, std::int32_t level) {
  std::vector<Index> all;
  add_by_use(node, level, all);
  std::erase_if(all, [&](Index cell) {
    const Seen s = seen(cell);
    return std::any_of(is_taken_.begin() + s.leaf_begin,
                       is_taken_.begin() + s.leaf_end,
                       [](char taken) { return taken != 0; });
  });
  load_.clear();
  for (const bool free : {true, false}) {
    for (const Index cell : all) {
      const std::int32_t user = seen(cell).priority;
      if ((user == kFreePriority) == free && (free || user < priority_)) load_.push_back(cell);
    }
  }
}

void PodGroupSearch::add_by_use(Index cell, std::int32_t level, std::vector<Index>& out) const {
  if (seen(cell).level == level) return out.push_back(cell);
  std::vector<Index> below = children(cell);
  std::stable_sort(below.begin(), below.end(), [&](Index a, Index b) {
    return seen(a).same + seen(a).higher > seen(b).same + seen(b).higher;
  });
  for (const Index child : below) add_by_use(child, level, out);
}

void PodGroupSearch::take(const std::vector<Index>& chosen, std::vector<Index>& leaves) {
  for (const Index cell : chosen) {
    for (Index l = seen(cell).leaf_begin; l < seen(cell).leaf_end; ++l) {
      leaves.push_back(where_.physical ? cells_.leaves[at(l)] : cells_.virtual_leaves[at(l)]);
      is_taken_[at(l)] = 1;
      taken_.push_back(l);
    }
  }
}

void PodGroupSearch::give_back(std::size_t until) {
  for (; taken_.size() > until; taken_.pop_back()) is_taken_[at(taken_.back())] = 0;
}

bool PodGroupSearch::insufficient() {
  reason_ = fmt::format("insufficient capacity when scheduling in {}", where_.name);
  return false;
}

bool PodGroupSearch::bad(Index cell) {
  reason_ = fmt::format("have to use at least one bad cell {} when scheduling in {}",
                        physical_address(cell),
                        where_.name);
  return false;
}

// ------------------------------------------------------------------ physical or virtual, all the same

PodGroupSearch::Seen PodGroupSearch::seen(Index cell) const {
  const auto common = [&](const auto& c, std::int32_t same, std::int32_t higher) {
    return Seen{.level = c.level,
                .healthy = c.healthy,
                .same = same,
                .higher = higher,
                .priority = c.priority,
                .parent = c.parent,
                .leaf_begin = c.leaf_begin,
                .leaf_end = c.leaf_end,
                .multi_node = cells_.type(c.type).multi_node};
  };
  if (!where_.physical) return common(cells_.v(cell), cells_.v(cell).used_total, 0);
  const PhysicalCell& c = cells_.p(cell);
  return common(c, c.used_opportunistic, c.used_total - c.used_opportunistic);
}

std::vector<Index> PodGroupSearch::children(Index cell) const {
  const auto list =
      where_.physical ? cells_.children(cells_.p(cell)) : cells_.children(cells_.v(cell));
  return {list.begin(), list.end()};
}

const std::string& PodGroupSearch::physical_address(Index cell) const {
  static const std::string kUnbound;
  const Index physical = where_.physical ? cell : cells_.v(cell).physical;
  return physical == kNone ? kUnbound : cells_.address(physical);
}

/// Healthy ones, the smallest, and the fullest first.
std::vector<Index> PodGroupSearch::ordered(std::vector<Index> list) const {
  const auto key = [&](Index cell) {
    const Seen s = seen(cell);
    return std::tuple(!s.healthy,
                      s.level,
                      -s.same,
                      s.higher,
                      std::string_view(physical_address(cell)),
                      std::string_view(where_.physical ? "" : cells_.vaddress(cell)));
  };
  std::stable_sort(list.begin(), list.end(), [&](Index a, Index b) { return key(a) < key(b); });
  return list;
}

std::int32_t PodGroupSearch::level_of(const std::string& type) const {
  if (type.empty()) return 1;
  const auto& types = cells_.chain(where_.chain).types;
  for (std::size_t level = 1; level < types.size(); ++level) {
    if (cells_.type(types[level]).name == type) return static_cast<std::int32_t>(level);
  }
  return 0;
}

std::int64_t PodGroupSearch::leaves_of(const PodGroup& group) const {
  std::int64_t out = 0;
  if (group.member >= 0) {
    const GroupMember& member = spec_.members[at(group.member)];
    out = std::int64_t{member.pods} * member.leaves;
  }
  for (const PodGroup& child : group.children) out += leaves_of(child);
  return out;
}

// ------------------------------------------------------------------ what a pod asks for

namespace {

Result<void> check_within(const Cells& cells, const PodGroup& group) {
  if (!group.within.empty() && !cells.type_index.contains(group.within))
    return fail(Code::kInvalid,
                fmt::format("Pod group {} is to be within one cell of type {} which the whole "
                            "cluster does not have",
                            group.name,
                            group.within));
  for (const PodGroup& child : group.children) {
    if (auto done = check_within(cells, child); !done) return done;
  }
  return {};
}

}  // namespace

Result<void> size_pod_groups(const Cells& cells, PodSpec& spec) {
  if (spec.root.empty()) return {};
  for (GroupMember& member : spec.members) {
    std::int32_t leaves = 1;
    if (!member.cell_type.empty()) {
      const auto found = cells.type_index.find(member.cell_type);
      if (found == cells.type_index.end())
        return fail(Code::kInvalid,
                    fmt::format("Pod requesting cell type {} which the whole cluster does not have",
                                member.cell_type));
      if (cells.type(found->second).multi_node)
        return fail(Code::kInvalid,
                    fmt::format("Pod requesting cell type {} which is larger than a node",
                                member.cell_type));
      leaves = cells.type(found->second).leaf_count;
    }
    const std::int64_t all = std::int64_t{leaves} * member.cell_number;
    if (all * member.pods > kMaxLeaves)
      return fail(Code::kInvalid,
                  fmt::format("Pod group {} asks for {} leaf cells; the most is {}",
                              spec.group,
                              all * member.pods,
                              kMaxLeaves));
    member.leaves = static_cast<std::int32_t>(all);
  }
  spec.leaves = spec.members[at(spec.member)].leaves;
  return check_within(cells, spec.root[0]);
}

}  // namespace muster::engine::cells
