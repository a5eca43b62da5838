#include "model.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::dst {

using engine::Bind;
using engine::Pod;

std::int64_t wanted_of(const Pod& pod, const std::string& resource) {
  for (const auto& amount : pod.requests) {
    if (amount.name == resource) return amount.value;
  }
  return 0;
}

std::int64_t device_milli_of(const Pod& pod) {
  return wanted_of(pod, "nvidia.com/gpu") * 1000 + pod.device_share_milli;
}

Room empty_room(const SimNode& node) {
  return {node.cpu, 30, std::vector<std::int32_t>(static_cast<std::size_t>(node.gpus), 1000)};
}

void adjust(Room& room,
            const SimPod& pod,
            const std::vector<std::int32_t>& devices,
            std::int32_t sign) {
  room.cpu -= sign * pod.cpu;
  room.pods -= sign;
  for (const auto d : devices) {
    room.devices[static_cast<std::size_t>(d)] -=
        sign * (pod.spec.device_share_milli > 0 ? pod.spec.device_share_milli : 1000);
  }
}

void adjust(Room& room, const SimPod& pod, std::int32_t sign) {
  adjust(room, pod, pod.spec.device_indexes, sign);
}

bool takes(const Room& room, const SimPod& pod) {
  if (room.cpu < pod.cpu || room.pods < 1) return false;
  if (pod.spec.device_share_milli > 0) {
    return std::any_of(room.devices.begin(), room.devices.end(), [&](auto d) {
      return d >= pod.spec.device_share_milli;
    });
  }
  return std::count(room.devices.begin(), room.devices.end(), 1000) >= pod.gpus;
}

std::vector<std::int32_t> devices_for(const Room& room, const SimPod& pod) {
  std::vector<std::int32_t> out;
  if (pod.spec.device_share_milli > 0) {
    std::int32_t best = -1;
    for (std::size_t d = 0; d < room.devices.size(); ++d) {
      if (room.devices[d] < pod.spec.device_share_milli) continue;
      if (best < 0 || room.devices[d] < room.devices[static_cast<std::size_t>(best)])
        best = static_cast<std::int32_t>(d);
    }
    return {best};
  }
  for (std::size_t d = 0;
       d < room.devices.size() && static_cast<std::int64_t>(out.size()) < pod.gpus;
       ++d) {
    if (room.devices[d] == 1000) out.push_back(static_cast<std::int32_t>(d));
  }
  return out;
}

std::int64_t takes_count(Room room, const SimPod& pod, std::int64_t limit) {
  std::int64_t n = 0;
  for (; n < limit && takes(room, pod); ++n) adjust(room, pod, devices_for(room, pod), +1);
  return n;
}

bool any_negative(const Room& room) {
  return room.cpu < 0 || room.pods < 0 ||
         std::any_of(room.devices.begin(), room.devices.end(), [](auto d) { return d < 0; });
}

bool usable(const SimNode& node, const SimPod& pod) {
  if (!node.spec.ready || node.spec.unschedulable) return false;
  return std::all_of(pod.spec.node_selector.begin(),
                     pod.spec.node_selector.end(),
                     [&](const auto& s) { return node.spec.labels[0].second == s.second; });
}

/// The pod takes its place on its node, or gives it back.
void Model::sit(SimPod& pod, std::int32_t sign) {
  const auto n = nodes.find(pod.spec.node);
  if (n == nodes.end()) return;
  adjust(n->second.room, pod, sign);
  if (sign > 0) {
    n->second.pods.push_back(&pod);
  } else {
    std::erase(n->second.pods, &pod);
  }
}

/// The same in its queue and its gang.
void Model::count(const SimPod& pod, std::int32_t sign) {
  used[queue_of(pod.spec)] += sign * device_milli_of(pod.spec);
  if (!pod.spec.group.empty()) bound[pod.spec.group] += sign;
}

void Model::set_life(SimPod& pod, Life life) {
  if (pod.life == life) return;
  if (pod.life == Life::kBound) count(pod, -1);
  if (life == Life::kBound) count(pod, +1);
  if (pod.life != Life::kPending && life == Life::kPending) sit(pod, -1);
  if (pod.life == Life::kPending && life != Life::kPending) sit(pod, +1);
  if (pod.life == Life::kLeaving) --leaving;
  if (life == Life::kLeaving) ++leaving;
  pod.life = life;
}

std::optional<std::string> Model::carry_out(const Bind& b) {
  const auto it = pods.find(b.pod);
  if (it == pods.end()) return "bind of unknown pod " + b.pod;
  SimPod& p = it->second;
  if (p.life != Life::kPending) return "bind of a pod that does not wait: " + b.pod;
  if (p.spec.uid != b.uid) return "bind with a stale uid: " + b.pod;
  if (p.spec.gated) return "bind of a gated pod: " + b.pod;
  const auto n = nodes.find(b.node);
  if (n == nodes.end()) return "bind to a node that is gone: " + b.node;
  if (!n->second.spec.ready || n->second.spec.unschedulable)
    return "bind to an unusable node: " + b.node;
  if (!usable(n->second, p)) return "bind against the node selector: " + b.pod;
  const auto wanted = p.spec.device_share_milli > 0 ? 1 : p.gpus;
  if (static_cast<std::int64_t>(b.devices.size()) != wanted)
    return fmt::format("{} got {} devices, wanted {}", b.pod, b.devices.size(), wanted);
  held.erase(b.pod);
  p.spec.node = b.node;
  p.spec.device_indexes = b.devices;
  p.spec.started = now;
  p.seat = b.cells;
  const Room& room = n->second.room;
  for (const auto d : b.devices) {
    if (d < 0 || static_cast<std::size_t>(d) >= room.devices.size())
      return fmt::format("{} got device {} of {}, which has none such", b.pod, d, b.node);
  }
  set_life(p, Life::kBound);
  if (room.cpu < 0) return "cpu overcommitted on " + b.node;
  if (room.pods < 0) return "too many pods on " + b.node;
  if (any_negative(room)) return "a device given twice on " + b.node;
  return std::nullopt;
}

std::int32_t Model::priority_of(const Pod& pod) const {
  return pod.group.empty() ? pod.priority : groups.at(pod.group).priority;
}
std::string Model::queue_of(const Pod& pod) const {
  return pod.group.empty() ? pod.queue : groups.at(pod.group).queue;
}
Time Model::created(const Pod& pod) const {
  return pod.group.empty() ? pod.created : groups.at(pod.group).created;
}

std::string Model::root_of(const Pod& pod) const {
  if (pod.group.empty()) return pod.key;
  const auto g = groups.find(pod.group);
  return g == groups.end() || g->second.parent.empty() ? pod.group : g->second.parent;
}

const SimPod* Model::someone_of(const std::string& gang_or_pod) const {
  const auto single = pods.find(gang_or_pod);
  if (single != pods.end()) return &single->second;
  const auto it = pods.lower_bound(gang_or_pod + "-");
  return it != pods.end() && it->second.spec.group == gang_or_pod ? &it->second : nullptr;
}

Room Model::counted_room(const SimNode& node) const {
  Room room = empty_room(node);
  for (const auto& [key, p] : pods) {
    if (p.life != Life::kPending && p.spec.node == node.spec.name) adjust(room, p, +1);
  }
  return room;
}

Room Model::open_room(const SimNode& node) const {
  Room room = node.room;
  for (const auto& [key, h] : held) {
    if (h.node == node.spec.name) adjust(room, pods.at(key), h.devices, +1);
  }
  return room;
}

Room Model::later_room(const SimNode& node) const {
  Room room = open_room(node);
  for (const SimPod* p : node.pods) {
    if (p->life == Life::kLeaving) adjust(room, *p, -1);
  }
  return room;
}

std::int64_t Model::held_of_queue(const std::string& queue) const {
  std::int64_t sum = 0;
  for (const auto& [key, h] : held) {
    const Pod& p = pods.at(key).spec;
    if (queue_of(p) == queue) sum += device_milli_of(p);
  }
  return sum;
}

bool Model::queue_takes(const SimPod& pod, std::int64_t members) const {
  if (device_milli_of(pod.spec) == 0) return true;
  const std::string queue = queue_of(pod.spec);
  const auto it = used.find(queue);
  for (const auto& q : queues) {
    if (q.name != queue || q.capability.empty()) continue;
    const std::int64_t taken = (it == used.end() ? 0 : it->second) + held_of_queue(queue);
    if (taken + members * device_milli_of(pod.spec) > q.capability[0].value * 1000) return false;
  }
  return true;
}

}  // namespace muster::dst
