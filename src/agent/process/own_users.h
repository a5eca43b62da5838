/// What somebody who is not root can give pods: the kernel lets anybody be root of a user namespace
/// in which they are the only user, and make all other namespaces inside.
///
/// The keeper becomes that root, in a network of its own with the bridge of the pods, and so are the
/// supervisors it forks. Where `pasta` (Debian: passt) and iptables are installed it leads out of
/// that network.
#pragma once

#include <string>

#include "agent/process/netlink.h"
#include "base/result.h"

namespace muster::agent::process {

/// The calling process, which has one thread, becomes root of namespaces of users, mounts and
/// network of its own.
Result<void> become_own_root();

struct OwnNetwork {
  std::string bridge;
  Subnet subnet;
};
/// Makes the bridge in the network that the calling process is in alone.
Result<void> make_own_network(const OwnNetwork& wanted);

/// Why pods will not reach beyond this machine; empty: they will.
std::string no_way_out();
/// Called before become_own_root() by the process that will be the keeper: a child that waits for
/// it, then leads out of its network, and ends with it. False: there is none.
class WayOut {
 public:
  WayOut();
  /// After become_own_root(), and once the caller is the process that stays.
  void open(const OwnNetwork& network);

 private:
  int go_ = -1;
};

/// One user of the pod's own beside its root, for a container that names one: the same person under
/// another number. With one thread.
Result<void> become_user(std::int64_t user, std::int64_t group);

}  // namespace muster::agent::process
