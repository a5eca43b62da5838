/// What looking at every node shows about a pod that fits on none of them: how many nodes lack
/// what, and how much the best of them has.
///
/// A survey of a large cluster costs more than the decision it explains, and hardly differs from
/// the last one of the same class. So the last few are kept with what each node lacked, and brought
/// up to date from the state's change log: the cost grows with the nodes that changed since, not
/// with the nodes there are. Where more than the node itself decides (terms between pods, or others
/// that might be evicted) every node is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/ids.h"
#include "engine/state/fit.h"
#include "engine/state/state.h"

namespace muster::engine {

struct Survey {
  std::map<std::string, std::int32_t> causes;
  std::map<std::string, std::int32_t> after_eviction;
  /// By resource: free on one node, and there at all on one node, at most.
  std::map<std::size_t, std::int64_t> most_free;
  std::map<std::size_t, std::int64_t> largest;
  /// Some node would take a member if it were empty.
  bool ever_fits = false;
  /// Members that fit now.
  std::int64_t placeable = 0;

  bool operator==(const Survey&) const = default;
};

/// Could the node take the pod if others left it?
[[nodiscard]] bool eviction_may_help(Cause cause);
/// Only room is missing, if anything is.
[[nodiscard]] bool lacks_only_room(const Misfit& misfit);

/// What eviction would do at a node where nobody may be evicted.
inline constexpr const char* kNotHelpful = "Preemption is not helpful for scheduling";
inline constexpr const char* kNoVictims = "No preemption victims found for incoming pod";

/// Always: what is kept of a node is what fit() said when the log was last read up to that node's
/// last change.
class Surveys {
 public:
  static constexpr std::size_t kKept = 16;

  Surveys() = default;
  // What can be worked out again is no part of a copy.
  Surveys(const Surveys&) {}
  Surveys& operator=(const Surveys&) {
    kept_.clear();
    return *this;
  }
  ~Surveys() = default;

  /// For a pod that asks nothing of other pods and for which nobody may be evicted. `wanted`
  /// members are counted at most on each node; `checks` grows by the nodes that were looked at.
  [[nodiscard]] Survey of(const State& state, PodId pod, std::int32_t wanted, std::int64_t& checks);
  /// Stops the program when something kept differs from what the nodes show.
  void check(const State& state) const;

 private:
  static constexpr std::int32_t kFits = -1;
  static constexpr std::int32_t kAbsent = -2;
  static constexpr std::int64_t kNotAllowed = -1;

  struct Seen {
    std::int32_t cause = kAbsent;  ///< In `causes`, or one of the two above.
    std::int32_t placeable = 0;
    bool helps = false;      ///< Eviction might help.
    bool ever_fits = false;  ///< It would fit if the node were empty.
  };
  /// One resource that the class asks for, by node: kNotAllowed where more than room is missing.
  struct Amounts {
    std::size_t resource = 0;
    std::vector<std::int64_t> free, all;
    std::int64_t most_free = kNotAllowed, most = kNotAllowed;
  };
  struct Kept {
    ClassId cls;
    std::int32_t wanted = 0;
    std::uint64_t cursor = 0;  ///< In the state's log.
    std::uint64_t used = 0;
    std::vector<Seen> nodes;
    std::vector<std::pair<std::string, std::int32_t>> causes;  ///< With how many nodes have it.
    std::int32_t helped = 0, not_helped = 0, ever_fit = 0;
    std::int64_t placeable = 0;
    std::vector<Amounts> amounts;
  };

  Kept& find(const State& state, ClassId cls, std::int32_t wanted);
  static void look_at_all(const State& state, Kept& kept);
  static void look_at(const State& state, Kept& kept, NodeId id);
  static void forget(Kept& kept, const Seen& seen);
  static std::int32_t cause_of(Kept& kept, std::string text);
  static void note_amounts(Kept& kept, const NodeState& node, std::size_t at, bool allowed);
  [[nodiscard]] static Survey told(const Kept& kept);

  std::vector<Kept> kept_;
  std::uint64_t uses_ = 0;
};

}  // namespace muster::engine
