/// What a task's pod must know of its job, written on the Framework when it is submitted and read by
/// `muster pai-runtime init` in the pod. One annotation for all roles: pods do not repeat it.
#pragma once

#include <string_view>

#include "kube/framework.h"
#include "pai/protocol/job.h"

namespace muster::pai {

inline constexpr std::string_view kRuntimeAnnotation = kube::names::pai::kRuntime;

/// A volume that the init container writes and the task's container runs from.
inline constexpr std::string_view kRuntimeFolder = "/usr/local/pai";
inline constexpr std::string_view kRuntimeScript = "runtime";
inline constexpr std::string_view kSecretsFolder = "/usr/local/secrets";
inline constexpr std::string_view kSecretsFile = "secrets.json";
inline constexpr std::string_view kSshFolder = "/usr/local/job-ssh";
inline constexpr std::string_view kTerminationMessage = "/tmp/pai-termination-log";

/// {"gang": true, "roles": [{"name", "pods", "ports", "commands", "starts", "succeeds"}],
///  "plugins": [as in extras], "sshKeys": [lines of authorized_keys]}
json::Value runtime_spec(const Job& job, const Facts& facts);

/// The ssh plugin is asked for, so that the job gets a key pair of its own.
bool wants_ssh(const Job& job);

}  // namespace muster::pai
