// One piece: the life of a connection, request after request. Deadlines, limits and upgrades hang on
// where in it the connection is.
#include "net/http/server.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <cstring>
#include <ctime>
#include <map>

#include "base/log.h"
#include "base/strings.h"
#include "net/http/websocket.h"
#include "net/loop/socket.h"
#include "net/loop/stream.h"

namespace muster::net {
namespace {

namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kGzipFrom = 128 * 1024;
/// While a handler streams, what the client sends meanwhile is kept up to here (a pipelined
/// request).
constexpr std::size_t kReadAheadMax = 64 * 1024;
constexpr auto kLinger = std::chrono::seconds(2);
constexpr auto kStopWait = std::chrono::seconds(5);
constexpr auto kStopNotice = std::chrono::milliseconds(500);

class Connection;

/// What connections share; outlives the Server while any of them lives.
struct Shared {
  Shared(Loop& l, ServerOptions o, Handler h)
      : loop(l), options(std::move(o)), handler(std::move(h)), changed(loop.make_signal()) {}
  Loop& loop;
  ServerOptions options;
  Handler handler;
  std::shared_ptr<TlsContext> tls;
  bool stopping = false;
  std::map<std::uint64_t, Connection*> connections;  // each removes itself when it ends
  std::uint64_t next_id = 0;
  std::unique_ptr<Signal> changed;  // a connection ended

  /// RFC 9110's Date, made once a second.
  std::string_view date() {
    const auto now = std::time(nullptr);
    if (now != date_at_) {
      std::tm parts{};
      gmtime_r(&now, &parts);
      char text[40];
      std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
      date_ = text;
      date_at_ = now;
    }
    return date_;
  }

 private:
  std::time_t date_at_ = 0;
  std::string date_;
};

std::string status_body(int code, std::string_view reason, std::string_view message) {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":{},"reason":"{}","code":{}}})"
      "\n",
      quoted(message),
      reason,
      code);
}

Response status_response(int code, std::string_view reason, std::string_view message) {
  Response response;
  response.status = code;
  response.headers.set("Content-Type", "application/json");
  response.body = status_body(code, reason, message);
  return response;
}

/// A header value must not be able to start another header.
bool is_header_safe(std::string_view text) {
  // Eight at a time: almost no text has any control character.
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  const auto unsafe = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (((word - kOnes * 0x20) & ~word & kHigh) != 0) break;
  }
  return std::none_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), unsafe);
}

/// What stands before a chunk: its size.
std::string chunk_head(std::size_t bytes) {
  char text[20];
  char* end = std::to_chars(text, text + sizeof text - 2, bytes, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return std::string(text, end);
}

using RequestParser = http::request_parser<http::string_body>;

/// A header line that goes on in the next one (obsolete since RFC 7230): proxies disagree on what
/// it means. Looks as far as the head reaches.
bool has_folded_line(std::string_view text) {
  const std::string_view head = text.substr(0, text.find("\r\n\r\n"));
  return head.find("\n ") != std::string_view::npos || head.find("\n\t") != std::string_view::npos;
}

/// Whoever cannot tell where a body ends takes its rest for the next request. Chunked, once, is all
/// there is.
bool sane_framing(const http::request<http::string_body>& message) {
  const auto encodings = message.count(http::field::transfer_encoding);
  return encodings == 0 ||
         (encodings == 1 &&
          boost::beast::iequals(trim(message[http::field::transfer_encoding]), "chunked"));
}

Request to_request(RequestParser& parser, Peer peer) {
  auto& message = parser.get();
  Request request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message)
    request.headers.add(std::string(field.name_string()), std::string(field.value()));
  request.body = std::move(message.body());
  request.peer = std::move(peer);
  return request;
}

class Connection final : public std::enable_shared_from_this<Connection>, public ResponseWriter {
 public:
  Connection(std::shared_ptr<Shared> shared, std::shared_ptr<Stream> stream)
      : shared_(std::move(shared)),
        stream_(std::move(stream)),
        deadline_(shared_->loop.context(), [this] { on_deadline(); }),
        filled_(shared_->loop.make_signal()),
        id_(shared_->next_id++) {
    shared_->connections.emplace(id_, this);
  }
  ~Connection() override {
    stream_->close();
    shared_->connections.erase(id_);
    shared_->changed->notify();
  }

  /// Requests one after the other until the peer or an answer closes. The coroutine holds the
  /// connection.
  static Task<void> serve(std::shared_ptr<Connection> self) { co_await self->serve_all(); }

  /// The server stops: an idle connection ends now, a stream is told, an exchange may finish.
  void wind_down() {
    if (phase_ == Phase::kIdle || phase_ == Phase::kHead) {
      stream_->close();
    } else {
      mark_closed();
    }
  }
  void cut() {
    stream_->close();
    mark_closed();
  }

  // ResponseWriter
  Task<Result<void>> send(Response response) override;
  Task<Result<void>> start(Response head) override;
  Task<Result<void>> write(std::shared_ptr<const std::string> chunk) override;
  Task<Result<void>> finish() override;
  Now write_now(std::shared_ptr<const std::string> chunk) override;
  Task<Result<void>> flush() override;
  [[nodiscard]] bool writes_aside() const override;
  [[nodiscard]] bool closed() const override { return closed_; }
  void on_close(std::function<void()> callback) override { on_close_ = std::move(callback); }
  Task<Result<std::unique_ptr<WebSocket>>> upgrade_websocket(std::string subprotocol) override;
  Task<Result<std::unique_ptr<ByteStream>>> upgrade_raw(Headers headers) override;

 private:
  enum class Phase { kHandshake, kIdle, kHead, kBody, kHandler, kWrite, kLinger };
  enum class Answer { kNone, kSent, kStreaming, kUpgraded };

  void enter(Phase phase, Duration limit) {
    phase_ = phase;
    deadline_.set(limit);
  }
  void on_deadline();
  void mark_closed();

  void start_fill();
  Task<ErrorCode> fill();
  Task<bool> read_request(RequestParser& parser);
  Task<void> refuse(const ErrorCode& error);
  Task<void> linger();
  Task<void> run_handler(RequestParser& parser);
  Task<void> serve_all();
  std::string head_text(const Response& response, std::string_view framing);
  Task<Result<void>> put(std::vector<asio::const_buffer> buffers);

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Stream> stream_;
  Deadline deadline_;
  std::unique_ptr<Signal> filled_;
  std::uint64_t id_;

  Phase phase_ = Phase::kHandshake;
  bool timed_out_ = false;

  // Reading. One read at a time goes into chunk_ and is appended to in_ when it ends; while a
  // handler streams the same read tells that the peer went away.
  std::string in_;
  std::unique_ptr<char[]> chunk_ = std::make_unique<char[]>(kReadBytes);
  bool filling_ = false;
  ErrorCode fill_error_;

  /// Taken by write_now(), but not yet by the socket; always what is written next.
  std::string unsent_;

  // The exchange under way.
  Request upgrade_request_;  // head only, kept for a WebSocket handshake
  Answer answer_ = Answer::kNone;
  bool keep_alive_ = true;
  bool http10_ = false;
  bool head_only_ = false;
  bool gzip_ = false;
  bool closed_ = false;
  std::function<void()> on_close_;
  Peer peer_;
};

void Connection::on_deadline() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kHead || phase_ == Phase::kBody) {
    timed_out_ = true;
    stream_->cancel();  // the reader sees it and may still answer 408
    return;
  }
  cut();
}

void Connection::mark_closed() {
  if (closed_) return;
  closed_ = true;
  const auto callback = std::move(on_close_);
  on_close_ = nullptr;
  if (callback) callback();
}

void Connection::start_fill() {
  if (filling_ || fill_error_) return;
  filling_ = true;
  auto done = [self = shared_from_this()](const ErrorCode& error, std::size_t bytes) {
    self->filling_ = false;
    self->fill_error_ = error;
    self->in_.append(self->chunk_.get(), bytes);
    self->filled_->notify();
    if (self->answer_ != Answer::kStreaming) return;
    if (error) {
      self->mark_closed();
    } else if (self->in_.size() < kReadAheadMax) {
      self->start_fill();
    }
  };
  stream_->start_read(asio::mutable_buffer(chunk_.get(), kReadBytes), make_io_op(std::move(done)));
}

Task<ErrorCode> Connection::fill() {
  const auto before = in_.size();
  start_fill();
  while (filling_ && in_.size() == before) {
    co_await filled_->wait(Duration::zero());
  }
  co_return fill_error_;
}

/// False when there is no (further) request to serve.
Task<bool> Connection::read_request(RequestParser& parser) {
  const auto& options = shared_->options;
  parser.header_limit(static_cast<std::uint32_t>(options.header_bytes_max));
  parser.body_limit(options.body_bytes_max);
  parser.eager(true);
  timed_out_ = false;
  bool continued = false;
  if (in_.empty()) {
    enter(phase_ == Phase::kHandshake ? Phase::kHead : Phase::kIdle,
          phase_ == Phase::kHandshake ? options.head_timeout : options.idle_timeout);
  } else {
    enter(Phase::kHead, options.head_timeout);
  }
  while (true) {
    ErrorCode error;
    if (!in_.empty()) {
      if (phase_ == Phase::kIdle) enter(Phase::kHead, options.head_timeout);
      if (!parser.is_header_done() && has_folded_line(in_)) {
        co_await refuse(http::make_error_code(http::error::bad_field));
        co_return false;
      }
      const auto used = parser.put(asio::const_buffer(in_.data(), in_.size()), error);
      in_.erase(0, used);
      const bool whole = !error && parser.is_done();
      if (whole && sane_framing(parser.get())) co_return true;
      if (error == http::error::need_more) error = {};
      if (error) {
        co_await refuse(error);
        co_return false;
      }
      if (parser.is_header_done() && !sane_framing(parser.get())) {
        co_await refuse(http::make_error_code(http::error::bad_transfer_encoding));
        co_return false;
      }
      if (parser.is_header_done() && phase_ == Phase::kHead) {
        enter(Phase::kBody, options.body_timeout);
        if (!continued &&
            boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
          continued = true;
          error = co_await stream_->write_all("HTTP/1.1 100 Continue\r\n\r\n");
          if (error) co_return false;
        }
      }
    }
    error = co_await fill();
    if (error) {
      if (timed_out_ && (phase_ == Phase::kBody || (phase_ == Phase::kHead && !in_.empty())))
        co_await refuse(make_error_code(boost::system::errc::timed_out));
      co_return false;
    }
  }
}

/// Answers what is not a request, as far as the peer still listens, and gives up the connection.
Task<void> Connection::refuse(const ErrorCode& error) {
  Response response;
  if (error == http::error::body_limit) {
    response = status_response(
        413,
        "RequestEntityTooLarge",
        fmt::format("Request entity too large: limit is {}", shared_->options.body_bytes_max));
  } else if (error == http::error::header_limit) {
    response = status_response(
        431,
        "BadRequest",
        fmt::format("request header is larger than {} bytes", shared_->options.header_bytes_max));
  } else if (error == boost::system::errc::timed_out) {
    response = status_response(408, "Timeout", "the request did not arrive in time");
  } else {
    response = status_response(
        400, "BadRequest", fmt::format("not an HTTP/1.1 request: {}", error.message()));
  }
  keep_alive_ = false;
  head_only_ = false;
  gzip_ = false;
  answer_ = Answer::kNone;
  const auto sent = co_await send(std::move(response));
  if (sent) co_await linger();
}

/// Closing with unread bytes would reset the connection and may destroy our answer on its way: end
/// our side, then read what the peer still sends, for a moment.
Task<void> Connection::linger() {
  enter(Phase::kLinger, kLinger);
  co_await stream_->shutdown();
  while (stream_->is_open()) {
    in_.clear();
    const auto error = co_await fill();
    if (error) break;
  }
}

Task<void> Connection::run_handler(RequestParser& parser) {
  const auto& message = parser.get();
  keep_alive_ = message.keep_alive() && !shared_->stopping;
  http10_ = message.version() < 11;
  head_only_ = message.method() == http::verb::head;
  answer_ = Answer::kNone;
  closed_ = false;
  auto request = to_request(parser, peer_);
  gzip_ = accepts_gzip(request.headers);
  if (wants_websocket(request)) {
    upgrade_request_.method = request.method;
    upgrade_request_.target = request.target;
    upgrade_request_.headers = request.headers;
  }
  phase_ = Phase::kHandler;
  deadline_.clear();
  std::string bug;
  try {
    co_await shared_->handler(std::move(request), *this);
  } catch (const std::exception& e) {
    bug = e.what();
  }
  on_close_ = nullptr;
  if (!bug.empty()) log::error("net", "handler threw what=\"{}\"", bug);
  if (answer_ == Answer::kNone) {
    auto response = status_response(500, "InternalError", "the handler gave no answer");
    const auto sent = co_await send(std::move(response));
    if (!sent) keep_alive_ = false;
  } else if (answer_ == Answer::kStreaming) {
    keep_alive_ = false;  // ended without finish(): the peer must see that it is cut
  }
}

Task<void> Connection::serve_all() {
  enter(Phase::kHandshake, shared_->options.head_timeout);
  const auto error = co_await stream_->handshake();
  if (error) co_return;
  peer_ = stream_->peer();
  while (!shared_->stopping) {
    RequestParser parser;
    const bool have = co_await read_request(parser);
    if (!have) break;
    co_await run_handler(parser);
    if (answer_ == Answer::kUpgraded) {
      deadline_.clear();
      co_return;  // whoever holds the upgraded stream holds the connection too
    }
    if (!keep_alive_ || !stream_->is_open()) break;
  }
  if (answer_ != Answer::kStreaming && stream_->is_open() && !filling_) {
    enter(Phase::kLinger, kLinger);
    co_await stream_->shutdown();
  }
  stream_->close();
}

std::string Connection::head_text(const Response& response, std::string_view framing) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n",
                                 response.status,
                                 std::string_view(http::obsolete_reason(
                                     http::int_to_status(static_cast<unsigned>(response.status)))));
  for (const auto& [name, value] : response.headers.fields()) {
    if (!is_header_safe(name) || !is_header_safe(value)) continue;
    head.append(name).append(": ").append(value).append("\r\n");
  }
  head.append("Date: ").append(shared_->date()).append("\r\n");
  head.append(framing);
  if (!keep_alive_) {
    head.append("Connection: close\r\n");
  } else if (http10_) {
    head.append("Connection: keep-alive\r\n");
  }
  head.append("\r\n");
  return head;
}

Task<Result<void>> Connection::put(std::vector<asio::const_buffer> buffers) {
  const auto before = phase_;
  enter(Phase::kWrite, shared_->options.write_timeout);
  const std::string unsent = std::exchange(unsent_, std::string());
  if (!unsent.empty()) buffers.insert(buffers.begin(), asio::buffer(unsent));
  const auto error = co_await stream_->write_all(std::move(buffers));
  phase_ = before;
  deadline_.clear();
  if (error) {
    keep_alive_ = false;
    cut();
    co_return fail(io_error("write to client", error));
  }
  co_return Result<void>{};
}

Task<Result<void>> Connection::send(Response response) {
  MUSTER_CHECK(answer_ == Answer::kNone, "a response was sent twice");
  answer_ = Answer::kSent;
  if (gzip_ && response.body.size() >= kGzipFrom && !response.headers.has("Content-Encoding")) {
    std::string packed;
    co_await shared_->loop.run_on_worker([&packed, &response] { packed = gzip(response.body); });
    if (!packed.empty()) {
      response.body = std::move(packed);
      response.headers.set("Content-Encoding", "gzip");
      response.headers.add("Vary", "Accept-Encoding");
    }
  }
  const bool bodiless = response.status == 204 || response.status == 304 || response.status < 200;
  const auto framing =
      bodiless ? std::string() : fmt::format("Content-Length: {}\r\n", response.body.size());
  const auto head = head_text(response, framing);
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  if (!bodiless && !head_only_) buffers.push_back(asio::buffer(response.body));
  const auto sent = co_await put(std::move(buffers));
  co_return sent;
}

Task<Result<void>> Connection::start(Response head) {
  MUSTER_CHECK(answer_ == Answer::kNone, "a response was started twice");
  if (http10_) keep_alive_ = false;  // no chunks there: the end of the connection ends the body
  const auto text = head_text(head, http10_ ? "" : "Transfer-Encoding: chunked\r\n");
  std::vector<asio::const_buffer> buffers{asio::buffer(text)};
  const auto sent = co_await put(std::move(buffers));
  answer_ = Answer::kStreaming;
  start_fill();
  co_return sent;
}

Task<Result<void>> Connection::write(std::shared_ptr<const std::string> chunk) {
  MUSTER_CHECK(answer_ == Answer::kStreaming, "write() without start()");
  if (closed_) co_return fail(Code::kUnavailable, "write to client: it has gone");
  if (chunk->empty() || head_only_) co_return Result<void>{};
  const std::string size = chunk_head(chunk->size());
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(3);
  if (!http10_) buffers.push_back(asio::buffer(size));
  buffers.push_back(asio::buffer(*chunk));
  if (!http10_) buffers.push_back(asio::buffer("\r\n", 2));
  const auto written = co_await put(std::move(buffers));
  co_return written;
}

ResponseWriter::Now Connection::write_now(std::shared_ptr<const std::string> chunk) {
  MUSTER_CHECK(answer_ == Answer::kStreaming, "write_now() without start()");
  if (closed_ || phase_ != Phase::kHandler || !unsent_.empty()) return Now::kBusy;
  if (chunk->empty() || head_only_) return Now::kSent;
  const std::string size = chunk_head(chunk->size());
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(3);
  if (!http10_) buffers.push_back(asio::buffer(size));
  buffers.push_back(asio::buffer(*chunk));
  if (!http10_) buffers.emplace_back("\r\n", 2);
  const auto written = stream_->write_now(buffers);
  if (!written.error) return Now::kSent;
  // A broken connection is found out by flush().
  auto skip = written.bytes;
  for (const auto& buffer : buffers) {
    const auto skipped = std::min(skip, buffer.size());
    skip -= skipped;
    unsent_.append(static_cast<const char*>(buffer.data()) + skipped, buffer.size() - skipped);
  }
  return Now::kKept;
}

bool Connection::writes_aside() const {
  fetch(&phase_);
  fetch(&unsent_);
  fetch(&answer_);
  stream_->expect_write();
  return true;
}

Task<Result<void>> Connection::flush() {
  if (unsent_.empty()) co_return Result<void>{};
  std::vector<asio::const_buffer> none;
  const auto written = co_await put(std::move(none));
  co_return written;
}

Task<Result<void>> Connection::finish() {
  MUSTER_CHECK(answer_ == Answer::kStreaming, "finish() without start()");
  answer_ = Answer::kSent;
  if (!stream_->is_open()) co_return fail(Code::kUnavailable, "write to client: it has gone");
  if (http10_ || head_only_) co_return Result<void>{};
  std::vector<asio::const_buffer> buffers{asio::buffer("0\r\n\r\n", 5)};
  const auto written = co_await put(std::move(buffers));
  co_return written;
}

Task<Result<std::unique_ptr<WebSocket>>> Connection::upgrade_websocket(std::string subprotocol) {
  MUSTER_CHECK(answer_ == Answer::kNone, "an upgrade after an answer");
  if (!wants_websocket(upgrade_request_)) {
    auto response = status_response(400, "BadRequest", "Upgrade request required");
    const auto sent = co_await send(std::move(response));
    if (!sent) co_return tl::unexpected(sent.error());
    co_return fail(Code::kBadRequest, "Upgrade request required");
  }
  answer_ = Answer::kUpgraded;
  stream_->put_back(std::move(in_));
  in_.clear();
  auto socket = co_await accept_websocket(
      stream_, upgrade_request_, std::move(subprotocol), shared_from_this());
  co_return socket;
}

/// Raw bytes after a 101. Holds the connection, so that stopping the server cuts it.
class RawStream final : public ByteStream {
 public:
  RawStream(std::shared_ptr<Stream> stream, std::shared_ptr<void> keep)
      : stream_(std::move(stream)), keep_(std::move(keep)) {}
  ~RawStream() override { stream_->close(); }

  Task<Result<std::string>> read() override {
    const auto stream = stream_;
    std::string bytes(kReadBytes, '\0');
    const auto got = co_await stream->read_some(asio::buffer(bytes));
    if (got.error == asio::error::eof) co_return std::string();
    if (got.error) co_return fail(io_error("read from client", got.error));
    bytes.resize(got.bytes);
    co_return bytes;
  }
  Task<Result<void>> write(std::string bytes) override {
    const auto stream = stream_;
    const auto error = co_await stream->write_all(bytes);
    if (error) co_return fail(io_error("write to client", error));
    co_return Result<void>{};
  }
  void close() override { stream_->close(); }

 private:
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<void> keep_;
};

Task<Result<std::unique_ptr<ByteStream>>> Connection::upgrade_raw(Headers headers) {
  MUSTER_CHECK(answer_ == Answer::kNone, "an upgrade after an answer");
  answer_ = Answer::kUpgraded;
  std::string head = "HTTP/1.1 101 Switching Protocols\r\n";
  if (!headers.has("Connection")) headers.set("Connection", "Upgrade");
  for (const auto& [name, value] : headers.fields()) {
    if (is_header_safe(name) && is_header_safe(value))
      head.append(name).append(": ").append(value).append("\r\n");
  }
  head.append("\r\n");
  std::vector<asio::const_buffer> buffers{asio::buffer(head)};
  const auto sent = co_await put(std::move(buffers));
  if (!sent) co_return tl::unexpected(sent.error());
  stream_->put_back(std::move(in_));
  in_.clear();
  co_return std::unique_ptr<ByteStream>(std::make_unique<RawStream>(stream_, shared_from_this()));
}

Result<std::shared_ptr<TlsContext>> tls_of(const ServerOptions& options) {
  TlsServerOptions tls;
  tls.certificate_pem = options.certificate_pem;
  tls.key_pem = options.key_pem;
  tls.client_ca_pem = options.client_ca_pem;
  return make_tls_server(tls);
}

class SocketServer final : public Server {
 public:
  SocketServer(std::shared_ptr<Shared> shared, tcp::acceptor acceptor)
      : shared_(std::move(shared)),
        acceptor_(std::make_shared<tcp::acceptor>(std::move(acceptor))) {
    if (shared_->options.unix_path.empty()) port_ = acceptor_->local_endpoint().port();
    shared_->loop.spawn(accept_all(shared_, acceptor_));
  }
  ~SocketServer() override {
    shared_->stopping = true;
    close_acceptor();
    cut_all();
  }

  [[nodiscard]] std::uint16_t port() const override { return port_; }

  Result<void> set_certificate(std::string certificate_pem, std::string key_pem) {
    MUSTER_CHECK(shared_->tls, "a certificate for a server without TLS");
    ServerOptions changed = shared_->options;
    changed.certificate_pem = std::move(certificate_pem);
    changed.key_pem = std::move(key_pem);
    auto made = tls_of(changed);
    if (!made) return tl::unexpected(std::move(made.error()));
    shared_->tls = std::move(*made);
    return {};
  }

  Task<void> stop() override {
    const auto shared = shared_;
    shared->stopping = true;
    close_acceptor();
    // Copied: a callback may end connections while we walk.
    for (const auto& connection : alive()) connection->wind_down();
    const auto begun = shared->loop.monotonic();
    bool cut = false;
    while (!shared->connections.empty()) {
      const auto passed = shared->loop.monotonic() - begun;
      if (passed > kStopWait) break;
      if (!cut && passed > kStopNotice) {
        cut = true;
        cut_all();
      }
      co_await shared->changed->wait(kStopNotice);
    }
  }

 private:
  static Task<void> accept_all(std::shared_ptr<Shared> shared,
                               std::shared_ptr<tcp::acceptor> acceptor) {
    while (!shared->stopping) {
      tcp::socket socket(shared->loop.context());
      const auto [error] = co_await acceptor->async_accept(socket, kAwaitTuple);
      if (shared->stopping) co_return;
      if (error) {
        // Out of descriptors, most likely: waiting lets others end.
        log::warn("net", "accept failed error=\"{}\"", error.message());
        co_await shared->loop.sleep(std::chrono::milliseconds(100));
        continue;
      }
      if (shared->connections.size() >= shared->options.connections_max) {
        log::warn("net", "connection refused, {} are open", shared->connections.size());
        continue;
      }
      tune_socket(socket);
      auto stream = shared->tls ? make_tls_server_stream(std::move(socket), shared->tls)
                                : make_plain_stream(std::move(socket));
      const auto connection = std::make_shared<Connection>(shared, std::move(stream));
      shared->loop.spawn(Connection::serve(connection));
    }
  }

  [[nodiscard]] std::vector<std::shared_ptr<Connection>> alive() const {
    std::vector<std::shared_ptr<Connection>> alive;
    for (const auto& [id, connection] : shared_->connections) {
      if (auto held = connection->weak_from_this().lock()) alive.push_back(std::move(held));
    }
    return alive;
  }
  void cut_all() {
    for (const auto& connection : alive()) connection->cut();
  }
  void close_acceptor() {
    ErrorCode ignored;
    if (acceptor_->is_open() && !shared_->options.unix_path.empty())
      ::unlink(shared_->options.unix_path.c_str());
    acceptor_->close(ignored);
  }

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<tcp::acceptor> acceptor_;
  std::uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<Server>> listen(Loop& loop, ServerOptions options, Handler handler) {
  const auto place = fmt::format("{}:{}", options.address, options.port);
  ErrorCode error;
  if (!options.unix_path.empty()) {
    const int listening = listen_unix(options.unix_path);
    if (listening < 0)
      return fail(Code::kUnavailable,
                  fmt::format("cannot listen on {}: {}", options.unix_path, std::strerror(errno)));
    tcp::acceptor acceptor(loop.context());
    acceptor.assign(tcp::v4(), listening, error);
    auto shared = std::make_shared<Shared>(loop, std::move(options), std::move(handler));
    return std::unique_ptr<Server>(
        std::make_unique<SocketServer>(std::move(shared), std::move(acceptor)));
  }
  const auto address = asio::ip::make_address(options.address, error);
  if (error)
    return fail(Code::kInvalid,
                fmt::format("listen address \"{}\" is not an IP address", options.address));
  auto shared = std::make_shared<Shared>(loop, std::move(options), std::move(handler));
  if (!shared->options.certificate_pem.empty()) {
    auto made = tls_of(shared->options);
    if (!made) return tl::unexpected(std::move(made.error()));
    shared->tls = std::move(*made);
  }
  tcp::acceptor acceptor(loop.context());
  const tcp::endpoint endpoint(address, shared->options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return fail(Code::kUnavailable, fmt::format("cannot listen on {}: {}", place, error.message()));
  return std::unique_ptr<Server>(
      std::make_unique<SocketServer>(std::move(shared), std::move(acceptor)));
}

Result<void> set_certificate(Server& server, std::string certificate_pem, std::string key_pem) {
  return dynamic_cast<SocketServer&>(server).set_certificate(std::move(certificate_pem),
                                                             std::move(key_pem));
}

}  // namespace muster::net
