/// Whether a port of this network can still be listened at.
#pragma once

namespace muster::net {

/// False when somebody listens at it, at whichever address. Connections that are only being closed
/// do not count.
bool port_is_free(int port);

}  // namespace muster::net
