/// GPUs: what this machine has (NVML, opened at run time).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace muster::agent
