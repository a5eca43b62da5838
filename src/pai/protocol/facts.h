/// What a submission is checked against: the cluster as OpenPAI's server would have asked for it.
/// Values; whoever serves a request fills them in (facts_of reads HiveD's configuration).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "hived/config.h"

namespace muster::pai {

/// One leaf cell's share of its node.
struct Sku {
  std::int64_t gpu = 0;
  std::int64_t cpu = 0;
  std::int64_t memory_mb = 0;
};

struct VirtualCluster {
  /// The leaf cell types that it owns cells of. Empty without HiveD.
  std::vector<std::string> sku_types;
  /// How many leaf cells it owns; empty when nobody can say, and then nothing is held against it.
  std::optional<std::int64_t> quota;
};

/// A claim of the jobs' namespace that jobs may mount.
struct Storage {
  std::string claim;
  /// false: everybody sees a folder of their own name in it only.
  bool share = true;
};

struct Facts {
  /// Cells are configured: pods carry HiveD's annotation. Otherwise a virtual cluster is a queue.
  bool hived = false;
  std::map<std::string, Sku> sku_types;
  std::map<std::string, VirtualCluster> virtual_clusters;
  std::map<std::string, Storage> storages;
  /// What `extras.storages: []` stands for.
  std::vector<std::string> default_storages;
  /// Lines for ~/.ssh/authorized_keys of tasks with the ssh plugin: the keys in the user's profile.
  std::vector<std::string> ssh_keys;
  /// Whether a job of this Framework name is there already; empty: not asked here.
  std::function<bool(const std::string& framework)> job_exists;
  /// Whether the user may submit to an existing virtual cluster; empty: to every one.
  std::function<bool(const std::string& virtual_cluster)> may_use;
  /// Pods share their node's network, as OpenPAI's do. Nodes that are virtual share one machine, and
  /// there the ports of their pods would be each other's.
  bool host_network = false;
  /// Jobs run on nodes with the label pai-worker=true only; whoever has labelled none wants no such
  /// rule.
  bool worker_label = false;
  /// The image of this program, whose `pai-runtime init` prepares a task before its container runs.
  std::string runtime_image = "muster";
  /// schedulerName of pods; empty: the cluster's default, where that is ours.
  std::string scheduler;
  /// Where the objects go.
  std::string ns = "default";
  Time now;
};

/// Sku types and virtual clusters of a HiveD configuration.
Facts facts_of(const hived::Config& config);

}  // namespace muster::pai
