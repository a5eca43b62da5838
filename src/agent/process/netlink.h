/// A pod's network by rtnetlink: a bridge of our own, and for each pod a veth pair with one end in
/// its namespace.
///
/// No program is started for it, as CNI plugins would be. Blocking, but the kernel answers at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::agent::process {

struct Subnet {
  std::uint32_t base = 0;  // host order
  int prefix = 16;
};
std::string ipv4_text(std::uint32_t address);
/// The first of 10.244.0.0/16 … 10.254.0.0/16 that no interface of this machine uses.
Result<Subnet> free_subnet();

/// Makes the bridge when it is absent, gives it `address`, sets it up, and notes on it whose it is.
Result<void> ensure_bridge(const std::string& name,
                           std::uint32_t address,
                           int prefix,
                           const std::string& owner);
/// Bridges of ours that no pod uses and whose owner's directory is gone.
std::vector<std::string> orphaned_bridges();
void remove_link(const std::string& name);

struct PodLink {
  std::string host_name;  // of the end on the bridge
  int bridge_index = 0;
  std::uint32_t address = 0;
  std::uint32_t gateway = 0;
  int prefix = 16;
  bool isolated = false;  // from other ports that are
  bool hairpin = false;   // what it sent may come back to it
};
/// Called inside the pod's fresh network namespace; `host_netlink` is a netlink socket that was
/// opened before.
Result<void> join_bridge(int host_netlink, const PodLink& link);
/// Called inside the pod's namespace: eth0, which has `old`, gets the address of `link` in its
/// place.
Result<void> change_address(const PodLink& link, std::uint32_t old);
/// Only the loopback interface.
Result<void> loopback_up();
Result<int> open_netlink();

}  // namespace muster::agent::process
