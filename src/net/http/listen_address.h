/// Where a server listens, as people write it.
#pragma once

#include <string>
#include <string_view>

#include "net/http/server.h"

namespace muster::net {

/// "0.0.0.0:9090", "[::1]:9090" or ":9090" for every address; port 0 picks one. The error names the
/// flag.
Result<ServerOptions> parse_listen(std::string_view flag, const std::string& text);

}  // namespace muster::net
