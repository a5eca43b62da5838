/// Sockets for addresses of a network that this process is not in.
///
/// Where muster is not root, pods are in a network that only a helper process can enter. A socket
/// belongs to the network that it was made in, whoever uses it: so the helper makes them, and
/// whoever connects to or listens at an address of that network asks here first.
#pragma once

#include <cstdint>
#include <functional>

namespace muster::net {

/// `type`: SOCK_STREAM or SOCK_DGRAM. A descriptor, or -1 with errno set.
using MakeSocket = std::function<int(int type)>;

/// For addresses (host order) that have `base` in their first `prefix` bits, from now on; null: for
/// none any more. Only on the loop.
void set_other_network(std::uint32_t base, int prefix, MakeSocket make);

/// Whether the address (IPv4, host order) is in it.
bool in_other_network(std::uint32_t address);
/// A socket for this address, non-blocking; an ordinary one unless it is in the other network.
int open_socket(std::uint32_t address, int type);

}  // namespace muster::net
