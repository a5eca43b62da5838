#include "net/loop/stream.h"

#include <fmt/core.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include "base/strings.h"
#include "net/loop/socket.h"

namespace muster::net {

using asio::ip::tcp;

void Stream::start_read(asio::mutable_buffer buffer, IoOpPtr op) {
  if (prefix_.empty()) {
    do_read(buffer, std::move(op));
    return;
  }
  const auto bytes = std::min(buffer.size(), prefix_.size());
  std::memcpy(buffer.data(), prefix_.data(), bytes);
  prefix_.erase(0, bytes);
  asio::post(context(), [op = std::move(op), bytes]() mutable { op->done({}, bytes); });
}

Task<IoResult> Stream::read_some(asio::mutable_buffer buffer) {
  const auto start = [this, buffer](auto handler) {
    start_read(buffer, make_io_op(std::move(handler)));
  };
  const auto [error, bytes] =
      co_await asio::async_initiate<decltype(kAwaitTuple), void(ErrorCode, std::size_t)>(
          start, kAwaitTuple);
  co_return IoResult{error, bytes};
}

namespace {

/// What is left after `bytes` were written; no empty buffers.
void drop_front(std::vector<asio::const_buffer>& buffers, std::size_t bytes) {
  while (!buffers.empty()) {
    const auto taken = std::min(bytes, buffers.front().size());
    buffers.front() += taken;
    bytes -= taken;
    if (buffers.front().size() > 0) return;
    buffers.erase(buffers.begin());
  }
}

/// What is written in one turn of the loop. To a reader that takes everything at once, tens of megabytes would be encrypted and sent in
/// one go, while everybody else waits.
constexpr std::size_t kTurnBytes = 128 * 1024;

std::vector<asio::const_buffer> one_turn(const std::vector<asio::const_buffer>& buffers) {
  std::vector<asio::const_buffer> first;
  first.reserve(buffers.size());
  std::size_t room = kTurnBytes;
  for (const auto& buffer : buffers) {
    if (room == 0) break;
    first.push_back(asio::buffer(buffer, room));
    room -= first.back().size();
  }
  return first;
}

}  // namespace

Task<ErrorCode> Stream::write_all(std::vector<asio::const_buffer> buffers) {
  // Mostly the socket takes everything at once, and then there is nothing to wait for.
  const IoResult now = write_now(one_turn(buffers));
  if (now.error && now.error != asio::error::would_block) co_return now.error;
  drop_front(buffers, now.bytes);
  while (!buffers.empty()) {
    const auto start = [this, &buffers](auto handler) {
      start_write(one_turn(buffers), make_io_op(std::move(handler)));
    };
    const auto [error, bytes] =
        co_await asio::async_initiate<decltype(kAwaitTuple), void(ErrorCode, std::size_t)>(
            start, kAwaitTuple);
    if (error) co_return error;
    drop_front(buffers, bytes);
  }
  co_return ErrorCode{};
}

Task<ErrorCode> Stream::write_all(std::string_view bytes) {
  std::vector<asio::const_buffer> buffers{asio::const_buffer(bytes.data(), bytes.size())};
  const auto error = co_await write_all(std::move(buffers));
  co_return error;
}

std::string address_of(const tcp::socket& socket) {
  ErrorCode error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error || (endpoint.data()->sa_family != AF_INET && endpoint.data()->sa_family != AF_INET6))
    return {};
  const auto text = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", text, endpoint.port())
                                    : fmt::format("{}:{}", text, endpoint.port());
}

bool socket_is_quiet(tcp::socket& socket) {
  if (!socket.is_open()) return false;
  char byte = 0;
  const auto got = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void close_socket(tcp::socket& socket) {
  ErrorCode ignored;
  socket.close(ignored);
}

namespace {

/// -1 when the path is too long for a socket's address.
int open_unix(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int close_failed(int descriptor) {
  const int why = errno;
  ::close(descriptor);
  errno = why;
  return -1;
}

}  // namespace

int connect_unix(const std::string& path) {
  sockaddr_un address;
  const int descriptor = open_unix(path, address);
  if (descriptor < 0) return -1;
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return close_failed(descriptor);
  return descriptor;
}

int listen_unix(const std::string& path) {
  sockaddr_un address;
  const int descriptor = open_unix(path, address);
  if (descriptor < 0) return -1;
  ::unlink(path.c_str());
  // The mode must be right from the first moment on, and bind() takes it from the umask.
  const mode_t before = ::umask(0177);
  const int bound = ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(before);
  if (bound != 0 || ::listen(descriptor, SOMAXCONN) != 0) return close_failed(descriptor);
  return descriptor;
}

namespace {

class PlainStream final : public Stream {
 public:
  explicit PlainStream(tcp::socket socket)
      : socket_(std::move(socket)), address_(address_of(socket_)) {}

  asio::io_context& context() override {
    return static_cast<asio::io_context&>(socket_.get_executor().context());
  }
  Task<ErrorCode> handshake() override { co_return ErrorCode{}; }
  Task<void> shutdown() override {
    ErrorCode ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_return;
  }
  void cancel() override {
    ErrorCode ignored;
    socket_.cancel(ignored);
  }
  void close() override { close_socket(socket_); }
  [[nodiscard]] bool is_open() const override { return socket_.is_open(); }
  [[nodiscard]] bool is_quiet() override { return socket_is_quiet(socket_); }
  [[nodiscard]] Peer peer() const override {
    Peer peer;
    peer.address = address_;
    return peer;
  }

  IoResult read_now(asio::mutable_buffer buffer) override {
    IoResult result;
    const auto got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0)
      result.bytes = static_cast<std::size_t>(got);
    else
      result.error = got == 0 ? ErrorCode(asio::error::eof)
                              : ErrorCode(errno, boost::system::system_category());
    return result;
  }

  IoResult write_now(const std::vector<asio::const_buffer>& buffers) override {
    IoResult result;
    char gathered[16 * 1024];
    Pieces pieces(buffers);
    while (true) {
      const asio::const_buffer piece = pieces.next(gathered, sizeof gathered);
      if (piece.size() == 0) return result;
      const auto sent =
          ::send(socket_.native_handle(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        result.error = ErrorCode(errno, boost::system::system_category());
        return result;
      }
      pieces.took(static_cast<std::size_t>(sent));
      result.bytes += static_cast<std::size_t>(sent);
    }
  }

 protected:
  void do_read(asio::mutable_buffer buffer, IoOpPtr op) override {
    socket_.async_read_some(buffer, [op = std::move(op)](ErrorCode error, std::size_t bytes) {
      op->done(error, bytes);
    });
  }
  void do_write(std::vector<asio::const_buffer> buffers, IoOpPtr op) override {
    socket_.async_write_some(buffers, [op = std::move(op)](ErrorCode error, std::size_t bytes) {
      op->done(error, bytes);
    });
  }

 private:
  tcp::socket socket_;
  std::string address_;
};

}  // namespace

void tune_socket(tcp::socket& socket) {
  ErrorCode ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  // A peer that vanished is noticed within two minutes; one that merely does not read is left in
  // peace.
  const int idle_s = 60, interval_s = 15, probes = 4;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

std::shared_ptr<Stream> make_plain_stream(tcp::socket socket) {
  return std::make_shared<PlainStream>(std::move(socket));
}

Deadline::Deadline(asio::io_context& context, std::function<void()> expired)
    : timer_(context), expired_(std::move(expired)) {}

void Deadline::set(Duration from_now) {
  at_ = Clock::now() + from_now;
  if (at_ < armed_) arm(at_);
}

void Deadline::arm(Clock::time_point when) {
  armed_ = when;
  timer_.expires_at(when);
  timer_.async_wait([this, alive = alive_](const ErrorCode& error) {
    if (error || !*alive) return;
    armed_ = kNever;
    if (at_ == kNever) return;
    if (Clock::now() < at_) {
      arm(at_);
      return;
    }
    at_ = kNever;
    expired_();
  });
}

Error io_error(std::string_view what, const ErrorCode& error) {
  Error out;
  out.code = error == asio::error::timed_out ? Code::kTimeout : Code::kUnavailable;
  out.message = fmt::format(
      "{}: {}",
      what,
      error == asio::error::eof ? "connection closed by the other side" : error.message());
  return out;
}

std::string gzip(std::string_view text) {
  z_stream z{};
  constexpr int kGzipWindow = 15 + 16;
  // Level 1: lists of objects shrink tenfold already, at a fraction of the default level's time.
  if (deflateInit2(&z, 1, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int end = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return end == Z_STREAM_END ? out : std::string();
}

bool accepts_gzip(const Headers& headers) {
  for (const auto value : headers.all("Accept-Encoding")) {
    for (const auto& part : split(value, ',')) {
      const auto pieces = split(part, ';');
      if (to_lower(trim(pieces.front())) != "gzip") continue;
      return pieces.size() < 2 || replace_all(pieces[1], " ", "") != "q=0";
    }
  }
  return false;
}

}  // namespace muster::net
