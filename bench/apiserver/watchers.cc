#include "watchers.h"

#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

namespace muster::bench {
namespace {

constexpr int kReadWaitMs = 2000;

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

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
    for (auto* each = CMSG_FIRSTHDR(&message); each != nullptr;
         each = CMSG_NXTHDR(&message, each)) {
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
  int events = 0;
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
  ++wanted_;
  wanted_.notify_one();
  thread_.join();
  return std::move(arrivals_);
}

bool Watchers::open(Connection& connection) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(options_.host.c_str(), options_.port.c_str(), &hints, &found) != 0)
    return false;
  connection.fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool reached =
      connection.fd >= 0 && ::connect(connection.fd, found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  if (!reached) return false;
  const int stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  ::setsockopt(connection.fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
  static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  connection.ssl = SSL_new(context);
  SSL_set_fd(connection.ssl, connection.fd);
  if (SSL_connect(connection.ssl) != 1) return false;
  const std::string request =
      "GET " + options_.target + " HTTP/1.1\r\nHost: " + options_.host +
      "\r\nAuthorization: Bearer " + options_.token +
      "\r\nAccept: application/json\r\nUser-Agent: apiserver-load/1\r\n\r\n";
  if (SSL_write(connection.ssl, request.data(), static_cast<int>(request.size())) <= 0)
    return false;
  return ::fcntl(connection.fd, F_SETFL, O_NONBLOCK) == 0;
}

void Watchers::read(Connection& connection) {
  const std::int64_t arrival = arrival_of(connection.fd);
  char bytes[16 * 1024];
  for (int got = SSL_read(connection.ssl, bytes, sizeof bytes); got > 0;
       got = SSL_read(connection.ssl, bytes, sizeof bytes)) {
    connection.text.append(bytes, static_cast<std::size_t>(got));
  }
  if (!connection.answered && connection.text.find("\r\n\r\n") != std::string::npos) {
    connection.answered = true;
    if (connection.text.starts_with("HTTP/1.1 200")) ++connected_;
  }
  for (auto end = connection.text.find('\n'); end != std::string::npos;
       end = connection.text.find('\n')) {
    constexpr std::string_view kTick = "\"tick\":\"";
    const std::string_view line = std::string_view(connection.text).substr(0, end);
    if (const auto at = line.find(kTick); at != std::string_view::npos) {
      const auto from = at + kTick.size();
      arrivals_[std::string(line.substr(from, line.find('"', from) - from))].push_back(arrival);
      ++connection.events;
      ++read_;
    }
    connection.text.erase(0, end + 1);
  }
}

void Watchers::read_one() {
  const int all = ++wanted_ * connected_;
  wanted_.notify_one();
  for (int waited = 0; waited < kReadWaitMs && read_ < all; waited += 5)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void Watchers::run() {
  std::vector<std::unique_ptr<Connection>> connections;
  for (int i = 0; i < options_.count && !stop_; ++i) {
    auto connection = std::make_unique<Connection>();
    if (open(*connection)) connections.push_back(std::move(connection));
  }
  const auto count = static_cast<int>(connections.size());
  while (!stop_) {
    const int wanted = wanted_;
    if (connected_ == count && read_ >= wanted * count) {
      if (!stop_) wanted_.wait(wanted);  // finish() counts up as well
      continue;
    }
    for (const auto& connection : connections) {
      if (!connection->answered || connection->events < wanted) read(*connection);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

namespace {

/// Connected loopback sockets, one end to send to; nobody reads the other.
struct Pairs {
  std::vector<int> near, far;
  explicit Pairs(int count) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener, count);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    for (int i = 0; i < count; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (::connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) {
        ::close(fd);
        break;
      }
      near.push_back(fd);
      far.push_back(::accept(listener, nullptr, nullptr));
    }
    ::close(listener);
  }
  ~Pairs() {
    for (const auto* ends : {&near, &far}) {
      for (const int fd : *ends) ::close(fd);
    }
  }
  Pairs(const Pairs&) = delete;
};

void encrypt_and_send(const std::vector<int>& sockets,
                      std::size_t from,
                      std::size_t step,
                      std::size_t bytes) {
  const std::string plain(bytes, 'x');
  std::string record(bytes + 64, '\0');
  const unsigned char key[16] = {1}, nonce[12] = {2};
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  for (std::size_t i = from; i < sockets.size(); i += step) {
    int written = 0;
    auto* out = reinterpret_cast<unsigned char*>(record.data());
    EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nullptr, key, nonce);
    EVP_EncryptUpdate(context,
                      out,
                      &written,
                      reinterpret_cast<const unsigned char*>(plain.data()),
                      static_cast<int>(bytes));
    (void)::send(sockets[i], record.data(), bytes + 22, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  EVP_CIPHER_CTX_free(context);
}

}  // namespace

double fanout_floor_ms(int watchers, std::size_t bytes) {
  const Pairs pairs(watchers);
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const auto begun = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < cores; ++i)
      others.emplace_back([&, i] { encrypt_and_send(pairs.near, i, cores, bytes); });
    encrypt_and_send(pairs.near, 0, cores, bytes);
    for (std::thread& each : others) each.join();
    best =
        std::min(best,
                 std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
                     .count());
  }
  return best;
}

}  // namespace muster::bench
