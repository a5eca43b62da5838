// Nodes and their devices: what they have, what is free, until when they are busy.
#include <algorithm>
#include <utility>

#include "engine/state/state.h"

namespace muster::engine {

void State::add_total(const NodeState& node, std::int64_t sign) {
  if (!node.live || !node.spec->ready) return;
  ResourceVector amount = node.allocatable;
  total_ += amount.scale(sign);
}

void State::refresh_allocatable(NodeState& node) {
  node.allocatable = ResourceVector();
  for (const auto& amount : node.spec->allocatable) {
    const std::size_t i = names_.find(amount.name);
    if (i != ResourceNames::kNone) node.allocatable.add(i, amount.value * names_.factor(i));
  }
  if (node.allocatable[ResourceNames::kPods] == 0) node.allocatable.set(ResourceNames::kPods, 110);
}

std::uint16_t State::intern_model(const std::string& model) {
  const auto it = std::find(models_.begin(), models_.end(), model);
  if (it != models_.end()) return static_cast<std::uint16_t>(it - models_.begin());
  models_.push_back(model);
  return static_cast<std::uint16_t>(models_.size() - 1);
}

void State::rebuild_devices(NodeState& node) {
  std::vector<DeviceState> devices;
  if (node.spec->devices.empty()) {
    const std::int64_t n = node.allocatable[ResourceNames::kDevice] / 1000;
    for (std::int32_t i = 0; i < n; ++i) devices.push_back({i, 1000, 0, true});
  } else {
    for (const auto& d : node.spec->devices)
      devices.push_back({d.index, 1000, intern_model(d.model), d.healthy});
  }
  node.devices = std::move(devices);
}

void State::refresh_free(NodeId id) {
  NodeState& node = nodes_[id.index()];
  node.free = node.allocatable;  // unheld(), without the copies.
  node.free -= node.used;
  if (!node.nominees.empty()) node.free -= node.held;
  std::int32_t whole = 0;
  std::int32_t share_max = 0;
  bool shared = false;
  for (const auto& d : node.devices) {
    if (!d.healthy) continue;
    const std::int32_t open = d.open_milli();
    whole += open == 1000 ? 1 : 0;
    share_max = std::max(share_max, open);
    shared |= d.free_milli != 0 && d.free_milli != 1000;
    if (d.held_milli == 0) continue;
    // Held while somebody is still there: that takes nothing from the devices that are free.
    if (open < 0) node.free.add(ResourceNames::kDevice, -open);
    shared |= d.held_milli % 1000 != 0;
  }
  node.devices_whole = whole;
  node.share_max = share_max;
  node.shared = shared;
  NodeRow& row = rows_[id.index()];
  for (std::size_t i = 0; i < row.free.size(); ++i) row.free[i] = node.free[i];
  row.cpu_all = node.allocatable[ResourceNames::kCpu];
  row.devices_whole = node.devices_whole;
  row.spec_changed = node.spec_changed;
  touch(id);
}

/// A queue that bounds the age of pods has them gone by then, waiting included.
Time State::latest_end(TenantId tenant, Time created) const {
  const Duration longest = tenants_[tenant.index()].spec.max_duration;
  return longest.count() > 0 && created ? created + longest : kNever;
}

Time State::expected_end(const PodState& pod) const {
  const GangState& gang = gangs_[pod.gang.index()];
  const Duration expected =
      pod.expected_duration.count() > 0 ? pod.expected_duration : gang.spec->expected_duration;
  const Time end = expected.count() > 0 && pod.started ? pod.started + expected : kNever;
  return std::min(end, latest_end(gang.tenant, pod.created));
}

/// Keeps the node's busy_until when a pod came, or is about to leave.
void State::note_end(PodId id, bool leaves) {
  const PodState& pod = pods_[id.index()];
  NodeState& node = nodes_[pod.node.index()];
  if (!leaves) {
    node.busy_until = std::max(node.busy_until, pod.ends);
    return;
  }
  if (pod.ends < node.busy_until) return;
  node.busy_until = Time{};
  for (const PodId p : node.pods) {
    if (p != id) node.busy_until = std::max(node.busy_until, pods_[p.index()].ends);
  }
}

void State::on(const NodeUpsert& e) {
  const NodeId id = intern_node(e.node.name);
  NodeState& node = nodes_[id.index()];
  add_total(node, -1);
  if (!node.live) ++live_nodes_;
  node.live = true;
  ++node.spec_changed;
  node.spec = e.node;
  refresh_allocatable(node);
  // Devices are assigned again to the pods that have them or for which they are held, by index
  // where it still exists.
  const auto indexes_of = [&](PodId p) {
    if (const auto told = devices_told_.find(p.index()); told != devices_told_.end())
      return told->second;
    std::vector<std::int32_t> indexes;
    for (const auto i : pods_[p.index()].devices) indexes.push_back(node.devices[i].index);
    return indexes;
  };
  std::vector<std::pair<PodId, std::vector<std::int32_t>>> owners;
  for (const PodId p : node.pods) owners.emplace_back(p, indexes_of(p));
  std::vector<std::pair<PodId, std::vector<std::int32_t>>> nominees;
  for (const PodId p : node.nominees) nominees.emplace_back(p, indexes_of(p));
  rebuild_devices(node);
  // Whose devices are known comes first: the others get what is left.
  for (const bool known : {true, false}) {
    for (const auto& [p, indexes] : owners) {
      if (indexes.empty() == known) continue;
      PodState& pod = pods_[p.index()];
      pod.devices.clear();
      take_devices(
          pod,
          node,
          known ? devices_told(p, node, indexes) : choose_devices(classes_[pod.cls.index()], node));
    }
  }
  for (const auto& [p, indexes] : nominees) {
    PodState& pod = pods_[p.index()];
    pod.devices = devices_at(node, indexes);
    for (const auto i : pod.devices)
      node.devices[i].held_milli += classes_[pod.cls.index()].device_milli();
  }
  add_total(node, +1);
  ++tenants_version_;
  refresh_free(id);
}

void State::on(const NodeRemove& e) {
  const NodeId id = find_node(e.name);
  if (!id.valid() || !nodes_[id.index()].live) return;
  NodeState& node = nodes_[id.index()];
  add_total(node, -1);
  node.live = false;
  ++node.spec_changed;
  rows_[id.index()].spec_changed = node.spec_changed;
  --live_nodes_;
  ++tenants_version_;
  // Pods stay on the record until they are removed; a node of that name may come back under them.
  for (const PodId p : std::vector<PodId>(node.nominees)) give_up_nomination(p);
  touch(id);
}

}  // namespace muster::engine
