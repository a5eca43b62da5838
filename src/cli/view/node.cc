#include "cli/view/node.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "cli/view/job.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::cli {
namespace {

using json::as_array;
using json::as_object;
using json::as_string;
using json::at;

std::int64_t amount(const json::Value& resources, std::string_view name) {
  const json::Value& value = at(resources, name);
  if (value.is_number()) return json::as_int(value);
  const auto parsed = parse_quantity(as_string(value, "0"));
  return parsed ? parsed->units() : 0;
}

std::string role_of(const json::Value& node) {
  std::set<std::string> roles;
  for (const auto& label : json::object_at(node, "metadata", "labels")) {
    const std::string_view key = label.key();
    if (key.starts_with(kube::names::kubernetes::kRolePrefix) &&
        key.size() > kube::names::kubernetes::kRolePrefix.size())
      roles.emplace(key.substr(kube::names::kubernetes::kRolePrefix.size()));
    if (key == kube::names::kubernetes::kRole && !as_string(label.value()).empty())
      roles.emplace(as_string(label.value()));
  }
  return roles.empty() ? "<none>" : join({roles.begin(), roles.end()}, ",");
}

std::string ip_of(const json::Value& node) {
  for (const json::Value& address : json::array_at(node, "status", "addresses")) {
    if (json::string_at(address, "type") == "InternalIP") return json::text_at(address, "address");
  }
  return "unknown";
}

std::string node_status(const json::Value& node) {
  const json::Value& ready = kube::condition(node, "Ready");
  std::string status = !ready.is_object()                           ? "Unknown"
                       : json::string_at(ready, "status") == "True" ? "ready"
                                                                    : "notReady";
  if (json::bool_at(node, "spec", "unschedulable")) status += ",SchedulingDisabled";
  return status;
}

/// "a b c\nd e f" or JSON [[…]] to a matrix of words.
std::vector<std::vector<std::string>> matrix_of(std::string_view text) {
  std::vector<std::vector<std::string>> matrix;
  const auto parsed = json::parse(text);
  if (parsed && parsed->is_array()) {
    for (const json::Value& row : parsed->get_array()) {
      std::vector<std::string> words;
      for (const json::Value& cell : as_array(row))
        words.push_back(cell.is_string() ? json::text(cell) : json::dump(cell));
      matrix.push_back(std::move(words));
    }
    return matrix;
  }
  for (const std::string& line : split_nonempty(text, '\n'))
    matrix.push_back(split_nonempty(line, ' '));
  return matrix;
}

void share_of_pod(NodePod& held, const json::Value& pod) {
  for (const json::Value& container : json::array_at(pod, "spec", "containers")) {
    held.memory_gib += amount(at(container, "resources", "limits"), "aliyun.com/gpu-mem");
    held.core += amount(at(container, "resources", "limits"), "aliyun.com/gpu-core.percentage");
  }
  const auto add_allocation = [&](std::string_view key, std::map<std::string, std::int64_t>& into) {
    const auto allocation = json::parse(kube::annotation(pod, key));
    if (!allocation) return;
    for (const auto& container : as_object(*allocation)) {
      for (const auto& device : as_object(container.value()))
        into[std::string(device.key())] += json::as_int(device.value());
    }
  };
  add_allocation("scheduler.framework.gpushare.allocation", held.memory_by_device);
  add_allocation("scheduler.framework.gpushare.core.allocation", held.core_by_device);
  const std::string_view index = kube::annotation(pod, "ALIYUN_COM_GPU_MEM_IDX");
  if (held.memory_by_device.empty() && !index.empty())
    held.memory_by_device[std::string(index)] = held.memory_gib;
}

GpuMode mode_of(const json::Value& node, bool has_topology_map) {
  const json::Value& allocatable = at(node, "status", "allocatable");
  if (amount(allocatable, "aliyun.com/gpu-mem") > 0) return GpuMode::kShare;
  if (kube::label(node, "ack.node.gpu.schedule") == "topology" && has_topology_map)
    return GpuMode::kTopology;
  const std::int64_t gpus = amount(allocatable, "nvidia.com/gpu");
  const std::int64_t capacity = amount(at(node, "status", "capacity"), "nvidia.com/gpu");
  // A node whose GPUs are all unhealthy still is a GPU node.
  return (gpus >= 1 && gpus <= 100) || capacity > 0 ? GpuMode::kExclusive : GpuMode::kNone;
}

NodeInfo make_node(const json::Value& node, const json::Value* topology_map) {
  NodeInfo info;
  info.name = kube::name_of(node);
  info.ip = ip_of(node);
  info.role = role_of(node);
  info.status = node_status(node);
  info.mode = mode_of(node, topology_map != nullptr);
  info.simulated = kube::label(node, kube::names::kGpuSimulated) == "true";
  const json::Value& capacity = at(node, "status", "capacity");
  const json::Value& allocatable = at(node, "status", "allocatable");
  const char* name = info.mode == GpuMode::kShare      ? "aliyun.com/gpu-count"
                     : info.mode == GpuMode::kTopology ? "aliyun.com/gpu"
                                                       : "nvidia.com/gpu";
  info.total = amount(capacity, name);
  info.unhealthy = std::max<std::int64_t>(0, info.total - amount(allocatable, name));
  info.memory_total_gib = amount(capacity, "aliyun.com/gpu-mem");
  info.core_total = amount(capacity, "aliyun.com/gpu-core.percentage");
  if (topology_map != nullptr) {
    info.links = matrix_of(json::string_at(*topology_map, "data", "linkType"));
    info.bandwidth = matrix_of(json::string_at(*topology_map, "data", "bandwidth"));
  }
  return info;
}

void add_pod(NodeInfo& node, const json::Value& pod) {
  NodePod held;
  held.ns = kube::namespace_of(pod);
  held.name = kube::name_of(pod);
  held.status = pod_status_text(pod);
  held.gpus = pod_gpus(pod);
  for (const std::string_view key :
       {kube::names::kGpuIndices, std::string_view("GPU_TOPOLOGY_ALLOCATION")}) {
    if (held.visible.empty()) held.visible = kube::annotation(pod, key);
  }
  if (node.mode == GpuMode::kShare) share_of_pod(held, pod);
  if (held.gpus <= 0 && held.memory_gib <= 0 && held.core <= 0) return;
  node.allocated += node.mode == GpuMode::kShare ? 0 : held.gpus;
  node.memory_allocated_gib += held.memory_gib;
  node.core_allocated += held.core;
  node.pods.push_back(std::move(held));
}

}  // namespace

std::int64_t NodeInfo::allocated_tenths() const {
  if (mode != GpuMode::kShare) return allocated * 10;
  const std::int64_t per_device = total > 0 ? memory_total_gib / total : 0;
  if (per_device == 0) return 0;
  return (memory_allocated_gib * 10 + per_device / 2) / per_device;
}

std::string_view mode_word(GpuMode mode) {
  switch (mode) {
    case GpuMode::kNone:
      return "none";
    case GpuMode::kExclusive:
      return "exclusive";
    case GpuMode::kTopology:
      return "topology";
    case GpuMode::kShare:
      return "share";
  }
  return "none";
}

std::vector<NodeInfo> make_nodes(const NodeSources& sources) {
  std::map<std::string, const json::Value*> maps;
  for (const json::Value* map : sources.topology_maps)
    maps[std::string(kube::label(*map, "nodename"))] = map;
  std::vector<NodeInfo> nodes;
  std::map<std::string, std::size_t> by_name;
  for (const json::Value* node : sources.nodes) {
    const std::string name(kube::name_of(*node));
    const auto map = maps.find(name);
    by_name[name] = nodes.size();
    nodes.push_back(make_node(*node, map == maps.end() ? nullptr : map->second));
  }
  for (const json::Value* pod : sources.pods) {
    const auto node = by_name.find(std::string(json::string_at(*pod, "spec", "nodeName")));
    if (node == by_name.end() || kube::pod_finished(*pod) || kube::is_deleting(*pod)) continue;
    add_pod(nodes[node->second], *pod);
  }
  for (NodeInfo& node : nodes) {
    std::sort(node.pods.begin(), node.pods.end(), [](const NodePod& a, const NodePod& b) {
      return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
    });
  }
  return nodes;
}

}  // namespace muster::cli
