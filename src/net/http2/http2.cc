// One piece: a connection is one state machine. Frames, header blocks, windows and streams change the
// same few numbers, and RFC 9113 says for each pair of them what may follow.
#include "net/http2/http2.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <map>

#include "base/strings.h"
#include "net/http2/hpack.h"

namespace muster::net {
namespace {

enum FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
enum Flag : std::uint8_t {
  kAck = 1,
  kEndStream = 1,
  kEndHeaders = 4,
  kPadded = 8,
  kPriority = 0x20
};
enum Setting : std::uint16_t {
  kHeaderTableSize = 1,
  kEnablePush = 2,
  kMaxStreams = 3,
  kInitialWindow = 4,
  kMaxFrame = 5
};

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::size_t kFrameHead = 9;
constexpr std::size_t kFrameBytesMax = 16 * 1024;  // what we accept, by not naming another
constexpr std::int64_t kWindowMax = 0x7fffffff;
constexpr std::int64_t kWindowFirst = 65535;
/// Credit of the connection is given back in large steps, so that it costs nothing.
constexpr std::int64_t kCreditStep = 16 * 1024 * 1024;
constexpr std::size_t kHeaderBytesMax = 256 * 1024;
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::uint32_t kStreamsMax = 0x3fffffff;
constexpr std::uint32_t kCancel = 8, kRefusedStream = 7;
constexpr auto kLook = std::chrono::seconds(1);
/// A server that says nothing at all for so long while it owes answers is asked; then it has as
/// long again.
constexpr auto kSilenceMax = std::chrono::seconds(15);

using Clock = std::chrono::steady_clock;

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

void put_number(std::string& out, std::uint32_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    out += static_cast<char>(value >> shift & 0xff);
}

/// While so many answers are due, a quarter of them is gathered: the server has work meanwhile, and
/// each turn of the loop saved is worth more than the request in it. How long that takes is known
/// from how fast answers came so far.
constexpr std::size_t kManyCalls = 24;
constexpr auto kGatherFirst = std::chrono::milliseconds(2);
constexpr auto kGatherMax = std::chrono::milliseconds(20);
/// What watches tell is gathered for so long while they tell something again and again.
constexpr auto kGatherStreams = std::chrono::milliseconds(5);
/// What a stream's reader took is given back to the server in such steps.
constexpr std::int64_t kStreamCreditStep = 4 * 1024 * 1024;

/// One request under way. Lives in its coroutine, with the reader of its answer, or on the heap
/// until `done` has been called; listed by stream number.
struct Call {
  std::uint32_t id = 0;
  std::string body;
  std::size_t sent = 0;
  std::int64_t window = 0;
  Clock::time_point deadline;
  Response response;
  bool ended = false;
  bool untouched = false;
  std::optional<Error> error;
  IoOpPtr waiter;
  Http2Connection::Done done;  // instead of a coroutine
  bool streamed = false;       // the body is taken piece by piece
  bool headed = false;         // streamed: its head has come
  std::int64_t taken = 0;      // streamed: bytes read and not yet given back
};

class Connection final : public Http2Connection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Stream> stream,
             std::string authority,
             std::string path,
             std::function<void()> freed,
             Http2Manners manners)
      : stream_(std::move(stream)),
        authority_(std::move(authority)),
        path_(std::move(path)),
        freed_(std::move(freed)),
        manners_(std::move(manners)),
        timer_(stream_->context()),
        gather_(stream_->context()) {}

  void start() {
    out_ = kPreface;
    std::string settings;
    const auto set = [&](Setting name, std::uint32_t value) {
      put_number(settings, name, 2);
      put_number(settings, value, 4);
    };
    set(kEnablePush, 0);
    set(kInitialWindow, kWindowMax);
    frame(kSettings, 0, 0, settings);
    std::string credit;
    put_number(credit, static_cast<std::uint32_t>(kWindowMax - kWindowFirst), 4);
    frame(kWindowUpdate, 0, 0, credit);
    asio::co_spawn(stream_->context(), read_all(shared_from_this()), asio::detached);
    look_later();
  }

  [[nodiscard]] bool usable() const override {
    return !failed_ && !leaving_ && next_stream_ < kStreamsMax;
  }
  [[nodiscard]] std::size_t room() const override {
    return usable() && calls_.size() < streams_max_ ? streams_max_ - calls_.size() : 0;
  }

  Task<Result<Response>> request(Request request, Duration timeout, bool& untouched) override {
    const auto self = shared_from_this();
    Call call;
    const std::uint32_t id = call.id = next_stream_;
    next_stream_ += 2;
    call.window = peer_window_;
    call.deadline = Clock::now() + timeout;
    call.body = std::move(request.body);
    if (calls_.empty()) heard_ = Clock::now();
    const Listed listed(*this, id, call);
    send_head(id, request, call.body.empty());
    if (!call.body.empty()) send_body(id, call);
    if (!call.ended) co_await wait_for(call);
    untouched = call.untouched;
    if (call.error) {
      call.error->message = fmt::format("{} {}://{}{}{}: {}",
                                        request.method,
                                        manners_.scheme,
                                        authority_,
                                        path_,
                                        request.target,
                                        call.error->message);
      co_return fail(std::move(*call.error));
    }
    co_return std::move(call.response);
  }

  void submit(std::shared_ptr<const CommonHead> head,
              std::string_view target,
              std::string body,
              Duration timeout,
              Done done) override {
    auto owned = std::make_unique<Call>();
    Call& call = *owned;
    call.id = next_stream_;
    next_stream_ += 2;
    call.window = peer_window_;
    call.deadline = Clock::now() + timeout;
    call.body = std::move(body);
    call.done = std::move(done);
    if (calls_.empty()) heard_ = Clock::now();
    calls_[call.id] = owned.release();
    send_common_head(call.id, head, target, call.body.empty());
    if (!call.body.empty()) send_body(call.id, call);
  }

  [[nodiscard]] bool takes_stream() const override {
    return room() > 0 && streams_ < streams_max_ / 2;
  }

  Task<Result<std::unique_ptr<ResponseStream>>> stream(Request request,
                                                       Duration timeout,
                                                       bool& untouched) override;

  void close() override { lost("closed by us"); }

  ~Connection() override {
    for (auto& [id, call] : calls_) {
      if (call->done) delete call;
    }
  }

 private:
  /// Keeps the list right also when the coroutine is destroyed while it waits.
  struct Listed {
    Listed(Connection& c, std::uint32_t i, Call& call) : connection(c), id(i) {
      connection.calls_[id] = &call;
    }
    ~Listed() {
      connection.calls_.erase(id);
      if (connection.calls_.empty() && connection.leaving_) connection.stream_->close();
      if (connection.freed_) connection.freed_();
    }
    Listed(const Listed&) = delete;
    Connection& connection;
    std::uint32_t id;
  };

  class Reader;

  /// Returns when the call has ended or something of its answer has come.
  static Task<void> wait_for(Call& call) {
    const auto start = [&call](auto handler) { call.waiter = make_io_op(std::move(handler)); };
    co_await asio::async_initiate<decltype(kAwaitTuple), void(ErrorCode, std::size_t)>(start,
                                                                                       kAwaitTuple);
  }

  /// Posted: the coroutine that goes on may start requests, and change what is being gone over
  /// here.
  void wake(Call& call) {
    if (call.waiter)
      asio::post(stream_->context(), [waiter = std::move(call.waiter)] { waiter->done({}, 0); });
  }

  /// What the reader of a stream took may come again.
  void give_back(Call& call, std::size_t bytes) {
    call.taken += static_cast<std::int64_t>(bytes);
    if (call.taken < kStreamCreditStep || call.ended) return;
    std::string credit;
    put_number(credit, static_cast<std::uint32_t>(std::exchange(call.taken, 0)), 4);
    frame(kWindowUpdate, 0, call.id, credit);
  }

  // --------------------------------------------------------------------------------------- sending

  void frame(FrameType type, std::uint8_t flags, std::uint32_t id, std::string_view payload) {
    put_number(out_, static_cast<std::uint32_t>(payload.size()), 3);
    out_ += static_cast<char>(type);
    out_ += static_cast<char>(flags);
    put_number(out_, id, 4);
    out_.append(payload);
    flush_later();
  }

  void send_head(std::uint32_t id, const Request& request, bool last) {
    std::string block;
    encoder_.encode(block, ":method", request.method, true);
    encoder_.encode(block, ":scheme", manners_.scheme, true);
    encoder_.encode(block, ":authority", authority_, true);
    encoder_.encode(block, ":path", path_ + request.target, false);
    for (const auto& [name, value] : request.headers.fields())
      encoder_.encode(block, to_lower(name), value, true);
    send_block(id, std::move(block), last);
  }

  /// A head as it was encoded last, around the target: valid while the encoder's table stays as it
  /// is.
  struct EncodedHead {
    std::shared_ptr<const CommonHead> head;
    std::uint64_t version = 0;
    std::string before, behind;
  };

  const EncodedHead& encoded(const std::shared_ptr<const CommonHead>& head) {
    constexpr std::size_t kKeptMax = 8;
    auto known = std::find_if(
        heads_.begin(), heads_.end(), [&](const EncodedHead& one) { return one.head == head; });
    if (known == heads_.end()) {
      if (heads_.size() >= kKeptMax) heads_.erase(heads_.begin());
      known = heads_.insert(heads_.end(), {head, 0, "", ""});
      // What is remembered for the first time is written in full now and as a number from the next
      // time on.
      known->version = encoder_.version() + 1;
    }
    if (known->version == encoder_.version()) return *known;
    known->before.clear();
    known->behind.clear();
    const auto version = encoder_.version();
    encoder_.encode(known->before, ":method", head->method, true);
    encoder_.encode(known->before, ":scheme", manners_.scheme, true);
    encoder_.encode(known->before, ":authority", authority_, true);
    for (const auto& [name, value] : head->headers.fields())
      encoder_.encode(known->behind, to_lower(name), value, true);
    known->version = encoder_.version() == version ? version : version - 1;
    return *known;
  }

  void send_common_head(std::uint32_t id,
                        const std::shared_ptr<const CommonHead>& head,
                        std::string_view target,
                        bool last) {
    const EncodedHead& known = encoded(head);
    std::string block;
    block.reserve(known.before.size() + known.behind.size() + path_.size() + target.size() + 8);
    block += known.before;
    if (path_.empty())
      encoder_.encode(block, ":path", target, false);
    else
      encoder_.encode(block, ":path", path_ + std::string(target), false);
    block += known.behind;
    send_block(id, std::move(block), last);
  }

  void send_block(std::uint32_t id, std::string block, bool last) {
    if (block.size() <= peer_frame_max_)
      return frame(
          kHeaders, static_cast<std::uint8_t>(kEndHeaders | (last ? kEndStream : 0)), id, block);
    for (bool first = true; first || !block.empty(); first = false) {
      const auto piece = block.substr(0, peer_frame_max_);
      block.erase(0, piece.size());
      const auto flags = static_cast<std::uint8_t>((block.empty() ? kEndHeaders : 0) |
                                                   (first && last ? kEndStream : 0));
      frame(first ? kHeaders : kContinuation, flags, id, piece);
    }
  }

  /// As much as the peer takes now; window updates bring the rest.
  void send_body(std::uint32_t id, Call& call) {
    while (call.sent < call.body.size()) {
      const auto allowed = std::min(call.window, window_);
      if (allowed <= 0) return;
      const auto bytes = std::min(
          {call.body.size() - call.sent, static_cast<std::size_t>(allowed), peer_frame_max_});
      const bool last = call.sent + bytes == call.body.size();
      frame(kData, last ? kEndStream : 0, id, std::string_view(call.body).substr(call.sent, bytes));
      call.sent += bytes;
      call.window -= static_cast<std::int64_t>(bytes);
      window_ -= static_cast<std::int64_t>(bytes);
    }
  }

  void send_waiting_bodies() {
    for (auto& [id, call] : calls_) send_body(id, *call);
  }

  void reset(std::uint32_t id, std::uint32_t code) {
    std::string payload;
    put_number(payload, code, 4);
    frame(kReset, 0, id, payload);
  }

  /// Posted, so that everything this turn of the loop asks for goes out together.
  void flush_later() {
    if (flushing_ || failed_) return;
    flushing_ = true;
    asio::post(stream_->context(), [self = shared_from_this()] {
      asio::co_spawn(self->stream_->context(), self->flush(self), asio::detached);
    });
  }

  Task<void> flush(std::shared_ptr<Connection> self) {
    while (!out_.empty() && !failed_) {
      writing_.clear();
      std::swap(out_, writing_);
      const auto error = co_await stream_->write_all(writing_);
      if (error)
        lost(error == asio::error::eof ? "connection closed by the other side" : error.message());
    }
    flushing_ = false;
  }

  // ------------------------------------------------------------------------------------- receiving

  Task<void> read_all(std::shared_ptr<Connection> self) {
    const auto chunk = std::make_unique_for_overwrite<char[]>(kReadBytes);
    std::string in;
    while (!failed_) {
      const auto got = co_await stream_->read_some(asio::mutable_buffer(chunk.get(), kReadBytes));
      if (got.error) {
        lost(got.error == asio::error::eof ? "connection closed by the other side"
                                           : got.error.message());
        break;
      }
      heard_ = Clock::now();
      asked_ = false;
      in.append(chunk.get(), got.bytes);
      // Each answer is a record of its own; all that have come are taken together. An error is met
      // again by the next read.
      const auto more = stream_->read_now(asio::mutable_buffer(chunk.get(), kReadBytes));
      in.append(chunk.get(), more.bytes);
      std::size_t used = 0;
      while (!failed_ && in.size() - used >= kFrameHead) {
        const auto head = std::string_view(in).substr(used, kFrameHead);
        const std::size_t size = big_endian(head.substr(0, 3));
        if (size > kFrameBytesMax) {
          lost(fmt::format("a frame of {} bytes, at most {} were agreed", size, kFrameBytesMax));
          break;
        }
        if (in.size() - used < kFrameHead + size) break;
        const auto type = static_cast<std::uint8_t>(head[3]),
                   flags = static_cast<std::uint8_t>(head[4]);
        on_frame(type,
                 flags,
                 big_endian(head.substr(5)) & 0x7fffffff,
                 std::string_view(in).substr(used + kFrameHead, size));
        used += kFrameHead + size;
      }
      in.erase(0, used);
      const auto pause = pause_after_read();
      if (pause == Clock::duration::zero() || failed_ || more.bytes == kReadBytes) continue;
      gather_.expires_after(pause);
      (void)co_await gather_.async_wait(kAwaitTuple);
    }
  }

  /// How long to gather what comes before it is read.
  Clock::duration pause_after_read() {
    const auto since = heard_ - std::exchange(paced_, heard_);
    const auto answered = std::exchange(answered_, 0);
    const bool told = std::exchange(told_, false);
    if (answered > 0) {
      const auto each = std::min<Clock::duration>(since / answered, kGatherMax);
      answer_takes_ =
          answer_takes_ == Clock::duration::zero() ? each : (3 * answer_takes_ + each) / 4;
    }
    const std::size_t due = calls_.size() - streams_;
    if (due >= kManyCalls) {
      if (answer_takes_ == Clock::duration::zero()) return kGatherFirst;
      return std::min<Clock::duration>(answer_takes_ * static_cast<std::int64_t>(due / 4),
                                       kGatherMax);
    }
    answer_takes_ = Clock::duration::zero();
    return told && since < 2 * kGatherStreams ? kGatherStreams : Clock::duration::zero();
  }

  void on_frame(std::uint8_t type, std::uint8_t flags, std::uint32_t id, std::string_view payload) {
    if (!block_.empty() && type != kContinuation) return lost("a header block was cut");
    switch (type) {
      case kData:
        return on_data(flags, id, payload);
      case kHeaders:
        if (!unpad(flags, payload)) return lost("a frame's padding is wrong");
        if ((flags & kPriority) != 0)
          payload.remove_prefix(std::min<std::size_t>(5, payload.size()));
        block_end_ = (flags & kEndStream) != 0;
        return on_block(flags, id, payload);
      case kContinuation:
        return on_block(flags, id, payload);
      case kReset:
        if (payload.size() == 4) on_reset(id, big_endian(payload));
        return;
      case kSettings:
        if ((flags & kAck) == 0) on_settings(payload);
        return;
      case kPing:
        if ((flags & kAck) == 0) frame(kPing, kAck, 0, payload);
        return;
      case kGoAway:
        return on_go_away(payload);
      case kWindowUpdate:
        return on_window(id, payload);
      case kPushPromise:
        return lost("a push that was not agreed to");
      default:
        return;  // unknown frames are skipped, as the standard asks
    }
  }

  static bool unpad(std::uint8_t flags, std::string_view& payload) {
    if ((flags & kPadded) == 0) return true;
    if (payload.empty()) return false;
    const auto padding = static_cast<unsigned char>(payload.front());
    payload.remove_prefix(1);
    if (padding > payload.size()) return false;
    payload.remove_suffix(padding);
    return true;
  }

  void on_data(std::uint8_t flags, std::uint32_t id, std::string_view payload) {
    credit_ += static_cast<std::int64_t>(payload.size());
    if (credit_ >= kCreditStep) {
      std::string bytes;
      put_number(bytes, static_cast<std::uint32_t>(credit_), 4);
      frame(kWindowUpdate, 0, 0, bytes);
      credit_ = 0;
    }
    if (!unpad(flags, payload)) return lost("a frame's padding is wrong");
    const auto found = calls_.find(id);
    if (found == calls_.end() || found->second->ended) return;  // given up by us
    const bool kept = !found->second->done || found->second->response.status >= 300;
    if (kept) found->second->response.body.append(payload);
    if (found->second->streamed) {
      told_ = true;
      wake(*found->second);
    }
    if (found->second->response.body.size() > manners_.answer_bytes_max) {
      reset(id, kCancel);
      return finish(
          *found->second,
          Error{Code::kInternal,
                fmt::format("the answer is larger than {} bytes", manners_.answer_bytes_max)});
    }
    if ((flags & kEndStream) != 0) finish(*found->second, std::nullopt);
  }

  void on_block(std::uint8_t flags, std::uint32_t id, std::string_view payload) {
    const auto found = calls_.find(id);
    Call* const wanted = found == calls_.end() || found->second->ended ? nullptr : found->second;
    // Read in any case: the table that both sides keep must stay the same.
    const auto each = [wanted](std::string_view name, std::string_view value) {
      if (wanted == nullptr) return;
      if (name == ":status")
        wanted->response.status = static_cast<int>(parse_int(value).value_or(0));
      else if (!wanted->done || wanted->response.status >= 300)
        wanted->response.headers.add(std::string(name), std::string(value));
    };
    bool whole = false;
    if (block_.empty() && (flags & kEndHeaders) != 0) {
      whole = decoder_.decode(payload, each);
    } else {
      block_.append(payload);
      if (block_.size() > kHeaderBytesMax) return lost("a header block is too large");
      if ((flags & kEndHeaders) == 0) return;
      whole = decoder_.decode(block_, each);
      block_.clear();
    }
    if (!whole) return lost("a header block cannot be read");
    if (wanted == nullptr) return;
    Call& call = *wanted;
    // 100 Continue and the like go before the answer.
    if (call.response.status < 200) call.response = Response{};
    if (call.streamed && call.response.status >= 200 && !std::exchange(call.headed, true))
      wake(call);
    if (block_end_) finish(call, std::nullopt);
  }

  void on_reset(std::uint32_t id, std::uint32_t code) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    found->second->untouched = code == kRefusedStream;
    finish(*found->second,
           Error{Code::kUnavailable,
                 fmt::format("the server broke the request off with code {}", code)});
  }

  void on_settings(std::string_view payload) {
    for (; payload.size() >= 6; payload.remove_prefix(6)) {
      const auto value = big_endian(payload.substr(2, 4));
      switch (big_endian(payload.substr(0, 2))) {
        case kHeaderTableSize:
          encoder_.limit(value);
          break;
        case kMaxStreams:
          streams_max_ = value;
          break;
        case kInitialWindow:
          for (auto& [id, call] : calls_)
            call->window += static_cast<std::int64_t>(value) - peer_window_;
          peer_window_ = value;
          break;
        case kMaxFrame:
          peer_frame_max_ = std::max<std::size_t>(value, kFrameBytesMax);
          break;
        default:
          break;
      }
    }
    frame(kSettings, kAck, 0, "");
    send_waiting_bodies();
    if (freed_) freed_();
  }

  void on_window(std::uint32_t id, std::string_view payload) {
    if (payload.size() != 4) return;
    const std::int64_t more = big_endian(payload) & 0x7fffffff;
    if (id == 0) {
      window_ += more;
      return send_waiting_bodies();
    }
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    found->second->window += more;
    send_body(id, *found->second);
  }

  /// What the server had not begun is told so; what it had begun ends here as usual.
  void on_go_away(std::string_view payload) {
    leaving_ = true;
    const auto last = payload.size() >= 4 ? big_endian(payload.substr(0, 4)) & 0x7fffffff : 0;
    for (auto& [id, call] : calls_) {
      if (id <= last) continue;
      call->untouched = true;
      finish(*call, Error{Code::kUnavailable, "the server is closing the connection"});
    }
    if (calls_.empty()) lost("the server closed the connection");
    if (freed_) freed_();
  }

  // ------------------------------------------------------------------------------------------ ends

  void finish(Call& call, std::optional<Error> error) {
    if (call.ended) return;
    call.ended = true;
    call.error = std::move(error);
    if (!call.streamed) ++answered_;
    if (call.done) {
      finished_.push_back(call.id);
      if (finished_.size() == 1)
        asio::post(stream_->context(), [self = shared_from_this()] { self->deliver(); });
      return;
    }
    wake(call);
  }

  /// Everything that one read has finished, in one turn.
  void deliver() {
    for (const std::uint32_t id : std::exchange(finished_, {})) {
      const auto found = calls_.find(id);
      if (found == calls_.end()) continue;
      const std::unique_ptr<Call> call(found->second);
      calls_.erase(found);
      if (call->error)
        call->done(fail(std::move(*call->error)), call->untouched);
      else
        call->done(std::move(call->response), false);
    }
    if (calls_.empty() && leaving_) stream_->close();
    if (freed_) freed_();
  }

  void lost(std::string_view why) {
    if (std::exchange(failed_, true)) return;
    stream_->close();
    timer_.cancel();
    gather_.cancel();
    for (auto& [id, call] : calls_) finish(*call, Error{Code::kUnavailable, std::string(why)});
    if (freed_) freed_();
  }

  void look_later() {
    timer_.expires_after(kLook);
    timer_.async_wait([weak = weak_from_this()](const ErrorCode& error) {
      const auto self = weak.lock();
      if (error || !self || self->failed_) return;
      self->look();
      self->look_later();
    });
  }

  void look() {
    const auto now = Clock::now();
    for (auto& [id, call] : calls_) {
      if (call->ended || call->headed || now < call->deadline) continue;
      reset(id, kCancel);
      finish(*call, Error{Code::kTimeout, "no answer in time"});
    }
    if (!manners_.pings || calls_.empty() || now - heard_ < kSilenceMax) return;
    if (now - heard_ >= 2 * kSilenceMax) return lost("the server says nothing");
    if (!std::exchange(asked_, true)) frame(kPing, 0, 0, "muster??");
  }

  std::shared_ptr<Stream> stream_;
  std::string authority_, path_;
  std::function<void()> freed_;
  const Http2Manners manners_;
  asio::steady_timer timer_, gather_;
  HpackEncoder encoder_;
  HpackDecoder decoder_;
  std::vector<EncodedHead> heads_;
  std::map<std::uint32_t, Call*> calls_;
  std::size_t streams_ = 0;              // calls whose answers are streamed
  std::vector<std::uint32_t> finished_;  // calls without a coroutine whose `done` is due
  std::uint32_t next_stream_ = 1;
  std::size_t streams_max_ = 100;  // until the server says otherwise
  std::size_t peer_frame_max_ = kFrameBytesMax;
  std::int64_t peer_window_ = kWindowFirst;
  std::int64_t window_ = kWindowFirst;  // what we may still send on the connection
  std::int64_t credit_ = 0;             // received and not yet given back
  std::string block_;                   // a header block that goes on in the next frame
  bool block_end_ = false;
  std::string out_, writing_;
  bool flushing_ = false, failed_ = false, leaving_ = false, asked_ = false;
  Clock::time_point heard_ = Clock::now();
  // Since the last read: answers that ended, and whether a stream had something to tell; and how
  // fast answers come while many are due.
  Clock::time_point paced_ = Clock::now();
  std::int64_t answered_ = 0;
  bool told_ = false;
  Clock::duration answer_takes_ = Clock::duration::zero();
};

/// The owner's end of a streamed answer.
class Connection::Reader final : public ResponseStream {
 public:
  Reader(std::shared_ptr<Connection> connection, const Request& request)
      : state_(std::make_shared<State>()) {
    state_->what = fmt::format("{} https://{}{}{}",
                               request.method,
                               connection->authority_,
                               connection->path_,
                               request.target);
    state_->connection = std::move(connection);
  }
  ~Reader() override { leave(); }

  void begin(const Request& request, Duration timeout) {
    Connection& connection = *state_->connection;
    Call& call = state_->call;
    call.id = connection.next_stream_;
    connection.next_stream_ += 2;
    call.streamed = true;
    call.window = connection.peer_window_;
    call.deadline = Clock::now() + timeout;
    call.body = request.body;
    if (connection.calls_.empty()) connection.heard_ = Clock::now();
    connection.calls_[call.id] = &call;
    ++connection.streams_;
    connection.send_head(call.id, request, call.body.empty());
    if (!call.body.empty()) connection.send_body(call.id, call);
  }

  /// Until the head is there.
  Task<Result<void>> head(bool& untouched) {
    const auto state = state_;
    while (!state->call.headed && !state->call.ended) co_await wait_for(state->call);
    untouched = state->call.untouched;
    if (state->call.error) co_return failed(*state);
    co_return Result<void>{};
  }

  [[nodiscard]] int status() const override { return state_->call.response.status; }
  [[nodiscard]] const Headers& headers() const override { return state_->call.response.headers; }

  Task<Result<std::string>> read() override {
    const auto state = state_;
    Call& call = state->call;
    while (true) {
      if (!call.response.body.empty()) {
        state->connection->give_back(call, call.response.body.size());
        co_return std::exchange(call.response.body, std::string());
      }
      if (call.error) co_return failed(*state);
      if (call.ended) co_return std::string();
      co_await wait_for(call);
    }
  }

  void close() override {
    leave();
    // After it is off the list: nobody else ends it, and a read that waits must not wait for ever.
    state_->connection->finish(state_->call, Error{Code::kUnavailable, "closed by us"});
  }

 private:
  struct State {
    std::shared_ptr<Connection> connection;
    std::string what;
    Call call;
  };

  static tl::unexpected<Error> failed(const State& state) {
    Error error = *state.call.error;
    error.message = fmt::format("{}: {}", state.what, error.message);
    return fail(std::move(error));
  }

  void leave() {
    Connection& connection = *state_->connection;
    if (connection.calls_.erase(state_->call.id) == 0) return;
    --connection.streams_;
    if (!state_->call.ended && !connection.failed_) connection.reset(state_->call.id, kCancel);
    if (connection.calls_.empty() && connection.leaving_) connection.stream_->close();
    if (connection.freed_) connection.freed_();
  }

  // Outlives the reader while a read is under way.
  std::shared_ptr<State> state_;
};

Task<Result<std::unique_ptr<ResponseStream>>> Connection::stream(Request request,
                                                                 Duration timeout,
                                                                 bool& untouched) {
  auto reader = std::make_unique<Reader>(shared_from_this(), request);
  reader->begin(request, timeout);
  const auto headed = co_await reader->head(untouched);
  if (!headed) co_return tl::unexpected(headed.error());
  co_return std::unique_ptr<ResponseStream>(std::move(reader));
}

}  // namespace

std::shared_ptr<Http2Connection> start_http2(std::shared_ptr<Stream> stream,
                                             std::string authority,
                                             std::string path,
                                             std::function<void()> freed,
                                             Http2Manners manners) {
  auto connection = std::make_shared<Connection>(std::move(stream),
                                                 std::move(authority),
                                                 std::move(path),
                                                 std::move(freed),
                                                 std::move(manners));
  connection->start();
  return connection;
}

}  // namespace muster::net
