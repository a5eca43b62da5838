/// The in-process transport: a request goes straight to the handler, no sockets, no TLS, no copies
/// of bodies.
#include <fmt/core.h>

#include <deque>
#include <exception>

#include "base/log.h"
#include "net/http/client.h"

namespace muster::net {
namespace {

constexpr std::size_t kQueueBytesMax = 1024 * 1024;

/// A bounded queue between two coroutines of the loop. Writers wait while it is full.
template <typename T>
class Pipe {
 public:
  explicit Pipe(Env& env) : readable_(env.make_signal()), writable_(env.make_signal()) {}

  Task<Result<void>> push(T item, std::size_t bytes) {
    while (!offer(item, bytes)) {
      if (closed_) co_return fail(Code::kUnavailable, "the other side has closed");
      co_await writable_->wait(Duration::zero());
    }
    co_return Result<void>{};
  }
  /// Without waiting; false when it is full or closed.
  bool offer(T item, std::size_t bytes) {
    if (closed_ || (bytes_ > 0 && bytes_ + bytes > kQueueBytesMax)) return false;
    bytes_ += bytes;
    items_.emplace_back(std::move(item), bytes);
    readable_->notify();
    return true;
  }
  /// nullopt once it is ended (after what was queued) or closed.
  Task<std::optional<T>> pop() {
    while (items_.empty() && !ended_ && !closed_) co_await readable_->wait(Duration::zero());
    if (items_.empty() || closed_) co_return std::nullopt;
    auto item = std::move(items_.front());
    items_.pop_front();
    bytes_ -= item.second;
    writable_->notify();
    co_return std::optional<T>(std::move(item.first));
  }
  /// No more will be written; what is queued can still be read.
  void end() {
    ended_ = true;
    readable_->notify();
  }
  /// Neither side goes on.
  void close() {
    closed_ = true;
    items_.clear();
    readable_->notify();
    writable_->notify();
  }
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  std::deque<std::pair<T, std::size_t>> items_;
  std::size_t bytes_ = 0;
  bool ended_ = false;
  bool closed_ = false;
  std::unique_ptr<Signal> readable_, writable_;
};

/// One direction each; the two ends of a WebSocket share it crosswise.
struct SocketPair {
  explicit SocketPair(Env& env) : to_client(env), to_server(env) {}
  Pipe<WebSocket::Message> to_client, to_server;
  std::string subprotocol;
};

class LocalSocket final : public WebSocket {
 public:
  LocalSocket(std::shared_ptr<SocketPair> pair, bool server)
      : pair_(std::move(pair)), server_(server) {}
  ~LocalSocket() override {
    out().end();
    in().close();
  }
  [[nodiscard]] std::string subprotocol() const override { return pair_->subprotocol; }
  Task<Result<std::optional<Message>>> read() override {
    const auto pair = pair_;
    auto message = co_await in().pop();
    co_return Result<std::optional<Message>>(std::move(message));
  }
  Task<Result<void>> write(Message message) override {
    const auto pair = pair_;
    const auto bytes = message.data.size() + sizeof(Message);
    const auto written = co_await out().push(std::move(message), bytes);
    co_return written;
  }
  Task<void> close(std::uint16_t, std::string) override {
    out().end();
    in().close();
    co_return;
  }

 private:
  Pipe<Message>& in() { return server_ ? pair_->to_server : pair_->to_client; }
  Pipe<Message>& out() { return server_ ? pair_->to_client : pair_->to_server; }
  std::shared_ptr<SocketPair> pair_;
  bool server_;
};

using Chunk = std::shared_ptr<const std::string>;

/// What a handler that runs on its own shares with the one who reads its answer.
struct Exchange {
  explicit Exchange(Env& env) : body(env), answered(env.make_signal()) {}
  Response head;  // without a body once streaming
  bool has_head = false;
  bool finished = false;  // the handler has returned
  Pipe<Chunk> body;
  std::shared_ptr<SocketPair> sockets;  // set by upgrade_websocket
  std::unique_ptr<Signal> answered;
  std::function<void()> on_close;
  bool closed = false;

  void close() {
    if (closed) return;
    closed = true;
    body.close();
    const auto callback = std::move(on_close);
    on_close = nullptr;
    if (callback) callback();
  }
};

tl::unexpected<Error> no_raw_upgrade() {
  return fail(Code::kBadRequest,
              "an in-process request cannot be upgraded to raw bytes, ask for a WebSocket");
}

/// Gathers the whole answer.
class BufferWriter final : public ResponseWriter {
 public:
  Task<Result<void>> send(Response response) override {
    response_ = std::move(response);
    answered_ = true;
    co_return Result<void>{};
  }
  Task<Result<void>> start(Response head) override {
    response_ = std::move(head);
    answered_ = true;
    co_return Result<void>{};
  }
  Task<Result<void>> write(std::shared_ptr<const std::string> chunk) override {
    response_.body += *chunk;
    co_return Result<void>{};
  }
  Task<Result<void>> finish() override { co_return Result<void>{}; }
  Now write_now(std::shared_ptr<const std::string> chunk) override {
    response_.body += *chunk;
    return Now::kSent;
  }
  Task<Result<void>> flush() override { co_return Result<void>{}; }
  [[nodiscard]] bool closed() const override { return false; }
  void on_close(std::function<void()>) override {}
  Task<Result<std::unique_ptr<WebSocket>>> upgrade_websocket(std::string) override {
    co_return fail(Code::kBadRequest, "Upgrade request required");
  }
  Task<Result<std::unique_ptr<ByteStream>>> upgrade_raw(Headers) override {
    co_return no_raw_upgrade();
  }

  [[nodiscard]] bool answered() const { return answered_; }
  Response take() { return std::move(response_); }

 private:
  Response response_;
  bool answered_ = false;
};

/// Hands the answer on piece by piece.
class StreamWriter final : public ResponseWriter {
 public:
  StreamWriter(Env& env, std::shared_ptr<Exchange> exchange, bool may_upgrade)
      : env_(env), exchange_(std::move(exchange)), may_upgrade_(may_upgrade) {}

  Task<Result<void>> send(Response response) override {
    const auto exchange = exchange_;
    auto body = std::make_shared<const std::string>(std::move(response.body));
    publish(std::move(response));
    if (!body->empty()) {
      const auto bytes = body->size();
      const auto pushed = co_await exchange->body.push(std::move(body), bytes);
      if (!pushed) co_return pushed;
    }
    exchange->body.end();
    co_return Result<void>{};
  }
  Task<Result<void>> start(Response head) override {
    publish(std::move(head));
    co_return Result<void>{};
  }
  Task<Result<void>> write(std::shared_ptr<const std::string> chunk) override {
    const auto exchange = exchange_;
    if (chunk->empty()) co_return Result<void>{};
    const auto bytes = chunk->size();
    const auto pushed = co_await exchange->body.push(std::move(chunk), bytes);
    co_return pushed;
  }
  Task<Result<void>> finish() override {
    exchange_->body.end();
    co_return Result<void>{};
  }
  Now write_now(std::shared_ptr<const std::string> chunk) override {
    const auto bytes = chunk->size();
    return bytes == 0 || exchange_->body.offer(std::move(chunk), bytes) ? Now::kSent : Now::kBusy;
  }
  Task<Result<void>> flush() override { co_return Result<void>{}; }
  [[nodiscard]] bool closed() const override { return exchange_->closed; }
  void on_close(std::function<void()> callback) override {
    exchange_->on_close = std::move(callback);
  }
  Task<Result<std::unique_ptr<WebSocket>>> upgrade_websocket(std::string subprotocol) override {
    if (!may_upgrade_) co_return fail(Code::kBadRequest, "Upgrade request required");
    exchange_->sockets = std::make_shared<SocketPair>(env_);
    exchange_->sockets->subprotocol = std::move(subprotocol);
    Response head;
    head.status = 101;
    publish(std::move(head));
    co_return std::unique_ptr<WebSocket>(
        std::make_unique<LocalSocket>(exchange_->sockets, /*server=*/true));
  }
  Task<Result<std::unique_ptr<ByteStream>>> upgrade_raw(Headers) override {
    co_return no_raw_upgrade();
  }

 private:
  void publish(Response head) {
    exchange_->head = std::move(head);
    exchange_->has_head = true;
    exchange_->answered->notify();
  }

  Env& env_;
  std::shared_ptr<Exchange> exchange_;
  bool may_upgrade_;
};

class LocalResponseStream final : public ResponseStream {
 public:
  explicit LocalResponseStream(std::shared_ptr<Exchange> exchange)
      : exchange_(std::move(exchange)) {}
  ~LocalResponseStream() override { exchange_->close(); }
  [[nodiscard]] int status() const override { return exchange_->head.status; }
  [[nodiscard]] const Headers& headers() const override { return exchange_->head.headers; }
  Task<Result<std::string>> read() override {
    const auto exchange = exchange_;
    const auto chunk = co_await exchange->body.pop();
    co_return chunk ? **chunk : std::string();
  }
  void close() override { exchange_->close(); }

 private:
  std::shared_ptr<Exchange> exchange_;
};

class LocalClient final : public Client {
 public:
  LocalClient(Env& env, Handler handler, std::string user)
      : env_(env),
        handler_(std::make_shared<Handler>(std::move(handler))),
        user_(std::move(user)) {}

  Task<Result<Response>> request(Request request) override {
    const auto handler = handler_;
    const std::string what = request.method + ' ' + request.target;
    request.peer.trusted_user = user_;
    BufferWriter writer;
    std::string bug;
    try {
      co_await (*handler)(std::move(request), writer);
    } catch (const std::exception& e) {
      bug = e.what();
    }
    if (!bug.empty()) log::error("net", "handler threw what=\"{}\"", bug);
    if (!writer.answered())
      co_return fail(Code::kInternal, fmt::format("{}: the handler gave no answer", what));
    co_return writer.take();
  }

  Task<Result<std::unique_ptr<ResponseStream>>> stream(Request request) override {
    const auto what = fmt::format("{} {}", request.method, request.target);
    const auto exchange = begin(std::move(request), /*may_upgrade=*/false);
    while (!exchange->has_head && !exchange->finished)
      co_await exchange->answered->wait(Duration::zero());
    if (!exchange->has_head)
      co_return fail(Code::kInternal, fmt::format("{}: the handler gave no answer", what));
    co_return std::unique_ptr<ResponseStream>(std::make_unique<LocalResponseStream>(exchange));
  }

  Task<Result<std::unique_ptr<WebSocket>>> websocket(Request request,
                                                     std::string subprotocol) override {
    const auto what = fmt::format("{} {}", request.method, request.target);
    if (!request.headers.has("Upgrade")) request.headers.set("Upgrade", "websocket");
    if (!request.headers.has("Connection")) request.headers.set("Connection", "Upgrade");
    if (!subprotocol.empty()) request.headers.set("Sec-WebSocket-Protocol", subprotocol);
    const auto exchange = begin(std::move(request), /*may_upgrade=*/true);
    while (!exchange->has_head && !exchange->finished)
      co_await exchange->answered->wait(Duration::zero());
    if (!exchange->has_head)
      co_return fail(Code::kInternal, fmt::format("{}: the handler gave no answer", what));
    if (!exchange->sockets) {
      const int status = exchange->head.status;
      auto body = co_await exchange->body.pop();
      exchange->close();
      co_return fail(code_of("", status),
                     fmt::format("websocket upgrade of \"{}\" was answered with {}: {}",
                                 what,
                                 status,
                                 body ? **body : std::string()));
    }
    co_return std::unique_ptr<WebSocket>(
        std::make_unique<LocalSocket>(exchange->sockets, /*server=*/false));
  }

 private:
  std::shared_ptr<Exchange> begin(Request request, bool may_upgrade) {
    request.peer.trusted_user = user_;
    auto exchange = std::make_shared<Exchange>(env_);
    env_.spawn(run(env_, handler_, std::move(request), exchange, may_upgrade));
    return exchange;
  }
  static Task<void> run(Env& env,
                        std::shared_ptr<Handler> handler,
                        Request request,
                        std::shared_ptr<Exchange> exchange,
                        bool may_upgrade) {
    StreamWriter writer(env, exchange, may_upgrade);
    std::string bug;
    try {
      co_await (*handler)(std::move(request), writer);
    } catch (const std::exception& e) {
      bug = e.what();
    }
    if (!bug.empty()) log::error("net", "handler threw what=\"{}\"", bug);
    exchange->finished = true;
    exchange->on_close = nullptr;
    exchange->body.end();
    exchange->answered->notify();
  }

  Env& env_;
  std::shared_ptr<Handler> handler_;
  std::string user_;
};

}  // namespace

std::unique_ptr<Client> make_local_client(Env& env, Handler handler, std::string user) {
  return std::make_unique<LocalClient>(env, std::move(handler), std::move(user));
}

}  // namespace muster::net
