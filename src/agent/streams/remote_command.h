/// exec and attach: a Session of the runtime behind WebSocket channels (v5, v4) or SPDY streams.
#pragma once

#include <string>

#include "agent/context.h"
#include "net/http/http.h"

namespace muster::agent {

enum class UpgradeKind { kNone, kWebSocket, kSpdy };

struct CommandCall {
  bool attach = false;
  std::string sandbox_id;
  std::string container_id;
  ExecConfig config;
};

Task<void> serve_command(Context& context,
                         CommandCall call,
                         net::Request request,
                         UpgradeKind upgrade,
                         net::ResponseWriter& writer);

/// The Status that ends a session: Success, or NonZeroExitCode with the code as a cause.
std::string exit_status(const Result<int>& code);
/// The first of `wanted` that the client offers in `header`; empty: none.
std::string choose_protocol(const net::Headers& headers,
                            std::string_view header,
                            std::initializer_list<std::string_view> wanted);

}  // namespace muster::agent
