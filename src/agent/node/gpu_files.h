/// What of the machine's a container needs to use its GPUs: device files, and where its files are an
/// image's also the driver's libraries, which no image brings because they belong to the machine's
/// kernel module.
///
/// Descriptions of the Container Device Interface say it, where somebody put them (`nvidia-ctk cdi
/// generate`). Hooks are not run: folders for the linker go in front of LD_LIBRARY_PATH, links are
/// bound as files, and others are told of. Without a description it is the driver's device files and
/// the libraries that CUDA opens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/node/devices.h"
#include "agent/runtime.h"

namespace muster::agent {

/// Of the machine's GPUs, as descriptions and the resource name them.
inline constexpr const char* kGpuKind = "nvidia.com/gpu";

struct GpuFiles {
  std::vector<Device> devices;
  std::vector<Mount> mounts;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> library_folders;  // in front of LD_LIBRARY_PATH
  std::vector<std::string> program_folders;  // in front of PATH
  std::vector<std::string> notes;            // what was left out, a sentence each
};

struct GpuFilesWish {
  std::vector<Gpu> gpus;
  std::vector<std::string> cdi_folders;
  bool of_image = false;  // none of the machine's libraries is there
};

/// Blocking. An error: a file that a description names is not there.
Result<GpuFiles> gpu_files(const GpuFilesWish& wish);

/// The driver's files, where they are looked for: folders of libraries and of programs.
struct DriverPlaces {
  std::vector<std::string> libraries, programs;
};
/// As the environment of this program says, and where drivers are installed.
DriverPlaces driver_places();
/// Mounts of the libraries that CUDA opens, and of nvidia-smi, at /usr/local/nvidia.
std::vector<Mount> driver_mounts(const DriverPlaces& places);

/// Puts it into a container's environment.
void add_gpu_env(const GpuFiles& files, std::vector<std::pair<std::string, std::string>>& env);

}  // namespace muster::agent
