/// What a configuration of cells says, as plain tables: which cells a leaf is in, and what each
/// virtual cluster owns.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/model/cell_config.h"

namespace muster::dst {

class CellLayout {
 public:
  /// By level; level 1 is the leaf, 0 is unused.
  struct Chain {
    std::string leaf_type;
    std::vector<std::string> types;
    std::vector<std::int32_t> leaf_counts;
    std::int32_t node_level = 0;
    std::vector<std::string> nodes;

    [[nodiscard]] std::int32_t top() const { return static_cast<std::int32_t>(types.size()) - 1; }
    /// 0: the chain has no such cells.
    [[nodiscard]] std::int32_t level_of(const std::string& type) const;
    /// Leaves of a cell of that level.
    [[nodiscard]] std::int32_t leaves(std::int32_t level) const {
      return leaf_counts[static_cast<std::size_t>(level)];
    }
    [[nodiscard]] std::int32_t node_leaves() const { return leaves(node_level); }
  };
  struct Node {
    std::string chain;
    /// Of the pinned cell that it is in; empty: none.
    std::string pinned;
    /// The cells it is in, by level from its own on; lower ones are 0.
    std::vector<std::int32_t> cells;
  };
  /// Cells of a virtual cluster: so many of a level, or one pinned cell.
  struct Owned {
    std::string chain;
    std::int32_t level = 0;
    std::int32_t number = 0;
    std::string pinned;
  };

  CellLayout() = default;
  explicit CellLayout(const engine::cells::Config& config);

  [[nodiscard]] bool has_vc(const std::string& name) const { return vcs_.contains(name); }
  [[nodiscard]] const std::map<std::string, Chain>& chains() const { return chains_; }
  [[nodiscard]] const std::map<std::string, Node>& nodes() const { return nodes_; }
  /// Nothing for a virtual cluster that is not there.
  [[nodiscard]] const std::vector<Owned>& owned(const std::string& vc) const;
  /// A name for the cell of that level that the device is in.
  [[nodiscard]] std::string cell_of(const std::string& node,
                                    std::int32_t device,
                                    std::int32_t level) const;

 private:
  void add_chain(const engine::cells::Config& config, const std::string& top);
  void add_cell(const engine::cells::PhysicalCellSpec& cell,
                const std::string& chain,
                std::int32_t level,
                std::vector<std::int32_t> above,
                const std::string& pinned);

  std::map<std::string, Chain> chains_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::vector<Owned>> vcs_;
  std::int32_t next_cell_ = 0;
};

}  // namespace muster::dst
