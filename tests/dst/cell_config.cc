#include "cell_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster::dst {

using namespace engine::cells;

namespace {

std::int32_t number(Random& random, std::int32_t low, std::int32_t high) {
  return low + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

struct ChainShape {
  std::string name;
  std::vector<std::string> types;      // by level, 0 unused
  std::vector<std::int32_t> children;  // of a cell of that level
  std::int32_t tops = 0;
};

void add_owned(Config& config,
               std::size_t vc,
               const ChainShape& shape,
               std::int32_t level,
               std::int32_t count) {
  if (count == 0) return;
  const auto l = static_cast<std::size_t>(level);
  VirtualCellSpec spec;
  spec.path =
      shape.name +
      (level + 1 == static_cast<std::int32_t>(shape.types.size()) ? "" : "." + shape.types[l]);
  spec.number = count;
  config.virtual_clusters[vc].cells.push_back(spec);
}

}  // namespace

Config random_config(Random& random, bool large) {
  Config config;
  const std::int32_t vcs = number(random, 1, 3);
  for (std::int32_t v = 0; v < vcs; ++v)
    config.virtual_clusters.push_back({fmt::format("vc{}", v), {}, {}, 0});
  const std::int32_t chains = number(random, 1, large ? 2 : 3);
  std::int32_t node_number = 0;
  for (std::int32_t c = 0; c < chains; ++c) {
    ChainShape shape;
    const std::int32_t levels = number(random, 2, large ? 5 : 4);
    const std::int32_t node_level = number(random, 2, levels);
    shape.types = {"", random.chance(50) ? "A" : "B"};
    shape.children = {0, 0};
    for (std::int32_t l = 2; l <= levels; ++l) {
      CellTypeSpec type;
      type.name = fmt::format("c{}l{}", c, l);
      type.child_type = shape.types.back();
      type.child_number = number(random, 1, large ? 4 : 3);
      type.node_level = l == node_level;
      shape.types.push_back(type.name);
      shape.children.push_back(type.child_number);
      config.cell_types.push_back(type);
    }
    shape.name = shape.types.back();
    shape.tops = number(random, 1, large ? 12 : 3);
    std::int32_t pinned = 0;
    for (std::int32_t t = 0; t < shape.tops; ++t) {
      // Node names must be the cluster's own: list cells down to the node level.
      const auto make = [&](auto&& self, std::int32_t level) -> PhysicalCellSpec {
        PhysicalCellSpec cell;
        if (level == levels) cell.type = shape.name;
        if (level == node_level) {
          cell.address = fmt::format("n{}", node_number++);
          return cell;
        }
        for (std::int32_t k = 0; k < shape.children[static_cast<std::size_t>(level)]; ++k)
          cell.children.push_back(self(self, level - 1));
        return cell;
      };
      config.physical_cells.push_back(make(make, levels));
      if (t > 0 && pinned == 0 && random.chance(20)) {
        config.physical_cells.back().pinned_id = fmt::format("pin{}", c);
        config.virtual_clusters[random.below(config.virtual_clusters.size())].pinned.push_back(
            {fmt::format("pin{}", c), 0});
        pinned = 1;
      }
    }
    std::int32_t available = shape.tops - pinned;
    for (std::int32_t l = levels; l >= 1 && available > 0; --l) {
      const std::int32_t given = number(random, 0, available);
      for (std::int32_t g = 0; g < given; ++g)
        add_owned(config, random.below(config.virtual_clusters.size()), shape, l, 1);
      available = (available - given) * shape.children[static_cast<std::size_t>(l)];
      if (available > 40) available = 40;
    }
  }
  return config;
}

Config changed_config(const Config& config, Random& random) {
  Config out = config;
  switch (random.below(5)) {
    case 0:  // a share moves to another virtual cluster
      if (out.virtual_clusters.size() > 1) {
        auto& from = out.virtual_clusters[random.below(out.virtual_clusters.size())].cells;
        auto& to = out.virtual_clusters[random.below(out.virtual_clusters.size())].cells;
        if (!from.empty() && &from != &to) {
          to.push_back(from.back());
          from.pop_back();
        }
      }
      break;
    case 1: {  // a node is replaced
      auto& top = out.physical_cells[random.below(out.physical_cells.size())];
      PhysicalCellSpec* cell = &top;
      while (!cell->children.empty()) cell = &cell->children[random.below(cell->children.size())];
      cell->address += "x";
      break;
    }
    case 2:  // a virtual cluster gives back
      if (auto& cells = out.virtual_clusters[random.below(out.virtual_clusters.size())].cells;
          !cells.empty())
        cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(random.below(cells.size())));
      break;
    case 3: {  // a virtual cluster is renamed
      auto& vc = out.virtual_clusters[random.below(out.virtual_clusters.size())];
      vc.name += "r";
      break;
    }
    default: {  // a top cell is added
      PhysicalCellSpec copy = out.physical_cells[random.below(out.physical_cells.size())];
      copy.pinned_id.clear();
      const auto rename = [&](auto&& self, PhysicalCellSpec& cell) -> void {
        if (cell.children.empty()) cell.address += fmt::format("y{}", out.physical_cells.size());
        for (auto& child : cell.children) self(self, child);
      };
      rename(rename, copy);
      if (out.physical_cells.size() < 20) out.physical_cells.push_back(copy);
    }
  }
  return out;
}

}  // namespace muster::dst
