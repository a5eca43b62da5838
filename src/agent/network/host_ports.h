/// hostPort: ports of this machine that lead to a pod's, TCP and UDP.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/network/tcp_proxy.h"
#include "agent/network/udp_proxy.h"
#include "json/json.h"

namespace muster::agent {

class HostPorts {
 public:
  /// Null: none can be opened, and none is.
  explicit HostPorts(net::Loop* loop) : loop_(loop) {}
  struct Problem {
    const char* reason;
    std::string message;
  };
  /// Opens those of `pod`, which is reached at `address`. What went wrong, one for each.
  std::vector<Problem> open(const json::Value& pod, const std::string& address);
  void close();

 private:
  net::Loop* loop_;
  std::vector<std::unique_ptr<TcpProxy>> tcp_;
  std::vector<std::unique_ptr<UdpProxy>> udp_;
};

}  // namespace muster::agent
