#include "agent/network/udp_proxy.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "net/loop/other_network.h"

namespace muster::agent {
namespace {

/// Datagrams of further ones are dropped, as a full queue does.
constexpr std::size_t kSendersMax = 1024;
constexpr Duration kSilenceMax = std::chrono::seconds(60);
constexpr std::size_t kDatagramMax = 65536;

bool make_address(const std::string& text, int port, sockaddr_in& out) {
  out = {};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  return inet_pton(AF_INET, text.c_str(), &out.sin_addr) == 1;
}

std::uint64_t key_of(const sockaddr_in& peer) {
  return (static_cast<std::uint64_t>(peer.sin_addr.s_addr) << 16) | peer.sin_port;
}

}  // namespace

struct UdpProxy::State {
  explicit State(net::Loop& l) : loop(l) {}
  struct Sender {
    sockaddr_in peer{};
    std::shared_ptr<net::Descriptor> socket;  // connected to the target
    std::unique_ptr<Timer> silence;
  };
  net::Loop& loop;
  ProxyPorts ports;
  std::shared_ptr<net::Descriptor> listener;
  std::map<std::uint64_t, Sender> senders;  // by address and port

  /// Null when there are too many, or no socket.
  Sender* find_or_make(const sockaddr_in& peer, bool& fresh) {
    const auto key = key_of(peer);
    const auto known = senders.find(key);
    fresh = known == senders.end();
    if (!fresh) return &known->second;
    sockaddr_in target{};
    if (senders.size() >= kSendersMax ||
        !make_address(ports.target_address, ports.target_port, target))
      return nullptr;
    const int fd = net::open_socket(ntohl(target.sin_addr.s_addr), SOCK_DGRAM);
    if (fd < 0) return nullptr;
    if (connect(fd, reinterpret_cast<sockaddr*>(&target), sizeof target) != 0) {
      close(fd);
      return nullptr;
    }
    auto& sender = senders[key];
    sender.peer = peer;
    sender.socket = net::make_descriptor(loop, fd);
    return &sender;
  }
};

UdpProxy::~UdpProxy() {
  if (!state_) return;
  if (state_->listener) state_->listener->close();
  for (auto& [key, sender] : state_->senders) {
    sender.silence.reset();
    sender.socket->close();
  }
}

Result<void> UdpProxy::start(ProxyPorts ports) {
  sockaddr_in address{};
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (!make_address(ports.listen_address, ports.listen_port, address) ||
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    const auto message = fmt::format(
        "listen on {}:{} (UDP): {}", ports.listen_address, ports.listen_port, std::strerror(errno));
    if (fd >= 0) close(fd);
    return fail(Code::kUnavailable, message);
  }
  state_ = std::make_shared<State>(loop_);
  state_->ports = std::move(ports);
  state_->listener = net::make_descriptor(loop_, fd);
  loop_.spawn(from_senders(state_));
  return {};
}

Task<void> UdpProxy::from_senders(std::shared_ptr<State> state) {
  std::string buffer(kDatagramMax, '\0');
  for (;;) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const auto got = recvfrom(state->listener->fd(),
                              buffer.data(),
                              buffer.size(),
                              0,
                              reinterpret_cast<sockaddr*>(&peer),
                              &size);
    if (got < 0) {
      if (errno == EINTR) continue;
      const bool open = co_await state->listener->readable();
      if (!open) co_return;
      continue;
    }
    bool fresh = false;
    auto* sender = state->find_or_make(peer, fresh);
    if (sender == nullptr) continue;
    sender->silence =
        state->loop.after(kSilenceMax, [weak = std::weak_ptr(state), key = key_of(peer)] {
          if (const auto alive = weak.lock()) {
            const auto found = alive->senders.find(key);
            if (found == alive->senders.end()) return;
            found->second.socket->close();
            // Not from its own timer.
            alive->loop.post([alive, key] { alive->senders.erase(key); });
          }
        });
    (void)send(sender->socket->fd(), buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
    if (fresh) state->loop.spawn(from_target(state, key_of(peer)));
  }
}

Task<void> UdpProxy::from_target(std::shared_ptr<State> state, std::uint64_t key) {
  const auto found = state->senders.find(key);
  if (found == state->senders.end()) co_return;
  const auto socket = found->second.socket;
  const auto peer = found->second.peer;
  std::string buffer(kDatagramMax, '\0');
  for (;;) {
    const auto got = recv(socket->fd(), buffer.data(), buffer.size(), 0);
    if (got >= 0) {
      (void)sendto(state->listener->fd(),
                   buffer.data(),
                   static_cast<std::size_t>(got),
                   MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&peer),
                   sizeof peer);
      continue;
    }
    if (errno == ECONNREFUSED || errno == EINTR) continue;  // nobody listens in the pod yet
    const bool open = co_await socket->readable();
    if (!open) co_return;
  }
}

}  // namespace muster::agent
