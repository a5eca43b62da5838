/// A pod's spec as the runtime's configuration. Pure, but for the small files it reads.
#pragma once

#include <string>

#include "agent/context.h"
#include "agent/pod/pod_env.h"
#include "agent/runtime.h"

namespace muster::agent {

/// A pod's places on this machine: what is large or kept after its end (logs, emptyDir) on disk,
/// small files of a running pod in memory (see run_directory.h).
struct PodDirectories {
  std::string disk;
  std::string run;
};
PodDirectories pod_directories(const std::string& agent_directory, std::string_view uid);

/// Which GPUs the pod was given.
std::string gpu_file(const PodDirectories& places);

SandboxConfig sandbox_config(const json::Value& pod, const PodDirectories& places);

/// PATH, HOSTNAME, HOME (of an image that was pulled, its own files say it) and how to reach the API.
EnvList default_env(const Context& context,
                    const json::Value& pod,
                    const json::Value& container,
                    const Image& image);
/// A container's part of the GPUs that its pod was given.
std::vector<int> gpu_share(const std::vector<int>& of_pod,
                           const json::Value& pod,
                           const json::Value& container);
/// NVIDIA_VISIBLE_DEVICES names the node's indices. CUDA counts the GPUs that it finds, so
/// CUDA_VISIBLE_DEVICES begins at 0 where the container has no files of others.
EnvList gpu_env(const std::vector<int>& share, bool only_these_exist);

/// Without id, mounts and limits.
Result<ContainerConfig> make_container_config(const json::Value& pod,
                                              const json::Value& container,
                                              const Image& image,
                                              const EnvList& env,
                                              const PodDirectories& places,
                                              int attempt);
/// Reads the profile that it names, of those in `folder`.
Result<void> read_seccomp_profile(const std::string& folder, ContainerConfig& config);
Limits container_limits(const json::Value& container, std::int64_t pids_max);

std::string log_path(const std::string& pod_directory, const std::string& container, int attempt);
/// What the container left in its termination message file, or the end of its log if it asked for
/// that.
std::string termination_message(const json::Value& container,
                                const PodDirectories& places,
                                const std::string& name,
                                const std::string& log_file,
                                int exit_code);

}  // namespace muster::agent
