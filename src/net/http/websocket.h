/// WebSocket over a Stream, both roles; Beast's framing lives in websocket.cc alone.
#pragma once

#include <memory>
#include <string>

#include "net/http/http.h"
#include "net/loop/stream.h"

namespace muster::net {

/// Server side: answers 101 to `request` (whose head was read from `stream`). `keep` lives as long
/// as the socket.
Task<Result<std::unique_ptr<WebSocket>>> accept_websocket(std::shared_ptr<Stream> stream,
                                                          const Request& request,
                                                          std::string subprotocol,
                                                          std::shared_ptr<void> keep);
/// Client side. A refusal becomes an Error with the code of the answer's status and its body as
/// message.
Task<Result<std::unique_ptr<WebSocket>>> connect_websocket(std::shared_ptr<Stream> stream,
                                                           std::string host,
                                                           Request request,
                                                           std::string subprotocol);
/// True when the request asks for a WebSocket upgrade.
bool wants_websocket(const Request& request);

}  // namespace muster::net
