/// Nodes and their GPUs as `top node` shows them. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "json/json.h"

namespace muster::cli {

/// How a node hands out its GPUs.
enum class GpuMode { kNone, kExclusive, kTopology, kShare };

struct NodePod {
  std::string ns, name, status;
  std::int64_t gpus = 0;
  // Share nodes: GiB asked for, and device -> GiB (and core percents) given.
  std::int64_t memory_gib = 0, core = 0;
  std::map<std::string, std::int64_t> memory_by_device, core_by_device;
  std::string visible;  // device ids given: "0,1"
};

struct NodeInfo {
  /// `status` is ready, notReady or Unknown, with ",SchedulingDisabled" where it applies.
  std::string name, ip, role, status;
  GpuMode mode = GpuMode::kNone;
  std::int64_t total = 0, allocated = 0, unhealthy = 0;
  std::int64_t memory_total_gib = 0, memory_allocated_gib = 0, core_total = 0, core_allocated = 0;
  bool simulated = false;                                  // its GPUs are made up
  std::vector<NodePod> pods;                               // those that hold GPUs
  std::vector<std::vector<std::string>> links, bandwidth;  // topology matrices

  /// Share nodes count parts of a device: tenths of a GPU. Others whole ones.
  [[nodiscard]] std::int64_t allocated_tenths() const;
};

struct NodeSources {
  std::vector<const json::Value*> nodes;
  std::vector<const json::Value*> pods;  // of all namespaces, finished ones may be among them
  /// ConfigMaps of kube-system labelled ack.node.gpu.schedule=topology.
  std::vector<const json::Value*> topology_maps;
};
std::vector<NodeInfo> make_nodes(const NodeSources& sources);

/// "none", "exclusive", "topology", "share".
std::string_view mode_word(GpuMode mode);

/// `top node`: summary with the rule and the ratio below.
std::string view_nodes(const std::vector<NodeInfo>& nodes, int columns);
/// `top node -o wide`: the same as newer arenas print it, grouped by mode, with one decimal.
std::string view_nodes_grouped(std::vector<NodeInfo> nodes, int columns);
/// The summary when only share nodes are listed.
std::string view_share_nodes(const std::vector<NodeInfo>& nodes);
/// `top node -d`. `footer`: print the cluster's ratio at the end.
std::string view_nodes_details(const std::vector<NodeInfo>& nodes, bool footer);
/// `top node -d -o wide`.
std::string view_nodes_wide(const std::vector<NodeInfo>& nodes);
/// Words as newer arenas write them in -o wide, json and yaml: Ready, NotReady.
void use_newer_words(std::vector<NodeInfo>& nodes);
json::Value nodes_as_json(const std::vector<NodeInfo>& nodes);

}  // namespace muster::cli
