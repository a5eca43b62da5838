/// A port of this machine that leads to another: how pods reach an API server that listens on
/// loopback, and how hostPort reaches a pod.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/loop/descriptor.h"

namespace muster::agent {

struct ProxyPorts {
  std::string listen_address;
  int listen_port = 0;
  std::string target_address;
  int target_port = 0;
};

class TcpProxy {
 public:
  explicit TcpProxy(net::Loop& loop) : loop_(loop) {}
  ~TcpProxy();
  Result<void> start(ProxyPorts ports);

 private:
  net::Loop& loop_;
  std::shared_ptr<net::Descriptor> listener_;
};

}  // namespace muster::agent
