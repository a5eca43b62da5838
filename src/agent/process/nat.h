/// Address translation on the pods' bridge, by iptables: virtual addresses of services to their
/// endpoints, and the machine's address for what leaves the machine.
///
/// The rules of one agent are in chains that carry the number of its bridge (mstr1234abcd ->
/// MUSTER-1234abcd), reached from three jumps; writing them again replaces them.
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
std::string nat_rules(const NatConfig& config, const std::vector<VirtualPort>& ports);
/// Blocking. Forwarding between interfaces is switched on.
Result<void> apply_nat(const NatConfig& config, const std::vector<VirtualPort>& ports);
/// Names of bridges that have rules but are not there any more. A bridge is made before its rules
/// and removed after them, so nobody owns these. Blocking.
std::vector<std::string> bridges_gone_with_rules_left();
/// The same from the output of `iptables -S`; `exists` says which bridges are there. Pure.
std::vector<std::string> bridges_gone(const std::string& rules,
                                      const std::function<bool(const std::string&)>& exists);
/// Everything of the bridge of this name. Blocking.
void remove_nat(const std::string& bridge);

}  // namespace muster::agent::process
