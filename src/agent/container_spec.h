/// A pod's spec as the runtime's configuration. Pure, but for the small files it reads.
#pragma once

#include <string>

#include "agent/context.h"
#include "agent/pod_env.h"
#include "agent/runtime.h"

namespace muster::agent {

SandboxConfig sandbox_config(const json::Value& pod, const std::string& directory);

/// PATH, HOSTNAME, HOME and how to reach the API.
EnvList default_env(const Context& context, const json::Value& pod);
/// NVIDIA_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES for the container's share of the pod's GPUs.
Result<EnvList> gpu_env(GpuLedger& ledger, const json::Value& pod, const json::Value& container);

/// Without id and mounts.
Result<ContainerConfig> make_container_config(const json::Value& pod,
                                              const json::Value& container,
                                              const Image& image,
                                              const EnvList& env,
                                              const std::string& directory,
                                              int attempt);
Limits container_limits(const json::Value& container);

std::string log_path(const std::string& pod_directory, const std::string& container, int attempt);
/// What the container left in its termination message file, or the end of its log if it asked for
/// that.
std::string termination_message(const json::Value& container,
                                const std::string& pod_directory,
                                const std::string& name,
                                const std::string& log_file,
                                int exit_code);

}  // namespace muster::agent
