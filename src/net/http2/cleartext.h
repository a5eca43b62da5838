/// One request over HTTP/2 without TLS, to a server that is known to speak it (RFC 9113, 3.3), on a
/// connection of its own: how gRPC servers inside pods are asked.
#pragma once

#include <string>

#include "net/http/http.h"
#include "net/loop/loop.h"

namespace muster::net {

struct CleartextServer {
  std::string address;  // an IP address
  int port = 0;
};

/// Fields that come behind the body (trailers) are among the answer's headers. `timeout` is for all
/// of it.
Task<Result<Response>> request_cleartext(Loop& loop,
                                         CleartextServer server,
                                         Request request,
                                         Duration timeout);

}  // namespace muster::net
