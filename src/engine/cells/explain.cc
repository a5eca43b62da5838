#include "engine/cells/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// A view that a gang may be placed on.
struct Place {
  const View* view;
  bool physical;
  std::string where;
};

/// One cell of a view with the room in it.
struct Room {
  Index cell;
  std::int32_t total;
  std::int32_t used;
  std::int32_t free;
  std::int32_t taken = 0;
};

/// "2 x 4 + 1 x 8".
std::string sizes(const PodSpec& spec) {
  std::vector<std::string> parts;
  for (const GroupMember& member : spec.members)
    parts.push_back(fmt::format("{} x {}", member.pods, member.leaves));
  return join(parts, " + ");
}

/// The leaf cells that each pod of a gang needs, ascending.
std::vector<std::int32_t> sizes_of_pods(const PodSpec& spec) {
  std::vector<std::int32_t> pods;
  for (const GroupMember& member : spec.members)
    pods.insert(pods.end(), at(member.pods), member.leaves);
  std::sort(pods.begin(), pods.end());
  return pods;
}

std::vector<Place> places(const Cells& cells, const PodSpec& spec) {
  std::vector<Place> out;
  const Index vc = cells.find_vc(spec.vc);
  if (vc == kNone) return out;
  const auto of_type = [&](Index chain) {
    return spec.leaf_type.empty() ||
           cells.type(cells.chain(chain).leaf_type).name == spec.leaf_type;
  };
  if (!spec.pinned_cell.empty()) {
    for (const PinnedHolding& pinned : cells.vc(vc).pinned) {
      if (pinned.id == spec.pinned_cell)
        out.push_back(
            {&cells.view(pinned.view), false, fmt::format(" in pinned cell {}", pinned.id)});
    }
  } else if (spec.priority < 0) {
    for (const Chain& chain : cells.chains) {
      if (of_type(static_cast<Index>(&chain - cells.chains.data())))
        out.push_back({&cells.view(chain.view), true, ""});
    }
  } else {
    for (const Holding& holding : cells.vc(vc).holdings) {
      if (holding.has_cells && of_type(holding.chain))
        out.push_back({&cells.view(holding.view), false, ""});
    }
  }
  return out;
}

/// The cells that must still be freed before `pods` (ascending) fit: what fits in the free room
/// does not count, and the cells that have the most room already are emptied first.
std::vector<Index> to_be_freed(std::vector<Room> rooms, std::vector<std::int32_t> pods) {
  std::stable_sort(
      rooms.begin(), rooms.end(), [](const Room& a, const Room& b) { return a.free > b.free; });
  for (Room& room : rooms) {
    while (!pods.empty() && room.free >= pods.back()) {
      room.free -= pods.back();
      room.taken += pods.back();
      pods.pop_back();
    }
  }
  std::vector<Index> out;
  for (const Room& room : rooms) {
    if (pods.empty()) break;
    if (room.used == 0) continue;
    out.push_back(room.cell);
    for (std::int32_t gained = room.total - room.taken; !pods.empty() && gained >= pods.back();
         pods.pop_back())
      gained -= pods.back();
  }
  return out;
}

/// The gangs that sit in a cell, added to `names` up to three.
void note_holders(const Cells& cells,
                  const Groups& groups,
                  const Place& place,
                  Index cell,
                  std::vector<std::string>& names) {
  const auto note = [&](Index leaf) {
    const Group* user = leaf == kNone ? nullptr : groups.user_of(cells, leaf);
    if (user != nullptr && names.size() < 3 &&
        std::find(names.begin(), names.end(), user->name) == names.end())
      names.push_back(user->name);
  };
  if (place.physical) {
    for (Index l = cells.p(cell).leaf_begin; l < cells.p(cell).leaf_end; ++l)
      note(cells.leaves[at(l)]);
  } else {
    for (Index l = cells.v(cell).leaf_begin; l < cells.v(cell).leaf_end; ++l)
      note(cells.v(cells.virtual_leaves[at(l)]).physical);
  }
}

std::string explain_place(const Cells& cells,
                          const Groups& groups,
                          const Place& place,
                          const std::vector<std::int32_t>& pods) {
  const std::int32_t largest = pods.empty() ? 0 : pods.back();
  std::int32_t free = 0, partly = 0, bad = 0, most_free = 0;
  Index biggest = kNone;
  std::vector<Room> rooms;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(place.view->size()); ++i) {
    const Index cell = place.view->entry(i).cell;
    const std::int32_t total = place.view->entry(i).total;
    const std::int32_t used = place.physical ? cells.p(cell).used_total : cells.v(cell).used_total;
    if (biggest == kNone || total > place.view->entry(biggest).total) biggest = i;
    if (total < largest) continue;
    if (!(place.physical ? cells.p(cell).healthy : cells.v(cell).healthy)) {
      ++bad;
      continue;
    }
    rooms.push_back({.cell = cell, .total = total, .used = used, .free = total - used});
    free += used == 0 ? 1 : 0;
    if (used == 0 || used == total) continue;
    ++partly;
    most_free = std::max(most_free, total - used);
  }
  if (biggest == kNone) return "";
  const auto type_of = [&](Index cell) {
    return cells.type(place.physical ? cells.p(cell).type : cells.v(cell).type).name;
  };
  if (rooms.empty() && bad == 0) {
    const View::Entry& e = place.view->entry(biggest);
    return fmt::format("no cell is that large: the largest is {} with {}; cells are never combined",
                       type_of(e.cell),
                       e.total);
  }
  const Index kind = rooms.empty() ? place.view->entry(biggest).cell : rooms.front().cell;
  std::string text = fmt::format("of {} {}{} {} free, {} partly free",
                                 static_cast<std::int32_t>(rooms.size()) + bad,
                                 type_of(kind),
                                 place.where,
                                 free,
                                 partly);
  if (most_free > 0) text += fmt::format(" (at most {} in one)", most_free);
  if (bad > 0) text += fmt::format(", {} bad", bad);
  const std::vector<Index> wanted = to_be_freed(std::move(rooms), pods);
  std::vector<std::string> holders;
  for (const Index cell : wanted) note_holders(cells, groups, place, cell, holders);
  if (!holders.empty())
    text += fmt::format(": free {} or wait for {}",
                        wanted.size() == 1 ? "one" : fmt::format("{}", wanted.size()),
                        join(holders, ", "));
  return text;
}

}  // namespace

bool could_hold(const Cells& cells, const PodSpec& spec) {
  const std::vector<std::int32_t> pods = sizes_of_pods(spec);
  const std::vector<Place> all = places(cells, spec);
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

std::string explain(const Cells& cells, const Groups& groups, const PodSpec& spec) {
  const std::vector<std::int32_t> pods = sizes_of_pods(spec);
  std::vector<std::string> parts;
  for (const Place& place : places(cells, spec)) {
    if (std::string part = explain_place(cells, groups, place, pods); !part.empty())
      parts.push_back(std::move(part));
  }
  if (parts.empty()) return "";
  const std::string who = spec.priority < 0 ? "an opportunistic gang of " + spec.vc : spec.vc;
  return fmt::format("{} needs {} {}, each pod in one cell; {}",
                     who,
                     sizes(spec),
                     spec.leaf_type.empty() ? "leaf cells" : spec.leaf_type,
                     join(parts, "; "));
}

}  // namespace muster::engine::cells
