// One piece: the life of a client's connection, from address to reuse.
#include "net/http/client.h"

#include <fmt/core.h>

#include <boost/asio/connect.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <limits>

#include "base/strings.h"
#include "net/http/websocket.h"
#include "net/http2/http2.h"
#include "net/loop/other_network.h"
#include "net/loop/socket.h"
#include "net/loop/stream.h"

namespace muster::net {
namespace {

namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kAnswerBytesMax = 512ULL * 1024 * 1024;
constexpr std::size_t kHeaderBytesMax = 64 * 1024;
/// Below the idle limit of any server we talk to, so that a kept connection is seldom closed under
/// us.
constexpr auto kIdleMax = std::chrono::seconds(60);
/// HTTP/2 connections, each of which carries about a hundred requests at once.
constexpr std::size_t kMultiplexedMax = 4;
constexpr int kTriesMax = 3;

struct Url {
  bool tls = false;
  std::string host;  // without brackets
  std::string port;
  std::string path;  // prefix of every target, without a slash at its end
  [[nodiscard]] std::string authority() const {
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                               : fmt::format("[{}]:{}", host, port);
  }
};

Result<Url> parse_url(std::string_view text) {
  Url url;
  const auto bad = [&](std::string_view why) {
    return fail(Code::kInvalid,
                fmt::format("server address {}: {}, wanted https://host:port", quoted(text), why));
  };
  std::string_view rest;
  if (text.starts_with("https://")) {
    url.tls = true;
    rest = text.substr(8);
  } else if (text.starts_with("http://")) {
    rest = text.substr(7);
  } else {
    return bad("no http:// or https://");
  }
  const auto slash = rest.find('/');
  if (slash != std::string_view::npos) {
    url.path = rest.substr(slash);
    while (url.path.ends_with('/')) url.path.pop_back();
    rest = rest.substr(0, slash);
  }
  if (rest.find('@') != std::string_view::npos)
    return bad("a user in the address is not supported");
  const bool bracketed = rest.starts_with('[');
  const auto host_end = bracketed ? rest.find(']') : rest.find(':');
  if (bracketed && host_end == std::string_view::npos) return bad("\"[\" without \"]\"");
  url.host = bracketed ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  const auto after = host_end == std::string_view::npos
                         ? std::string_view()
                         : rest.substr(host_end + (bracketed ? 1 : 0));
  if (url.host.empty()) return bad("no host");
  if (!after.empty() && !after.starts_with(':')) return bad("text after the host");
  url.port = after.empty() ? (url.tls ? "443" : "80") : std::string(after.substr(1));
  const auto port = parse_int(url.port);
  if (!port || *port < 1 || *port > 65535) return bad("port is not a number from 1 to 65535");
  return url;
}

/// Those who wait for a connection, first come, first served: each release wakes one, however many
/// wait.
class Line {
 public:
  /// False when nobody woke us in time.
  Task<bool> wait(Loop& loop, Duration timeout) {
    const std::shared_ptr<Signal> turn = loop.make_signal();
    waiting_.push_back(turn);
    const bool woken = co_await turn->wait(timeout);
    if (woken) co_return true;
    // Not in the line any more: the turn came together with the end of the wait.
    co_return std::erase(waiting_, turn) == 0;
  }
  void wake_one() {
    if (waiting_.empty()) return;
    const auto turn = std::move(waiting_.front());
    waiting_.pop_front();
    turn->notify();
  }
  void wake_all() {
    while (!waiting_.empty()) wake_one();
  }

 private:
  std::deque<std::shared_ptr<Signal>> waiting_;
};

/// What all requests of one client share; outlives it while streams are open.
struct Shared {
  Shared(Loop& l, ClientOptions o, Url u) : loop(l), options(std::move(o)), url(std::move(u)) {}
  Loop& loop;
  ClientOptions options;
  Url url;
  std::shared_ptr<TlsContext> tls;
  struct Idle {
    std::shared_ptr<Stream> stream;
    Duration since;
  };
  std::deque<Idle> idle;   // most recently used last
  std::size_t in_use = 0;  // connections that serve a request now; at most connections_max
  Line line;

  // HTTP/2, while the server has not said that it does not speak it.
  bool may_multiplex = false;
  bool connecting = false;
  std::vector<std::shared_ptr<Http2Connection>> multiplexed;
};

/// A stream with a time limit that closes it.
struct Guarded {
  explicit Guarded(Loop& loop, std::shared_ptr<Stream> s)
      : stream(std::move(s)), deadline(loop.context(), [this] {
          expired = true;
          if (stream) stream->close();
        }) {}
  std::shared_ptr<Stream> stream;
  bool expired = false;
  Deadline deadline;
};

Result<void> prepare_tls(Shared& shared) {
  if (!shared.url.tls || shared.tls) return {};
  TlsClientOptions tls;
  tls.ca_pem = shared.options.ca_pem;
  tls.certificate_pem = shared.options.certificate_pem;
  tls.key_pem = shared.options.key_pem;
  tls.insecure = shared.options.insecure;
  auto made = make_tls_client(tls);
  if (!made) return tl::unexpected(std::move(made.error()));
  shared.tls = std::move(*made);
  return {};
}

/// Null when nobody listens there, or nobody who lets us in.
std::shared_ptr<Stream> connect_beside(Shared& shared) {
  if (shared.options.unix_path.empty()) return nullptr;
  const int descriptor = connect_unix(shared.options.unix_path);
  if (descriptor < 0) return nullptr;
  tcp::socket socket(shared.loop.context());
  ErrorCode error;
  socket.assign(tcp::v4(), descriptor, error);
  return error ? nullptr : make_plain_stream(std::move(socket));
}

Task<Result<std::shared_ptr<Stream>>> connect(Shared& shared, bool offer_http2 = false) {
  const auto& url = shared.url;
  const auto where = url.authority();
  if (auto beside = connect_beside(shared)) co_return beside;
  const auto secured = prepare_tls(shared);
  if (!secured) co_return tl::unexpected(secured.error());
  auto socket = std::make_shared<tcp::socket>(shared.loop.context());
  tcp::resolver resolver(shared.loop.context());
  std::shared_ptr<Stream> stream;
  bool expired = false;
  Deadline deadline(shared.loop.context(), [&] {
    expired = true;
    resolver.cancel();
    ErrorCode ignored;
    socket->close(ignored);
    if (stream) stream->close();
  });
  deadline.set(shared.options.connect_timeout);
  const auto failed = [&](std::string_view what, const ErrorCode& error) {
    if (expired)
      return fail(Code::kTimeout,
                  fmt::format("{} {}: no answer within {} s",
                              what,
                              where,
                              std::chrono::duration_cast<std::chrono::seconds>(
                                  shared.options.connect_timeout)
                                  .count()));
    return fail(io_error(fmt::format("{} {}", what, where), error));
  };
  tcp::resolver::results_type endpoints;
  ErrorCode not_numeric;
  const auto address = asio::ip::make_address(url.host, not_numeric);
  if (not_numeric) {
    const auto [resolve_error, resolved] =
        co_await resolver.async_resolve(url.host, url.port, kAwaitTuple);
    if (resolve_error) co_return failed("resolve", resolve_error);
    endpoints = resolved;
  } else {
    // The resolver would start a thread to find that there is nothing to look up.
    const auto port = static_cast<std::uint16_t>(parse_int(url.port).value_or(0));
    endpoints =
        tcp::resolver::results_type::create(tcp::endpoint(address, port), url.host, url.port);
  }
  ErrorCode connect_error;
  if (const bool elsewhere =
          !not_numeric && address.is_v4() && in_other_network(address.to_v4().to_uint());
      elsewhere) {
    const int made = open_socket(address.to_v4().to_uint(), SOCK_STREAM);
    if (made >= 0) socket->assign(tcp::v4(), made, connect_error);
    const auto [error] = co_await socket->async_connect(endpoints.begin()->endpoint(), kAwaitTuple);
    connect_error = error;
  } else {
    const auto [error, endpoint] = co_await asio::async_connect(*socket, endpoints, kAwaitTuple);
    connect_error = error;
  }
  if (connect_error) co_return failed("connect to", connect_error);
  tune_socket(*socket);
  if (!url.tls) co_return make_plain_stream(std::move(*socket));
  const auto& name = shared.options.server_name.empty() ? url.host : shared.options.server_name;
  stream = make_tls_client_stream(std::move(*socket), shared.tls, name, offer_http2);
  const auto handshake_error = co_await stream->handshake();
  if (handshake_error) co_return failed("TLS handshake with", handshake_error);
  co_return stream;
}

std::string head_of(const Shared& shared, const Request& request) {
  std::string head =
      fmt::format("{} {}{} HTTP/1.1\r\n", request.method, shared.url.path, request.target);
  if (!request.headers.has("Host"))
    head.append("Host: ").append(shared.url.authority()).append("\r\n");
  for (const auto& [name, value] : request.headers.fields())
    head.append(name).append(": ").append(value).append("\r\n");
  const bool wants_length = !request.body.empty() || request.method == "POST" ||
                            request.method == "PUT" || request.method == "PATCH";
  if (wants_length) head.append(fmt::format("Content-Length: {}\r\n", request.body.size()));
  head.append("\r\n");
  return head;
}

constexpr std::string_view kUnsafe("\r\n\0", 3);

bool is_safe_target(std::string_view target) {
  return target.find_first_of(kUnsafe) == std::string_view::npos &&
         target.find(' ') == std::string_view::npos && target.starts_with('/');
}

/// A request that could smuggle another one is refused before anything is sent.
Result<void> check_request(const Request& request) {
  const auto bad = [&](std::string_view text) {
    return text.find_first_of(kUnsafe) != std::string_view::npos;
  };
  if (bad(request.method) || !is_safe_target(request.target)) {
    return fail(Code::kBadRequest,
                fmt::format("request target {} is not valid", quoted(request.target)));
  }
  for (const auto& [name, value] : request.headers.fields()) {
    if (bad(name) || bad(value))
      return fail(Code::kBadRequest, fmt::format("header {} holds a line break", quoted(name)));
  }
  return {};
}

using ResponseParser = http::response_parser<http::string_body>;

/// Reads answers off one stream.
class Reader {
 public:
  Reader() : chunk_(std::make_unique_for_overwrite<char[]>(kReadBytes)) {}

  /// Reads once and feeds the parser. `got_any` tells whether the answer had begun.
  Task<ErrorCode> step(Stream& stream, ResponseParser& parser) {
    const auto got = co_await stream.read_some(asio::mutable_buffer(chunk_.get(), kReadBytes));
    ErrorCode error;
    if (got.error == asio::error::eof) {
      if (!got_any_) co_return asio::error::eof;
      parser.put_eof(error);
      if (error) co_return error;
      co_return parser.is_done() ? ErrorCode{} : ErrorCode(asio::error::eof);
    }
    if (got.error) co_return got.error;
    got_any_ = true;
    in_.append(chunk_.get(), got.bytes);
    // Each event of a watch is a record of its own; all that have come are taken together. An error
    // is met again by the next read.
    const auto more = stream.read_now(asio::mutable_buffer(chunk_.get(), kReadBytes));
    in_.append(chunk_.get(), more.bytes);
    error = feed(parser);
    co_return error;
  }
  ErrorCode feed(ResponseParser& parser) {
    ErrorCode error;
    if (in_.empty()) return error;
    const auto used = parser.put(asio::const_buffer(in_.data(), in_.size()), error);
    in_.erase(0, used);
    if (error == http::error::need_more) error = {};
    return error;
  }
  [[nodiscard]] bool got_any() const { return got_any_; }
  [[nodiscard]] bool left_over() const { return !in_.empty(); }

 private:
  std::unique_ptr<char[]> chunk_;
  std::string in_;
  bool got_any_ = false;
};

void prepare(ResponseParser& parser, const Request& request) {
  parser.header_limit(kHeaderBytesMax);
  parser.body_limit(kAnswerBytesMax);
  parser.eager(true);
  if (request.method == "HEAD") parser.skip(true);
}

Headers headers_of(ResponseParser& parser) {
  Headers headers;
  for (const auto& field : parser.get())
    headers.add(std::string(field.name_string()), std::string(field.value()));
  return headers;
}

class SocketResponseStream final : public ResponseStream {
 public:
  SocketResponseStream(std::shared_ptr<Shared> shared,
                       std::shared_ptr<Stream> stream,
                       Reader reader,
                       std::unique_ptr<ResponseParser> parser)
      : state_(std::make_shared<State>()),
        status_(static_cast<int>(parser->get().result_int())),
        headers_(headers_of(*parser)) {
    state_->shared = std::move(shared);
    state_->stream = std::move(stream);
    state_->reader = std::move(reader);
    state_->parser = std::move(parser);
  }
  ~SocketResponseStream() override { state_->stream->close(); }

  [[nodiscard]] int status() const override { return status_; }
  [[nodiscard]] const Headers& headers() const override { return headers_; }

  Task<Result<std::string>> read() override {
    const auto state = state_;
    auto& body = state->parser->get().body();
    while (true) {
      if (!body.empty()) co_return std::exchange(body, std::string());
      if (state->parser->is_done()) co_return std::string();
      const auto error = co_await state->reader.step(*state->stream, *state->parser);
      if (error)
        co_return fail(
            io_error(fmt::format("stream from {}", state->shared->url.authority()), error));
    }
  }
  void close() override { state_->stream->close(); }

 private:
  struct State {
    std::shared_ptr<Shared> shared;
    std::shared_ptr<Stream> stream;
    Reader reader;
    std::unique_ptr<ResponseParser> parser;
  };
  std::shared_ptr<State> state_;
  int status_;
  Headers headers_;
};

class SocketClient final : public Client, public Submitter {
 public:
  explicit SocketClient(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  ~SocketClient() override {
    for (auto& idle : shared_->idle) idle.stream->close();
    shared_->idle.clear();
    for (auto& connection : std::exchange(shared_->multiplexed, {})) connection->close();
  }

  Task<Result<Response>> request(Request request) override {
    auto answer = co_await request_of(shared_, std::move(request));
    co_return answer;
  }

  static Task<void> submit_slowly(std::shared_ptr<Shared> shared,
                                  std::shared_ptr<const CommonHead> head,
                                  std::string target,
                                  std::string body,
                                  Done done) {
    Request request;
    request.method = head->method;
    request.headers = head->headers;
    request.target = std::move(target);
    request.body = std::move(body);
    auto answer = co_await request_of(std::move(shared), std::move(request));
    done(std::move(answer));
  }

  static Task<Result<Response>> request_of(std::shared_ptr<Shared> shared, Request request) {
    const auto safe = check_request(request);
    if (!safe) co_return tl::unexpected(safe.error());
    // A request that a dying connection had not begun, or that changes nothing, is put to another
    // one.
    for (int tries = 1; shared->may_multiplex; ++tries) {
      auto connection = co_await connection_with_room(shared);
      if (!connection) co_return tl::unexpected(std::move(connection.error()));
      if (!*connection) break;
      bool untouched = false;
      auto response =
          co_await (*connection)->request(request, shared->options.request_timeout, untouched);
      if (response || tries == kTriesMax || response.error().code == Code::kTimeout ||
          !(untouched || is_repeatable(request)))
        co_return response;
    }
    while (shared->in_use >= shared->options.connections_max) {
      const bool freed = co_await shared->line.wait(shared->loop, shared->options.request_timeout);
      if (!freed) {
        co_return fail(Code::kTimeout,
                       fmt::format("{} {}: all {} connections to {} are busy",
                                   request.method,
                                   request.target,
                                   shared->options.connections_max,
                                   shared->url.authority()));
      }
    }
    const Use use(*shared);
    // A kept connection may have been closed by the server just now. When nothing of an answer has
    // come and the request changes nothing, a fresh one is tried; otherwise the caller must know.
    const bool repeatable = is_repeatable(request);
    auto kept = take_idle(*shared);
    if (kept) {
      bool began = false;
      auto response = co_await exchange(shared, std::move(kept), request, began);
      if (response || began || !repeatable || response.error().code == Code::kTimeout)
        co_return response;
    }
    auto fresh = co_await connect(*shared);
    if (!fresh) co_return tl::unexpected(std::move(fresh.error()));
    bool began = false;
    auto response = co_await exchange(shared, std::move(*fresh), request, began);
    co_return response;
  }

  void submit(std::shared_ptr<const CommonHead> head,
              std::string target,
              std::string body,
              Done done) override {
    for (const auto& connection : shared_->multiplexed) {
      if (!shared_->may_multiplex || !is_safe_target(target)) break;
      if (connection->room() == 0) continue;
      // Kept for the case that the server has not looked at it.
      const auto again = std::make_shared<std::pair<std::string, std::string>>(target, body);
      connection->submit(head,
                         target,
                         std::move(body),
                         shared_->options.request_timeout,
                         [shared = shared_, head, again, done = std::move(done)](
                             Result<Response> answer, bool untouched) mutable {
                           if (answer || !untouched) return done(std::move(answer));
                           shared->loop.spawn(submit_slowly(shared,
                                                            std::move(head),
                                                            std::move(again->first),
                                                            std::move(again->second),
                                                            std::move(done)));
                         });
      return;
    }
    shared_->loop.spawn(submit_slowly(
        shared_, std::move(head), std::move(target), std::move(body), std::move(done)));
  }

  Task<Result<Opened>> stream_beside(Request request) override {
    const auto shared = shared_;
    const auto safe = check_request(request);
    if (!safe) co_return tl::unexpected(safe.error());
    for (int tries = 1; shared->may_multiplex; ++tries) {
      auto connection = co_await connection_with_room(shared);
      if (!connection) co_return tl::unexpected(std::move(connection.error()));
      if (!*connection || !(*connection)->takes_stream()) break;
      bool untouched = false;
      auto opened =
          co_await (*connection)->stream(request, shared->options.request_timeout, untouched);
      if (opened) co_return Opened{std::move(*opened), true};
      if (tries == kTriesMax || opened.error().code == Code::kTimeout ||
          !(untouched || is_repeatable(request)))
        co_return tl::unexpected(std::move(opened.error()));
    }
    auto opened = co_await stream(std::move(request));
    if (!opened) co_return tl::unexpected(std::move(opened.error()));
    co_return Opened{std::move(*opened), false};
  }

  Task<Result<std::unique_ptr<ResponseStream>>> stream(Request request) override {
    const auto shared = shared_;
    const auto safe = check_request(request);
    if (!safe) co_return tl::unexpected(safe.error());
    auto connected = co_await connect(*shared);
    if (!connected) co_return tl::unexpected(std::move(connected.error()));
    Guarded guarded(shared->loop, std::move(*connected));
    guarded.deadline.set(shared->options.request_timeout);
    const auto head = head_of(*shared, request);
    std::vector<asio::const_buffer> buffers{asio::buffer(head), asio::buffer(request.body)};
    const auto write_error = co_await guarded.stream->write_all(std::move(buffers));
    if (write_error) co_return failed(*shared, request, guarded.expired, write_error);
    auto parser = std::make_unique<ResponseParser>();
    prepare(*parser, request);
    parser->body_limit(boost::none);
    Reader reader;
    while (!parser->is_header_done()) {
      const auto error = co_await reader.step(*guarded.stream, *parser);
      if (error) co_return failed(*shared, request, guarded.expired, error);
    }
    guarded.deadline.clear();
    co_return std::unique_ptr<ResponseStream>(std::make_unique<SocketResponseStream>(
        shared, std::move(guarded.stream), std::move(reader), std::move(parser)));
  }

  Task<Result<std::unique_ptr<WebSocket>>> websocket(Request request,
                                                     std::string subprotocol) override {
    const auto shared = shared_;
    const auto safe = check_request(request);
    if (!safe) co_return tl::unexpected(safe.error());
    auto connected = co_await connect(*shared);
    if (!connected) co_return tl::unexpected(std::move(connected.error()));
    request.target = shared->url.path + request.target;
    auto socket = co_await connect_websocket(
        std::move(*connected), shared->url.authority(), std::move(request), std::move(subprotocol));
    co_return socket;
  }

 private:
  /// Counts a connection in use, also when the coroutine is destroyed.
  struct Use {
    explicit Use(Shared& s) : shared(s) { ++shared.in_use; }
    ~Use() {
      --shared.in_use;
      shared.line.wake_one();
    }
    Use(const Use&) = delete;
    Shared& shared;
  };

  static bool is_repeatable(const Request& request) {
    return request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
  }

  /// One that takes another request, made where all are full; null when the server does not speak
  /// HTTP/2.
  static Task<Result<std::shared_ptr<Http2Connection>>> connection_with_room(
      std::shared_ptr<Shared> shared) {
    while (true) {
      std::erase_if(shared->multiplexed,
                    [](const auto& connection) { return !connection->usable(); });
      for (const auto& connection : shared->multiplexed) {
        if (connection->room() > 0) co_return connection;
      }
      if (shared->connecting || shared->multiplexed.size() >= kMultiplexedMax) {
        const bool woken =
            co_await shared->line.wait(shared->loop, shared->options.request_timeout);
        if (!woken)
          co_return fail(Code::kTimeout,
                         fmt::format("all connections to {} are busy", shared->url.authority()));
        if (!shared->may_multiplex) co_return std::shared_ptr<Http2Connection>();
        continue;
      }
      shared->connecting = true;
      auto stream = co_await connect(*shared, /*offer_http2=*/true);
      shared->connecting = false;
      shared->line.wake_all();
      if (!stream) co_return tl::unexpected(std::move(stream.error()));
      if (!(*stream)->chose_http2()) {
        shared->may_multiplex = false;
        shared->idle.push_back({std::move(*stream), shared->loop.monotonic()});
        co_return std::shared_ptr<Http2Connection>();
      }
      shared->multiplexed.push_back(start_http2(std::move(*stream),
                                                shared->url.authority(),
                                                shared->url.path,
                                                [weak = std::weak_ptr(shared)] {
                                                  if (const auto alive = weak.lock())
                                                    alive->line.wake_one();
                                                }));
    }
  }

  static std::shared_ptr<Stream> take_idle(Shared& shared) {
    const auto now = shared.loop.monotonic();
    while (!shared.idle.empty()) {
      auto idle = std::move(shared.idle.back());
      shared.idle.pop_back();
      if (now - idle.since < kIdleMax && idle.stream->is_quiet()) return std::move(idle.stream);
      idle.stream->close();
    }
    return nullptr;
  }

  static tl::unexpected<Error> failed(const Shared& shared,
                                      const Request& request,
                                      bool expired,
                                      const ErrorCode& error) {
    const auto what = fmt::format("{} {}{}", request.method, shared.options.url, request.target);
    if (expired) return fail(Code::kTimeout, fmt::format("{}: no answer in time", what));
    return fail(io_error(what, error));
  }

  static Task<Result<Response>> exchange(std::shared_ptr<Shared> shared,
                                         std::shared_ptr<Stream> stream,
                                         const Request& request,
                                         bool& began) {
    Guarded guarded(shared->loop, std::move(stream));
    guarded.deadline.set(shared->options.request_timeout);
    const auto head = head_of(*shared, request);
    std::vector<asio::const_buffer> buffers{asio::buffer(head), asio::buffer(request.body)};
    const auto write_error = co_await guarded.stream->write_all(std::move(buffers));
    // A server that refuses a large body answers before it has read all of it: look for the answer
    // first.
    ResponseParser parser;
    prepare(parser, request);
    Reader reader;
    while (!parser.is_done()) {
      const auto error = co_await reader.step(*guarded.stream, parser);
      began = reader.got_any();
      if (error) {
        guarded.stream->close();
        co_return failed(
            *shared, request, guarded.expired, write_error && !began ? write_error : error);
      }
    }
    Response response;
    response.status = static_cast<int>(parser.get().result_int());
    response.headers = headers_of(parser);
    response.body = std::move(parser.get().body());
    guarded.deadline.clear();
    const bool reusable = parser.get().keep_alive() && !write_error && !reader.left_over() &&
                          guarded.stream->is_open();
    if (reusable && shared->idle.size() < shared->options.connections_max) {
      shared->idle.push_back({std::move(guarded.stream), shared->loop.monotonic()});
    } else {
      guarded.stream->close();
    }
    co_return response;
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace

Result<std::unique_ptr<Client>> make_client(Loop& loop, ClientOptions options) {
  auto url = parse_url(options.url);
  if (!url) return tl::unexpected(std::move(url.error()));
  auto shared = std::make_shared<Shared>(loop, std::move(options), std::move(*url));
  if (shared->options.unix_path.empty()) {
    // Bad certificates are reported now; where TLS may not be needed it is not set up before it is.
    const auto secured = prepare_tls(*shared);
    if (!secured) return tl::unexpected(secured.error());
  }
  shared->may_multiplex = shared->url.tls && shared->options.http2;
  return std::unique_ptr<Client>(std::make_unique<SocketClient>(std::move(shared)));
}

}  // namespace muster::net
