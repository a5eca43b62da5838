/// Physical and virtual cells, which of them are free, bound or bad, and the book-keeping that
/// keeps every virtual cluster's promise.
///
/// A physical cell is a device (leaf) or a fixed set of child cells; a virtual cell is a promise of
/// such a cell to one virtual cluster and is bound to a physical one only while somebody uses it
/// (or while it is pinned, or doomed: bound to a bad cell in advance so that its owner sees the
/// loss). Free physical cells are kept in one list per level and split and merged as buddies.
///
/// What always holds: binding is one to one between cells of equal level; a cell is in the free
/// list of its level iff it is neither bound nor split and its parent is absent or split;
/// total_left[l] >= all_vc_free[l] unless a reconfiguration broke it. All positions in lists are
/// stored in the cells, so no list is ever searched.
///
/// Internal to CellAllocator; one thread, no clock, no randomness.
///
/// One piece, half of it one-line reads: a cell that changes its state moves between lists whose
/// lengths the promises are counted by, and nobody may see it half moved.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/cells/view.h"
#include "engine/model/cell_config.h"

namespace muster::engine::cells {

using Index = std::int32_t;
inline constexpr Index kNone = -1;

inline constexpr std::int32_t kFreePriority = -2;
inline constexpr std::int32_t kOpportunistic = -1;
inline constexpr std::int32_t kMaxPriority = 1000;

enum class CellState : std::uint8_t { kFree, kUsed, kReserving, kReserved };
std::string_view to_string(CellState state);

struct TypeInfo {
  std::string name;
  Index child = kNone;
  std::int32_t child_number = 0;
  std::int32_t level = 1;
  Index leaf_type = kNone;
  std::int32_t leaf_count = 1;
  bool node_flag = false;  // isNodeLevel as written
  bool at_or_above_node = false;
  bool multi_node = false;
};

enum ListKind : std::uint8_t { kFreeList, kBadFreeList, kDoomedList, kListKinds };

/// What every allocation touches on the way up comes first, in one cache line.
struct alignas(64) PhysicalCell {
  Index parent = kNone;
  Index chain = kNone;
  std::int32_t level = 1;
  std::int32_t priority = kFreePriority;
  Index virt = kNone;
  std::int32_t used_total = 0;  // leaves below in use at any priority
  std::int32_t used_opportunistic = 0;
  std::int32_t view_entry = -1;                          // in the chain's opportunistic view
  std::array<std::int32_t, 4> child_states{0, 0, 0, 0};  // children in each state
  std::int32_t leaf_index = -1;                          // device index of a leaf
  Index using_group = kNone;
  CellState state = CellState::kFree;
  bool healthy = true;
  bool split = false;
  bool pinned = false;
  Index type = kNone;
  Index child_begin = 0, child_end = 0;  // in Cells::physical_children
  Index leaf_begin = 0, leaf_end = 0;    // in Cells::leaves
  Index node_begin = 0, node_end = 0;    // in Cells::cell_nodes
  std::array<std::int32_t, kListKinds> position{-1, -1, -1};
  std::int32_t bad_children = 0;
  Index reserving_group = kNone;
  // How the leaf was allocated, which alone decides how it is released: a bad leaf may be bound to
  // another virtual cluster while somebody uses it opportunistically.
  Index allocated_virtual = kNone;
  Index opportunistic_vc = kNone;  // whose opportunistic pod sits here
  std::int32_t opportunistic_position = -1;
  bool at_or_above_node = false;
  // For views alone: it was bad when it was bound (and is ever since), or used opportunistically.
  bool bound_while_bad = false;
  bool used_while_bad = false;
};

struct VirtualCell {
  Index view = kNone;  // the view it is an entry of, in Cells::views
  std::int32_t view_entry = -1;
  Index parent = kNone;
  std::int32_t priority = kFreePriority;
  std::int32_t used_total = 0;
  Index physical = kNone;
  Index root = kNone;  // the preassigned cell
  Index vc = kNone;
  Index chain = kNone;
  std::int32_t level = 1;
  std::int32_t root_position = -1;  // in RootList, for roots that are not pinned
  CellState state = CellState::kFree;
  bool healthy = true;
  bool at_or_above_node = false;
  Index child_begin = 0, child_end = 0;  // in Cells::virtual_children
  Index leaf_begin = 0, leaf_end = 0;    // in Cells::virtual_leaves
  Index type = kNone;
};

/// Root virtual cells of one virtual cluster, chain and level; constant, with a bitmap of the
/// unbound ones.
struct RootList {
  std::vector<Index> cells;
  std::vector<std::uint64_t> unbound;
  void add(Index cell);
  void set_unbound(std::int32_t position, bool value);
  Index first_unbound() const;  // the cell, or kNone
};

struct Chain {
  std::string name;
  Index type = kNone;
  Index leaf_type = kNone;
  std::int32_t top = 1;
  bool counted = false;  // some virtual cluster owns cells of it
  // All below are indexed by level, 0 unused.
  std::vector<Index> types;
  std::vector<std::vector<Index>> full;  // all cells, creation order
  std::vector<std::vector<Index>> free, bad_free;
  std::vector<std::int32_t> total_left, all_vc_free, all_vc_doomed;
  std::vector<Index> vcs;  // virtual clusters that own cells of the chain
  Index view = kNone;      // opportunistic; in Cells::views
};

/// What one virtual cluster owns in one chain.
struct Holding {
  Index chain = kNone;
  std::vector<std::vector<Index>> full;  // non-pinned virtual cells by level
  std::vector<RootList> roots;
  std::vector<std::int32_t> free;          // vcFree
  std::vector<std::vector<Index>> doomed;  // physical cells
  Index view = kNone;
  bool has_cells = false;  // at least one that is not pinned
};

struct PinnedHolding {
  std::string id;
  Index root = kNone;
  Index physical = kNone;
  std::vector<std::vector<Index>> full;
  Index view = kNone;
};

struct VirtualCluster {
  std::string name;
  bool configured = true;  // false: only pods still name it
  std::vector<Holding> holdings;
  std::vector<Index> holding_of_chain;  // by chain, kNone if none
  std::vector<PinnedHolding> pinned;
  std::vector<Index> opportunistic;  // physical leaves used by its opportunistic pods
};

struct Node {
  std::string name;
  bool healthy = true;
  std::vector<Index> leaves;  // of all chains, chain by chain, list order
};

class Cells {
 public:
  /// Errors name what was wanted and found, and the line. Nothing is left half built.
  static Result<Cells> build(const Config& config, bool descending_chains);

  // Construction's results; constant afterwards except for the mutable fields of cells and
  // counters.
  std::vector<TypeInfo> types;
  std::vector<PhysicalCell> physical;
  std::vector<std::string> physical_address;
  std::vector<Index> physical_children, leaves, cell_nodes;
  std::vector<VirtualCell> virtuals;
  std::vector<std::string> virtual_address;
  std::vector<Index> virtual_children, virtual_leaves;
  std::vector<Chain> chains;
  std::vector<View> views;
  std::vector<VirtualCluster> vcs;
  std::vector<Node> nodes;
  std::vector<Index> tops;                              // top physical cells, config order
  std::vector<std::string> leaf_types;                  // in order of appearance
  std::vector<std::vector<Index>> chains_of_leaf_type;  // in chain order
  /// Looked up, never iterated.
  std::unordered_map<std::string, Index> type_index, chain_index, vc_index, node_index;
  std::vector<std::string> warnings;  // odd, but accepted

  std::span<const Index> children(const PhysicalCell& c) const {
    return std::span(physical_children)
        .subspan(static_cast<std::size_t>(c.child_begin),
                 static_cast<std::size_t>(c.child_end - c.child_begin));
  }
  std::span<const Index> children(const VirtualCell& c) const {
    return std::span(virtual_children)
        .subspan(static_cast<std::size_t>(c.child_begin),
                 static_cast<std::size_t>(c.child_end - c.child_begin));
  }
  std::span<const Index> nodes_of(const PhysicalCell& c) const {
    return std::span(cell_nodes)
        .subspan(static_cast<std::size_t>(c.node_begin),
                 static_cast<std::size_t>(c.node_end - c.node_begin));
  }
  PhysicalCell& p(Index i) { return physical[static_cast<std::size_t>(i)]; }
  const PhysicalCell& p(Index i) const { return physical[static_cast<std::size_t>(i)]; }
  PhysicalCell& p_mutable(Index i) { return physical[static_cast<std::size_t>(i)]; }
  VirtualCell& v(Index i) { return virtuals[static_cast<std::size_t>(i)]; }
  const VirtualCell& v(Index i) const { return virtuals[static_cast<std::size_t>(i)]; }
  Chain& chain(Index i) { return chains[static_cast<std::size_t>(i)]; }
  const Chain& chain(Index i) const { return chains[static_cast<std::size_t>(i)]; }
  VirtualCluster& vc(Index i) { return vcs[static_cast<std::size_t>(i)]; }
  const VirtualCluster& vc(Index i) const { return vcs[static_cast<std::size_t>(i)]; }
  View& view(Index i) { return views[static_cast<std::size_t>(i)]; }
  const View& view(Index i) const { return views[static_cast<std::size_t>(i)]; }
  const TypeInfo& type(Index i) const { return types[static_cast<std::size_t>(i)]; }
  const std::string& address(Index physical_cell) const {
    return physical_address[static_cast<std::size_t>(physical_cell)];
  }
  const std::string& vaddress(Index virtual_cell) const {
    return virtual_address[static_cast<std::size_t>(virtual_cell)];
  }
  const std::string& node_name(const PhysicalCell& c) const {
    return nodes[static_cast<std::size_t>(cell_nodes[static_cast<std::size_t>(c.node_begin)])].name;
  }

  Index find_vc(const std::string& name) const;
  /// Also makes an entry for a virtual cluster that is not (or no longer) configured.
  Index intern_vc(const std::string& name);
  Holding* find_holding(Index vc_index, Index chain);
  const Holding* find_holding(Index vc_index, Index chain) const;
  /// The leaf of the node with this device index in the chain, else in any chain (in order); kNone.
  Index find_leaf(Index node, std::int32_t leaf_index, Index preferred_chain) const;
  Index find_node(const std::string& name) const;

  /// In the free list, or inside a cell of the free list.
  bool is_free(Index cell) const;
  bool in_list(Index cell, ListKind kind) const { return p(cell).position[kind] >= 0; }

  /// Takes a leaf for a user: `virtual_leaf` (kNone: opportunistic, for `vc`). False: the promise
  /// to some virtual cluster can no longer be kept (possible only after a reconfiguration).
  [[nodiscard]] bool allocate_leaf(Index leaf, Index virtual_leaf, std::int32_t priority, Index vc);
  void release_leaf(Index leaf);
  void set_state(Index cell, CellState state);
  bool set_node(Index node, bool healthy);

  /// Whether leaf and virtual leaf can become a pair: equal up to a bound pair or a free root.
  bool can_bind(Index leaf, Index virtual_leaf) const;
  /// Gives up a doomed binding that nobody uses. For recovery: a pod runs there that belongs to
  /// another one.
  void release_doomed(Index cell);
  void bind_pinned();

 private:
  void append(std::vector<Index>& list, Index cell, ListKind kind);
  void remove(std::vector<Index>& list, Index cell, ListKind kind);
  void set_priority(Index cell, std::int32_t priority);
  void set_virtual_priority(Index cell, std::int32_t priority);
  void count_used(Index leaf, std::int32_t priority, std::int32_t delta);
  void count_virtual_used(Index leaf, std::int32_t priority, std::int32_t delta);
  void bind(Index physical_cell, Index virtual_cell);
  void unbind(Index physical_cell);
  void bind_path(Index leaf, Index virtual_leaf);
  void unbind_path(Index leaf);
  Index first_unbound_child(Index virtual_cell) const;
  std::int32_t take_from_free(Index cell);
  std::int32_t give_to_free(Index cell);
  bool allocate_preassigned(Index cell, Index vc, bool doomed);
  void release_preassigned(Index cell, Index vc, bool doomed);
  void mark_allocated_bad(Index cell);
  void unmark_released_bad(Index cell);
  Index choose_doomed(const Chain& chain, std::int32_t level) const;
  void bind_doomed(Index chain, std::int32_t level);
  void unbind_doomed(Index chain, std::int32_t level);
  void remove_doomed(Index cell);
  void set_bad(Index cell);
  void set_healthy(Index cell);
};

}  // namespace muster::engine::cells
