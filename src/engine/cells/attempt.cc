#include "engine/cells/attempt.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/cells/pod_groups.h"

namespace muster::engine::cells {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// Whether a pod group finds the type of cell that the pod asks for in a chain.
bool chain_has_type(const Cells& cells, const Chain& chain, const PodSpec& spec) {
  if (spec.root.empty() || spec.members[at(spec.member)].cell_type.empty()) return true;
  return std::any_of(chain.types.begin() + 1, chain.types.end(), [&](Index type) {
    return cells.type(type).name == spec.members[at(spec.member)].cell_type;
  });
}

/// The kind of device that the pod asks for; empty: any.
const std::string& leaf_type_of(const Cells& cells, const PodSpec& spec) {
  static const std::string kAny;
  if (spec.root.empty()) return spec.leaf_type;
  const auto found = cells.type_index.find(spec.members[at(spec.member)].cell_type);
  return found == cells.type_index.end() ? kAny
                                         : cells.type(cells.type(found->second).leaf_type).name;
}

std::string virtual_placement_json(const Cells& cells, const Placement& placement) {
  std::map<std::string, std::vector<std::string>> by_root;
  for (const Placement::Member& member : placement.members) {
    for (const Index leaf : member.virt)
      by_root[cells.vaddress(cells.v(leaf).root)].push_back(cells.vaddress(leaf));
  }
  std::string out = "{";
  for (const auto& [root, leaves] : by_root) {
    if (out.size() > 1) out += ',';
    out += '"' + root + "\":[";
    for (std::size_t i = 0; i < leaves.size(); ++i)
      out += (i == 0 ? "\"" : ",\"") + leaves[i] + "\"";
    out += ']';
  }
  return out + "}";
}

}  // namespace

void Attempt::in_chain(Index chain, const PinnedHolding* pinned) {
  const PodSpec& spec = request_.spec;
  out_.placement = empty_placement(spec);
  if (!spec.root.empty()) return pod_groups(chain, pinned);
  Search search(cells_, suggested_, scratch_.search);
  if (spec.priority < 0) {
    out_.found = search.run(
        {cells_.view(cells_.chain(chain).view), true}, spec.priority, out_.placement, out_.reason);
    return;
  }
  const Index view = pinned != nullptr ? pinned->view : cells_.find_holding(vc_, chain)->view;
  out_.placement.has_virtual = true;
  out_.found =
      search.run(
          {cells_.view(view), false, &spec.vc}, spec.priority, out_.placement, out_.reason) &&
      map(chain);
}

void Attempt::pod_groups(Index chain, const PinnedHolding* pinned) {
  const PodSpec& spec = request_.spec;
  const auto search = [&](const PodGroupSearch::Where& where) {
    return PodGroupSearch(cells_, where, spec).run(out_.placement, out_.reason);
  };
  if (spec.priority < 0) {
    const Chain& k = cells_.chain(chain);
    out_.found = search({chain, cells_.view(k.view), k.full, true, "physical cluster"});
    return;
  }
  out_.placement.has_virtual = true;
  const Holding* holding = pinned == nullptr ? cells_.find_holding(vc_, chain) : nullptr;
  const Index view = pinned != nullptr ? pinned->view : holding->view;
  const auto& full = pinned != nullptr ? pinned->full : holding->full;
  out_.found = search({chain, cells_.view(view), full, false, "VC " + spec.vc}) && map(chain);
}

/// From the virtual leaves to physical ones. Gangs that sit there and may be preempted lazily lose
/// their guarantee, and have it back when the mapping fails.
bool Attempt::map(Index chain) {
  struct Saved {
    Index group;
    std::vector<std::vector<Index>> virt;
  };
  std::vector<Saved> preempted;
  for (const Placement::Member& member : out_.placement.members) {
    for (const Index leaf : member.virt) {
      const Index physical = cells_.v(leaf).physical;
      if (physical == kNone || cells_.p(physical).state != CellState::kUsed) continue;
      const Index user = cells_.p(physical).using_group;
      if (user == kNone || !groups_.at(user).lazy_preemption || !groups_.at(user).has_virtual)
        continue;
      Saved saved{user, {}};
      for (const Group::Member& m : groups_.at(user).members) saved.virt.push_back(m.virt);
      preempted.push_back(std::move(saved));
      books_.lazy_preempt(user, request_.spec.group, request_.now);
    }
  }
  if (Mapping(cells_, suggested_, scratch_.mapping).run(chain, out_.placement)) return true;
  for (Saved& saved : preempted) books_.revert_lazy(saved.group, std::move(saved.virt));
  out_.reason = fmt::format(
      "Mapping the virtual placement would need to use at least one {} (virtual placement : {})",
      request_.spec.ignore_suggested ? "bad node" : "bad or non-suggested node",
      virtual_placement_json(cells_, out_.placement));
  return false;
}

/// False: the virtual cluster has no cells of the type.
bool Attempt::in_leaf_type(Index leaf_type) {
  bool has_type = false;
  for (const Index chain : cells_.chains_of_leaf_type[at(leaf_type)]) {
    if (!chain_has_type(cells_, cells_.chain(chain), request_.spec)) continue;
    if (request_.spec.priority >= 0) {
      const Holding* holding = cells_.find_holding(vc_, chain);
      if (holding == nullptr || !holding->has_cells) continue;
    }
    has_type = true;
    in_chain(chain, nullptr);
    if (out_.found) break;
  }
  return has_type;
}

Result<void> Attempt::in_pinned() {
  const PodSpec& spec = request_.spec;
  const PinnedHolding* pinned = nullptr;
  for (const PinnedHolding& p : cells_.vc(vc_).pinned) {
    if (p.id == spec.pinned_cell) pinned = &p;
  }
  if (pinned == nullptr)
    return fail(Code::kInvalid,
                fmt::format("VC {} does not have pinned cell {}", spec.vc, spec.pinned_cell));
  if (spec.priority < 0)
    return fail(
        Code::kInvalid,
        fmt::format("opportunistic pod not supported to use pinned cell {}", spec.pinned_cell));
  in_chain(cells_.p(pinned->physical).chain, pinned);
  return {};
}

/// In the pinned cell, in cells of the type, or in whatever there is. An error: the request asks for
/// what cannot be.
Result<void> Attempt::anywhere() {
  const PodSpec& spec = request_.spec;
  if (!spec.pinned_cell.empty()) return in_pinned();
  const auto& types = cells_.leaf_types;
  const std::string& wanted = leaf_type_of(cells_, spec);
  if (wanted.empty()) {
    for (std::size_t type = 0; type < types.size() && !out_.found; ++type)
      (void)in_leaf_type(static_cast<Index>(type));
    if (!out_.found && out_.reason.empty()) out_.reason = insufficient_capacity(spec.vc);
    return {};
  }
  const auto type = std::find(types.begin(), types.end(), wanted);
  if (type == types.end())
    return fail(
        Code::kInvalid,
        fmt::format("Pod requesting leaf cell type {} which the whole cluster does not have",
                    wanted));
  const auto index = static_cast<Index>(type - types.begin());
  if (!in_leaf_type(index) && spec.priority >= 0)
    return fail(
        Code::kInvalid,
        fmt::format("Pod requesting {} which VC {} does not have",
                    spec.root.empty() ? "leaf cell type " + wanted
                                      : "cell type " + spec.members[at(spec.member)].cell_type,
                    spec.vc));
  return {};
}

}  // namespace muster::engine::cells
