/// exec, attach and port-forward at the streaming server of a container runtime, which names a URL
/// for each: SPDY/3.1 over a connection to this machine's loopback, with us as the client.
#pragma once

#include <memory>
#include <string>

#include "agent/runtime.h"
#include "net/loop/loop.h"

namespace muster::agent::cri {

/// "http://127.0.0.1:41234/exec/token" in parts.
struct StreamUrl {
  std::string address;
  int port = 0;
  std::string target;
};
Result<StreamUrl> parse_stream_url(const std::string& url);

/// What the error stream says when the command is over: its exit code. Pure.
Result<int> exit_code_of(const std::string& status);

Task<Result<std::unique_ptr<Session>>> open_session(net::Loop& loop,
                                                    std::string url,
                                                    ExecConfig config);
/// A connection to the port as the pod's own loopback sees it.
Task<Result<std::unique_ptr<net::ByteStream>>> open_port(net::Loop& loop,
                                                         std::string url,
                                                         int port);

}  // namespace muster::agent::cri
