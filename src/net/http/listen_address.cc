#include "net/http/listen_address.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::net {

Result<ServerOptions> parse_listen(std::string_view flag, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : parse_int(std::string_view(text).substr(colon + 1));
  if (!port || *port < 0 || *port > 65535)
    return fail(Code::kBadRequest,
                fmt::format("{} {}: wanted ADDRESS:PORT, e.g. 127.0.0.1:6443", flag, text));
  ServerOptions where;
  where.address = colon == 0 ? "0.0.0.0" : text.substr(0, colon);
  if (where.address.starts_with('[') && where.address.ends_with(']'))
    where.address = where.address.substr(1, where.address.size() - 2);
  where.port = static_cast<std::uint16_t>(*port);
  return where;
}

}  // namespace muster::net
