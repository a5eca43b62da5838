/// What pods need of this machine: namespaces, control groups, a bridge, rules; made at start,
/// removed at the end, and left-overs of agents that crashed with them.
#pragma once

#include <string>
#include <vector>

#include "agent/process/cgroup.h"
#include "agent/process/mask.h"
#include "agent/process/netlink.h"
#include "base/result.h"

namespace muster::agent::process {

struct Machine {
  bool isolates = false;    // root, and namespaces can be made
  bool maps_users = false;  // pods can have users of their own
  bool own_root = false;    // not root: the keeper is, in namespaces of its own (own_users.h)
  std::vector<std::string> shortcomings;
  cgroup::Tree cgroups;
  Subnet subnet;
  std::string bridge;  // empty: pods share the machine's network
  std::uint32_t gateway = 0;
  bool translates = false;       // iptables works
  bool bridge_filtered = false;  // see nat.h
  RootPlan roots;
  std::string closed, key;  // see ShimConfig
};

struct MachineWish {
  bool isolate = true;
  bool map_users = true;
  Seen seen;
};
/// `directory` is the agent's; its subnet is remembered there, so that pods of an earlier run keep
/// their addresses. Removes what nobody owns any more.
Result<Machine> prepare_machine(const std::string& directory, const MachineWish& wish);
/// All but the rules.
void clean_machine(const std::string& directory, const Machine& machine);

}  // namespace muster::agent::process
