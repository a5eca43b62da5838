/// Address translation on the pods' bridge, by iptables: virtual addresses of services to their
/// endpoints, and the machine's address for what leaves the machine.
///
/// The rules of one agent are in chains that carry the number of its bridge (mstr1234abcd ->
/// MUSTER-1234abcd), reached from three jumps; writing them again replaces them.
#pragma once

#include <cstdint>
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
/// Everything of the bridge of this name. Blocking.
void remove_nat(const std::string& bridge);

}  // namespace muster::agent::process
