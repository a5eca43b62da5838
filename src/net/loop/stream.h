/// One connection's bytes, plain or TLS, behind virtual calls: Beast's parsers and WebSocket are
/// compiled once over it instead of once for each transport. Seen by net's own .cc files only.
///
/// One read and one write may be outstanding at a time. Everything runs on the loop.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "base/time.h"
#include "net/http/gzip.h"
#include "net/http/http.h"

namespace muster::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
inline constexpr auto kAwaitTuple = asio::as_tuple(asio::use_awaitable);

/// A read or write's completion, whatever handler stands behind it.
struct IoOp {
  virtual ~IoOp() = default;
  virtual void done(ErrorCode error, std::size_t bytes) = 0;
};
using IoOpPtr = std::unique_ptr<IoOp>;

template <typename Handler>
struct IoOpOf final : IoOp {
  explicit IoOpOf(Handler&& h) : handler(std::move(h)) {}
  void done(ErrorCode error, std::size_t bytes) override { std::move(handler)(error, bytes); }
  Handler handler;
};
template <typename Handler>
IoOpPtr make_io_op(Handler&& handler) {
  using Plain = std::decay_t<Handler>;
  return std::make_unique<IoOpOf<Plain>>(Plain(std::forward<Handler>(handler)));
}

struct IoResult {
  ErrorCode error;
  std::size_t bytes = 0;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  virtual ~Stream() = default;

  virtual asio::io_context& context() = 0;
  /// Bytes that were read already and must be read first again (what followed an upgrade's head).
  void put_back(std::string bytes) { prefix_ = std::move(bytes); }

  void start_read(asio::mutable_buffer buffer, IoOpPtr op);
  void start_write(std::vector<asio::const_buffer> buffers, IoOpPtr op) {
    do_write(std::move(buffers), std::move(op));
  }

  /// As much as the socket takes without waiting; would_block with what went before when it is
  /// full. Not while another write is outstanding. What was not taken must be the beginning of the
  /// next write. The one call that may run beside the loop, on a worker, as long as nobody else
  /// touches the stream meanwhile.
  virtual IoResult write_now(const std::vector<asio::const_buffer>& buffers) = 0;

  /// write_now() comes soon: asks for the memory it will touch. Said of several streams before the
  /// first write, their waits for memory overlap.
  virtual void expect_write() const {}

  Task<IoResult> read_some(asio::mutable_buffer buffer);
  /// All of them, in order.
  Task<ErrorCode> write_all(std::vector<asio::const_buffer> buffers);
  Task<ErrorCode> write_all(std::string_view bytes);

  /// What is there already, without waiting; would_block when nothing is. Not while another read is
  /// outstanding.
  virtual IoResult read_now(asio::mutable_buffer buffer) = 0;

  virtual Task<ErrorCode> handshake() = 0;
  /// TLS close_notify, then end of stream. Bounded by whoever closes.
  virtual Task<void> shutdown() = 0;
  /// Outstanding operations end with an error; the connection stays open.
  virtual void cancel() = 0;
  virtual void close() = 0;
  [[nodiscard]] virtual bool is_open() const = 0;
  /// Idle and still connected: nothing to read, no end of stream (a non-blocking peek).
  [[nodiscard]] virtual bool is_quiet() = 0;
  /// Who is at the other end; certificate fields after the handshake.
  [[nodiscard]] virtual Peer peer() const = 0;
  /// What the TLS handshake agreed on.
  [[nodiscard]] virtual bool chose_http2() const { return false; }

 protected:
  virtual void do_read(asio::mutable_buffer buffer, IoOpPtr op) = 0;
  virtual void do_write(std::vector<asio::const_buffer> buffers, IoOpPtr op) = 0;

 private:
  std::string prefix_;
};

/// Small writes at once, and probes that find out about dead peers.
void tune_socket(asio::ip::tcp::socket& socket);
std::shared_ptr<Stream> make_plain_stream(asio::ip::tcp::socket socket);

/// TLS settings of a server or a client; shared by its connections.
class TlsContext;
struct TlsServerOptions {
  std::string certificate_pem, key_pem, client_ca_pem;
};
struct TlsClientOptions {
  std::string ca_pem, certificate_pem, key_pem;
  bool insecure = false;
};
Result<std::shared_ptr<TlsContext>> make_tls_server(const TlsServerOptions& options);
Result<std::shared_ptr<TlsContext>> make_tls_client(const TlsClientOptions& options);
std::shared_ptr<Stream> make_tls_server_stream(asio::ip::tcp::socket socket,
                                               std::shared_ptr<TlsContext> tls);
/// `name` is sent as SNI (unless it is an address) and compared with the certificate.
std::shared_ptr<Stream> make_tls_client_stream(asio::ip::tcp::socket socket,
                                               std::shared_ptr<TlsContext> tls,
                                               const std::string& name,
                                               bool offer_http2 = false);

/// One time limit that is moved often and fires rarely: the timer is re-armed only when it comes
/// due or must come earlier, so moving it costs nothing on the busy path.
class Deadline {
 public:
  Deadline(asio::io_context& context, std::function<void()> expired);
  ~Deadline() { *alive_ = false; }
  void set(Duration from_now);
  void clear() { at_ = kNever; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();
  void arm(Clock::time_point when);

  asio::steady_timer timer_;
  std::function<void()> expired_;
  Clock::time_point at_ = kNever;
  Clock::time_point armed_ = kNever;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// An I/O error as ours: Unavailable, or Timeout.
Error io_error(std::string_view what, const ErrorCode& error);

}  // namespace muster::net
