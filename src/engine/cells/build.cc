// From a configuration to cells, counters and views; every check of a configuration's meaning. One
// piece: each step needs the tables that the one before it made, and nothing else does.

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "base/strings.h"
#include "engine/cells/cells.h"

namespace muster::engine::cells {
namespace {

/// A file of a few lines can ask for any number of cells; this many fit in about a gigabyte.
constexpr std::size_t kMaxCells = 4'000'000;
constexpr std::int64_t kMaxLeafCount = 1 << 24;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

tl::unexpected<Error> bad(int line, const std::string& what) {
  return fail(Code::kInvalid, line > 0 ? fmt::format("line {}: {}", line, what) : what);
}

std::string_view last_component(std::string_view text, char separator) {
  const auto position = text.rfind(separator);
  return position == std::string_view::npos ? text : text.substr(position + 1);
}

std::string known_names(const std::vector<std::string>& names, std::string_view found) {
  if (const auto close = nearest(found, names)) return fmt::format("; did you mean \"{}\"", *close);
  std::vector<std::string> some(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(names.size(), 8)));
  return some.empty()
             ? ""
             : fmt::format(
                   "; known are {}{}", join(some, ", "), names.size() > some.size() ? ", …" : "");
}

class Builder {
 public:
  explicit Builder(const Config& config) : config_(config) {}

  Result<void> types();
  Result<void> physical();
  Result<void> virtuals();
  Result<void> check_assignment();
  void views();
  void order_chains(bool descending);

  Cells cells;

 private:
  struct Pin {
    Index cell;
    int line;
    Index owner = kNone;
  };

  Result<Index> resolve(const std::string& name, std::vector<std::string>& path);
  /// A physical cell that is to be made.
  struct NewCell {
    /// What the file says about it; null: nothing.
    const PhysicalCellSpec* spec = nullptr;
    Index type = kNone;
    /// Address of its parent, with a slash.
    std::string prefix;
    /// Its address when the file gives none.
    std::int64_t number = 0;
    Index parent = kNone;
    Index chain = kNone;
    /// Of the node that it lies in; kNone above nodes.
    Index node_entry = kNone;
  };
  Result<Index> add_physical(const NewCell& cell);
  Result<std::vector<Index>> add_children(const NewCell& cell,
                                          const NewCell& below,
                                          const TypeInfo& type);
  void note_pin(const PhysicalCellSpec* spec, Index cell);
  Index enter_node(const std::string& address);
  Result<std::int32_t> device_of(const PhysicalCellSpec* spec, const std::string& address);
  Result<void> add_virtual_cells(Index vc, const VirtualCellSpec& spec, std::int32_t& counter);
  Result<void> add_pinned_cell(Index vc, const PinnedCellSpec& spec, std::int32_t& counter);
  Result<Index> add_virtual(Index vc,
                            Index chain,
                            Index type,
                            std::string address,
                            Index parent,
                            std::vector<std::vector<Index>>& full);
  Holding& holding(Index vc, Index chain);
  Result<Index> chain_for(const PhysicalCellSpec& spec);

  const Config& config_;
  std::unordered_map<std::string, const CellTypeSpec*> specs_;
  std::vector<std::string> type_names_;
  std::map<std::string, Pin> pins_;
  std::vector<Index> scratch_;
};

Result<Index> Builder::resolve(const std::string& name, std::vector<std::string>& path) {
  if (const auto found = cells.type_index.find(name); found != cells.type_index.end())
    return found->second;
  const auto spec = specs_.find(name);
  TypeInfo info;
  info.name = name;
  if (spec != specs_.end()) {
    if (std::find(path.begin(), path.end(), name) != path.end()) {
      return bad(
          spec->second->line,
          fmt::format(
              "cellTypes: \"{}\" contains itself ({} -> {}); the types must form a tree that ends in a leaf type",
              name,
              join(path, " -> "),
              name));
    }
    path.push_back(name);
    const auto child = resolve(spec->second->child_type, path);
    path.pop_back();
    if (!child) return child;
    const TypeInfo& below = cells.type(*child);
    info.child = *child;
    info.child_number = spec->second->child_number;
    info.level = below.level + 1;
    info.leaf_type = below.leaf_type;
    const std::int64_t leaves = std::int64_t{below.leaf_count} * info.child_number;
    if (leaves > kMaxLeafCount) {
      return bad(
          spec->second->line,
          fmt::format("cellTypes: a cell of type \"{}\" would have {} leaf cells; the most is {}",
                      name,
                      leaves,
                      kMaxLeafCount));
    }
    info.leaf_count = static_cast<std::int32_t>(std::max<std::int64_t>(leaves, 0));
    info.node_flag = spec->second->node_level;
    info.at_or_above_node = info.node_flag || below.at_or_above_node;
    info.multi_node = below.at_or_above_node;
    if (info.child_number <= 0) {
      cells.warnings.push_back(fmt::format(
          "line {}: cellTypes: \"{}\" has childCellNumber {}; its cells hold no devices unless children are listed",
          spec->second->line,
          name,
          info.child_number));
    }
  }
  const auto index = static_cast<Index>(cells.types.size());
  if (spec == specs_.end()) info.leaf_type = index;
  cells.types.push_back(std::move(info));
  cells.type_index.emplace(name, index);
  return index;
}

Result<void> Builder::types() {
  for (const CellTypeSpec& spec : config_.cell_types) {
    specs_[spec.name] = &spec;
    type_names_.push_back(spec.name);
  }
  for (const CellTypeSpec& spec : config_.cell_types) {
    std::vector<std::string> path;
    if (const auto done = resolve(spec.name, path); !done) return fail(done.error());
  }
  return {};
}

Result<Index> Builder::chain_for(const PhysicalCellSpec& spec) {
  const auto found = cells.type_index.find(spec.type);
  if (found == cells.type_index.end() || cells.type(found->second).child == kNone) {
    return bad(
        spec.line,
        fmt::format(
            "physicalCells contains unknown cellType: {}; a top cell needs a type of cellTypes at node level or above{}",
            spec.type.empty() ? "\"\"" : spec.type,
            known_names(type_names_, spec.type)));
  }
  const TypeInfo& type = cells.type(found->second);
  if (!type.at_or_above_node) {
    return bad(
        spec.line,
        fmt::format(
            "top cell must be node-level or above: {}; list the node's own type at the top, or set isNodeLevel on the type that is a node",
            spec.type));
  }
  const auto [it, fresh] =
      cells.chain_index.try_emplace(spec.type, static_cast<Index>(cells.chains.size()));
  if (fresh) {
    Chain chain;
    chain.name = spec.type;
    chain.type = found->second;
    chain.leaf_type = type.leaf_type;
    chain.top = type.level;
    const std::size_t levels = at(type.level) + 1;
    chain.types.assign(levels, kNone);
    for (Index t = found->second; t != kNone; t = cells.type(t).child)
      chain.types[at(cells.type(t).level)] = t;
    chain.full.resize(levels);
    chain.free.resize(levels);
    chain.bad_free.resize(levels);
    chain.total_left.assign(levels, 0);
    chain.all_vc_free.assign(levels, 0);
    chain.all_vc_doomed.assign(levels, 0);
    cells.chains.push_back(std::move(chain));
  }
  return it->second;
}

/// A pin that a cell of the file carries.
void Builder::note_pin(const PhysicalCellSpec* spec, Index cell) {
  if (spec == nullptr || spec->pinned_id.empty()) return;
  if (const auto old = pins_.find(spec->pinned_id); old != pins_.end()) {
    cells.warnings.push_back(fmt::format(
        "line {}: pinnedCellId \"{}\" is given twice (before at line {}); the last one counts",
        spec->line,
        spec->pinned_id,
        old->second.line));
  }
  pins_[spec->pinned_id] = {cell, spec->line};
}

/// The entry of the node that the cell is.
Index Builder::enter_node(const std::string& address) {
  const std::string name(last_component(address, '/'));
  const auto [node, fresh] =
      cells.node_index.try_emplace(name, static_cast<Index>(cells.nodes.size()));
  if (fresh) cells.nodes.push_back({name, true, {}});
  cells.cell_nodes.push_back(node->second);
  return static_cast<Index>(cells.cell_nodes.size()) - 1;
}

/// The device that a leaf cell is, from the last part of its address.
Result<std::int32_t> Builder::device_of(const PhysicalCellSpec* spec, const std::string& address) {
  const std::string_view text = last_component(address, '/');
  const auto device = parse_int(text);
  if (device && *device >= std::numeric_limits<std::int32_t>::min() &&
      *device <= std::numeric_limits<std::int32_t>::max())
    return static_cast<std::int32_t>(*device);
  return bad(
      spec != nullptr ? spec->line : 0,
      fmt::format(
          "cell \"{}\": the address of a leaf cell is its device index, invalid literal for int32: \"{}\"",
          address,
          text));
}

/// The children that the file lists, or as many as the type has.
Result<std::vector<Index>> Builder::add_children(const NewCell& cell,
                                                 const NewCell& below,
                                                 const TypeInfo& type) {
  const PhysicalCellSpec* spec = cell.spec;
  const bool given = spec != nullptr && !spec->children.empty();
  const auto count = given ? static_cast<std::int64_t>(spec->children.size())
                           : std::max<std::int64_t>(type.child_number, 0);
  if (given && count != type.child_number) {
    cells.warnings.push_back(fmt::format(
        "line {}: cell \"{}\" lists {} children, its type \"{}\" has childCellNumber {}",
        spec->line,
        below.prefix.substr(0, below.prefix.size() - 1),
        count,
        type.name,
        type.child_number));
  }
  std::vector<Index> children;
  for (std::int64_t k = 0; k < count; ++k) {
    NewCell child = below;
    child.spec = given ? &spec->children[static_cast<std::size_t>(k)] : nullptr;
    child.number += k;
    const auto added = add_physical(child);
    if (!added) return fail(added.error());
    children.push_back(*added);
  }
  return children;
}

Result<Index> Builder::add_physical(const NewCell& cell) {
  const PhysicalCellSpec* spec = cell.spec;
  if (cells.physical.size() >= kMaxCells) {
    return bad(spec != nullptr ? spec->line : 0,
               fmt::format("physicalCells: more than {} cells; check childCellNumber of \"{}\"",
                           kMaxCells,
                           cells.chain(cell.chain).name));
  }
  const TypeInfo type = cells.type(cell.type);
  const auto index = static_cast<Index>(cells.physical.size());
  const std::string address =
      cell.prefix +
      (spec != nullptr && !spec->address.empty() ? spec->address : std::to_string(cell.number));
  cells.physical.emplace_back();
  cells.physical_address.push_back(address);
  PhysicalCell c;
  c.parent = cell.parent;
  c.chain = cell.chain;
  c.type = cell.type;
  c.level = type.level;
  c.at_or_above_node = type.at_or_above_node;
  c.leaf_begin = static_cast<Index>(cells.leaves.size());
  note_pin(spec, index);
  const bool is_node = type.at_or_above_node && !type.multi_node;
  const Index node_entry = is_node ? enter_node(address) : cell.node_entry;
  c.node_begin = node_entry != kNone ? node_entry : static_cast<Index>(cells.cell_nodes.size());
  cells.chain(cell.chain).full[at(type.level)].push_back(index);
  std::vector<Index> children;
  if (type.child == kNone) {
    const auto device = device_of(spec, address);
    if (!device) return fail(device.error());
    c.leaf_index = *device;
    cells.nodes[at(cells.cell_nodes[at(node_entry)])].leaves.push_back(index);
    cells.leaves.push_back(index);
  } else {
    const NewCell below{.spec = nullptr,
                        .type = type.child,
                        .prefix = address + "/",
                        .number = (type.node_flag ? 0 : cell.number) * type.child_number,
                        .parent = index,
                        .chain = cell.chain,
                        .node_entry = node_entry};
    auto added = add_children(cell, below, type);
    if (!added) return fail(added.error());
    children = std::move(*added);
  }
  c.node_end = node_entry != kNone ? node_entry + 1 : static_cast<Index>(cells.cell_nodes.size());
  c.leaf_end = static_cast<Index>(cells.leaves.size());
  c.child_begin = static_cast<Index>(cells.physical_children.size());
  cells.physical_children.insert(cells.physical_children.end(), children.begin(), children.end());
  c.child_end = static_cast<Index>(cells.physical_children.size());
  c.child_states[0] = c.child_end - c.child_begin;
  cells.p(index) = std::move(c);
  return index;
}

Result<void> Builder::physical() {
  for (std::size_t i = 0; i < config_.physical_cells.size(); ++i) {
    const PhysicalCellSpec& spec = config_.physical_cells[i];
    const auto chain = chain_for(spec);
    if (!chain) return fail(chain.error());
    const auto top = add_physical({.spec = &spec,
                                   .type = cells.chain(*chain).type,
                                   .prefix = "",
                                   .number = static_cast<std::int64_t>(i),
                                   .parent = kNone,
                                   .chain = *chain,
                                   .node_entry = kNone});
    if (!top) return fail(top.error());
    cells.tops.push_back(*top);
    Chain& k = cells.chain(*chain);
    cells.p(*top).position[kFreeList] = static_cast<std::int32_t>(k.free[at(k.top)].size());
    k.free[at(k.top)].push_back(*top);
  }
  // Leaves of a node chain by chain, in list order, whatever the order of the file.
  for (Node& node : cells.nodes) {
    std::stable_sort(node.leaves.begin(), node.leaves.end(), [&](Index a, Index b) {
      return cells.p(a).chain < cells.p(b).chain;
    });
  }
  for (Chain& chain : cells.chains) {
    chain.total_left[at(chain.top)] = static_cast<std::int32_t>(chain.full[at(chain.top)].size());
    for (std::int32_t l = chain.top; l > 1; --l) {
      const auto& full = chain.full[at(l)];
      const std::int32_t children =
          full.empty() ? 0 : cells.p(full[0]).child_end - cells.p(full[0]).child_begin;
      chain.total_left[at(l - 1)] = chain.total_left[at(l)] * children;
    }
  }
  return {};
}

Holding& Builder::holding(Index vc, Index chain) {
  VirtualCluster& owner = cells.vc(vc);
  Index& h = owner.holding_of_chain[at(chain)];
  if (h == kNone) {
    h = static_cast<Index>(owner.holdings.size());
    Chain& k = cells.chain(chain);
    const std::size_t levels = at(k.top) + 1;
    Holding fresh;
    fresh.chain = chain;
    fresh.full.resize(levels);
    fresh.roots.resize(levels);
    fresh.free.assign(levels, 0);
    fresh.doomed.resize(levels);
    owner.holdings.push_back(std::move(fresh));
    k.vcs.push_back(vc);
    k.counted = true;
  }
  return owner.holdings[at(h)];
}

Result<Index> Builder::add_virtual(Index vc,
                                   Index chain,
                                   Index type_number,
                                   std::string address,
                                   Index parent,
                                   std::vector<std::vector<Index>>& full) {
  if (cells.virtuals.size() >= kMaxCells) {
    return fail(
        Code::kInvalid,
        fmt::format("virtualClusters: more than {} virtual cells; check cellNumber of \"{}\"",
                    kMaxCells,
                    cells.vc(vc).name));
  }
  const TypeInfo& type = cells.type(type_number);
  const auto index = static_cast<Index>(cells.virtuals.size());
  cells.virtuals.emplace_back();
  VirtualCell c;
  c.parent = parent;
  c.vc = vc;
  c.chain = chain;
  c.type = type_number;
  c.level = type.level;
  c.at_or_above_node = type.at_or_above_node;
  c.root = parent == kNone ? index : cells.v(parent).root;
  cells.v(index).root = c.root;
  c.leaf_begin = static_cast<Index>(cells.virtual_leaves.size());
  full[at(type.level)].push_back(index);
  const std::int64_t number =
      parent == kNone ? 0 : parse_int(last_component(address, '/')).value_or(0);
  const std::string prefix = address + "/";
  cells.virtual_address.push_back(std::move(address));
  std::vector<Index> children;
  if (type.child == kNone) {
    cells.virtual_leaves.push_back(index);
  } else {
    const Index child_type = type.child;
    const std::int32_t count = type.child_number;
    for (std::int32_t k = 0; k < count; ++k) {
      const auto child = add_virtual(
          vc, chain, child_type, prefix + std::to_string(number * count + k), index, full);
      if (!child) return child;
      children.push_back(*child);
    }
  }
  c.leaf_end = static_cast<Index>(cells.virtual_leaves.size());
  c.child_begin = static_cast<Index>(cells.virtual_children.size());
  cells.virtual_children.insert(cells.virtual_children.end(), children.begin(), children.end());
  c.child_end = static_cast<Index>(cells.virtual_children.size());
  cells.v(index) = std::move(c);
  return index;
}

Result<void> Builder::add_virtual_cells(Index vc,
                                        const VirtualCellSpec& spec,
                                        std::int32_t& counter) {
  const std::string& name = cells.vc(vc).name;
  const std::vector<std::string> path = split(spec.path, '.');
  const auto type = cells.type_index.find(path.back());
  if (type == cells.type_index.end()) {
    return bad(
        spec.line,
        fmt::format(
            "virtualClusters.{}: unknown cell type \"{}\" at the end of cellType \"{}\"; wanted CHAIN.….TYPE with types of cellTypes{}",
            name,
            path.back(),
            spec.path,
            known_names(type_names_, path.back())));
  }
  const auto chain = cells.chain_index.find(path.front());
  if (chain == cells.chain_index.end()) {
    std::vector<std::string> names;
    for (const Chain& c : cells.chains) names.push_back(c.name);
    return bad(
        spec.line,
        fmt::format(
            "Illegal initial VC assignment: Chain {} does not exists in physical cluster (cellType \"{}\" of VC \"{}\" must begin with the type of a top entry of physicalCells{})",
            path.front(),
            spec.path,
            name,
            known_names(names, path.front())));
  }
  const Chain& k = cells.chain(chain->second);
  const std::int32_t level = cells.type(type->second).level;
  if (level > k.top) {
    return bad(
        spec.line,
        fmt::format(
            "Illegal initial VC assignment: cellType \"{}\" of VC \"{}\": \"{}\" is larger than chain \"{}\"; name a type inside the chain",
            spec.path,
            name,
            path.back(),
            path.front()));
  }
  if (k.types[at(level)] != type->second) {
    cells.warnings.push_back(
        fmt::format("line {}: virtualClusters.{}: \"{}\" is not a type of chain \"{}\"",
                    spec.line,
                    name,
                    path.back(),
                    path.front()));
  }
  if (spec.number <= 0) {
    cells.warnings.push_back(
        fmt::format("line {}: virtualClusters.{}: cellNumber {} of \"{}\" gives no cells",
                    spec.line,
                    name,
                    spec.number,
                    spec.path));
    if (spec.number < 0) return {};
  }
  Holding& h = holding(vc, chain->second);
  for (std::int32_t n = 0; n < spec.number; ++n) {
    const auto root = add_virtual(
        vc, chain->second, type->second, fmt::format("{}/{}", name, counter++), kNone, h.full);
    if (!root) return fail(root.error());
    cells.v(*root).root_position = static_cast<std::int32_t>(h.roots[at(level)].cells.size());
    h.roots[at(level)].add(*root);
    h.has_cells = true;
  }
  h.free[at(level)] += spec.number;
  cells.chain(chain->second).all_vc_free[at(level)] += spec.number;
  return {};
}

Result<void> Builder::add_pinned_cell(Index vc, const PinnedCellSpec& spec, std::int32_t& counter) {
  const std::string name = cells.vc(vc).name;
  const auto pin = pins_.find(spec.id);
  if (pin == pins_.end()) {
    std::vector<std::string> names;
    for (const auto& [id, unused] : pins_) names.push_back(id);
    return bad(spec.line,
               fmt::format("pinned cell not found in physicalCells: VC: {}, ID: {}{}",
                           name,
                           spec.id,
                           known_names(names, spec.id)));
  }
  if (pin->second.owner != kNone) {
    return bad(
        spec.line,
        fmt::format(
            "pinned cell \"{}\" is given to VC \"{}\" and to VC \"{}\"; a pinned cell has one owner",
            spec.id,
            cells.vc(pin->second.owner).name,
            name));
  }
  pin->second.owner = vc;
  const Index cell = pin->second.cell;
  for (const auto& [id, other] : pins_) {
    if (other.owner == kNone || other.cell == cell) continue;
    const auto& a = cells.p(cell);
    const auto& b = cells.p(other.cell);
    if (a.chain == b.chain && a.leaf_begin < b.leaf_end && b.leaf_begin < a.leaf_end) {
      return bad(
          spec.line,
          fmt::format(
              "pinned cells \"{}\" (VC \"{}\") and \"{}\" (VC \"{}\") share devices; pin cells that do not contain each other",
              spec.id,
              name,
              id,
              cells.vc(other.owner).name));
    }
  }
  const Index chain = cells.p(cell).chain;
  const std::int32_t level = cells.p(cell).level;
  PinnedHolding pinned;
  pinned.id = spec.id;
  pinned.physical = cell;
  pinned.full.resize(at(level) + 1);
  const auto root = add_virtual(
      vc, chain, cells.p(cell).type, fmt::format("{}/{}", name, counter++), kNone, pinned.full);
  if (!root) return fail(root.error());
  pinned.root = *root;
  Holding& h = holding(vc, chain);
  ++h.free[at(level)];
  ++cells.chain(chain).all_vc_free[at(level)];
  cells.vc(vc).pinned.push_back(std::move(pinned));
  return {};
}

Result<void> Builder::virtuals() {
  for (const VirtualClusterSpec& spec : config_.virtual_clusters) {
    const auto vc = static_cast<Index>(cells.vcs.size());
    VirtualCluster cluster;
    cluster.name = spec.name;
    cluster.holding_of_chain.assign(cells.chains.size(), kNone);
    cells.vcs.push_back(std::move(cluster));
    cells.vc_index.emplace(spec.name, vc);
    std::int32_t counter = 0;
    for (const VirtualCellSpec& cell : spec.cells) {
      if (const auto done = add_virtual_cells(vc, cell, counter); !done) return done;
    }
    for (const PinnedCellSpec& pinned : spec.pinned) {
      if (const auto done = add_pinned_cell(vc, pinned, counter); !done) return done;
    }
  }
  return {};
}

Result<void> Builder::check_assignment() {
  for (const Chain& chain : cells.chains) {
    if (!chain.counted) continue;
    std::int64_t available = static_cast<std::int64_t>(chain.full[at(chain.top)].size());
    for (std::int32_t l = chain.top; l >= 1; --l) {
      const std::int64_t need = chain.all_vc_free[at(l)];
      if (available < need) {
        int line = 0;
        for (const VirtualClusterSpec& vc : config_.virtual_clusters) {
          for (const VirtualCellSpec& cell : vc.cells) {
            if (split(cell.path, '.').front() == chain.name) line = cell.line;
          }
        }
        return bad(
            line,
            fmt::format(
                "Illegal initial VC assignment: Insufficient physical cells at chain {} level {}: {} needed, {} available (cells of type \"{}\" left after the larger ones are taken; lower cellNumber or add physical cells)",
                chain.name,
                l,
                need,
                available,
                cells.type(chain.types[at(l)]).name));
      }
      const auto& full = chain.full[at(l)];
      const std::int32_t children =
          full.empty() ? 0 : cells.p(full[0]).child_end - cells.p(full[0]).child_begin;
      available = (available - need) * children;
    }
  }
  return {};
}

template <typename CellsOf>
std::vector<Index> view_cells(const std::vector<std::vector<Index>>& full, CellsOf cell) {
  const auto top = static_cast<std::int32_t>(full.size()) - 1;
  std::int32_t level = top;
  for (std::int32_t l = 1; l <= top; ++l) {
    if (!full[at(l)].empty() && cell(full[at(l)][0]).at_or_above_node) {
      level = l;
      break;
    }
  }
  std::vector<Index> out;
  std::unordered_map<Index, bool> in_view;
  for (std::int32_t l = level; l >= 1; --l) {
    for (const Index c : full[at(l)]) {
      Index ancestor = c;
      while (!cell(ancestor).at_or_above_node && cell(ancestor).parent != kNone)
        ancestor = cell(ancestor).parent;
      if (in_view.contains(ancestor)) continue;
      in_view.emplace(c, true);
      out.push_back(c);
    }
  }
  return out;
}

void Builder::views() {
  const auto add_view = [&] {
    cells.views.emplace_back();
    return static_cast<Index>(cells.views.size() - 1);
  };
  const auto add_virtual_view = [&](Index& view, const std::vector<std::vector<Index>>& full) {
    view = add_view();
    for (const Index c :
         view_cells(full, [&](Index i) -> const VirtualCell& { return cells.v(i); })) {
      cells.v(c).view = view;
      cells.v(c).view_entry = cells.view(view).add(c, cells.type(cells.v(c).type).leaf_count);
    }
  };
  for (Chain& chain : cells.chains) {
    chain.view = add_view();
    for (const Index c :
         view_cells(chain.full, [&](Index i) -> const PhysicalCell& { return cells.p(i); })) {
      cells.p(c).view_entry = cells.view(chain.view).add(c, cells.type(cells.p(c).type).leaf_count);
    }
  }
  for (VirtualCluster& vc : cells.vcs) {
    for (Holding& h : vc.holdings) add_virtual_view(h.view, h.full);
    for (PinnedHolding& pinned : vc.pinned) add_virtual_view(pinned.view, pinned.full);
  }
}

void Builder::order_chains(bool descending) {
  std::vector<Index> order;
  for (std::size_t i = 0; i < cells.chains.size(); ++i) order.push_back(static_cast<Index>(i));
  if (descending) {
    std::sort(order.begin(), order.end(), [&](Index a, Index b) {
      return cells.chain(a).name > cells.chain(b).name;
    });
  }
  for (const Chain& chain : cells.chains) {
    const std::string& leaf = cells.type(chain.leaf_type).name;
    if (std::find(cells.leaf_types.begin(), cells.leaf_types.end(), leaf) == cells.leaf_types.end())
      cells.leaf_types.push_back(leaf);
  }
  for (const std::string& leaf : cells.leaf_types) {
    std::vector<Index> chains;
    for (const Index c : order) {
      if (cells.type(cells.chain(c).leaf_type).name == leaf) chains.push_back(c);
    }
    cells.chains_of_leaf_type.push_back(std::move(chains));
  }
}

}  // namespace

Result<Cells> Cells::build(const Config& config, bool descending_chains) {
  Builder builder(config);
  if (const auto done = builder.types(); !done) return fail(done.error());
  if (const auto done = builder.physical(); !done) return fail(done.error());
  if (const auto done = builder.virtuals(); !done) return fail(done.error());
  if (const auto done = builder.check_assignment(); !done) return fail(done.error());
  builder.views();
  builder.order_chains(descending_chains);
  builder.cells.bind_pinned();
  return std::move(builder.cells);
}

}  // namespace muster::engine::cells
