/// listen() on a thread of its own, the front.
///
/// The front owns the sockets of its server: accepting, TLS, HTTP both ways, deadlines. A request
/// crosses to the loop as a whole and its handler runs there, as it does for every other transport;
/// the answer, or the chunks of a stream, cross back. What crosses is a value with one owner at a
/// time, and a burst of them wakes the other thread once. So encrypting and sending take no time of
/// the loop's, and a change for a thousand watchers leaves it in one go: the front spreads the
/// sending over the cores.
///
/// What waits between the two is bounded: one request for each connection, one answer, and of a
/// stream kStreamBytes; a handler that writes more waits, or is told kBusy.
#pragma once

#include <memory>

#include "net/http/server.h"

namespace muster::net {

/// Of a stream's chunks, so many bytes may be on their way to the client; one chunk always may.
inline constexpr std::size_t kStreamBytes = 256 * 1024;

/// As listen(). The handler, the Server and the writers that the handler gets belong to `loop`.
Result<std::unique_ptr<Server>> listen_apart(Loop& loop, ServerOptions options, Handler handler);

}  // namespace muster::net
