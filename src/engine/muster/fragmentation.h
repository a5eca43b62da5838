/// Placement that keeps device capacity usable: a pod goes where it raises the fragmentation of the
/// node least.
///
/// Fragmentation of a node = over the usual mix of requests, the device capacity on it that such a
/// request could not use (all of it when cpu, memory or devices are short; otherwise the devices
/// with too little left). Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023. The mix
/// is learned from the pods seen so far.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/ids.h"
#include "engine/state/state.h"

namespace muster::engine {

class Fragmentation {
 public:
  /// The best node for one pod of the class, by the increase of fragmentation and, with little
  /// weight, what is left free; then id. For a share of a device also which (a position in the
  /// node's table); -1 otherwise.
  NodeId pick(const State& state, ClassId cls, std::int64_t& checks, std::int32_t& device);

 private:
  struct Kind {
    std::int64_t cpu = 0;
    std::int32_t devices = 0;
    std::int32_t share = 0;
    std::int64_t weight = 0;
  };
  struct Table {
    std::uint64_t cursor = 0;
    std::uint64_t mix = 0;
    std::vector<std::int64_t> increase;  ///< By node; kImpossible where it does not fit.
  };
  void learn(const State& state, ClassId cls);
  struct Cost {
    std::int64_t increase = 0;
    std::int32_t device = -1;
  };
  struct Before {
    bool known = false;
    std::uint32_t changed = 0;
    std::uint64_t mix = 0;
    std::int64_t fragments = 0;
  };
  [[nodiscard]] std::int64_t fragments(std::int64_t cpu,
                                       const std::vector<std::int32_t>& devices) const;
  [[nodiscard]] std::int64_t before(const NodeState& node,
                                    NodeId id,
                                    const std::vector<std::int32_t>& devices);
  [[nodiscard]] Cost cost(const State& state, const TaskClass& cls, NodeId id);

  std::vector<std::int64_t> seen_;  ///< Pods by class.
  std::int64_t total_ = 0;
  std::int64_t next_mix_ = 16;
  std::uint64_t mix_ = 0;
  std::vector<Kind> kinds_;
  std::vector<Table> tables_;
  std::vector<Before> before_;  ///< By node.
};

}  // namespace muster::engine
