/// GPUs: what this machine has (NVML, opened at run time; else what is described for containers).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::agent {

struct Gpu {
  int index = 0;
  int minor = -1;  // N of /dev/nvidiaN, which need not be the index; -1: not known
  std::string uuid;
  std::string model;
  std::int64_t memory_bytes = 0;
  bool healthy = true;
};

/// Where the Container Device Interface has its files.
inline constexpr const char* kCdiFolders = "/etc/cdi,/var/run/cdi";

/// The machine's GPUs. Without NVIDIA's library or driver those with a number for a name that files
/// in `cdi_folders` describe and whose device files are there. Blocking.
std::vector<Gpu> find_gpus(const std::vector<std::string>& cdi_folders);

}  // namespace muster::agent
