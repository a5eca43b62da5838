// One piece: a session is one state machine over its streams, as the draft has it.
#include "net/spdy/spdy.h"

#include <fmt/core.h>

#include <deque>
#include <map>

#include "base/log.h"
#include "net/spdy/spdy_headers.h"

namespace muster::net {
namespace {

// Frame types and flags of the draft, section 2.6.
constexpr unsigned kSynStream = 1, kSynReply = 2, kRstStream = 3, kSettings = 4, kPing = 6,
                   kGoAway = 7, kHeaders = 8, kWindowUpdate = 9;
constexpr unsigned kFlagFin = 1;
constexpr std::uint32_t kProtocolError = 1, kInvalidStream = 2, kRefusedStream = 3, kCancel = 5;
constexpr std::uint32_t kSettingInitialWindow = 7;

constexpr std::size_t kHeadBytes = 8;
constexpr std::size_t kControlBytesMax = 64 * 1024;
/// Of one frame we send, so that streams take turns.
constexpr std::size_t kDataBytesMax = 32 * 1024;
/// Of one stream; then the whole session waits for its reader.
constexpr std::size_t kInboxBytesMax = 256 * 1024;
constexpr std::size_t kOutboxBytesMax = 256 * 1024;  // of the session; then writers wait
/// Replies to a peer that does not read: it is cut.
constexpr std::size_t kOutboxHardMax = 4 * 1024 * 1024;
constexpr std::size_t kStreamsMax = 512;
constexpr std::int64_t kWindowInitial = 64 * 1024;
constexpr std::int64_t kWindowGrant = 32 * 1024;
constexpr auto kReplyWait = std::chrono::seconds(30);
constexpr auto kShutdownWait = std::chrono::seconds(5);

std::uint32_t get_32(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}
void put_32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xff);
}
std::string control_frame(unsigned type, unsigned flags, std::string_view payload) {
  std::string out;
  put_32(out, 0x80030000U | type);
  put_32(out, flags << 24 | static_cast<std::uint32_t>(payload.size()));
  return out.append(payload);
}
std::string data_frame(std::uint32_t stream, unsigned flags, std::string_view payload) {
  std::string out;
  put_32(out, stream);
  put_32(out, flags << 24 | static_cast<std::uint32_t>(payload.size()));
  return out.append(payload);
}
std::string two_words(std::uint32_t a, std::uint32_t b) {
  std::string out;
  put_32(out, a);
  put_32(out, b);
  return out;
}

struct StreamState {
  StreamState(Env& env, std::uint32_t stream_id, Headers stream_headers)
      : id(stream_id),
        headers(std::move(stream_headers)),
        readable(env.make_signal()),
        writable(env.make_signal()) {}
  std::uint32_t id;
  Headers headers;
  std::deque<std::string> inbox;
  std::size_t inbox_bytes = 0;
  std::int64_t to_grant = 0;             // consumed, but not yet announced
  std::int64_t window = kWindowInitial;  // what the peer lets us send
  bool replied = false;                  // to a stream that we opened
  bool peer_finished = false;
  bool we_finished = false;
  bool reset = false;
  bool ignoring = false;  // closed by us: what still comes is dropped
  std::unique_ptr<Signal> readable, writable;
};
using StreamPtr = std::shared_ptr<StreamState>;

/// Everything of a session. Its two coroutines and the streams hold it.
struct Core : std::enable_shared_from_this<Core> {
  Core(Env& e, std::unique_ptr<ByteStream> b, SpdyRole r)
      : env(e),
        bytes(std::move(b)),
        role(r),
        next_id(role == SpdyRole::kServer ? 2 : 1),
        arrived(env.make_signal()),
        out_ready(env.make_signal()),
        out_room(env.make_signal()),
        in_room(env.make_signal()),
        died(env.make_signal()) {}

  Env& env;
  std::unique_ptr<ByteStream> bytes;
  SpdyRole role;
  std::map<std::uint32_t, StreamPtr> streams;
  std::deque<StreamPtr> accepted;
  std::uint32_t next_id;
  std::uint32_t last_peer_id = 0;
  SpdyDeflater deflater;
  SpdyInflater inflater;
  std::deque<std::string> outbox;
  std::size_t outbox_bytes = 0;
  bool writing = false;
  bool dead = false;             // no more bytes either way
  bool no_more_streams = false;  // the peer sent GOAWAY
  // Windows count only for a peer that shows it knows them.
  bool peer_has_windows = false;
  std::int64_t session_window = kWindowInitial;
  std::int64_t initial_window = kWindowInitial;
  std::int64_t session_to_grant = 0;
  std::unique_ptr<Signal> arrived, out_ready, out_room, in_room, died;

  void die() {
    if (dead) return;
    dead = true;
    bytes->close();
    died->notify();
    wake_all();
  }
  void wake_all() {
    arrived->notify();
    out_ready->notify();
    out_room->notify();
    in_room->notify();
    for (const auto& [id, stream] : streams) {
      stream->readable->notify();
      stream->writable->notify();
    }
  }
  /// Frames go out in the order of these calls; header blocks must be packed in the same order.
  void post(std::string frame) {
    if (dead) return;
    outbox_bytes += frame.size();
    outbox.push_back(std::move(frame));
    if (outbox_bytes > kOutboxHardMax) {
      log::debug("net", "SPDY peer does not read, closing");
      die();
      return;
    }
    out_ready->notify();
  }
  void forget_if_done(const StreamPtr& stream) {
    if (stream->reset || (stream->peer_finished && stream->we_finished)) streams.erase(stream->id);
  }
  void reset_stream(const StreamPtr& stream, std::uint32_t status) {
    if (stream->reset) return;
    stream->reset = true;
    post(control_frame(kRstStream, 0, two_words(stream->id, status)));
    stream->readable->notify();
    stream->writable->notify();
    forget_if_done(stream);
  }
  /// Tells the peer that it may send more.
  void consumed(const StreamPtr& stream, std::size_t count) {
    session_to_grant += static_cast<std::int64_t>(count);
    stream->to_grant += static_cast<std::int64_t>(count);
    if (session_to_grant >= kWindowGrant) {
      post(control_frame(
          kWindowUpdate, 0, two_words(0, static_cast<std::uint32_t>(session_to_grant))));
      session_to_grant = 0;
    }
    if (stream->to_grant >= kWindowGrant && !stream->peer_finished && !stream->reset) {
      post(control_frame(
          kWindowUpdate, 0, two_words(stream->id, static_cast<std::uint32_t>(stream->to_grant))));
      stream->to_grant = 0;
    }
  }
};
using CorePtr = std::shared_ptr<Core>;

class StreamHandle final : public SpdyStream {
 public:
  StreamHandle(CorePtr core, StreamPtr state) : core_(std::move(core)), state_(std::move(state)) {}
  ~StreamHandle() override { close(); }

  [[nodiscard]] std::uint32_t id() const override { return state_->id; }
  [[nodiscard]] const Headers& headers() const override { return state_->headers; }

  Task<Result<std::string>> read() override {
    const auto core = core_;
    const auto state = state_;
    while (state->inbox.empty() && !state->peer_finished && !state->reset && !core->dead) {
      co_await state->readable->wait(Duration::zero());
    }
    if (!state->inbox.empty()) {
      auto piece = std::move(state->inbox.front());
      state->inbox.pop_front();
      state->inbox_bytes -= piece.size();
      core->consumed(state, piece.size());
      core->in_room->notify();
      co_return piece;
    }
    if (state->peer_finished) co_return std::string();
    co_return fail(Code::kUnavailable,
                   state->reset ? "SPDY stream was reset" : "SPDY session has ended");
  }

  Task<Result<void>> write(std::string bytes) override {
    const auto core = core_;
    const auto state = state_;
    std::string_view left = bytes;
    while (!left.empty()) {
      if (gone(*core, *state)) co_return fail(Code::kUnavailable, "SPDY stream is closed");
      if (core->outbox_bytes >= kOutboxBytesMax) {
        co_await core->out_room->wait(Duration::zero());
        continue;
      }
      auto allowed = static_cast<std::int64_t>(std::min(left.size(), kDataBytesMax));
      if (core->peer_has_windows)
        allowed = std::min({allowed, state->window, core->session_window});
      if (allowed <= 0) {
        co_await state->writable->wait(Duration::zero());
        continue;
      }
      state->window -= allowed;
      core->session_window -= allowed;
      core->post(data_frame(state->id, 0, left.substr(0, static_cast<std::size_t>(allowed))));
      left.remove_prefix(static_cast<std::size_t>(allowed));
    }
    co_return Result<void>{};
  }

  Task<Result<void>> finish() override {
    finish_now();
    co_return Result<void>{};
  }
  void reset() override { core_->reset_stream(state_, kCancel); }
  void close() override {
    finish_now();
    state_->ignoring = true;
    state_->inbox.clear();
    state_->inbox_bytes = 0;
    core_->in_room->notify();
  }

 private:
  static bool gone(const Core& core, const StreamState& state) {
    return core.dead || state.reset || state.we_finished;
  }
  void finish_now() {
    if (gone(*core_, *state_)) return;
    state_->we_finished = true;
    core_->post(data_frame(state_->id, kFlagFin, ""));
    core_->forget_if_done(state_);
  }

  CorePtr core_;
  StreamPtr state_;
};

// ----------------------------------------------------------------------------------------- Reading

/// Takes frames apart as bytes come. A data frame's payload is handed on piece by piece, never
/// gathered.
class FrameReader {
 public:
  explicit FrameReader(CorePtr core) : core_(std::move(core)) {}

  /// False: the session must end.
  Task<bool> feed(std::string bytes) {
    in_ += bytes;
    std::string_view left = in_;
    bool ok = true;
    while (ok && !core_->dead) {
      if (data_left_ > 0) {
        if (left.empty()) break;
        const auto piece = left.substr(0, data_left_);
        data_left_ -= piece.size();
        ok = co_await on_data(std::string(piece), data_left_ == 0 && (data_flags_ & kFlagFin) != 0);
        left.remove_prefix(piece.size());
        continue;
      }
      if (left.size() < kHeadBytes) break;
      const auto first = get_32(left, 0);
      const auto second = get_32(left, 4);
      const std::size_t length = second & 0xffffff;
      if ((first & 0x80000000U) == 0) {
        data_stream_ = first;
        data_flags_ = second >> 24;
        data_left_ = length;
        left.remove_prefix(kHeadBytes);
        if (length == 0) ok = co_await on_data("", (data_flags_ & kFlagFin) != 0);
        continue;
      }
      if (length > kControlBytesMax) {
        ok = protocol_error("a control frame is too long");
        break;
      }
      if (left.size() < kHeadBytes + length) break;
      if ((first >> 16 & 0x7fff) != 3) {
        ok = protocol_error("not SPDY version 3");
        break;
      }
      ok = on_control(first & 0xffff, second >> 24, left.substr(kHeadBytes, length));
      left.remove_prefix(kHeadBytes + length);
    }
    in_.erase(0, in_.size() - left.size());
    co_return ok;
  }

 private:
  static bool protocol_error(std::string_view why) {
    log::debug("net", "SPDY session ended: {}", why);
    return false;
  }

  StreamPtr find(std::uint32_t id) {
    const auto at = core_->streams.find(id);
    return at == core_->streams.end() ? nullptr : at->second;
  }

  Task<bool> on_data(std::string piece, bool last) {
    const auto stream = find(data_stream_);
    if (!stream || stream->ignoring || stream->reset) {
      // Dropped, but counted, or the session's window would shrink for ever.
      core_->session_to_grant += static_cast<std::int64_t>(piece.size());
    } else if (!piece.empty()) {
      while (stream->inbox_bytes >= kInboxBytesMax && !stream->ignoring && !stream->reset &&
             !core_->dead) {
        co_await core_->in_room->wait(Duration::zero());
      }
      if (!stream->ignoring) {
        stream->inbox_bytes += piece.size();
        stream->inbox.push_back(std::move(piece));
        stream->readable->notify();
      }
    }
    if (stream && last) finish_by_peer(stream);
    co_return true;
  }

  void finish_by_peer(const StreamPtr& stream) {
    stream->peer_finished = true;
    stream->readable->notify();
    core_->forget_if_done(stream);
  }

  bool on_control(unsigned type, unsigned flags, std::string_view payload) {
    switch (type) {
      case kSynStream:
        return on_syn_stream(flags, payload);
      case kSynReply:
      case kHeaders:
        return on_reply(type, flags, payload);
      case kRstStream:
        return on_reset(payload);
      case kPing:
        return on_ping(payload);
      case kGoAway:
        core_->no_more_streams = true;
        core_->arrived->notify();
        return true;
      case kWindowUpdate:
        return on_window(payload);
      case kSettings:
        return on_settings(payload);
      default:
        return true;  // unknown frames are to be ignored
    }
  }

  bool on_syn_stream(unsigned flags, std::string_view payload) {
    if (payload.size() < 10) return protocol_error("SYN_STREAM is cut short");
    const auto id = get_32(payload, 0) & 0x7fffffff;
    auto headers = core_->inflater.unpack(payload.substr(10));
    if (!headers) return protocol_error(headers.error().message);
    const bool from_client = id % 2 == 1;
    if (id == 0 || id <= core_->last_peer_id || from_client != (core_->role == SpdyRole::kServer)) {
      core_->post(control_frame(kRstStream, 0, two_words(id, kProtocolError)));
      return protocol_error("a stream id is out of order");
    }
    core_->last_peer_id = id;
    if (core_->streams.size() >= kStreamsMax) {
      core_->post(control_frame(kRstStream, 0, two_words(id, kRefusedStream)));
      return true;
    }
    auto stream = std::make_shared<StreamState>(core_->env, id, std::move(*headers));
    stream->window = core_->initial_window;
    stream->replied = true;
    stream->peer_finished = (flags & kFlagFin) != 0;
    core_->streams.emplace(id, stream);
    std::string reply;
    put_32(reply, id);
    reply += core_->deflater.pack(Headers{});
    core_->post(control_frame(kSynReply, 0, reply));
    core_->accepted.push_back(std::move(stream));
    core_->arrived->notify();
    return true;
  }

  bool on_reply(unsigned type, unsigned flags, std::string_view payload) {
    if (payload.size() < 4) return protocol_error("a reply is cut short");
    const auto id = get_32(payload, 0) & 0x7fffffff;
    // Always: the zlib state must stay in step.
    auto headers = core_->inflater.unpack(payload.substr(4));
    if (!headers) return protocol_error(headers.error().message);
    const auto stream = find(id);
    if (!stream) {
      core_->post(control_frame(kRstStream, 0, two_words(id, kInvalidStream)));
      return true;
    }
    if (type == kSynReply) stream->replied = true;
    stream->writable->notify();
    if ((flags & kFlagFin) != 0) finish_by_peer(stream);
    return true;
  }

  bool on_reset(std::string_view payload) {
    if (payload.size() < 8) return protocol_error("RST_STREAM is cut short");
    const auto stream = find(get_32(payload, 0) & 0x7fffffff);
    if (!stream) return true;
    stream->reset = true;
    stream->readable->notify();
    stream->writable->notify();
    core_->in_room->notify();
    core_->forget_if_done(stream);
    return true;
  }

  bool on_ping(std::string_view payload) {
    if (payload.size() < 4) return protocol_error("PING is cut short");
    const auto id = get_32(payload, 0);
    const bool from_peer = (id % 2 == 1) == (core_->role == SpdyRole::kServer);
    if (from_peer) core_->post(control_frame(kPing, 0, payload.substr(0, 4)));
    return true;
  }

  bool on_window(std::string_view payload) {
    if (payload.size() < 8) return protocol_error("WINDOW_UPDATE is cut short");
    core_->peer_has_windows = true;
    const auto id = get_32(payload, 0) & 0x7fffffff;
    const auto grant = static_cast<std::int64_t>(get_32(payload, 4) & 0x7fffffff);
    if (id == 0) {
      core_->session_window += grant;
      for (const auto& [other, stream] : core_->streams) stream->writable->notify();
    } else if (const auto stream = find(id)) {
      stream->window += grant;
      stream->writable->notify();
    }
    return true;
  }

  bool on_settings(std::string_view payload) {
    if (payload.size() < 4) return protocol_error("SETTINGS is cut short");
    const std::size_t count = get_32(payload, 0);
    if (payload.size() < 4 + count * 8) return protocol_error("SETTINGS is cut short");
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = get_32(payload, 4 + i * 8) & 0xffffff;
      if (id != kSettingInitialWindow) continue;
      const auto value = static_cast<std::int64_t>(get_32(payload, 8 + i * 8) & 0x7fffffff);
      for (const auto& [other, stream] : core_->streams) {
        stream->window += value - core_->initial_window;
        stream->writable->notify();
      }
      core_->initial_window = value;
    }
    return true;
  }

  CorePtr core_;
  std::string in_;
  std::uint32_t data_stream_ = 0;
  unsigned data_flags_ = 0;
  std::size_t data_left_ = 0;
};

Task<void> read_all(CorePtr core) {
  FrameReader reader(core);
  while (!core->dead) {
    auto bytes = co_await core->bytes->read();
    if (!bytes || bytes->empty()) break;
    const bool ok = co_await reader.feed(std::move(*bytes));
    if (!ok) break;
  }
  core->die();
}

Task<void> write_all(CorePtr core) {
  while (!core->dead) {
    if (core->outbox.empty()) {
      co_await core->out_ready->wait(Duration::zero());
      continue;
    }
    // Small frames that have queued up go out in one write.
    std::string batch;
    while (!core->outbox.empty() && batch.size() < kDataBytesMax) {
      batch += core->outbox.front();
      core->outbox.pop_front();
    }
    const auto size = batch.size();
    core->writing = true;
    const auto written = co_await core->bytes->write(std::move(batch));
    core->writing = false;
    core->outbox_bytes -= size;
    core->out_room->notify();
    if (!written) break;
  }
  core->die();
}

class Session final : public SpdySession {
 public:
  explicit Session(CorePtr core) : core_(std::move(core)) {
    core_->env.spawn(read_all(core_));
    core_->env.spawn(write_all(core_));
  }
  ~Session() override { core_->die(); }

  Task<std::shared_ptr<SpdyStream>> accept() override {
    const auto core = core_;
    while (core->accepted.empty() && !core->dead && !core->no_more_streams)
      co_await core->arrived->wait(Duration::zero());
    if (core->accepted.empty()) co_return nullptr;
    auto state = std::move(core->accepted.front());
    core->accepted.pop_front();
    co_return std::make_shared<StreamHandle>(core, std::move(state));
  }

  Task<Result<std::shared_ptr<SpdyStream>>> open(Headers headers) override {
    const auto core = core_;
    if (core->dead || core->no_more_streams)
      co_return fail(Code::kUnavailable, "SPDY session has ended");
    const auto id = core->next_id;
    core->next_id += 2;
    const auto block = core->deflater.pack(headers);
    const auto state = std::make_shared<StreamState>(core->env, id, std::move(headers));
    state->window = core->initial_window;
    core->streams.emplace(id, state);
    std::string payload = two_words(id, 0);
    payload.append(2, '\0');
    payload += block;
    core->post(control_frame(kSynStream, 0, payload));
    while (!state->replied && !state->reset && !core->dead) {
      const bool notified = co_await state->writable->wait(kReplyWait);
      if (notified) continue;
      core->reset_stream(state, kCancel);
      co_return fail(Code::kTimeout, "SPDY peer does not reply to a new stream");
    }
    if (!state->replied) co_return fail(Code::kUnavailable, "SPDY peer refused a stream");
    co_return std::shared_ptr<SpdyStream>(std::make_shared<StreamHandle>(core, state));
  }

  Task<void> shutdown() override {
    const auto core = core_;
    core->post(control_frame(kGoAway, 0, two_words(core->last_peer_id, 0)));
    const auto begun = core->env.monotonic();
    while (!core->dead && (core->writing || !core->outbox.empty()) &&
           core->env.monotonic() - begun < kShutdownWait) {
      co_await core->out_room->wait(kShutdownWait);
    }
    core->die();
  }
  void close() override { core_->die(); }
  [[nodiscard]] bool closed() const override { return core_->dead; }
  Task<void> wait_closed() override {
    const auto core = core_;
    while (!core->dead) co_await core->died->wait(Duration::zero());
  }

 private:
  CorePtr core_;
};

// ----------------------------------------------------------------- Bytes inside WebSocket messages

class WebSocketBytes final : public ByteStream {
 public:
  WebSocketBytes(Env& env, std::unique_ptr<WebSocket> socket)
      : env_(env), socket_(std::move(socket)) {}
  ~WebSocketBytes() override { close(); }

  Task<Result<std::string>> read() override {
    const auto socket = socket_;
    while (!closed_) {
      auto message = co_await socket->read();
      if (!message) co_return tl::unexpected(std::move(message.error()));
      if (!*message) break;
      if (!(*message)->data.empty()) co_return std::move((*message)->data);
    }
    co_return std::string();
  }
  Task<Result<void>> write(std::string bytes) override {
    const auto socket = socket_;
    if (closed_) co_return fail(Code::kUnavailable, "websocket is closed");
    WebSocket::Message message;
    message.data = std::move(bytes);
    const auto written = co_await socket->write(std::move(message));
    co_return written;
  }
  void close() override {
    if (std::exchange(closed_, true)) return;
    env_.spawn([](std::shared_ptr<WebSocket> socket) -> Task<void> {
      co_await socket->close(1000, "");
    }(socket_));
  }

 private:
  Env& env_;
  std::shared_ptr<WebSocket> socket_;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<SpdySession> make_spdy_session(Env& env,
                                               std::unique_ptr<ByteStream> bytes,
                                               SpdyRole role) {
  return std::make_unique<Session>(std::make_shared<Core>(env, std::move(bytes), role));
}

std::unique_ptr<ByteStream> make_websocket_bytes(Env& env, std::unique_ptr<WebSocket> socket) {
  return std::make_unique<WebSocketBytes>(env, std::move(socket));
}

}  // namespace muster::net
