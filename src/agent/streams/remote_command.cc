#include "agent/streams/remote_command.h"

#include <fmt/core.h>

#include <algorithm>

#include "agent/streams/streams.h"
#include "base/strings.h"
#include "net/spdy/spdy.h"

namespace muster::agent {
namespace {

enum Channel : char {
  kStdin = 0,
  kStdout = 1,
  kStderr = 2,
  kError = 3,
  kResize = 4,
  kClose = static_cast<char>(255)
};

void resize(Session& session, std::string_view text) {
  const auto size = json::parse(trim(text));
  if (size)
    session.resize(static_cast<int>(json::int_at(*size, "Width")),
                   static_cast<int>(json::int_at(*size, "Height")));
}

Task<Result<std::unique_ptr<Session>>> open_session(Context& context, const CommandCall& call) {
  if (call.attach) {
    auto session = co_await context.runtime.attach(call.sandbox_id, call.container_id, call.config);
    co_return session;
  }
  auto session = co_await context.runtime.exec(call.sandbox_id, call.container_id, call.config);
  co_return session;
}

/// What the coroutines of one connection share: it ends when the command has ended and its output
/// is written.
struct Relay {
  explicit Relay(net::Loop& loop) : changed(loop.make_signal()) {}
  std::unique_ptr<Session> session;
  std::shared_ptr<net::WebSocket> socket;
  std::unique_ptr<Signal> changed;
  int pumping = 0;  // output streams not yet at their end
  int sending = 0;  // of those, the ones that wait for the client to take what was read
  Duration last_output = Duration::zero();
  bool writing = false;  // one write at a time on a WebSocket
  bool broken = false;   // the client is gone
};
using RelayPtr = std::shared_ptr<Relay>;

constexpr Duration kSilenceMax = std::chrono::seconds(2);

/// Waits until the output of a command that has ended is written, however slowly the client takes
/// it. A process that the command left behind may hold its output open for ever: one that is silent
/// for a moment is not waited for.
Task<void> drain(net::Loop& loop, RelayPtr relay) {
  relay->last_output = std::max(relay->last_output, loop.monotonic());
  while (relay->pumping > 0 && !relay->broken) {
    if (relay->sending == 0 && loop.monotonic() - relay->last_output > kSilenceMax) co_return;
    co_await relay->changed->wait(std::chrono::milliseconds(500));
  }
}

Task<bool> write_channel(RelayPtr relay, Channel channel, std::string bytes) {
  while (relay->writing) co_await relay->changed->wait(Duration::zero());
  if (relay->broken) co_return false;
  relay->writing = true;
  net::WebSocket::Message message;
  message.data = std::string(1, channel) + bytes;
  const auto written = co_await relay->socket->write(std::move(message));
  relay->writing = false;
  if (!written) relay->broken = true;
  relay->changed->notify();
  co_return written.has_value();
}

Task<void> pump_to_channel(net::Loop& loop,
                           RelayPtr relay,
                           net::ByteStream* stream,
                           Channel channel) {
  for (;;) {
    auto bytes = co_await stream->read();
    if (!bytes || bytes->empty()) break;
    ++relay->sending;
    const bool sent = co_await write_channel(relay, channel, std::move(*bytes));
    --relay->sending;
    relay->last_output = loop.monotonic();
    if (!sent) break;
  }
  --relay->pumping;
  relay->changed->notify();
}

/// stdin, resize and close from the client, until it goes.
Task<void> read_channels(RelayPtr relay, bool attach) {
  for (;;) {
    auto message = co_await relay->socket->read();
    if (!message || !*message) break;
    const auto& data = (*message)->data;
    if (data.empty()) continue;
    const std::string_view payload = std::string_view(data).substr(1);
    if (data[0] == kStdin && relay->session->stdin_stream() != nullptr) {
      if (payload.empty()) continue;
      (void)co_await relay->session->stdin_stream()->write(std::string(payload));
    } else if (data[0] == kResize) {
      resize(*relay->session, payload);
    } else if (data[0] == kClose && payload == std::string_view("\0", 1)) {
      relay->session->close_stdin();
    }
  }
  relay->broken = true;
  relay->session->close_stdin();
  if (!attach) relay->session->abandon();
  relay->changed->notify();
}

Task<void> serve_websocket(Context& context,
                           CommandCall call,
                           net::Request request,
                           net::ResponseWriter& writer) {
  const auto protocol = choose_protocol(
      request.headers, "Sec-WebSocket-Protocol", {"v5.channel.k8s.io", "v4.channel.k8s.io"});
  if (protocol.empty()) {
    Error error;
    error.code = Code::kBadRequest;
    error.message = fmt::format(
        "unable to upgrade: none of the offered subprotocols \"{}\" is v5.channel.k8s.io or "
        "v4.channel.k8s.io",
        request.headers.get("Sec-WebSocket-Protocol"));
    co_await send_error(writer, std::move(error));
    co_return;
  }
  auto upgraded = co_await writer.upgrade_websocket(protocol);
  if (!upgraded) co_return;
  auto relay = std::make_shared<Relay>(*context.sockets);
  relay->socket = std::move(*upgraded);
  auto session = co_await open_session(context, call);
  if (!session) {
    (void)co_await write_channel(
        relay, kError, exit_status(tl::unexpected<Error>(session.error())));
    co_await relay->socket->close(1000, "");
    co_return;
  }
  relay->session = std::move(*session);
  if (call.config.stdout_open) (void)co_await write_channel(relay, kStdout, "");
  const auto pump = [&](net::ByteStream* stream, Channel channel) {
    if (stream == nullptr) return;
    ++relay->pumping;
    context.loop.spawn(pump_to_channel(*context.sockets, relay, stream, channel));
  };
  pump(relay->session->stdout_stream(), kStdout);
  pump(relay->session->stderr_stream(), kStderr);
  context.loop.spawn(read_channels(relay, call.attach));
  const auto code = co_await relay->session->wait();
  co_await drain(*context.sockets, relay);
  if (!relay->broken) (void)co_await write_channel(relay, kError, exit_status(code));
  co_await relay->socket->close(1000, "");
  relay->broken = true;
  for (auto* stream : {relay->session->stdout_stream(),
                       relay->session->stderr_stream(),
                       relay->session->stdin_stream()}) {
    if (stream != nullptr) stream->close();
  }
}

// -------------------------------------------------------------------------------------------- SPDY

struct SpdyStreams {
  std::shared_ptr<net::SpdyStream> error, in, out, err, resize;
};

Task<void> pump_stream(net::Loop& loop,
                       std::shared_ptr<Relay> relay,
                       net::ByteStream* from,
                       std::shared_ptr<net::SpdyStream> to) {
  for (;;) {
    auto bytes = co_await from->read();
    if (!bytes || bytes->empty()) break;
    ++relay->sending;
    const auto written = co_await to->write(std::move(*bytes));
    --relay->sending;
    relay->last_output = loop.monotonic();
    if (!written) break;
  }
  (void)co_await to->finish();
  --relay->pumping;
  relay->changed->notify();
}

Task<void> pump_stdin(std::shared_ptr<Relay> relay, std::shared_ptr<net::SpdyStream> from) {
  for (;;) {
    auto bytes = co_await from->read();
    if (!bytes || bytes->empty()) break;
    const auto written = co_await relay->session->stdin_stream()->write(std::move(*bytes));
    if (!written) co_return;
  }
  relay->session->close_stdin();
}

Task<void> read_sizes(std::shared_ptr<Relay> relay, std::shared_ptr<net::SpdyStream> from) {
  std::string buffer;
  for (;;) {
    auto bytes = co_await from->read();
    if (!bytes || bytes->empty()) co_return;
    buffer += *bytes;
    for (auto newline = buffer.find('\n'); newline != std::string::npos;
         newline = buffer.find('\n')) {
      resize(*relay->session, std::string_view(buffer).substr(0, newline));
      buffer.erase(0, newline + 1);
    }
  }
}

/// Until the client goes: a command that nobody reads any more is ended.
Task<void> watch_client(std::shared_ptr<net::SpdySession> spdy,
                        std::shared_ptr<Relay> relay,
                        bool attach) {
  for (;;) {
    const auto another = co_await spdy->accept();  // none is expected
    if (!another) break;
  }
  // One that will open no more streams may still listen.
  co_await spdy->wait_closed();
  relay->broken = true;
  relay->session->close_stdin();
  if (!attach) relay->session->abandon();
  relay->changed->notify();
}

/// Collects the streams that the client announced by its query.
Task<Result<SpdyStreams>> accept_streams(net::SpdySession& session, const CommandCall& call) {
  SpdyStreams streams;
  int wanted = 1 + (call.config.stdin_open ? 1 : 0) + (call.config.stdout_open ? 1 : 0) +
               (call.config.stderr_open ? 1 : 0) + (call.config.tty ? 1 : 0);
  while (wanted-- > 0) {
    auto stream = co_await session.accept();
    if (!stream)
      co_return fail(Code::kUnavailable,
                     "the client closed the connection before it opened all streams");
    const auto type = std::string(stream->headers().get("streamtype"));
    auto& place = type == "error"    ? streams.error
                  : type == "stdin"  ? streams.in
                  : type == "stdout" ? streams.out
                  : type == "stderr" ? streams.err
                                     : streams.resize;
    place = std::move(stream);
  }
  if (!streams.error) co_return fail(Code::kBadRequest, "the client opened no error stream");
  co_return streams;
}

Task<void> serve_spdy(Context& context,
                      CommandCall call,
                      net::Request request,
                      net::ResponseWriter& writer) {
  const auto protocol =
      choose_protocol(request.headers, "X-Stream-Protocol-Version", {"v4.channel.k8s.io"});
  if (protocol.empty()) {
    Error error;
    error.code = Code::kForbidden;
    error.message =
        "unable to upgrade: the client offers no stream protocol version v4.channel.k8s.io";
    co_await send_error(writer, std::move(error));
    co_return;
  }
  net::Headers headers;
  headers.set("Connection", "Upgrade");
  headers.set("Upgrade", "SPDY/3.1");
  headers.set("X-Stream-Protocol-Version", protocol);
  auto upgraded = co_await writer.upgrade_raw(std::move(headers));
  if (!upgraded) co_return;
  const std::shared_ptr<net::SpdySession> spdy =
      net::make_spdy_session(*context.sockets, std::move(*upgraded), net::SpdyRole::kServer);
  auto streams = co_await accept_streams(*spdy, call);
  if (!streams) {
    spdy->close();
    co_return;
  }
  auto relay = std::make_shared<Relay>(*context.sockets);
  auto session = co_await open_session(context, call);
  if (!session) {
    (void)co_await streams->error->write(exit_status(tl::unexpected<Error>(session.error())));
    (void)co_await streams->error->finish();
    co_await spdy->shutdown();
    co_return;
  }
  relay->session = std::move(*session);
  const auto pump = [&](net::ByteStream* from, const std::shared_ptr<net::SpdyStream>& to) {
    if (from == nullptr || !to) return;
    ++relay->pumping;
    context.loop.spawn(pump_stream(*context.sockets, relay, from, to));
  };
  pump(relay->session->stdout_stream(), streams->out);
  pump(relay->session->stderr_stream(), streams->err);
  if (streams->in && relay->session->stdin_stream() != nullptr)
    context.loop.spawn(pump_stdin(relay, streams->in));
  if (streams->resize) context.loop.spawn(read_sizes(relay, streams->resize));
  context.loop.spawn(watch_client(spdy, relay, call.attach));
  const auto code = co_await relay->session->wait();
  co_await drain(*context.sockets, relay);
  (void)co_await streams->error->write(exit_status(code));
  (void)co_await streams->error->finish();
  co_await spdy->shutdown();
}

}  // namespace

std::string exit_status(const Result<int>& code) {
  if (code && *code == 0) return R"({"metadata":{},"status":"Success"})";
  if (code) {
    return json::dump(json::Object{
        {"metadata", json::Object{}},
        {"status", "Failure"},
        {"message",
         fmt::format("command terminated with non-zero exit code: exit status {}", *code)},
        {"reason", "NonZeroExitCode"},
        {"details",
         json::Object{{"causes",
                       json::Array{json::Object{{"reason", "ExitCode"},
                                                {"message", std::to_string(*code)}}}}}}});
  }
  return json::dump(json::Object{
      {"metadata", json::Object{}},
      {"status", "Failure"},
      {"message",
       fmt::format("Internal error occurred: error executing command in container: {}",
                   code.error().message)},
      {"reason", "InternalError"},
      {"details",
       json::Object{{"causes", json::Array{json::Object{{"message", code.error().message}}}}}},
      {"code", 500}});
}

std::string choose_protocol(const net::Headers& headers,
                            std::string_view header,
                            std::initializer_list<std::string_view> wanted) {
  for (const auto candidate : wanted) {
    for (const auto value : headers.all(header)) {
      for (const auto& part : split(value, ',')) {
        if (trim(part) == candidate) return std::string(candidate);
      }
    }
  }
  return "";
}

Task<void> serve_command(Context& context,
                         CommandCall call,
                         net::Request request,
                         UpgradeKind upgrade,
                         net::ResponseWriter& writer) {
  if (upgrade == UpgradeKind::kWebSocket) {
    co_await serve_websocket(context, std::move(call), std::move(request), writer);
  } else {
    co_await serve_spdy(context, std::move(call), std::move(request), writer);
  }
}

}  // namespace muster::agent
