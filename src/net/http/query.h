#pragma once
#include <string_view>

#include "net/http/http.h"

namespace muster::net {

/// How Kubernetes reads a yes or no in a query: anything but nothing, 0 and false is yes. Clients
/// write true, True, 1.
bool truthy(std::string_view text);

/// Whether this parameter of the query says yes.
bool on(const Target& target, std::string_view key);

}  // namespace muster::net
