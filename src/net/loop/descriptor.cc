#include "net/loop/descriptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

#include "net/loop/other_network.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

/// Shared with the coroutines that wait, so that the owner may go while somebody waits.
class AsioDescriptor final : public Descriptor {
 public:
  AsioDescriptor(Loop& loop, int fd)
      : state_(std::make_shared<asio::posix::stream_descriptor>(loop.context(), fd)) {
    boost::system::error_code ignored;
    state_->non_blocking(true, ignored);
  }
  ~AsioDescriptor() override { close_now(); }
  int fd() const override { return state_->native_handle(); }
  Task<bool> readable() override { return wait(state_, asio::posix::descriptor_base::wait_read); }
  Task<bool> writable() override { return wait(state_, asio::posix::descriptor_base::wait_write); }
  void close() override { close_now(); }

 private:
  using State = std::shared_ptr<asio::posix::stream_descriptor>;
  void close_now() {
    boost::system::error_code ignored;
    state_->close(ignored);
  }
  static Task<bool> wait(State state, asio::posix::descriptor_base::wait_type what) {
    if (!state->is_open()) co_return false;
    const auto [error] = co_await state->async_wait(what, kAwait);
    co_return !error && state->is_open();
  }
  State state_;
};

Error os_error(const char* what, int number) {
  Error error;
  error.code = Code::kUnavailable;
  error.message = fmt::format("{}: {}", what, std::strerror(number));
  return error;
}

class FdStream final : public ByteStream {
 public:
  FdStream(Loop& loop, int fd) : descriptor_(std::make_shared<AsioDescriptor>(loop, fd)) {}
  ~FdStream() override { descriptor_->close(); }

  Task<Result<std::string>> read() override { return read_from(descriptor_); }
  Task<Result<void>> write(std::string bytes) override {
    return write_to(descriptor_, std::move(bytes));
  }
  void close() override { descriptor_->close(); }
  void end_writing() const {
    if (descriptor_->fd() >= 0) ::shutdown(descriptor_->fd(), SHUT_WR);
  }

 private:
  using Shared = std::shared_ptr<AsioDescriptor>;

  static Task<Result<std::string>> read_from(Shared descriptor) {
    for (;;) {
      std::string buffer(32 * 1024, '\0');
      const auto got =
          descriptor->fd() < 0 ? 0 : ::read(descriptor->fd(), buffer.data(), buffer.size());
      if (got > 0) {
        buffer.resize(static_cast<std::size_t>(got));
        co_return buffer;
      }
      if (got == 0 || errno == EIO || errno == ECONNRESET) co_return std::string();
      if (errno != EAGAIN && errno != EINTR) co_return fail(os_error("read", errno));
      const bool open = co_await descriptor->readable();
      if (!open) co_return std::string();
    }
  }

  static Task<Result<void>> write_to(Shared descriptor, std::string bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      if (descriptor->fd() < 0) co_return fail(os_error("write", EPIPE));
      const auto wrote = ::write(descriptor->fd(), bytes.data() + done, bytes.size() - done);
      if (wrote > 0) {
        done += static_cast<std::size_t>(wrote);
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) co_return fail(os_error("write", errno));
      const bool open = co_await descriptor->writable();
      if (!open) co_return fail(os_error("write", EPIPE));
    }
    co_return Result<void>();
  }

  Shared descriptor_;
};

}  // namespace

std::unique_ptr<Descriptor> make_descriptor(Loop& loop, int fd) {
  return std::make_unique<AsioDescriptor>(loop, fd);
}
std::unique_ptr<ByteStream> make_fd_stream(Loop& loop, int fd) {
  return std::make_unique<FdStream>(loop, fd);
}

void end_writing(ByteStream& stream) {
  if (const auto* own = dynamic_cast<const FdStream*>(&stream)) own->end_writing();
}

Task<Result<std::unique_ptr<ByteStream>>> connect_tcp(Loop& loop,
                                                      std::string address,
                                                      int port,
                                                      Duration timeout) {
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &target.sin_addr) != 1)
    co_return fail(Code::kBadRequest, fmt::format("\"{}\" is not an IPv4 address", address));
  const int fd = open_socket(ntohl(target.sin_addr.s_addr), SOCK_STREAM);
  if (fd < 0) co_return fail(os_error("socket", errno));
  AsioDescriptor descriptor(loop, fd);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&target), sizeof target) != 0) {
    if (errno != EINPROGRESS) co_return fail(os_error("connect", errno));
    const auto timer = loop.after(timeout, [&descriptor] { descriptor.close(); });
    const bool open = co_await descriptor.writable();
    if (!open)
      co_return fail(Code::kTimeout,
                     fmt::format("connect to {}:{}: no answer in time", address, port));
    int problem = 0;
    socklen_t size = sizeof problem;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem != 0) co_return fail(os_error("connect", problem));
  }
  std::unique_ptr<ByteStream> stream = std::make_unique<FdStream>(loop, dup(fd));
  co_return stream;
}

}  // namespace muster::net
