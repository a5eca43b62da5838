/// When and where a number of pods alike will fit, if everybody leaves as expected.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/model/ids.h"
#include "engine/muster/desk.h"
#include "engine/state/state.h"

namespace muster::engine {

/// What a node has free at some time, whole devices and shares of them told apart.
struct FreeRoom {
  ResourceVector amounts;
  /// Open milli of each device.
  std::vector<std::int32_t> devices;

  void give(const PodState& pod, const TaskClass& cls) {
    amounts += cls.request;
    for (const auto i : pod.devices) devices[i] = std::min(1000, devices[i] + cls.device_milli());
  }
  void take(const TaskClass& cls, const Positions& at) {
    amounts -= cls.request;
    for (const auto i : at) devices[i] -= cls.device_milli();
  }
  /// How many pods of the class fit, at most `wanted`.
  [[nodiscard]] std::int32_t count(const TaskClass& cls, std::int64_t wanted) const;
};

class Forecast {
 public:
  struct Start {
    /// False: with all that is known to leave there is still too little room.
    bool known = false;
    Time at;
    /// How many each node takes at that time, in order of the nodes: those that take some, or all
    /// that are usable when the time is not known.
    std::vector<std::pair<NodeId, std::int32_t>> fits;
  };

  /// `wanted` pods of the class; `kept(node, amounts)` takes off what others ahead are to have.
  Forecast(Desk& desk,
           ClassId cls,
           std::int32_t wanted,
           std::function<void(NodeId, ResourceVector&)> kept);

  /// The earliest time at which all fit on these nodes, which are in order of their ids.
  [[nodiscard]] Start earliest(const std::vector<NodeId>& nodes);

 private:
  /// From then on the node takes so many more.
  struct Step {
    Time at;
    NodeId node;
    std::int32_t more;
  };
  [[nodiscard]] Start search(const std::vector<NodeId>& nodes,
                             const std::function<void(Start&)>& look);
  void check(const std::vector<NodeId>& nodes, const Start& start);
  /// At the nodes that may take one, in the order in which they may, until those looked at are enough
  /// by then. The others need not be looked at.
  void look_at_soonest(const std::vector<NodeId>& nodes, Start& start);
  [[nodiscard]] Time soonest(NodeId id) { return desk_.departures.soonest(desk_, amount_, id); }
  void look_at_rest(const std::vector<NodeId>& nodes, Time after, Start& start);
  void add(NodeId id, Start& start);
  /// How many fit on the node now; steps_ gets what those that leave make of it, up to enough_by_.
  std::int32_t look_at(NodeId id);
  [[nodiscard]] bool has_room_now(NodeId id) const;
  void look_at_room(const NodeState& node, NodeId id);
  /// Those on the node that have left by enough_by_, in ends_. False: without the others there is too
  /// little room for one more than fits now, and not all were looked at.
  bool find_leavers(const NodeState& node,
                    const Departures::Leavers& leavers,
                    std::int32_t now_fits);
  /// Steps have been added since the one at this position.
  void note_enough(std::size_t from, std::int64_t missing);
  /// Adds the usable nodes that take none.
  void add_others(const std::vector<NodeId>& nodes, Start& start) const;

  Desk& desk_;
  const TaskClass& cls_;
  std::int32_t wanted_;
  std::function<void(NodeId, ResourceVector&)> kept_;
  const ClassIndex& usable_;
  std::size_t amount_;  ///< Of devices that one takes, as Departures knows it.
  std::vector<Step> steps_;
  std::int64_t total_ = 0;  ///< So many fit now on the nodes looked at so far.
  /// By then all fit on the nodes looked at so far: what happens later is of no account. Of a large
  /// cluster a few nodes tell, and for most others one pod that stays is enough to pass them over.
  Time enough_by_;
  std::priority_queue<std::pair<Time, std::int32_t>>
      soonest_;  ///< The steps until then, last first.
  std::int64_t soonest_more_ = 0;
  // Used again for each node, so that none of them costs an allocation.
  std::vector<Time> first_;
  std::vector<std::pair<Time, NodeId>> near_;
  std::vector<std::pair<Time, PodId>> ends_;
  FreeRoom free_;
};

}  // namespace muster::engine
