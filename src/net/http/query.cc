#include "net/http/query.h"

#include "base/strings.h"

namespace muster::net {

bool truthy(std::string_view text) {
  return !text.empty() && text != "0" && to_lower(text) != "false";
}

bool on(const Target& target, std::string_view key) { return truthy(target.get(key)); }

}  // namespace muster::net
