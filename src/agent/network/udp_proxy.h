/// A UDP port of this machine that leads to another: hostPort with protocol UDP.
///
/// Each sender gets a socket of its own towards the target, so that answers find their way back; it
/// is forgotten after a minute of silence. On the loop.
#pragma once

#include <memory>

#include "agent/network/tcp_proxy.h"

namespace muster::agent {

class UdpProxy {
 public:
  explicit UdpProxy(net::Loop& loop) : loop_(loop) {}
  ~UdpProxy();
  Result<void> start(ProxyPorts ports);

 private:
  struct State;
  static Task<void> from_senders(std::shared_ptr<State> state);
  static Task<void> from_target(std::shared_ptr<State> state, std::uint64_t sender);

  net::Loop& loop_;
  std::shared_ptr<State> state_;
};

}  // namespace muster::agent
