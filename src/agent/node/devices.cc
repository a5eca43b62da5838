#include "agent/node/devices.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>

#include "agent/node/cdi.h"
#include "agent/node/gpu_files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// NVML's ABI, as much of it as is used. Its header is not free software; these are facts about the
// interface.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

namespace {

std::vector<Gpu> nvml_gpus() {
  std::vector<Gpu> out;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return out;
  const auto init = symbol<int (*)()>(library, "nvmlInit_v2");
  const auto shutdown = symbol<int (*)()>(library, "nvmlShutdown");
  const auto count_of = symbol<int (*)(unsigned*)>(library, "nvmlDeviceGetCount_v2");
  const auto handle_of =
      symbol<int (*)(unsigned, NvmlDevice*)>(library, "nvmlDeviceGetHandleByIndex_v2");
  const auto name_of = symbol<int (*)(NvmlDevice, char*, unsigned)>(library, "nvmlDeviceGetName");
  const auto uuid_of = symbol<int (*)(NvmlDevice, char*, unsigned)>(library, "nvmlDeviceGetUUID");
  const auto memory_of =
      symbol<int (*)(NvmlDevice, NvmlMemory*)>(library, "nvmlDeviceGetMemoryInfo");
  const auto minor_of = symbol<int (*)(NvmlDevice, unsigned*)>(library, "nvmlDeviceGetMinorNumber");
  unsigned count = 0;
  if (init == nullptr || shutdown == nullptr || count_of == nullptr || handle_of == nullptr ||
      name_of == nullptr || uuid_of == nullptr || memory_of == nullptr || init() != 0) {
    dlclose(library);
    return out;
  }
  if (count_of(&count) != 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Gpu gpu;
    gpu.index = static_cast<int>(i);
    NvmlDevice device = nullptr;
    gpu.healthy = handle_of(i, &device) == 0;
    char text[128] = {};
    NvmlMemory memory{};
    if (gpu.healthy && name_of(device, text, sizeof text) == 0) gpu.model = text;
    if (gpu.healthy && uuid_of(device, text, sizeof text) == 0) gpu.uuid = text;
    // A GPU that has fallen off the bus still counts but answers nothing.
    if (gpu.healthy && memory_of(device, &memory) != 0) gpu.healthy = false;
    unsigned minor = i;
    if (gpu.healthy && minor_of != nullptr) (void)minor_of(device, &minor);
    gpu.minor = static_cast<int>(minor);
    gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
    out.push_back(std::move(gpu));
  }
  shutdown();
  dlclose(library);
  return out;
}

std::vector<Gpu> described_gpus(const std::vector<std::string>& cdi_folders) {
  std::vector<Gpu> out;
  const auto registry = cdi::Registry::load(cdi_folders);
  for (const auto& name : registry.names(kGpuKind)) {
    const auto index = parse_int(name);
    const auto edits = registry.edits_of(kGpuKind, {name});
    constexpr std::int64_t kIndexMax = 1023;
    if (!index || *index < 0 || *index > kIndexMax || !edits) continue;
    Gpu gpu;
    gpu.index = static_cast<int>(*index);
    gpu.model = "unknown";
    for (const auto& node : edits->nodes)
      gpu.healthy = gpu.healthy && access(node.host_path.c_str(), F_OK) == 0;
    if (gpu.healthy) out.push_back(std::move(gpu));
  }
  std::sort(out.begin(), out.end(), [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
  return out;
}

}  // namespace

std::vector<Gpu> find_gpus(const std::vector<std::string>& cdi_folders) {
  auto out = nvml_gpus();
  return out.empty() ? described_gpus(cdi_folders) : out;
}

}  // namespace muster::agent
