#include "net/http/websocket.h"

#include <fmt/core.h>

#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include "base/strings.h"

namespace muster::net {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t kMessageBytesMax = 16 * 1024 * 1024;
constexpr auto kCloseWait = std::chrono::seconds(5);

/// What Beast calls an AsyncStream, over our virtual one.
class AnyStream {
 public:
  using executor_type = asio::io_context::executor_type;

  explicit AnyStream(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

  executor_type get_executor() { return stream_->context().get_executor(); }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(ErrorCode, std::size_t)>(
        [this](auto handler, asio::mutable_buffer buffer) {
          stream_->start_read(buffer, make_io_op(std::move(handler)));
        },
        token,
        first_of(buffers));
  }
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    constexpr std::size_t kGatherMax = 8;
    std::vector<asio::const_buffer> gathered;
    for (auto it = asio::buffer_sequence_begin(buffers);
         it != asio::buffer_sequence_end(buffers) && gathered.size() < kGatherMax;
         ++it) {
      const asio::const_buffer piece(*it);
      if (piece.size() > 0) gathered.push_back(piece);
    }
    return asio::async_initiate<Token, void(ErrorCode, std::size_t)>(
        [this](auto handler, std::vector<asio::const_buffer> pieces) {
          stream_->start_write(std::move(pieces), make_io_op(std::move(handler)));
        },
        token,
        std::move(gathered));
  }
  // The synchronous calls exist in Beast's concept only; nothing here uses them.
  template <typename Buffers>
  std::size_t read_some(const Buffers&, ErrorCode& error) {
    error = asio::error::operation_not_supported;
    return 0;
  }
  template <typename Buffers>
  std::size_t write_some(const Buffers&, ErrorCode& error) {
    error = asio::error::operation_not_supported;
    return 0;
  }

  void close() { stream_->close(); }
  [[nodiscard]] Stream& stream() { return *stream_; }

 private:
  template <typename Buffers>
  static asio::mutable_buffer first_of(const Buffers& buffers) {
    for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers);
         ++it) {
      const asio::mutable_buffer piece(*it);
      if (piece.size() > 0) return piece;
    }
    return {};
  }

  std::shared_ptr<Stream> stream_;
};

// Beast's customisation points, found by argument-dependent look-up.
template <typename Handler>
void async_teardown(beast::role_type, AnyStream& stream, Handler&& handler) {
  stream.close();
  asio::post(stream.get_executor(), [handler = std::forward<Handler>(handler)]() mutable {
    std::move(handler)(ErrorCode{});
  });
}
[[maybe_unused]] void beast_close_socket(AnyStream& stream) { stream.close(); }

using Socket = beast::websocket::stream<AnyStream, /*deflateSupported=*/false>;

/// The state outlives the WebSocket object while operations are under way.
struct Core {
  explicit Core(std::shared_ptr<Stream> stream)
      : socket(AnyStream(std::move(stream))), turn(socket.get_executor()) {
    turn.expires_at(asio::steady_timer::time_point::max());
  }
  Socket socket;
  /// Cancelled whenever a write ends, to wake those that wait for their turn.
  asio::steady_timer turn;
  bool writing = false;  // Beast allows one write at a time; others queue up on `turn`
  std::string subprotocol;
  std::shared_ptr<void> keep;
};

class BeastWebSocket final : public WebSocket {
 public:
  explicit BeastWebSocket(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~BeastWebSocket() override { core_->socket.next_layer().close(); }

  [[nodiscard]] std::string subprotocol() const override { return core_->subprotocol; }

  Task<Result<std::optional<Message>>> read() override {
    const auto core = core_;
    beast::flat_buffer buffer;
    const auto [error, bytes] = co_await core->socket.async_read(buffer, kAwaitTuple);
    if (error == beast::websocket::error::closed || error == asio::error::eof)
      co_return std::optional<Message>{};
    if (error) co_return fail(io_error("websocket read", error));
    Message message;
    message.binary = core->socket.got_binary();
    message.data.assign(static_cast<const char*>(buffer.data().data()), bytes);
    co_return std::optional<Message>(std::move(message));
  }

  Task<Result<void>> write(Message message) override {
    const auto core = core_;
    co_await take_turn(*core);
    core->socket.binary(message.binary);
    const auto [error, bytes] =
        co_await core->socket.async_write(asio::buffer(message.data), kAwaitTuple);
    core->writing = false;
    core->turn.cancel();
    if (error) co_return fail(io_error("websocket write", error));
    co_return Result<void>{};
  }

  Task<void> close(std::uint16_t code, std::string reason) override {
    const auto core = core_;
    co_await take_turn(*core);
    constexpr std::size_t kReasonMax = 123;
    beast::websocket::close_reason close_reason(code);
    close_reason.reason.assign(reason.data(), std::min(reason.size(), kReasonMax));
    asio::steady_timer limit(core->socket.get_executor());
    limit.expires_after(kCloseWait);
    limit.async_wait([core](const ErrorCode& error) {
      if (!error) core->socket.next_layer().close();
    });
    co_await core->socket.async_close(close_reason, kAwaitTuple);
    limit.cancel();
    core->writing = false;
    core->turn.cancel();
  }

 private:
  static Task<void> take_turn(Core& core) {
    while (core.writing) co_await core.turn.async_wait(kAwaitTuple);
    core.writing = true;
  }

  std::shared_ptr<Core> core_;
};

void set_limits(Socket& socket, beast::role_type role) {
  auto timeout = beast::websocket::stream_base::timeout::suggested(role);
  timeout.handshake_timeout = std::chrono::seconds(15);
  // A handler that is held back (a process that does not read its stdin) reads nothing for as long
  // as it takes, not even pongs, so silence here means nothing; the kernel's keep-alive finds dead
  // peers.
  timeout.idle_timeout = beast::websocket::stream_base::none();
  timeout.keep_alive_pings = false;
  socket.set_option(timeout);
  socket.read_message_max(kMessageBytesMax);
  socket.auto_fragment(false);
}

}  // namespace

bool wants_websocket(const Request& request) {
  for (const auto value : request.headers.all("Upgrade")) {
    if (to_lower(trim(value)) == "websocket") return true;
  }
  return false;
}

Task<Result<std::unique_ptr<WebSocket>>> accept_websocket(std::shared_ptr<Stream> stream,
                                                          const Request& request,
                                                          std::string subprotocol,
                                                          std::shared_ptr<void> keep) {
  http::request<http::empty_body> head;
  head.method_string(request.method);
  head.target(request.target);
  head.version(11);
  for (const auto& [name, value] : request.headers.fields()) head.insert(name, value);

  auto core = std::make_shared<Core>(std::move(stream));
  core->subprotocol = subprotocol;
  core->keep = std::move(keep);
  set_limits(core->socket, beast::role_type::server);
  core->socket.set_option(beast::websocket::stream_base::decorator(
      [subprotocol](beast::websocket::response_type& response) {
        response.erase(http::field::server);
        if (!subprotocol.empty()) response.set(http::field::sec_websocket_protocol, subprotocol);
      }));
  const auto [error] = co_await core->socket.async_accept(head, kAwaitTuple);
  if (error)
    co_return fail(Code::kBadRequest, fmt::format("websocket handshake: {}", error.message()));
  co_return std::unique_ptr<WebSocket>(std::make_unique<BeastWebSocket>(std::move(core)));
}

Task<Result<std::unique_ptr<WebSocket>>> connect_websocket(std::shared_ptr<Stream> stream,
                                                           std::string host,
                                                           Request request,
                                                           std::string subprotocol) {
  auto core = std::make_shared<Core>(std::move(stream));
  set_limits(core->socket, beast::role_type::client);
  core->socket.set_option(
      beast::websocket::stream_base::decorator([&](beast::websocket::request_type& head) {
        for (const auto& [name, value] : request.headers.fields()) head.set(name, value);
        if (!subprotocol.empty()) head.set(http::field::sec_websocket_protocol, subprotocol);
      }));
  beast::websocket::response_type response;
  const auto [error] =
      co_await core->socket.async_handshake(response, host, request.target, kAwaitTuple);
  if (error == beast::websocket::error::upgrade_declined) {
    const int status = static_cast<int>(response.result_int());
    co_return fail(code_of("", status),
                   fmt::format("websocket upgrade of \"{}\" was answered with {}: {}",
                               request.target,
                               status,
                               trim(response.body())));
  }
  if (error) co_return fail(io_error(fmt::format("websocket handshake with {}", host), error));
  core->subprotocol = std::string(response[http::field::sec_websocket_protocol]);
  co_return std::unique_ptr<WebSocket>(std::make_unique<BeastWebSocket>(std::move(core)));
}

}  // namespace muster::net
