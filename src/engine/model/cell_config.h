/// The configuration of a cluster of cells, as plain data: what HiveD's YAML file says and nothing
/// derived.
///
/// `line` is where an element stands in the file it came from (0: unknown), so that an error found
/// here can still name the place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::engine::cells {

/// A cell of type `name` is `child_number` equal cells of type `child_type`.
struct CellTypeSpec {
  std::string name;
  std::string child_type;
  std::int32_t child_number = 0;
  bool node_level = false;
  int line = 0;
};

struct PhysicalCellSpec {
  std::string type;       // needed at the top only, inferred below
  std::string address;    // empty: inferred
  std::string pinned_id;  // empty: not pinned
  std::vector<PhysicalCellSpec> children;
  int line = 0;
};

struct VirtualCellSpec {
  std::string path;  // CHAIN.TYPE2.….TYPEn; only the first and the last name count
  std::int32_t number = 0;
  int line = 0;
};

struct PinnedCellSpec {
  std::string id;
  int line = 0;
};

struct VirtualClusterSpec {
  std::string name;
  std::vector<VirtualCellSpec> cells;
  std::vector<PinnedCellSpec> pinned;
  int line = 0;
};

struct Config {
  std::vector<CellTypeSpec> cell_types;
  std::vector<PhysicalCellSpec> physical_cells;
  std::vector<VirtualClusterSpec> virtual_clusters;
};

}  // namespace muster::engine::cells
