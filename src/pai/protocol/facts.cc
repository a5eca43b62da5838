#include "pai/protocol/facts.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"

namespace muster::pai {
namespace {

constexpr std::int64_t kMebibyte = 1024 * 1024;
constexpr std::int64_t kUnlimited = std::int64_t{1} << 40;
/// A chain is as deep as its types are; this only ends a cycle, which the cells themselves refuse.
constexpr int kLevelsMax = 64;

struct Leaves {
  std::string type;
  std::int64_t number = 1;
};

class Types {
 public:
  explicit Types(const hived::Config& config) : config_(config) {}

  /// What a cell of this type is made of at the bottom.
  [[nodiscard]] Leaves leaves_of(std::string type) const {
    Leaves leaves{std::move(type), 1};
    for (int level = 0; level < kLevelsMax; ++level) {
      const auto* spec = find(leaves.type);
      if (spec == nullptr) break;
      leaves.number *= spec->child_number;
      leaves.type = spec->child_type;
    }
    return leaves;
  }

  /// The type of the physical cell with this pinned id; empty if there is none.
  [[nodiscard]] std::string type_of_pinned(const std::string& id) const {
    for (const auto& cell : config_.cells.physical_cells) {
      if (std::string type = look_for(id, cell, cell.type); !type.empty()) return type;
    }
    return {};
  }

 private:
  using Type = decltype(hived::Config::cells.cell_types)::value_type;

  [[nodiscard]] const Type* find(const std::string& type) const {
    const auto& all = config_.cells.cell_types;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == type; });
    return found == all.end() ? nullptr : &*found;
  }

  template <typename Cell>
  std::string look_for(const std::string& id, const Cell& cell, const std::string& type) const {
    if (cell.pinned_id == id) return type;
    const auto* spec = find(type);
    for (const auto& child : cell.children) {
      const std::string below = !child.type.empty() ? child.type
                                : spec != nullptr   ? spec->child_type
                                                    : "";
      if (std::string found = look_for(id, child, below); !found.empty()) return found;
    }
    return {};
  }

  const hived::Config& config_;
};

void add(VirtualCluster& cluster, const Leaves& leaves, std::int64_t number) {
  cluster.quota = cluster.quota.value_or(0) + leaves.number * number;
  auto& types = cluster.sku_types;
  if (std::find(types.begin(), types.end(), leaves.type) == types.end())
    types.push_back(leaves.type);
}

}  // namespace

Facts facts_of(const hived::Config& config) {
  Facts facts;
  facts.hived = true;
  for (const auto& sku : config.sku_types) {
    const auto memory = parse_quantity(sku.memory);
    facts.sku_types[sku.name] = {sku.gpu, sku.cpu, memory ? memory->units() / kMebibyte : 0};
  }
  const Types types(config);
  for (const auto& each : config.cells.virtual_clusters) {
    VirtualCluster& cluster = facts.virtual_clusters[each.name];
    cluster.quota = 0;
    for (const auto& cell : each.cells) {
      const auto names = split(cell.path, '.');
      add(cluster, types.leaves_of(names.back()), std::max(0, cell.number));
    }
    for (const auto& pinned : each.pinned) {
      const std::string type = types.type_of_pinned(pinned.id);
      if (!type.empty()) add(cluster, types.leaves_of(type), 1);
    }
    // A configuration without skuTypes says nothing of CPU and memory: a cell is one GPU.
    for (const std::string& type : cluster.sku_types)
      facts.sku_types.try_emplace(type, Sku{1, kUnlimited, kUnlimited});
  }
  return facts;
}

}  // namespace muster::pai
