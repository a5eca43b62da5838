/// GPUs: what this machine has (NVML, opened at run time), and which pod has which of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::agent {

struct Gpu {
  int index = 0;
  int minor = 0;  // N of /dev/nvidiaN, which need not be the index
  std::string uuid;
  std::string model;
  std::int64_t memory_bytes = 0;
  bool healthy = true;
};

/// The machine's GPUs; empty without NVIDIA's library or driver. Blocking.
std::vector<Gpu> find_gpus();

/// Which GPU indices of a node a pod holds. The scheduler's choice (annotation
/// muster.dev/gpu-indices) wins; a pod that another scheduler bound takes the lowest free ones.
class GpuLedger {
 public:
  void set_count(const std::string& node, int count) { counts_[node] = count; }
  /// Idempotent for a pod. Fails when the node has not enough left.
  Result<std::vector<int>> take(const std::string& node,
                                const std::string& pod_uid,
                                int count,
                                const std::string& chosen);
  void release(const std::string& pod_uid);

 private:
  struct Held {
    std::string node;
    std::vector<int> indices;
  };
  std::map<std::string, int> counts_;
  std::map<std::string, Held> by_pod_;
};

}  // namespace muster::agent
