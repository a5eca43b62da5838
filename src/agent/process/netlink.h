/// A pod's network by rtnetlink: a bridge of our own, and for each pod a veth pair with one end in
/// its namespace.
///
/// Two system calls a pod, where Debian's CNI plugins need the start of two Go programs (see
/// docs/agent.md for the measurement). Blocking, but the kernel answers at once.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace muster::agent::process {

struct Subnet {
  std::uint32_t base = 0;  // host order
  int prefix = 16;
};
std::string ipv4_text(std::uint32_t address);
/// The first of 10.244.0.0/16 … 10.254.0.0/16 that no interface of this machine uses.
Result<Subnet> free_subnet();

/// Makes the bridge when it is absent, gives it `address`, sets it up.
Result<void> ensure_bridge(const std::string& name, std::uint32_t address, int prefix);
void remove_link(const std::string& name);

struct PodLink {
  std::string host_name;  // of the end on the bridge
  int bridge_index = 0;
  std::uint32_t address = 0;
  std::uint32_t gateway = 0;
  int prefix = 16;
};
/// Called inside the pod's fresh network namespace; `host_netlink` is a netlink socket that was
/// opened before.
Result<void> join_bridge(int host_netlink, const PodLink& link);
/// Only the loopback interface.
Result<void> loopback_up();
Result<int> open_netlink();

}  // namespace muster::agent::process
