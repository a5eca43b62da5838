// One piece: both ends of the crossing between the front's thread and the loop, so that who owns a
// request when can be seen in one place.
#include "net/http/front.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "net/loop/short_slices.h"

namespace muster::net {
namespace {

/// Fewer are sent sooner by one thread than others wake up.
constexpr std::size_t kSpreadFrom = 32;
/// Sent by one thread in one go, after the memory of all of them was asked for.
constexpr std::size_t kGroup = 8;
constexpr auto kStopWait = std::chrono::seconds(5);

using Chunk = std::shared_ptr<const std::string>;

/// One request and its answer, known to both threads. Beside each member is whose it is; what is
/// handed over goes with the message that says so.
struct Exchange {
  Request request;    // the front's, then the loop's
  Response response;  // the loop's, then the front's: the answer, or the head of a stream

  // Both threads'.
  /// Bytes of chunks that the handler has written and the kernel has not got.
  std::atomic<std::size_t> unsent = 0;
  std::atomic<bool> short_of_room = false;  // the handler waits until there are fewer

  enum class Answer { kNone, kSend, kStart, kUpgrade };
  struct {
    ResponseWriter* writer = nullptr;
    std::unique_ptr<Signal> wake;
    Answer answer = Answer::kNone;
    std::function<Task<void>(ResponseWriter&)> upgrade;
    std::deque<Chunk> chunks;
    std::size_t kept_bytes = 0;  // taken by the writer, which waits for the client
    bool waiting = false;        // the stream's coroutine waits: the fan-out may write
    bool finished = false;       // no more chunks will come
    /// The handler has returned without an answer, or in the middle of a stream.
    bool abandoned = false;
  } front;

  struct {
    bool closed = false;
    std::function<void()> on_close;
    std::unique_ptr<Signal> changed;  // closed, or room again
  } loop;
};
using ExchangePtr = std::shared_ptr<Exchange>;

struct Message {
  enum class Kind {
    kCall,
    kSend,
    kStart,
    kChunk,
    kFinish,
    kAbandon,  // to the front
    kBegin,
    kClosed,
    kRoom,  // to the loop
  };
  Kind kind = Kind::kCall;
  ExchangePtr exchange;
  Chunk chunk;
  std::function<void()> call;
};

/// Messages to one thread's loop, in order. Any thread may put.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  using Open = std::function<void(std::vector<Message>)>;
  Mailbox(Loop& loop, Open open) : loop_(loop), open_(std::move(open)) {}

  /// False when nobody opens it any more.
  bool put(Message message) {
    bool first = false;
    {
      const std::lock_guard hold(mutex_);
      if (closed_) return false;
      first = messages_.empty();
      messages_.push_back(std::move(message));
    }
    if (first) loop_.post([self = shared_from_this()] { self->deliver(); });
    return true;
  }
  bool put(Message::Kind kind, ExchangePtr exchange, Chunk chunk = nullptr) {
    Message message;
    message.kind = kind;
    message.exchange = std::move(exchange);
    message.chunk = std::move(chunk);
    return put(std::move(message));
  }
  bool put(std::function<void()> call) {
    Message message;
    message.call = std::move(call);
    return put(std::move(message));
  }
  void close() {
    std::vector<Message> dropped;  // after the lock: what they hold may put messages
    const std::lock_guard hold(mutex_);
    closed_ = true;
    dropped.swap(messages_);
  }

 private:
  void deliver() {
    std::vector<Message> messages;
    {
      const std::lock_guard hold(mutex_);
      messages.swap(messages_);
    }
    if (!messages.empty()) open_(std::move(messages));
  }

  Loop& loop_;
  Open open_;
  std::mutex mutex_;
  std::vector<Message> messages_;
  bool closed_ = false;
};

/// The thread and what it owns. What runs at the front refers to it, what runs on the loop has a
/// share in it.
class Front : public std::enable_shared_from_this<Front> {
 public:
  Front(Loop& loop, Handler handler)
      : loop_(loop), handler_(std::move(handler)), served_(loop.make_signal()) {}
  ~Front() {
    end();
    if (to_loop_) to_loop_->close();
  }
  Front(const Front&) = delete;

  Result<void> start(ServerOptions options) {
    to_front_ = std::make_shared<Mailbox>(
        own_, [this](std::vector<Message> messages) { open_at_front(std::move(messages)); });
    to_loop_ =
        std::make_shared<Mailbox>(loop_, [weak = weak_from_this()](std::vector<Message> messages) {
          if (const auto self = weak.lock()) self->open_on_loop(std::move(messages));
        });
    auto listening =
        listen(own_, std::move(options), [this](Request request, ResponseWriter& writer) {
          return forward(std::move(request), writer);
        });
    if (!listening) return tl::unexpected(std::move(listening.error()));
    server_ = std::move(*listening);
    thread_ = std::thread([this] {
      run_soon();
      own_.run();
    });
    return {};
  }

  /// Ends the thread. What was the front's is the caller's from then on.
  void end() {
    if (!thread_.joinable()) return;
    own_.stop();
    thread_.join();
    to_front_->close();
  }

  /// On the loop: does `work` at the front and waits for what comes of it; nothing, when the front
  /// has ended.
  template <typename T>
  Task<std::optional<T>> ask(std::function<Task<T>()> work) {
    const auto self = shared_from_this();
    const auto outcome = std::make_shared<Outcome<T>>();
    outcome->ready = loop_.make_signal();
    const bool put = to_front_->put(
        [this, outcome, work = std::move(work)] { own_.spawn(answer(outcome, work)); });
    while (put && !outcome->value) co_await outcome->ready->wait(Duration::zero());
    co_return std::move(outcome->value);
  }

  /// The loop's alone: whoever waits looks at it whenever it is woken.
  template <typename T>
  struct Outcome {
    std::optional<T> value;
    std::unique_ptr<Signal> ready;
  };
  /// At the front.
  template <typename T>
  void settle(std::shared_ptr<Outcome<T>> outcome, T value) {
    const auto carried = std::make_shared<T>(std::move(value));
    to_loop_->put([outcome = std::move(outcome), carried] {
      outcome->value.emplace(std::move(*carried));
      outcome->ready->notify();
    });
  }

  /// On the loop: waits for handlers whose clients have gone, for a while.
  Task<void> wait_for_handlers() {
    const auto self = shared_from_this();
    const Duration begun = loop_.monotonic();
    while (serving_ > 0 && loop_.monotonic() - begun < kStopWait) co_await served_->wait(kStopWait);
  }

  Loop& loop() { return loop_; }
  Server& server() { return *server_; }
  Mailbox& to_front() { return *to_front_; }

 private:
  template <typename T>
  Task<void> answer(std::shared_ptr<Outcome<T>> outcome, std::function<Task<T>()> work) {
    T value = co_await work();
    settle(std::move(outcome), std::move(value));
  }

  // At the front.
  void open_at_front(std::vector<Message> messages);
  Task<void> forward(Request request, ResponseWriter& writer);
  Task<void> stream(ExchangePtr exchange, ResponseWriter& writer);
  Task<bool> send_chunks(ExchangePtr exchange, ResponseWriter& writer);
  void send_now(const std::vector<ExchangePtr>& streams);
  void count_sent(const ExchangePtr& exchange, std::size_t bytes);

  // On the loop.
  void open_on_loop(std::vector<Message> messages);
  static Task<void> serve(std::shared_ptr<Front> self, ExchangePtr exchange);

  Loop& loop_;
  Handler handler_;
  std::size_t serving_ = 0;         // handlers that have not returned; the loop's
  std::unique_ptr<Signal> served_;  // one has
  std::shared_ptr<Mailbox> to_front_, to_loop_;
  Loop own_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// ---- At the front

void Front::open_at_front(std::vector<Message> messages) {
  std::vector<ExchangePtr> streams;
  for (Message& message : messages) {
    if (message.kind == Message::Kind::kCall) {
      message.call();
      continue;
    }
    auto& mine = message.exchange->front;
    switch (message.kind) {
      case Message::Kind::kSend:
        mine.answer = Exchange::Answer::kSend;
        break;
      case Message::Kind::kStart:
        mine.answer = Exchange::Answer::kStart;
        break;
      case Message::Kind::kAbandon:
        mine.abandoned = true;
        break;
      case Message::Kind::kFinish:
        mine.finished = true;
        break;
      default:
        if (mine.waiting && mine.chunks.empty()) streams.push_back(message.exchange);
        mine.chunks.push_back(std::move(message.chunk));
        continue;
    }
    mine.wake->notify();
  }
  send_now(streams);
}

Chunk joined(std::deque<Chunk>& chunks) {
  const auto parts = std::exchange(chunks, {});
  if (parts.size() == 1) return parts.front();
  std::string all;
  for (const Chunk& part : parts) all += *part;
  return std::make_shared<const std::string>(std::move(all));
}

/// Streams whose clients read, which are nearly all of them, need no coroutine for a chunk.
void Front::send_now(const std::vector<ExchangePtr>& streams) {
  const auto send_one = [this](const ExchangePtr& exchange) {
    auto& mine = exchange->front;
    Chunk chunk = joined(mine.chunks);
    const std::size_t bytes = chunk->size();
    const auto result = mine.writer->write_now(chunk);
    if (result == ResponseWriter::Now::kSent) count_sent(exchange, bytes);
    if (result == ResponseWriter::Now::kKept) mine.kept_bytes = bytes;
    if (result == ResponseWriter::Now::kBusy) mine.chunks.push_back(std::move(chunk));
  };
  const auto send = [&](std::size_t group) {
    const std::size_t upto = std::min(streams.size(), (group + 1) * kGroup);
    for (std::size_t i = group * kGroup; i < upto; ++i)
      (void)streams[i]->front.writer->writes_aside();  // asks for their memory
    for (std::size_t i = group * kGroup; i < upto; ++i) send_one(streams[i]);
  };
  const std::size_t groups = (streams.size() + kGroup - 1) / kGroup;
  if (streams.size() < kSpreadFrom) {
    for (std::size_t i = 0; i < groups; ++i) send(i);
  } else {
    own_.spread(groups, send);
  }
  for (const ExchangePtr& exchange : streams) {
    if (exchange->front.kept_bytes > 0 || !exchange->front.chunks.empty())
      exchange->front.wake->notify();
  }
}

void Front::count_sent(const ExchangePtr& exchange, std::size_t bytes) {
  exchange->unsent -= bytes;
  if (exchange->short_of_room.exchange(false)) to_loop_->put(Message::Kind::kRoom, exchange);
}

Task<void> Front::forward(Request request, ResponseWriter& writer) {
  const auto exchange = std::make_shared<Exchange>();
  exchange->request = std::move(request);
  auto& mine = exchange->front;
  mine.writer = &writer;
  mine.wake = own_.make_signal();
  to_loop_->put(Message::Kind::kBegin, exchange);
  while (mine.answer == Exchange::Answer::kNone && !mine.abandoned)
    co_await mine.wake->wait(Duration::zero());
  // Of a handler that gave no answer the connection says so.
  if (mine.answer == Exchange::Answer::kSend)
    (void)co_await writer.send(std::move(exchange->response));
  if (mine.answer == Exchange::Answer::kStart) co_await stream(exchange, writer);
  if (mine.answer == Exchange::Answer::kUpgrade) co_await mine.upgrade(writer);
  mine.writer = nullptr;
}

Task<void> Front::stream(ExchangePtr exchange, ResponseWriter& writer) {
  auto& mine = exchange->front;
  writer.on_close([exchange] { exchange->front.wake->notify(); });
  const auto started = co_await writer.start(std::move(exchange->response));
  bool good = started.has_value();
  while (good) {
    good = co_await send_chunks(exchange, writer);
    if (!good || mine.finished || mine.abandoned) break;
    mine.waiting = true;
    co_await mine.wake->wait(Duration::zero());
    mine.waiting = false;
  }
  if (good && mine.finished) (void)co_await writer.finish();
  if (!good) to_loop_->put(Message::Kind::kClosed, exchange);
}

/// False when the client has gone.
Task<bool> Front::send_chunks(ExchangePtr exchange, ResponseWriter& writer) {
  auto& mine = exchange->front;
  const auto flushed = co_await writer.flush();
  if (!flushed) co_return false;
  count_sent(exchange, std::exchange(mine.kept_bytes, 0));
  while (!mine.chunks.empty() && !writer.closed()) {
    const Chunk chunk = joined(mine.chunks);
    const auto written = co_await writer.write(chunk);
    if (!written) co_return false;
    count_sent(exchange, chunk->size());
  }
  co_return !writer.closed();
}

// ---- On the loop

/// What an upgrade made. It lives and dies at the front.
template <typename T>
struct Held {
  std::unique_ptr<T> it;
};

tl::unexpected<Error> gone() { return fail(Code::kUnavailable, "the client has gone"); }

template <typename T>
Result<T> or_gone(std::optional<Result<T>> outcome) {
  if (!outcome) return gone();
  return std::move(*outcome);
}

/// The loop's end of what an upgrade made: each read and write is done at the front and its outcome
/// brought back.
template <typename T>
class Upgraded {
 public:
  Upgraded(std::shared_ptr<Front> front, std::shared_ptr<Held<T>> held)
      : front_(std::move(front)), held_(std::move(held)) {}
  ~Upgraded() {
    front_->to_front().put([held = held_] { held->it.reset(); });
  }
  Upgraded(const Upgraded&) = delete;
  Upgraded& operator=(const Upgraded&) = delete;

  template <typename Read>
  Task<Result<Read>> read() {
    using Got = Result<Read>;
    const std::function<Task<Got>()> work = [held = held_]() -> Task<Got> {
      if (!held->it) co_return gone();
      auto got = co_await held->it->read();
      co_return got;
    };
    auto outcome = co_await front_->ask<Got>(work);
    co_return or_gone(std::move(outcome));
  }
  template <typename Written>
  Task<Result<void>> write(Written what) {
    const auto shared = std::make_shared<Written>(std::move(what));
    const std::function<Task<Result<void>>()> work = [held = held_,
                                                      shared]() -> Task<Result<void>> {
      if (!held->it) co_return gone();
      const auto written = co_await held->it->write(std::move(*shared));
      co_return written;
    };
    auto outcome = co_await front_->ask<Result<void>>(work);
    co_return or_gone(std::move(outcome));
  }
  Front& front() { return *front_; }
  const std::shared_ptr<Held<T>>& held() { return held_; }

 private:
  std::shared_ptr<Front> front_;
  std::shared_ptr<Held<T>> held_;
};

class FrontWebSocket final : public WebSocket {
 public:
  FrontWebSocket(std::shared_ptr<Front> front,
                 std::shared_ptr<Held<WebSocket>> held,
                 std::string subprotocol)
      : upgraded_(std::move(front), std::move(held)), subprotocol_(std::move(subprotocol)) {}
  [[nodiscard]] std::string subprotocol() const override { return subprotocol_; }
  Task<Result<std::optional<Message>>> read() override {
    return upgraded_.read<std::optional<Message>>();
  }
  Task<Result<void>> write(Message message) override { return upgraded_.write(std::move(message)); }
  Task<void> close(std::uint16_t code, std::string reason) override {
    const std::function<Task<bool>()> work =
        [held = upgraded_.held(), code, reason]() -> Task<bool> {
      if (held->it) co_await held->it->close(code, reason);
      co_return true;
    };
    (void)co_await upgraded_.front().ask<bool>(work);
  }

 private:
  Upgraded<WebSocket> upgraded_;
  std::string subprotocol_;
};

class FrontByteStream final : public ByteStream {
 public:
  FrontByteStream(std::shared_ptr<Front> front, std::shared_ptr<Held<ByteStream>> held)
      : upgraded_(std::move(front), std::move(held)) {}
  Task<Result<std::string>> read() override { return upgraded_.read<std::string>(); }
  Task<Result<void>> write(std::string bytes) override { return upgraded_.write(std::move(bytes)); }
  void close() override {
    upgraded_.front().to_front().put([held = upgraded_.held()] {
      if (held->it) held->it->close();
    });
  }

 private:
  Upgraded<ByteStream> upgraded_;
};

/// The handler's end of an exchange.
class LoopWriter final : public ResponseWriter {
 public:
  LoopWriter(std::shared_ptr<Front> front, ExchangePtr exchange)
      : front_(std::move(front)), exchange_(std::move(exchange)) {}
  ~LoopWriter() override {
    exchange_->loop.on_close = nullptr;
    if (state_ == State::kNew || state_ == State::kStreaming) say(Message::Kind::kAbandon);
  }

  Task<Result<void>> send(Response response) override {
    take(State::kAnswered);
    exchange_->response = std::move(response);
    say(Message::Kind::kSend);
    co_return Result<void>{};
  }
  Task<Result<void>> start(Response head) override {
    take(State::kStreaming);
    exchange_->loop.changed = front_->loop().make_signal();
    exchange_->response = std::move(head);
    say(Message::Kind::kStart);
    co_return Result<void>{};
  }
  Task<Result<void>> write(Chunk chunk) override {
    MUSTER_CHECK(state_ == State::kStreaming, "write() without start()");
    while (!closed() && !has_room(chunk->size())) {
      exchange_->short_of_room = true;
      // The front looks at short_of_room after it has counted down: one of the two sees the other.
      if (!has_room(chunk->size())) co_await exchange_->loop.changed->wait(Duration::zero());
    }
    if (closed()) co_return gone();
    pass(std::move(chunk));
    co_return Result<void>{};
  }
  Now write_now(Chunk chunk) override {
    MUSTER_CHECK(state_ == State::kStreaming, "write_now() without start()");
    if (closed() || !has_room(chunk->size())) return Now::kBusy;
    pass(std::move(chunk));
    return Now::kSent;
  }
  /// Nothing is kept on this side.
  Task<Result<void>> flush() override {
    if (closed()) co_return gone();
    co_return Result<void>{};
  }
  Task<Result<void>> finish() override {
    MUSTER_CHECK(state_ == State::kStreaming, "finish() without start()");
    state_ = State::kAnswered;
    say(Message::Kind::kFinish);
    if (closed()) co_return gone();
    co_return Result<void>{};
  }
  [[nodiscard]] bool closed() const override { return exchange_->loop.closed; }
  void on_close(std::function<void()> callback) override {
    exchange_->loop.on_close = std::move(callback);
  }

  Task<Result<std::unique_ptr<WebSocket>>> upgrade_websocket(std::string subprotocol) override {
    using Made = Result<std::shared_ptr<Held<WebSocket>>>;
    const std::function<Task<Made>(ResponseWriter&)> make =
        [subprotocol](ResponseWriter& writer) -> Task<Made> {
      auto made = co_await writer.upgrade_websocket(subprotocol);
      if (!made) co_return tl::unexpected(std::move(made.error()));
      co_return std::make_shared<Held<WebSocket>>(Held<WebSocket>{std::move(*made)});
    };
    auto made = co_await upgrade(make);
    if (!made) co_return tl::unexpected(std::move(made.error()));
    co_return std::unique_ptr<WebSocket>(
        std::make_unique<FrontWebSocket>(front_, std::move(*made), subprotocol));
  }
  Task<Result<std::unique_ptr<ByteStream>>> upgrade_raw(Headers headers) override {
    using Made = Result<std::shared_ptr<Held<ByteStream>>>;
    const std::function<Task<Made>(ResponseWriter&)> make =
        [headers = std::move(headers)](ResponseWriter& writer) -> Task<Made> {
      auto made = co_await writer.upgrade_raw(headers);
      if (!made) co_return tl::unexpected(std::move(made.error()));
      co_return std::make_shared<Held<ByteStream>>(Held<ByteStream>{std::move(*made)});
    };
    auto made = co_await upgrade(make);
    if (!made) co_return tl::unexpected(std::move(made.error()));
    co_return std::unique_ptr<ByteStream>(
        std::make_unique<FrontByteStream>(front_, std::move(*made)));
  }

 private:
  enum class State { kNew, kStreaming, kAnswered };

  void take(State next) {
    MUSTER_CHECK(state_ == State::kNew, "a request was answered twice");
    state_ = next;
  }
  void say(Message::Kind kind) { front_->to_front().put(kind, exchange_); }
  void pass(Chunk chunk) {
    if (chunk->empty()) return;
    exchange_->unsent += chunk->size();
    front_->to_front().put(Message::Kind::kChunk, exchange_, std::move(chunk));
  }
  [[nodiscard]] bool has_room(std::size_t bytes) const {
    const std::size_t unsent = exchange_->unsent;
    return unsent == 0 || unsent + bytes <= kStreamBytes;
  }

  /// Runs `make` with the front's writer.
  template <typename T>
  Task<T> upgrade(std::function<Task<T>(ResponseWriter&)> make) {
    take(State::kAnswered);
    const auto front = front_;
    const auto outcome = std::make_shared<Front::Outcome<T>>();
    outcome->ready = front->loop().make_signal();
    const std::function<Task<void>(ResponseWriter&)> step =
        [&it = *front, outcome, make](ResponseWriter& writer) -> Task<void> {
      T made = co_await make(writer);
      it.settle(outcome, std::move(made));
    };
    const bool put = front->to_front().put([exchange = exchange_, step] {
      exchange->front.upgrade = step;
      exchange->front.answer = Exchange::Answer::kUpgrade;
      exchange->front.wake->notify();
    });
    while (put && !outcome->value) co_await outcome->ready->wait(Duration::zero());
    if (!outcome->value) co_return gone();
    co_return std::move(*outcome->value);
  }

  std::shared_ptr<Front> front_;
  ExchangePtr exchange_;
  State state_ = State::kNew;
};

void Front::open_on_loop(std::vector<Message> messages) {
  for (Message& message : messages) {
    if (message.kind == Message::Kind::kCall) {
      message.call();
      continue;
    }
    if (message.kind == Message::Kind::kBegin) {
      loop_.spawn(serve(shared_from_this(), std::move(message.exchange)));
      continue;
    }
    auto& ours = message.exchange->loop;
    if (message.kind == Message::Kind::kClosed) ours.closed = true;
    ours.changed->notify();
    if (!ours.closed) continue;
    const auto callback = std::exchange(ours.on_close, nullptr);
    if (callback) callback();
  }
}

Task<void> Front::serve(std::shared_ptr<Front> self, ExchangePtr exchange) {
  ++self->serving_;
  std::string bug;
  {
    LoopWriter writer(self, exchange);
    try {
      co_await self->handler_(std::move(exchange->request), writer);
    } catch (const std::exception& e) {
      bug = e.what();
    }
  }
  if (!bug.empty()) log::error("net", "handler threw what=\"{}\"", bug);
  --self->serving_;
  self->served_->notify();
}

class ApartServer final : public Server {
 public:
  explicit ApartServer(std::shared_ptr<Front> front)
      : front_(std::move(front)), port_(front_->server().port()) {}
  ~ApartServer() override { front_->end(); }

  [[nodiscard]] std::uint16_t port() const override { return port_; }

  Task<void> stop() override {
    const auto front = front_;
    const std::function<Task<bool>()> work = [&server = front->server()]() -> Task<bool> {
      co_await server.stop();
      co_return true;
    };
    (void)co_await front->ask<bool>(work);
    co_await front->wait_for_handlers();
    front->end();
  }

 private:
  std::shared_ptr<Front> front_;
  std::uint16_t port_;
};

}  // namespace

Result<std::unique_ptr<Server>> listen_apart(Loop& loop, ServerOptions options, Handler handler) {
  auto front = std::make_shared<Front>(loop, std::move(handler));
  auto started = front->start(std::move(options));
  if (!started) return tl::unexpected(std::move(started.error()));
  return std::unique_ptr<Server>(std::make_unique<ApartServer>(std::move(front)));
}

}  // namespace muster::net
