/// What becomes of pods' packets, by iptables: virtual addresses of services lead to their
/// endpoints, what leaves the machine has the machine's address, and between pods passes what their
/// fences let pass.
///
/// Every packet from pod to pod meets the rules, whatever a pod does to its own end. Where the
/// kernel shows them what crosses a bridge (br_netfilter, as Docker and Kubernetes want it) there is
/// nothing more to do. Elsewhere pods meet on this machine and not on the bridge, whose ports are
/// isolated from each other: the machine answers for every address of the subnet (RFC 3069) and
/// routes. The one would not work with the other: where br_netfilter is on, what leads from a
/// service to a pod of the same bridge crosses it, and would end at an isolated port.
///
/// Either way answers come back as the question went, so that who is called through a service sees
/// who calls.
///
/// The rules of one agent are in chains that carry the number of its bridge (mstr1234abcd ->
/// MUSTER-FWD-1234abcd), reached from four jumps; writing them again replaces them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/runtime.h"

namespace muster::agent::process {

struct NatConfig {
  std::string bridge;
  std::string subnet;  // "10.244.0.0/16"
};

/// iptables is there and this kernel has what it needs.
bool nat_works();
/// Input for `iptables-restore --noflush`. Pure.
std::string nat_rules(const NatConfig& config,
                      const std::vector<VirtualPort>& ports,
                      const std::vector<Fence>& fences);
/// Blocking. Chains of fences that are no more are removed.
Result<void> apply_nat(const NatConfig& config,
                       const std::vector<VirtualPort>& ports,
                       const std::vector<Fence>& fences);
/// Sets the bridge and its ports, those that others put on it included, up as above. True: the
/// kernel filters it. Blocking.
bool arrange_bridge(const std::string& bridge);
/// Names of bridges that have rules but are not there any more. A bridge is made before its rules
/// and removed after them, so nobody owns these. Blocking.
std::vector<std::string> bridges_gone_with_rules_left();
/// The same from the output of `iptables -S`; `exists` says which bridges are there. Pure.
std::vector<std::string> bridges_gone(const std::string& rules,
                                      const std::function<bool(const std::string&)>& exists);
/// Everything of the bridge of this name. Blocking.
void remove_nat(const std::string& bridge);

}  // namespace muster::agent::process
