/// The cluster as the simulation knows it: what is where, what is held for whom, counted
/// independently of the engine and with none of its tables.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace muster::dst {

/// What a node has left. Devices by their index; below zero: given twice, or held while somebody is
/// still there.
struct Room {
  std::int64_t cpu = 0;
  std::int64_t pods = 0;
  std::vector<std::int32_t> devices;

  bool operator==(const Room&) const = default;
};

enum class Life { kPending, kBound, kLeaving };

struct SimPod {
  engine::Pod spec;
  Life life = Life::kPending;
  std::int64_t cpu = 0;
  std::int64_t gpus = 0;
  /// Of one that cells placed.
  std::shared_ptr<const engine::cells::Seat> seat;
};

struct SimNode {
  engine::Node spec;
  std::int64_t cpu = 0;
  std::int64_t gpus = 0;
  /// Bound or leaving.
  std::vector<const SimPod*> pods;
  /// Kept with every bind and leave; counted anew now and then to see that it is right.
  Room room;
};

/// Room that a plan holds for a pod.
struct Held {
  std::string node;
  std::vector<std::int32_t> devices;
  bool due = true;  ///< Nothing has happened since that could have taken it away.
};

std::int64_t wanted_of(const engine::Pod& pod, const std::string& resource);
std::int64_t device_milli_of(const engine::Pod& pod);

Room empty_room(const SimNode& node);
/// The pod with these devices comes (+1) or goes (-1).
void adjust(Room& room,
            const SimPod& pod,
            const std::vector<std::int32_t>& devices,
            std::int32_t sign);
void adjust(Room& room, const SimPod& pod, std::int32_t sign);
bool any_negative(const Room& room);
bool takes(const Room& room, const SimPod& pod);
/// The devices it would get, the fullest first for a share; the pod must fit.
std::vector<std::int32_t> devices_for(const Room& room, const SimPod& pod);
/// How many like this one fit beside each other.
std::int64_t takes_count(Room room, const SimPod& pod, std::int64_t limit);
bool usable(const SimNode& node, const SimPod& pod);

struct Model {
  Time now = Time::from_seconds(1'000'000);
  std::map<std::string, SimNode> nodes;
  std::map<std::string, SimPod> pods;
  std::map<std::string, engine::Group> groups;    ///< With pods.
  std::map<std::string, engine::Group> families;  ///< Groups of groups.
  std::vector<engine::Queue> queues;
  std::map<std::string, std::int64_t> used;   ///< Device milli of each queue's running pods.
  std::map<std::string, std::int32_t> bound;  ///< Running members of each gang.
  std::map<std::string, Held> held;           ///< By pod.
  std::vector<engine::Reservation> reservations;
  std::int64_t leaving = 0;

  void set_life(SimPod& pod, Life life);
  /// The pod runs from now on: what is wrong with that, or nothing.
  std::optional<std::string> carry_out(const engine::Bind& bind);

  [[nodiscard]] std::int32_t priority_of(const engine::Pod& pod) const;
  [[nodiscard]] std::string queue_of(const engine::Pod& pod) const;
  [[nodiscard]] Time created(const engine::Pod& pod) const;
  /// What starts with it: its family, its gang, or itself.
  [[nodiscard]] std::string root_of(const engine::Pod& pod) const;
  /// A pod of the gang or the pod itself; nullptr: nobody of that name is left.
  [[nodiscard]] const SimPod* someone_of(const std::string& gang_or_pod) const;

  /// SimNode::room counted from nothing.
  [[nodiscard]] Room counted_room(const SimNode& node) const;
  /// What is there for those for whom nothing is held.
  [[nodiscard]] Room open_room(const SimNode& node) const;
  /// The same once those that leave have left.
  [[nodiscard]] Room later_room(const SimNode& node) const;
  /// The queue's capability lets so many more like the pod start, beside those that room is held
  /// for.
  [[nodiscard]] bool queue_takes(const SimPod& pod, std::int64_t members) const;
  [[nodiscard]] std::int64_t held_of_queue(const std::string& queue) const;

 private:
  void sit(SimPod& pod, std::int32_t sign);
  void count(const SimPod& pod, std::int32_t sign);
};

}  // namespace muster::dst
