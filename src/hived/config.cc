#include "hived/config.h"

#include <fmt/core.h>

#include <limits>

#include "json/yaml_tree.h"

namespace muster::hived {
namespace {

using json::YamlNode;
namespace cells = engine::cells;

tl::unexpected<Error> wrong(const YamlNode& node, std::string_view what, std::string_view want) {
  return fail(
      Code::kInvalid,
      fmt::format("line {}: {}: wanted {}, found {}", node.line, what, want, node.describe()));
}

/// Each reader leaves the default where the key is absent or null.
Result<void> read_text(const YamlNode& owner, std::string_view key, std::string& out) {
  const YamlNode* node = owner.find(key);
  if (node == nullptr || node->is_null()) return {};
  if (node->kind != YamlNode::Kind::kScalar) return wrong(*node, key, "a text");
  out = node->text;
  return {};
}

template <typename Int>
Result<void> read_int(const YamlNode& owner, std::string_view key, Int& out) {
  const YamlNode* node = owner.find(key);
  if (node == nullptr || node->is_null()) return {};
  const auto value = node->as_int();
  if (!value || *value < std::numeric_limits<Int>::min() ||
      *value > std::numeric_limits<Int>::max()) {
    return wrong(
        *node,
        key,
        sizeof(Int) == 4 ? "a whole number of 32 bits, such as 2" : "a whole number, such as 2");
  }
  out = static_cast<Int>(*value);
  return {};
}

Result<void> read_bool(const YamlNode& owner, std::string_view key, bool& out) {
  const YamlNode* node = owner.find(key);
  if (node == nullptr || node->is_null()) return {};
  const auto value = node->as_bool();
  if (!value) return wrong(*node, key, "true or false");
  out = *value;
  return {};
}

/// The node if it is of the kind; nullptr if absent or null.
Result<const YamlNode*> read_node(const YamlNode& owner,
                                  std::string_view key,
                                  YamlNode::Kind kind) {
  const YamlNode* node = owner.find(key);
  if (node == nullptr || node->is_null()) return nullptr;
  if (node->kind != kind)
    return wrong(*node,
                 key,
                 kind == YamlNode::Kind::kMapping ? "a mapping (key: value lines)"
                                                  : "a list (\"- \" lines)");
  return node;
}

Result<void> read_types(const YamlNode& cluster, Config& out) {
  const auto types = read_node(cluster, "cellTypes", YamlNode::Kind::kMapping);
  if (!types) return fail(types.error());
  if (*types == nullptr) return {};
  for (const std::string& key : (*types)->repeated_keys)
    out.warnings.push_back(
        fmt::format("cellTypes: \"{}\" is given twice; the last one counts", key));
  for (const auto& [name, node] : (*types)->members) {
    if (!node.is_null() && node.kind != YamlNode::Kind::kMapping)
      return wrong(
          node, "cellTypes." + name, "a mapping with childCellType, childCellNumber, isNodeLevel");
    cells::CellTypeSpec spec;
    spec.name = name;
    spec.line = node.line;
    if (auto done = read_text(node, "childCellType", spec.child_type); !done) return done;
    if (auto done = read_int(node, "childCellNumber", spec.child_number); !done) return done;
    if (auto done = read_bool(node, "isNodeLevel", spec.node_level); !done) return done;
    out.cells.cell_types.push_back(std::move(spec));
  }
  return {};
}

Result<cells::PhysicalCellSpec> read_cell(const YamlNode& node, std::string_view what) {
  cells::PhysicalCellSpec spec;
  spec.line = node.line;
  if (node.is_null()) return spec;
  if (node.kind != YamlNode::Kind::kMapping)
    return wrong(node, what, "a mapping with cellType, cellAddress, pinnedCellId, cellChildren");
  if (auto done = read_text(node, "cellType", spec.type); !done) return fail(done.error());
  if (auto done = read_text(node, "cellAddress", spec.address); !done) return fail(done.error());
  if (auto done = read_text(node, "pinnedCellId", spec.pinned_id); !done) return fail(done.error());
  const auto children = read_node(node, "cellChildren", YamlNode::Kind::kSequence);
  if (!children) return fail(children.error());
  if (*children == nullptr) return spec;
  for (const YamlNode& child : (*children)->items) {
    auto read = read_cell(child, "cellChildren");
    if (!read) return read;
    spec.children.push_back(std::move(*read));
  }
  return spec;
}

Result<void> read_skus(const YamlNode& cluster, Config& out) {
  for (const char* key : {"skuTypes", "gpuTypes", "leafCellTypes"}) {
    const YamlNode* skus = cluster.find(key);
    if (skus == nullptr || skus->kind != YamlNode::Kind::kMapping) continue;
    for (const auto& [name, node] : skus->members) {
      SkuType sku;
      sku.name = name;
      if (auto done = read_int(node, "gpu", sku.gpu); !done) return done;
      if (auto done = read_int(node, "cpu", sku.cpu); !done) return done;
      if (auto done = read_text(node, "memory", sku.memory); !done) return done;
      out.sku_types.push_back(std::move(sku));
    }
    return {};
  }
  return {};
}

Result<void> read_physical(const YamlNode& root, Config& out) {
  const auto cluster = read_node(root, "physicalCluster", YamlNode::Kind::kMapping);
  if (!cluster) return fail(cluster.error());
  if (*cluster == nullptr) return {};
  if (auto done = read_skus(**cluster, out); !done) return done;
  if (auto done = read_types(**cluster, out); !done) return done;
  const auto list = read_node(**cluster, "physicalCells", YamlNode::Kind::kSequence);
  if (!list) return fail(list.error());
  if (*list == nullptr) return {};
  for (const YamlNode& node : (*list)->items) {
    auto cell = read_cell(node, "physicalCells");
    if (!cell) return fail(cell.error());
    out.cells.physical_cells.push_back(std::move(*cell));
  }
  return {};
}

Result<cells::VirtualClusterSpec> read_vc(const std::string& name, const YamlNode& node) {
  cells::VirtualClusterSpec vc;
  vc.name = name;
  vc.line = node.line;
  if (node.is_null()) return vc;
  if (node.kind != YamlNode::Kind::kMapping)
    return wrong(node, "virtualClusters." + name, "a mapping with virtualCells and pinnedCells");
  const auto owned = read_node(node, "virtualCells", YamlNode::Kind::kSequence);
  if (!owned) return fail(owned.error());
  for (std::size_t i = 0; *owned != nullptr && i < (*owned)->items.size(); ++i) {
    const YamlNode& item = (*owned)->items[i];
    if (item.kind != YamlNode::Kind::kMapping)
      return wrong(item, "virtualCells", "a mapping with cellType and cellNumber");
    cells::VirtualCellSpec spec;
    spec.line = item.line;
    if (auto done = read_text(item, "cellType", spec.path); !done) return fail(done.error());
    if (auto done = read_int(item, "cellNumber", spec.number); !done) return fail(done.error());
    vc.cells.push_back(std::move(spec));
  }
  const auto pinned = read_node(node, "pinnedCells", YamlNode::Kind::kSequence);
  if (!pinned) return fail(pinned.error());
  for (std::size_t i = 0; *pinned != nullptr && i < (*pinned)->items.size(); ++i) {
    const YamlNode& item = (*pinned)->items[i];
    if (item.kind != YamlNode::Kind::kMapping)
      return wrong(item, "pinnedCells", "a mapping with pinnedCellId");
    cells::PinnedCellSpec spec;
    spec.line = item.line;
    if (auto done = read_text(item, "pinnedCellId", spec.id); !done) return fail(done.error());
    vc.pinned.push_back(std::move(spec));
  }
  return vc;
}

}  // namespace

Result<Config> parse_config(std::string_view yaml) {
  const auto root = json::parse_yaml_tree(yaml);
  if (!root) return fail(root.error());
  Config out;
  if (root->is_null()) return out;
  if (root->kind != YamlNode::Kind::kMapping)
    return wrong(*root, "the file", "a mapping with physicalCluster and virtualClusters");
  if (auto done = read_text(*root, "kubeApiServerAddress", out.kube_apiserver_address); !done)
    return fail(done.error());
  if (auto done = read_text(*root, "kubeConfigFilePath", out.kube_config_file); !done)
    return fail(done.error());
  if (auto done = read_text(*root, "webServerAddress", out.web_server_address); !done)
    return fail(done.error());
  if (auto done = read_int(*root, "forcePodBindThreshold", out.force_pod_bind_threshold); !done)
    return fail(done.error());
  if (auto done = read_int(*root, "waitingPodSchedulingBlockMilliSec", out.waiting_pod_block_ms);
      !done)
    return fail(done.error());
  if (auto done = read_physical(*root, out); !done) return fail(done.error());
  const auto clusters = read_node(*root, "virtualClusters", YamlNode::Kind::kMapping);
  if (!clusters) return fail(clusters.error());
  for (std::size_t i = 0; *clusters != nullptr && i < (*clusters)->members.size(); ++i) {
    auto vc = read_vc((*clusters)->members[i].first, (*clusters)->members[i].second);
    if (!vc) return fail(vc.error());
    out.cells.virtual_clusters.push_back(std::move(*vc));
  }
  for (const std::string& key : root->repeated_keys)
    out.warnings.push_back(fmt::format("\"{}\" is given twice; the last one counts", key));
  return out;
}

}  // namespace muster::hived
