// Why a gang waits, in cells: what it needs, what its virtual cluster has, who sits there.

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "engine/cells/allocator.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

struct Count {
  std::int32_t entries = 0, free = 0, partly = 0, bad = 0, most_free = 0;
  Index best = kNone;  // the cell with the most room that is not enough
};

}  // namespace

std::string CellAllocator::explain(const PodSpec& spec) const {
  const Index vc = cells_.find_vc(spec.vc);
  if (vc == kNone) return "";
  std::int32_t largest = 0, pods = 0;
  for (const GroupMember& member : spec.members) {
    largest = std::max(largest, member.leaves);
    pods += member.pods;
  }
  std::vector<std::string> parts;
  const auto add = [&](const View& view, bool physical, const std::string& what) {
    Count count;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(view.size()); ++i) {
      const Index cell = view.entry(i).cell;
      const std::int32_t total = view.entry(i).total;
      const std::int32_t used = physical ? cells_.p(cell).used_total : cells_.v(cell).used_total;
      const bool healthy = physical ? cells_.p(cell).healthy : cells_.v(cell).healthy;
      ++count.entries;
      if (!healthy) {
        ++count.bad;
        continue;
      }
      count.free += used == 0 ? 1 : 0;
      count.partly += used > 0 && used < total ? 1 : 0;
      if (count.best == kNone || total - used > count.most_free) {
        count.most_free = total - used;
        count.best = cell;
      }
    }
    std::string text = fmt::format("{}: {} of {} cells free, {} partly, the most free in one is {}", what, count.free, count.entries, count.partly, count.most_free);
    if (count.bad > 0) text += fmt::format(", {} bad", count.bad);
    // Whose end would help first: the gangs in the cell that has the most room already.
    std::vector<std::string> holders;
    const auto note = [&](Index leaf) {
      const Group* user = leaf == kNone ? nullptr : user_of(leaf);
      if (user != nullptr && holders.size() < 3 && std::find(holders.begin(), holders.end(), user->name) == holders.end()) holders.push_back(user->name);
    };
    if (count.best != kNone && physical) {
      for (Index l = cells_.p(count.best).leaf_begin; l < cells_.p(count.best).leaf_end; ++l) note(cells_.leaves[at(l)]);
    } else if (count.best != kNone) {
      for (Index l = cells_.v(count.best).leaf_begin; l < cells_.v(count.best).leaf_end; ++l) note(cells_.v(cells_.virtual_leaves[at(l)]).physical);
    }
    if (!holders.empty()) text += fmt::format("; wait for {}", join(holders, ", "));
    parts.push_back(std::move(text));
  };
  const auto of_type = [&](Index chain) { return spec.leaf_type.empty() || cells_.type(cells_.chain(chain).leaf_type).name == spec.leaf_type; };
  if (!spec.pinned_cell.empty()) {
    for (const PinnedHolding& pinned : cells_.vc(vc).pinned) {
      if (pinned.id == spec.pinned_cell) add(*pinned.view, false, "pinned " + pinned.id);
    }
  } else if (spec.priority < 0) {
    for (std::size_t k = 0; k < cells_.chains.size(); ++k) {
      if (of_type(static_cast<Index>(k))) add(*cells_.chains[k].view, true, cells_.chains[k].name);
    }
  } else {
    for (const Holding& holding : cells_.vc(vc).holdings) {
      if (holding.has_cells && of_type(holding.chain)) add(*holding.view, false, cells_.chain(holding.chain).name);
    }
  }
  return fmt::format("{} needs {} in one node for each of {} pods ({})", spec.priority < 0 ? "an opportunistic gang of " + spec.vc : spec.vc, largest, pods, join(parts, "; "));
}

}  // namespace muster::engine::cells
