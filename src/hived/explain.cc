#include "hived/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/strings.h"

namespace muster::hived {
namespace {

using namespace engine::cells;

/// The cells of one kind that a virtual cluster owns.
std::string owned_line(const Cells& cells, const std::vector<Index>& roots, std::string_view how) {
  std::size_t used = 0, partly = 0, bad = 0;
  for (const Index root : roots) {
    const VirtualCell& c = cells.v(root);
    const std::int32_t leaves = c.leaf_end - c.leaf_begin;
    bad += c.healthy ? 0 : 1;
    used += c.used_total == leaves ? 1 : 0;
    partly += c.used_total > 0 && c.used_total < leaves ? 1 : 0;
  }
  const VirtualCell& first = cells.v(roots[0]);
  std::string out = fmt::format("  {} {}{} of {} devices in {}: {} full, {} partly in use, {} free",
                                roots.size(),
                                cells.type(first.type).name,
                                how,
                                cells.type(first.type).leaf_count,
                                cells.chain(first.chain).name,
                                used,
                                partly,
                                roots.size() - used - partly);
  return out + (bad > 0 ? fmt::format(", {} bad\n", bad) : "\n");
}

std::string gang_line(const Cells& cells, const Group& group) {
  std::set<std::string> nodes;
  std::size_t devices = 0;
  for (const Group::Member& member : group.members) {
    for (const Index leaf : member.physical) {
      if (leaf == kNone) continue;
      ++devices;
      nodes.insert(cells.node_name(cells.p(leaf)));
    }
  }
  std::string rank = group.priority < 0 ? "opportunistic"
                     : group.has_virtual
                         ? fmt::format("priority {}", group.priority)
                         : fmt::format("priority {}, not guaranteed any more", group.priority);
  const std::vector<std::string> names(nodes.begin(), nodes.end());
  return fmt::format(
      "  {}: {} device{} on {}, {}{}\n",
      group.name,
      devices,
      devices == 1 ? "" : "s",
      join(names, ", "),
      rank,
      group.state == GroupState::kAllocated ? "" : ", " + to_lower(to_string(group.state)));
}

}  // namespace

std::string explain_virtual_cluster(const CellAllocator& allocator, const std::string& name) {
  const Cells& cells = allocator.cells();
  const Index number = cells.find_vc(name);
  if (number == kNone) return "";
  const VirtualCluster& vc = cells.vc(number);
  std::string owned;
  for (const Holding& holding : vc.holdings) {
    for (const RootList& roots : holding.roots) {
      if (!roots.cells.empty()) owned += owned_line(cells, roots.cells, "");
    }
  }
  for (const PinnedHolding& pinned : vc.pinned)
    owned += owned_line(cells, {pinned.root}, " (pinned " + pinned.id + ")");
  std::string out = owned.empty()
                        ? fmt::format("Virtual cluster {} owns nothing{}.\n",
                                      name,
                                      vc.configured ? "" : ": it is no longer in the configuration")
                        : fmt::format("Virtual cluster {} owns:\n{}", name, owned);
  std::string gangs;
  for (const Group* group : allocator.groups()) {
    if (group->vc == number) gangs += gang_line(cells, *group);
  }
  out += gangs.empty() ? "\nIt is not in use.\n" : "\nGangs:\n" + gangs;
  if (!vc.opportunistic.empty())
    out += fmt::format(
        "\n{} of the devices it uses are not its own: their owners may take them back at any time.\n",
        vc.opportunistic.size());
  return out;
}

}  // namespace muster::hived
