// Why a gang waits, in cells: what it needs, what its virtual cluster has, who sits there.

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "engine/cells/allocator.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// "2 x 4 + 1 x 8".
std::string sizes(const PodSpec& spec) {
  std::vector<std::string> parts;
  for (const GroupMember& member : spec.members) parts.push_back(fmt::format("{} x {}", member.pods, member.leaves));
  return join(parts, " + ");
}

}  // namespace

std::vector<CellAllocator::Place> CellAllocator::places(const PodSpec& spec) const {
  std::vector<Place> out;
  const Index vc = cells_.find_vc(spec.vc);
  if (vc == kNone) return out;
  const auto of_type = [&](Index chain) { return spec.leaf_type.empty() || cells_.type(cells_.chain(chain).leaf_type).name == spec.leaf_type; };
  if (!spec.pinned_cell.empty()) {
    for (const PinnedHolding& pinned : cells_.vc(vc).pinned) {
      if (pinned.id == spec.pinned_cell) out.push_back({pinned.view.get(), false, fmt::format(" in pinned cell {}", pinned.id)});
    }
  } else if (spec.priority < 0) {
    for (const Chain& chain : cells_.chains) {
      if (of_type(static_cast<Index>(&chain - cells_.chains.data()))) out.push_back({chain.view.get(), true, ""});
    }
  } else {
    for (const Holding& holding : cells_.vc(vc).holdings) {
      if (holding.has_cells && of_type(holding.chain)) out.push_back({holding.view.get(), false, ""});
    }
  }
  return out;
}

bool CellAllocator::could_hold(const PodSpec& spec) const {
  std::vector<std::int32_t> pods;
  for (const GroupMember& member : spec.members) pods.insert(pods.end(), at(member.pods), member.leaves);
  std::sort(pods.begin(), pods.end());
  const std::vector<Place> all = places(spec);
  return std::any_of(all.begin(), all.end(), [&](const Place& place) {
    // The same walk as a search, through cells that are all free.
    std::size_t next = 0;
    for (std::size_t i = 0; i < place.view->size() && next < pods.size(); ++i) {
      std::int32_t free = place.view->entry(static_cast<std::int32_t>(i)).total;
      while (next < pods.size() && free >= pods[next]) free -= pods[next++];
    }
    return next == pods.size();
  });
}

std::string CellAllocator::explain_place(const Place& place, std::int32_t largest) const {
  std::int32_t fitting = 0, free = 0, partly = 0, bad = 0, most_free = 0;
  Index best = kNone, biggest = kNone;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(place.view->size()); ++i) {
    const Index cell = place.view->entry(i).cell;
    const std::int32_t total = place.view->entry(i).total;
    const std::int32_t used = place.physical ? cells_.p(cell).used_total : cells_.v(cell).used_total;
    if (biggest == kNone || total > place.view->entry(biggest).total) biggest = i;
    if (total < largest) continue;
    ++fitting;
    if (!(place.physical ? cells_.p(cell).healthy : cells_.v(cell).healthy)) {
      ++bad;
      continue;
    }
    free += used == 0 ? 1 : 0;
    partly += used > 0 && used < total ? 1 : 0;
    if (best == kNone || total - used > most_free) {
      most_free = total - used;
      best = cell;
    }
  }
  if (biggest == kNone) return "";
  const auto type_of = [&](Index cell) { return cells_.type(place.physical ? cells_.p(cell).type : cells_.v(cell).type).name; };
  if (fitting == 0) {
    const View::Entry& e = place.view->entry(biggest);
    return fmt::format("no cell is that large: the largest is {} with {}; cells are never combined", type_of(e.cell), e.total);
  }
  std::string text = fmt::format("of {} {}{} {} free, {} partly free", fitting, type_of(best == kNone ? place.view->entry(biggest).cell : best), place.where, free, partly);
  if (partly > 0 && most_free > 0) text += fmt::format(" (at most {} in one)", most_free);
  if (bad > 0) text += fmt::format(", {} bad", bad);
  // Whose end would help first: the gangs in the cell that has the most room already.
  std::vector<std::string> holders;
  const auto note = [&](Index leaf) {
    const Group* user = leaf == kNone ? nullptr : user_of(leaf);
    if (user != nullptr && holders.size() < 3 && std::find(holders.begin(), holders.end(), user->name) == holders.end()) holders.push_back(user->name);
  };
  if (best != kNone && place.physical) {
    for (Index l = cells_.p(best).leaf_begin; l < cells_.p(best).leaf_end; ++l) note(cells_.leaves[at(l)]);
  } else if (best != kNone) {
    for (Index l = cells_.v(best).leaf_begin; l < cells_.v(best).leaf_end; ++l) note(cells_.v(cells_.virtual_leaves[at(l)]).physical);
  }
  if (!holders.empty()) text += fmt::format(": free one or wait for {}", join(holders, ", "));
  return text;
}

std::string CellAllocator::explain(const PodSpec& spec) const {
  std::int32_t largest = 0;
  for (const GroupMember& member : spec.members) largest = std::max(largest, member.leaves);
  std::vector<std::string> parts;
  for (const Place& place : places(spec)) {
    if (std::string part = explain_place(place, largest); !part.empty()) parts.push_back(std::move(part));
  }
  if (parts.empty()) return "";
  const std::string who = spec.priority < 0 ? "an opportunistic gang of " + spec.vc : spec.vc;
  return fmt::format("{} needs {} {}, each pod in one cell; {}", who, sizes(spec), spec.leaf_type.empty() ? "leaf cells" : spec.leaf_type, join(parts, "; "));
}

}  // namespace muster::engine::cells
