#include "hived/tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "hived/inspect.h"

namespace muster::hived {
namespace {

using namespace engine::cells;
using json::Object;
using json::Value;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

constexpr std::string_view kRed = "\x1b[31m", kGreen = "\x1b[32m", kYellow = "\x1b[33m",
                           kBlue = "\x1b[34m", kDim = "\x1b[2m", kOff = "\x1b[0m";

class Printer {
 public:
  Printer(const CellAllocator& allocator, const TreeOptions& options)
      : allocator_(allocator), cells_(allocator.cells()), options_(options) {}

  std::string run() {
    std::size_t bad = 0, used = 0;
    for (const Node& node : cells_.nodes) bad += node.healthy ? 0 : 1;
    for (const Index leaf : cells_.leaves) used += cells_.p(leaf).priority == kFreePriority ? 0 : 1;
    out_ += fmt::format("physical cluster: {} nodes, {} of {} devices used",
                        cells_.nodes.size(),
                        used,
                        cells_.leaves.size());
    if (bad > 0) out_ += paint(kRed, fmt::format(", {} nodes bad", bad));
    out_ += '\n';
    for (const Index top : cells_.tops) physical(top, 1);
    for (std::size_t i = 0; i < cells_.vcs.size(); ++i) virtual_cluster(static_cast<Index>(i));
    return std::move(out_);
  }

 private:
  std::string paint(std::string_view colour, const std::string& text) const {
    return options_.colours ? fmt::format("{}{}{}", colour, text, kOff) : text;
  }

  /// "0-3,6".
  static std::string ranges(std::vector<std::int32_t> list) {
    std::sort(list.begin(), list.end());
    std::string out;
    for (std::size_t i = 0; i < list.size();) {
      std::size_t j = i;
      while (j + 1 < list.size() && list[j + 1] == list[j] + 1) ++j;
      out += fmt::format("{}{}", out.empty() ? "" : ",", list[i]);
      if (j > i) out += fmt::format("-{}", list[j]);
      i = j + 1;
    }
    return out;
  }

  std::string reserver(const PhysicalCell& leaf) const {
    return leaf.reserving_group == kNone ? "" : allocator_.group(leaf.reserving_group).name;
  }

  /// Who holds the leaves of a cell: "[0-3] user~job (vc1, priority 100)  [4-7] free".
  std::string holders(const PhysicalCell& c) const {
    std::map<std::string, std::vector<std::int32_t>> by_text;
    std::vector<std::string> order;
    for (Index l = c.leaf_begin; l < c.leaf_end; ++l) {
      const Index leaf = cells_.leaves[at(l)];
      const PhysicalCell& cell = cells_.p(leaf);
      std::string text = paint(kDim, "free");
      if (const Group* user = allocator_.user_of(leaf)) {
        const bool guaranteed = cell.allocated_virtual != kNone;
        text = paint(guaranteed ? kGreen : kYellow,
                     fmt::format("{} ({}, {})",
                                 user->name,
                                 cells_.vc(user->vc).name,
                                 guaranteed ? fmt::format("priority {}", user->priority)
                                            : std::string("opportunistic")));
      }
      if (cell.reserving_group != kNone)
        text += paint(kBlue, fmt::format(" reserved for {}", reserver(cell)));
      if (by_text.find(text) == by_text.end()) order.push_back(text);
      by_text[text].push_back(cell.leaf_index);
    }
    std::string out;
    for (const std::string& text : order)
      out += fmt::format("  [{}] {}", ranges(by_text[text]), text);
    return out;
  }

  void physical(Index index, int depth) {
    const PhysicalCell& c = cells_.p(index);
    const bool node = cells_.type(c.type).at_or_above_node && !cells_.type(c.type).multi_node;
    out_.append(at(depth) * 2, ' ');
    out_ += fmt::format("{} {}", cells_.type(c.type).name, cells_.address(index));
    if (!c.healthy) out_ += paint(kRed, " bad");
    if (c.virt != kNone) out_ += fmt::format(" = {}", cells_.vaddress(c.virt));
    if (c.pinned) out_ += " pinned";
    if (cells_.in_list(index, kDoomedList)) out_ += paint(kRed, " doomed");
    if (node || c.level == 1)
      out_ += holders(c);
    else
      out_ += fmt::format("  {} of {} used", c.used_total, c.leaf_end - c.leaf_begin);
    out_ += '\n';
    if (node && !options_.devices) return;
    for (const Index child : cells_.children(c)) physical(child, depth + 1);
  }

  void root(Index index, std::string_view note) {
    const VirtualCell& c = cells_.v(index);
    out_ += fmt::format("  {} {}", cells_.type(c.type).name, cells_.vaddress(index));
    out_ += note;
    if (!c.healthy) out_ += paint(kRed, " bad");
    if (c.physical == kNone) {
      out_ += paint(kDim, "  unbound");
    } else {
      out_ += fmt::format(" = {}", cells_.address(c.physical));
      out_ += fmt::format("  {} of {} used", c.used_total, c.leaf_end - c.leaf_begin);
      std::vector<std::string> users;
      for (Index l = c.leaf_begin; l < c.leaf_end; ++l) {
        const Index p = cells_.v(cells_.virtual_leaves[at(l)]).physical;
        const Group* user =
            p == kNone || cells_.p(p).allocated_virtual == kNone ? nullptr : allocator_.user_of(p);
        if (user != nullptr && std::find(users.begin(), users.end(), user->name) == users.end())
          users.push_back(user->name);
      }
      if (!users.empty()) out_ += ": " + paint(kGreen, join(users, ", "));
    }
    out_ += '\n';
  }

  /// ": 4 of 8 devices used, 1 cell lost".
  std::string totals(const VirtualCluster& vc) const {
    std::int32_t used = 0, all = 0, lost = 0;
    const auto add = [&](Index root) {
      const VirtualCell& c = cells_.v(root);
      used += c.used_total;
      all += c.leaf_end - c.leaf_begin;
      lost += c.physical != kNone && cells_.in_list(c.physical, kDoomedList) ? 1 : 0;
    };
    for (const Holding& holding : vc.holdings) {
      for (const RootList& roots : holding.roots)
        std::for_each(roots.cells.begin(), roots.cells.end(), add);
    }
    for (const PinnedHolding& pinned : vc.pinned) add(pinned.root);
    std::string out = fmt::format(": {} of {} devices used", used, all);
    if (lost > 0)
      out +=
          paint(kRed, fmt::format(", {} {} lost to bad nodes", lost, lost == 1 ? "cell" : "cells"));
    return out;
  }

  void virtual_cluster(Index number) {
    const VirtualCluster& vc = cells_.vc(number);
    if (!vc.configured && vc.opportunistic.empty()) return;
    out_ += fmt::format("virtual cluster {}{}{}\n",
                        vc.name,
                        vc.configured ? "" : paint(kRed, " (not configured)"),
                        totals(vc));
    for (const Holding& holding : vc.holdings) {
      for (std::size_t l = holding.roots.size(); l-- > 1;) {
        for (const Index index : holding.roots[l].cells) root(index, "");
      }
    }
    for (const PinnedHolding& pinned : vc.pinned)
      root(pinned.root, fmt::format(" pinned {}", pinned.id));
    if (!vc.opportunistic.empty())
      out_ += "  " +
              paint(kYellow, fmt::format("opportunistic: {} leaf cells", vc.opportunistic.size())) +
              "\n";
  }

  const CellAllocator& allocator_;
  const Cells& cells_;
  TreeOptions options_;
  std::string out_;
};

/// The state that taking over the pods leads to, all nodes healthy.
Result<CellAllocator> take_over(const Config& config, const std::vector<RunningPod>& pods) {
  auto allocator = CellAllocator::create(config.cells, {});
  if (!allocator) return allocator;
  std::vector<std::string> names;
  for (const Node& node : allocator->cells().nodes) names.push_back(node.name);
  for (const std::string& name : names) allocator->set_node(name, true);
  for (const RunningPod& pod : pods)
    (void)allocator->add_allocated(pod.pod, pod.spec, pod.bind, Time{});
  return allocator;
}

std::size_t missing_cells(const Group& group) {
  std::size_t missing = 0;
  for (const Group::Member& member : group.members)
    missing +=
        static_cast<std::size_t>(std::count(member.physical.begin(), member.physical.end(), kNone));
  return missing;
}

GroupChange change_of(const Group* before, const Group& after, const CellAllocator& allocator) {
  GroupChange out;
  out.group = after.name;
  out.vc = allocator.cells().vc(after.vc).name;
  const std::size_t missing = missing_cells(after);
  const bool was_downgraded = before != nullptr && !before->lazy_preemptor.empty();
  const bool is_downgraded = !after.lazy_preemptor.empty();
  if (is_downgraded && !was_downgraded) {
    out.effect = GroupChange::Effect::kDowngraded;
    const bool vc_gone = !allocator.cells().vc(after.vc).configured;
    const std::string why =
        vc_gone ? fmt::format("virtual cluster \"{}\" is gone", out.vc)
        : after.lazy_preemptor != after.name
            ? fmt::format("\"{}\" takes its cells", after.lazy_preemptor)
            : fmt::format("virtual cluster \"{}\" no longer owns cells for it", out.vc);
    out.text =
        fmt::format("keeps running as opportunistic, any guaranteed gang may preempt it: {}", why);
  } else if (missing > 0) {
    out.effect = GroupChange::Effect::kCellsLost;
    out.text = fmt::format(
        "keeps running; {} of its leaf cells are not in the new configuration and are no longer counted",
        missing);
  } else if (was_downgraded && !is_downgraded) {
    out.effect = GroupChange::Effect::kPromoted;
    out.text = "is guaranteed again";
  } else {
    out.text =
        after.priority < 0 ? "keeps running, opportunistic as before" : "keeps running, unchanged";
  }
  return out;
}

void compare_clusters(const Cells& before, const Cells& after, CheckReport& out) {
  const auto names = [](const auto& list) {
    std::vector<std::string> out_names;
    for (const auto& one : list) out_names.push_back(one.name);
    std::sort(out_names.begin(), out_names.end());
    return out_names;
  };
  const auto differ = [&](const std::vector<std::string>& a,
                          const std::vector<std::string>& b,
                          std::string_view what) {
    for (const std::string& name : a) {
      if (!std::binary_search(b.begin(), b.end(), name))
        out.facts.push_back(fmt::format("{} \"{}\" is removed", what, name));
    }
    for (const std::string& name : b) {
      if (!std::binary_search(a.begin(), a.end(), name))
        out.facts.push_back(fmt::format("{} \"{}\" is added", what, name));
    }
  };
  differ(names(before.nodes), names(after.nodes), "node");
  differ(names(before.chains), names(after.chains), "chain");
  const auto vc_names = [](const Cells& cells) {
    std::vector<std::string> list;
    for (const VirtualCluster& vc : cells.vcs) {
      if (vc.configured) list.push_back(vc.name);
    }
    std::sort(list.begin(), list.end());
    return list;
  };
  differ(vc_names(before), vc_names(after), "virtual cluster");
  // What is promised, by type: "NODE of POOL".
  const auto promised = [](const Cells& cells, const VirtualCluster& vc) {
    std::map<std::string, std::size_t> out_cells;
    for (const Holding& holding : vc.holdings) {
      const Chain& chain = cells.chain(holding.chain);
      for (std::size_t l = 1; l < holding.roots.size(); ++l) {
        if (!holding.roots[l].cells.empty())
          out_cells[fmt::format("{} of {}", cells.type(chain.types[l]).name, chain.name)] +=
              holding.roots[l].cells.size();
      }
    }
    for (const PinnedHolding& pinned : vc.pinned)
      out_cells[fmt::format("pinned cell {}", pinned.id)] = 1;
    return out_cells;
  };
  for (const VirtualCluster& vc : after.vcs) {
    const Index old = before.find_vc(vc.name);
    if (!vc.configured || old == kNone || !before.vc(old).configured) continue;
    std::map<std::string, std::size_t> was = promised(before, before.vc(old)),
                                       is = promised(after, vc);
    for (const auto& [what, number] : is) was.try_emplace(what, 0);
    for (const auto& [what, number] : was) {
      if (is[what] != number)
        out.facts.push_back(
            fmt::format("virtual cluster \"{}\": {}: {} → {}", vc.name, what, number, is[what]));
    }
  }
}

}  // namespace

std::string tree_text(const CellAllocator& allocator, const TreeOptions& options) {
  return Printer(allocator, options).run();
}

Value tree_json(const CellAllocator& allocator) {
  Value out = inspect_cluster(allocator);
  out.get_object()["affinityGroups"] = json::at(inspect_groups(allocator), "items");
  return out;
}

Result<CheckReport> check(const Config& old_config,
                          const Config& new_config,
                          const std::vector<RunningPod>& pods) {
  const auto before = take_over(old_config, pods);
  if (!before) return fail(before.error());
  const auto after = take_over(new_config, pods);
  if (!after) return fail(after.error());
  CheckReport out;
  out.warnings = new_config.warnings;
  out.warnings.insert(
      out.warnings.end(), after->cells().warnings.begin(), after->cells().warnings.end());
  compare_clusters(before->cells(), after->cells(), out);
  for (const Group* group : after->groups())
    out.changes.push_back(change_of(before->find_group(group->name), *group, *after));
  return out;
}

Result<Occupancy> occupy(const Config& config,
                         const std::vector<std::pair<std::string, bool>>& nodes,
                         const std::vector<RunningPod>& pods,
                         Time now) {
  auto cells = engine::cells::CellAllocator::create(config.cells, {});
  if (!cells) return fail(cells.error());
  Occupancy seen{std::move(*cells), {}};
  for (const auto& [name, healthy] : nodes) seen.cells.set_node(name, healthy);
  for (const RunningPod& pod : pods) {
    const auto added = seen.cells.add_allocated(pod.pod, pod.spec, pod.bind, now);
    if (!added)
      seen.misplaced.push_back(
          fmt::format("pod {} is not on these cells: {}", pod.pod.name, added.error().message));
  }
  return seen;
}

Result<void> check_cells(const Config& config) {
  const auto cells = engine::cells::CellAllocator::create(config.cells, {});
  if (!cells) return fail(cells.error());
  return {};
}

std::string describe(const Config& config) {
  const auto cells = CellAllocator::create(config.cells, {});
  if (!cells) return "";
  return fmt::format("{} nodes, {} devices, {} chains, {} virtual clusters",
                     cells->cells().nodes.size(),
                     cells->cells().leaves.size(),
                     cells->cells().chains.size(),
                     config.cells.virtual_clusters.size());
}

std::string to_string(const CheckReport& report) {
  std::string out;
  for (const std::string& warning : report.warnings) out += "warning: " + warning + "\n";
  for (const std::string& fact : report.facts) out += fact + "\n";
  std::size_t kept = 0;
  for (const GroupChange& change : report.changes) {
    if (change.effect == GroupChange::Effect::kKept)
      ++kept;
    else
      out += fmt::format("{} ({}): {}\n", change.group, change.vc, change.text);
  }
  return out + fmt::format("{} of {} gangs unchanged\n", kept, report.changes.size());
}

}  // namespace muster::hived
