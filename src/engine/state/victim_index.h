/// For one kind of preemptor: how many pods must go on each node to make room for one of its pods.
///
/// Kept like the class indexes: nodes in buckets by cost, brought up to date from the change logs
/// of nodes and gangs. The order leaves out what changes without them (amounts of queues, what the
/// decision being made has bound), so a node may turn out dearer, or impossible, when
/// choose_on_node() looks at it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/model/ids.h"
#include "engine/muster/victims.h"
#include "engine/state/node_set.h"
#include "engine/state/state.h"

namespace muster::engine {

class VictimIndex {
 public:
  static constexpr std::size_t kBuckets = 16;

  /// Walks nodes that victims could make room on, the cheapest first: start with {}, pass the last
  /// answer back. Invalid at the end.
  struct Cursor {
    std::size_t bucket = 0;
    std::uint32_t from = 0;
  };
  /// Must be called before next(), after any change of the state.
  void catch_up(const Asking& asking);
  [[nodiscard]] NodeId next(const Preemptor& who, Cursor& cursor) const;
  std::int64_t checks = 0;

 private:
  struct Table {
    bool built = false;
    std::uint64_t cursor = 0;
    std::uint64_t gang_cursor = 0;
    std::uint64_t version = 0;
    std::array<NodeSet, kBuckets> buckets;
    std::vector<std::uint8_t> bucket_of;
    std::uint64_t used = 0;
  };
  void update(const Asking& asking, Table& table, std::uint32_t node);

  std::map<decltype(std::declval<Preemptor>().key()), Table> tables_;
  std::uint64_t uses_ = 0;
};

}  // namespace muster::engine
