#include "agent/network/tcp_proxy.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "net/loop/other_network.h"

namespace muster::agent {
namespace {

using StreamPtr = std::shared_ptr<net::ByteStream>;
constexpr int kConnectionsMax = 1024;

/// One connection: two directions, each of which may end before the other.
struct Link {
  StreamPtr client, target;
  int open = 2;
};

Task<void> copy(std::shared_ptr<Link> link, bool upwards, std::shared_ptr<int> count) {
  const auto from = upwards ? link->client : link->target;
  const auto to = upwards ? link->target : link->client;
  bool broken = false;
  for (;;) {
    auto bytes = co_await from->read();
    broken = !bytes;
    if (!bytes || bytes->empty()) break;
    const auto written = co_await to->write(std::move(*bytes));
    broken = !written;
    if (broken) break;
  }
  net::end_writing(*to);
  if (--link->open == 0 || broken) {
    from->close();
    to->close();
  }
  --*count;
}

Task<void> relay(net::Loop& loop, StreamPtr client, ProxyPorts ports, std::shared_ptr<int> count) {
  auto connected = co_await net::connect_tcp(
      loop, ports.target_address, ports.target_port, std::chrono::seconds(5));
  if (!connected) {
    client->close();
    *count -= 2;
    co_return;
  }
  const auto link = std::make_shared<Link>();
  link->client = client;
  link->target = std::move(*connected);
  loop.spawn(copy(link, false, count));
  co_await copy(link, true, count);
}

Task<void> accept_all(net::Loop& loop,
                      std::shared_ptr<net::Descriptor> listener,
                      ProxyPorts ports) {
  const auto count = std::make_shared<int>(0);
  for (;;) {
    const int fd = accept4(listener->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      if (*count >= kConnectionsMax * 2) {
        close(fd);
        continue;
      }
      *count += 2;
      const StreamPtr client = net::make_fd_stream(loop, fd);
      loop.spawn(relay(loop, client, ports, count));
      continue;
    }
    const bool open = co_await listener->readable();
    if (!open) co_return;
  }
}

}  // namespace

TcpProxy::~TcpProxy() {
  if (listener_) listener_->close();
}

Result<void> TcpProxy::start(ProxyPorts ports) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(ports.listen_port));
  const bool named = inet_pton(AF_INET, ports.listen_address.c_str(), &address.sin_addr) == 1;
  const int fd = net::open_socket(ntohl(address.sin_addr.s_addr), SOCK_STREAM);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!named || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 128) != 0) {
    const auto message = fmt::format(
        "listen on {}:{}: {}", ports.listen_address, ports.listen_port, std::strerror(errno));
    if (fd >= 0) close(fd);
    return fail(Code::kUnavailable, message);
  }
  listener_ = net::make_descriptor(loop_, fd);
  loop_.spawn(accept_all(loop_, listener_, std::move(ports)));
  return {};
}

}  // namespace muster::agent
