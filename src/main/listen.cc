#include "main/listen.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster {

Result<net::ServerOptions> parse_listen(std::string_view flag, const std::string& text) {
  net::ServerOptions where;
  const std::size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : parse_int(std::string_view(text).substr(colon + 1));
  if (!port || *port < 0 || *port > 65535)
    return fail(Code::kBadRequest,
                fmt::format("{} {}: wanted ADDRESS:PORT, e.g. 0.0.0.0:9090", flag, text));
  where.address = colon == 0 ? "0.0.0.0" : text.substr(0, colon);
  where.port = static_cast<std::uint16_t>(*port);
  return where;
}

}  // namespace muster
