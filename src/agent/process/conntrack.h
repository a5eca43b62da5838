/// Connections that the kernel keeps track of (nfnetlink): those that began before a network policy
/// came pass by themselves from then on, unless they are forgotten.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/runtime.h"
#include "base/result.h"

namespace muster::agent::process {

struct Connection {
  std::string from, to;  // addresses as both ends have them: behind a service's, the pod's
  std::string protocol;  // TCP, UDP or SCTP; empty: another
  int port = 0;          // of `to`
};

/// What the fences say of it. Pure. `machine`: addresses whose traffic is not filtered.
bool passes(const std::vector<Fence>& fences,
            const std::vector<std::string>& machine,
            const Connection& connection);

/// Forgets every connection that the fences do not let pass; how many there were. Blocking.
Result<int> forget_connections(const std::vector<Fence>& fences);

}  // namespace muster::agent::process
