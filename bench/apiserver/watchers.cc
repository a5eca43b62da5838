#include "watchers.h"

#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <memory>

namespace muster::bench {
namespace {

/// Above the server's, whatever that is: the watchers read when the server has nothing to send.
constexpr int kNicer = 5;

std::int64_t nanoseconds(const timespec& time) { return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec; }

/// When the kernel received what is to be read next; now, if it does not say.
std::int64_t arrival_of(int fd) {
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char control[256];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT) > 0) {
    for (auto* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SO_TIMESTAMPING) continue;
      timespec times[3];
      std::memcpy(times, CMSG_DATA(each), sizeof times);
      if (times[0].tv_sec != 0) return nanoseconds(times[0]);
    }
  }
  return realtime_ns();
}

}  // namespace

std::int64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

struct Watchers::Connection {
  int fd = -1;
  SSL* ssl = nullptr;
  bool answered = false;
  std::string text;
  ~Connection() {
    if (ssl != nullptr) SSL_free(ssl);
    if (fd >= 0) ::close(fd);
  }
};

Watchers::Watchers(Options options) : options_(std::move(options)), thread_([this] { run(); }) {}

Watchers::~Watchers() {
  if (thread_.joinable()) (void)finish();
}

std::map<std::string, std::vector<std::int64_t>> Watchers::finish() {
  stop_ = true;
  thread_.join();
  return std::move(arrivals_);
}

bool Watchers::open(Connection& connection) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(options_.host.c_str(), options_.port.c_str(), &hints, &found) != 0) return false;
  connection.fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool reached = connection.fd >= 0 && ::connect(connection.fd, found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  if (!reached) return false;
  const int stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  ::setsockopt(connection.fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
  static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  connection.ssl = SSL_new(context);
  SSL_set_fd(connection.ssl, connection.fd);
  if (SSL_connect(connection.ssl) != 1) return false;
  const std::string request = "GET " + options_.target + " HTTP/1.1\r\nHost: " + options_.host + "\r\nAuthorization: Bearer " + options_.token +
                              "\r\nAccept: application/json\r\nUser-Agent: apiserver-load/1\r\n\r\n";
  if (SSL_write(connection.ssl, request.data(), static_cast<int>(request.size())) <= 0) return false;
  return ::fcntl(connection.fd, F_SETFL, O_NONBLOCK) == 0;
}

void Watchers::read(Connection& connection) {
  const std::int64_t arrival = arrival_of(connection.fd);
  char bytes[16 * 1024];
  for (int got = SSL_read(connection.ssl, bytes, sizeof bytes); got > 0; got = SSL_read(connection.ssl, bytes, sizeof bytes)) {
    connection.text.append(bytes, static_cast<std::size_t>(got));
  }
  if (!connection.answered && connection.text.find("\r\n\r\n") != std::string::npos) {
    connection.answered = true;
    if (connection.text.starts_with("HTTP/1.1 200")) ++connected_;
  }
  for (auto end = connection.text.find('\n'); end != std::string::npos; end = connection.text.find('\n')) {
    constexpr std::string_view kTick = "\"tick\":\"";
    const std::string_view line = std::string_view(connection.text).substr(0, end);
    if (const auto at = line.find(kTick); at != std::string_view::npos) {
      const auto from = at + kTick.size();
      arrivals_[std::string(line.substr(from, line.find('"', from) - from))].push_back(arrival);
    }
    connection.text.erase(0, end + 1);
  }
}

void Watchers::run() {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  ::setpriority(PRIO_PROCESS, thread, ::getpriority(PRIO_PROCESS, thread) + kNicer);
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Connection>> connections;
  for (int i = 0; i < options_.count && !stop_; ++i) {
    auto connection = std::make_unique<Connection>();
    if (!open(*connection)) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = connection.get();
    ::epoll_ctl(poll, EPOLL_CTL_ADD, connection->fd, &event);
    connections.push_back(std::move(connection));
  }
  while (!stop_) {
    epoll_event events[64];
    const int count = ::epoll_wait(poll, events, 64, 100);
    for (int i = 0; i < count; ++i) read(*static_cast<Connection*>(events[i].data.ptr));
  }
  ::close(poll);
}

}  // namespace muster::bench
