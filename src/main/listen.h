/// Where a small server of `muster run` listens, as its flags say it.
#pragma once

#include <string>
#include <string_view>

#include "net/http/server.h"

namespace muster {

/// "0.0.0.0:9090" or ":9090"; the error names the flag.
Result<net::ServerOptions> parse_listen(std::string_view flag, const std::string& text);

}  // namespace muster
