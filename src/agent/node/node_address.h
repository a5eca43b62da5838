/// The address that a node shows: the one its file gave it, else this machine's.
#pragma once

#include <string>

#include "json/json.h"

namespace muster::agent {

/// Virtual nodes are made with the loopback address, which says nothing.
inline std::string node_address(const json::Value& node, const std::string& host_ip) {
  for (const auto& address : json::array_at(node, "status", "addresses")) {
    const auto ip = json::string_at(address, "address");
    if (json::string_at(address, "type") == "InternalIP" && !ip.empty() && ip != "127.0.0.1")
      return std::string(ip);
  }
  return host_ip;
}

}  // namespace muster::agent
