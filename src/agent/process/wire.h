/// How configurations and states travel between the agent and its shims, and what a shim needs
/// beyond them.
#pragma once

#include "agent/process/cgroup.h"
#include "agent/process/mask.h"
#include "agent/runtime.h"
#include "json/json.h"

namespace muster::agent::process {

/// What only the process runtime knows of a sandbox.
struct ShimConfig {
  SandboxConfig sandbox;
  bool isolate = true;        // root: namespaces and mounts
  bool maps_users = false;    // pods have users of their own
  std::string bridge;         // empty: the machine's network
  std::uint32_t address = 0;  // host order
  /// The address that the supervisor was born with and keeps for itself; its users belong to it.
  std::uint32_t home = 0;
  std::uint32_t gateway = 0;
  int prefix = 16;
  bool isolated_port = false, hairpin_port = false;  // of the bridge: see nat.h
  cgroup::Tree cgroups;
  RootPlan roots;
  /// A folder that is closed to containers without a root of their own (landlock.h); empty: none.
  std::string closed;
  /// Whoever connects to the supervisor's socket says it first. Containers that share the machine's
  /// files can reach sockets, but read nothing of ours.
  std::string key;
};

/// The range of users of a sandbox with a network of its own.
uid_t first_id_of(const ShimConfig& config);

json::Value to_json(const ShimConfig& config);
ShimConfig shim_config_from_json(const json::Value& value);
json::Value to_json(const ContainerConfig& config);
ContainerConfig container_config_from_json(const json::Value& value);
json::Value to_json(const ContainerStatus& status);
ContainerStatus container_status_from_json(const json::Value& value);
json::Value to_json(const Limits& limits);
Limits limits_from_json(const json::Value& value);

}  // namespace muster::agent::process
