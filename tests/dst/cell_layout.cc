#include "cell_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::dst {

using engine::cells::CellTypeSpec;
using engine::cells::Config;
using engine::cells::PhysicalCellSpec;

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

const CellTypeSpec* find_type(const Config& config, const std::string& name) {
  const auto found = std::find_if(config.cell_types.begin(),
                                  config.cell_types.end(),
                                  [&](const CellTypeSpec& type) { return type.name == name; });
  return found == config.cell_types.end() ? nullptr : &*found;
}

}  // namespace

std::int32_t CellLayout::Chain::level_of(const std::string& type) const {
  const auto found = std::find(types.begin() + 1, types.end(), type);
  return found == types.end() ? 0 : static_cast<std::int32_t>(found - types.begin());
}

CellLayout::CellLayout(const Config& config) {
  for (const PhysicalCellSpec& top : config.physical_cells) {
    if (!chains_.contains(top.type)) add_chain(config, top.type);
    add_cell(top, top.type, chains_.at(top.type).top(), {}, top.pinned_id);
  }
  for (const auto& vc : config.virtual_clusters) {
    auto& owned = vcs_[vc.name];
    for (const auto& cells : vc.cells) {
      const auto dot = cells.path.find('.');
      const std::string chain = cells.path.substr(0, dot);
      const std::string type =
          dot == std::string::npos ? chain : cells.path.substr(cells.path.rfind('.') + 1);
      owned.push_back({chain, chains_.at(chain).level_of(type), cells.number, ""});
    }
    for (const auto& pinned : vc.pinned) {
      const auto cell = std::find_if(config.physical_cells.begin(),
                                     config.physical_cells.end(),
                                     [&](const auto& c) { return c.pinned_id == pinned.id; });
      owned.push_back({cell->type, chains_.at(cell->type).top(), 1, pinned.id});
    }
  }
}

void CellLayout::add_chain(const Config& config, const std::string& top) {
  std::vector<const CellTypeSpec*> down;
  for (const CellTypeSpec* type = find_type(config, top); type != nullptr;
       type = find_type(config, type->child_type))
    down.push_back(type);
  Chain& chain = chains_[top];
  chain.leaf_type = down.back()->child_type;
  chain.types = {"", chain.leaf_type};
  chain.leaf_counts = {0, 1};
  for (auto type = down.rbegin(); type != down.rend(); ++type) {
    chain.types.push_back((*type)->name);
    chain.leaf_counts.push_back(chain.leaf_counts.back() * (*type)->child_number);
    if ((*type)->node_level) chain.node_level = chain.top();
  }
}

/// Worlds list their cells down to the nodes, and pin whole trees only.
void CellLayout::add_cell(const PhysicalCellSpec& cell,
                          const std::string& name,
                          std::int32_t level,
                          std::vector<std::int32_t> above,
                          const std::string& pinned) {
  Chain& chain = chains_.at(name);
  above.resize(std::max(above.size(), at(chain.top()) + 1));
  above[at(level)] = ++next_cell_;
  if (level == chain.node_level) {
    nodes_[cell.address] = {name, pinned, std::move(above)};
    chain.nodes.push_back(cell.address);
    return;
  }
  for (const PhysicalCellSpec& child : cell.children)
    add_cell(child, name, level - 1, above, pinned);
}

const std::vector<CellLayout::Owned>& CellLayout::owned(const std::string& vc) const {
  static const std::vector<Owned> kNothing;
  const auto found = vcs_.find(vc);
  return found == vcs_.end() ? kNothing : found->second;
}

std::string CellLayout::cell_of(const std::string& node,
                                std::int32_t device,
                                std::int32_t level) const {
  const Node& found = nodes_.at(node);
  const Chain& chain = chains_.at(found.chain);
  if (level >= chain.node_level) return fmt::format("{}", found.cells[at(level)]);
  return fmt::format("{}/{}/{}", node, level, device / chain.leaves(level));
}

}  // namespace muster::dst
