/// For people: the physical and the virtual clusters with who sits where, and what a new
/// configuration would do to whom.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/cells/allocator.h"
#include "hived/config.h"
#include "json/json.h"

namespace muster::hived {

struct TreeOptions {
  bool colours = false;
  bool devices = false;  // also the cells below a node
};

/// Both clusters as indented text.
std::string tree_text(const engine::cells::CellAllocator& allocator, const TreeOptions& options);
/// The same as JSON in the shape of /v1/inspect/clusterstatus, with the gangs under
/// "affinityGroups".
json::Value tree_json(const engine::cells::CellAllocator& allocator);

/// A bound pod as its annotations tell.
struct RunningPod {
  engine::cells::PodRef pod;
  engine::cells::PodSpec spec;
  engine::cells::BindInfo bind;
};

/// The cells with those pods on them that are bound.
struct Occupancy {
  engine::cells::CellAllocator cells;
  std::vector<std::string> misplaced;  // "pod NAME is not on these cells: why"
};
/// `nodes` by name, true: healthy; `pods` in the order in which they were bound. Errors: the cells
/// are refused.
Result<Occupancy> occupy(const Config& config,
                         const std::vector<std::pair<std::string, bool>>& nodes,
                         const std::vector<RunningPod>& pods,
                         Time now);

/// What a new configuration does to one gang. Nothing is evicted by it; what is downgraded may be
/// preempted later by any guaranteed gang.
struct GroupChange {
  enum class Effect : std::uint8_t {
    kKept,        // as before
    kPromoted,    // was downgraded, is guaranteed again
    kDowngraded,  // runs on, now opportunistic
    kCellsLost,   // runs on, on cells the new file does not know; those are not counted
  };
  std::string group;
  std::string vc;
  Effect effect = Effect::kKept;
  std::string text;  // one sentence
};

struct CheckReport {
  std::vector<GroupChange> changes;   // by group name
  std::vector<std::string> warnings;  // odd but accepted
  std::vector<std::string> facts;     // what else changes: nodes, virtual clusters, promises
};

/// Errors: the new file is refused (the line, what was found, what would be right). `pods` in the
/// order in which they will be taken over; nodes count as healthy.
Result<CheckReport> check(const Config& old_config,
                          const Config& new_config,
                          const std::vector<RunningPod>& pods);
std::string to_string(const CheckReport& report);
/// Whether the cells of a configuration fit together.
Result<void> check_cells(const Config& config);
/// "3 nodes, 12 devices, 1 chains, 2 virtual clusters"; empty when the configuration is refused.
std::string describe(const Config& config);

}  // namespace muster::hived
