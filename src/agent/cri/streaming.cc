#include "agent/cri/streaming.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "json/json.h"
#include "net/loop/descriptor.h"
#include "net/spdy/spdy.h"

namespace muster::agent::cri {
namespace {

constexpr Duration kConnect = std::chrono::seconds(10);
constexpr std::size_t kHeadMax = 16 * 1024;
constexpr const char* kCommandProtocol = "v4.channel.k8s.io";
constexpr const char* kPortProtocol = "portforward.k8s.io";

/// A connection some of whose bytes were read already.
class Prefixed final : public net::ByteStream {
 public:
  Prefixed(std::unique_ptr<net::ByteStream> stream, std::string first)
      : stream_(std::move(stream)), first_(std::move(first)) {}
  Task<Result<std::string>> read() override {
    if (!first_.empty()) co_return std::exchange(first_, {});
    auto bytes = co_await stream_->read();
    co_return bytes;
  }
  Task<Result<void>> write(std::string bytes) override { return stream_->write(std::move(bytes)); }
  void close() override { stream_->close(); }

 private:
  std::unique_ptr<net::ByteStream> stream_;
  std::string first_;
};

using SpdyPtr = std::shared_ptr<net::SpdySession>;
using StreamPtr = std::shared_ptr<net::SpdyStream>;

Task<Result<SpdyPtr>> upgrade(net::Loop& loop, std::string url, std::string protocol) {
  const auto parts = parse_stream_url(url);
  if (!parts) co_return fail(parts.error());
  auto connected = co_await net::connect_tcp(loop, parts->address, parts->port, kConnect);
  if (!connected) co_return fail(connected.error());
  auto stream = std::move(*connected);
  auto request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}:{}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
      "X-Stream-Protocol-Version: {}\r\nContent-Length: 0\r\n\r\n",
      parts->target,
      parts->address,
      parts->port,
      protocol);
  const auto asked = co_await stream->write(std::move(request));
  if (!asked) co_return fail(asked.error());
  std::string head;
  auto end = std::string::npos;
  while (end == std::string::npos && head.size() < kHeadMax) {
    auto bytes = co_await stream->read();
    if (!bytes) co_return fail(bytes.error());
    if (bytes->empty()) break;
    head += *bytes;
    end = head.find("\r\n\r\n");
  }
  if (end == std::string::npos || !head.starts_with("HTTP/1.1 101"))
    co_return fail(Code::kUnavailable,
                   fmt::format("the container runtime's streaming server does not switch to SPDY: "
                               "{}",
                               head.substr(0, head.find('\r'))));
  auto bytes = std::make_unique<Prefixed>(std::move(stream), head.substr(end + 4));
  co_return SpdyPtr(net::make_spdy_session(loop, std::move(bytes), net::SpdyRole::kClient));
}

Task<Result<StreamPtr>> open_stream(SpdyPtr spdy, std::string type, int port) {
  net::Headers headers;
  headers.set("streamtype", std::move(type));
  if (port > 0) {
    headers.set("port", std::to_string(port));
    headers.set("requestid", "0");
  }
  auto stream = co_await spdy->open(std::move(headers));
  co_return stream;
}

/// A stream of the session as the bytes of one direction.
class Lane final : public net::ByteStream {
 public:
  Lane(SpdyPtr spdy, StreamPtr stream) : spdy_(std::move(spdy)), stream_(std::move(stream)) {}
  Task<Result<std::string>> read() override { return stream_->read(); }
  Task<Result<void>> write(std::string bytes) override { return stream_->write(std::move(bytes)); }
  void close() override { stream_->close(); }

 private:
  SpdyPtr spdy_;  // lives as long as any of its streams
  StreamPtr stream_;
};

/// Both ways of a forwarded port; the session ends with it.
class PortStream final : public net::ByteStream {
 public:
  PortStream(SpdyPtr spdy, StreamPtr error, StreamPtr data)
      : spdy_(std::move(spdy)), error_(std::move(error)), data_(std::move(data)) {}
  ~PortStream() override { spdy_->close(); }
  Task<Result<std::string>> read() override {
    auto bytes = co_await data_->read();
    seen_ = seen_ || (bytes && !bytes->empty());
    if (!bytes || seen_) co_return bytes;
    // Ended without a byte: it may say why.
    auto said = co_await error_->read();
    if (said && !said->empty()) co_return fail(Code::kUnavailable, std::move(*said));
    co_return bytes;
  }
  Task<Result<void>> write(std::string bytes) override { return data_->write(std::move(bytes)); }
  void close() override { spdy_->close(); }

 private:
  SpdyPtr spdy_;
  StreamPtr error_, data_;
  bool seen_ = false;
};

class CriSession final : public Session {
 public:
  CriSession(net::Loop& loop, SpdyPtr spdy) : loop_(loop), spdy_(std::move(spdy)) {}
  ~CriSession() override { spdy_->close(); }

  net::ByteStream* stdin_stream() override { return in.get(); }
  net::ByteStream* stdout_stream() override { return out.get(); }
  net::ByteStream* stderr_stream() override { return err.get(); }

  void close_stdin() override {
    if (stdin_spdy) loop_.spawn(finish(stdin_spdy));
  }
  void resize(int columns, int rows) override {
    if (!sizes) return;
    loop_.spawn(send(sizes, fmt::format(R"({{"Width":{},"Height":{}}})", columns, rows) + "\n"));
  }
  Task<Result<int>> wait() override {
    std::string said;
    for (;;) {
      auto bytes = co_await error->read();
      if (!bytes || bytes->empty()) break;
      said += *bytes;
    }
    co_return exit_code_of(said);
  }
  /// The runtime ends a command whose connection is gone.
  void abandon() override { spdy_->close(); }

  StreamPtr error, stdin_spdy, sizes;
  std::unique_ptr<net::ByteStream> in, out, err;

 private:
  static Task<void> finish(StreamPtr stream) { (void)co_await stream->finish(); }
  static Task<void> send(StreamPtr stream, std::string text) {
    (void)co_await stream->write(std::move(text));
  }

  net::Loop& loop_;
  SpdyPtr spdy_;
};

}  // namespace

Result<StreamUrl> parse_stream_url(const std::string& url) {
  constexpr std::string_view kHttp = "http://";
  const auto bad = fail(
      Code::kInternal,
      fmt::format(
          "the container runtime names \"{}\" for a stream; wanted http://ADDRESS:PORT/PATH", url));
  if (!url.starts_with(kHttp)) return bad;
  const auto slash = url.find('/', kHttp.size());
  if (slash == std::string::npos) return bad;
  const auto place = url.substr(kHttp.size(), slash - kHttp.size());
  const auto colon = place.rfind(':');
  if (colon == std::string::npos) return bad;
  const auto port = parse_int(place.substr(colon + 1));
  if (!port || *port <= 0 || *port > 65535) return bad;
  StreamUrl out{place.substr(0, colon), static_cast<int>(*port), url.substr(slash)};
  const auto plain = [](unsigned char c) { return c > ' ' && c != 127; };
  if (!std::all_of(out.target.begin(), out.target.end(), plain)) return bad;
  return out;
}

Result<int> exit_code_of(const std::string& status) {
  if (status.empty())
    return fail(Code::kUnavailable, "the container runtime ended the stream without an answer");
  const auto parsed = json::parse(status);
  if (!parsed) return fail(Code::kInternal, status);
  if (json::string_at(*parsed, "status") == "Success") return 0;
  for (const auto& cause : json::array_at(*parsed, "details", "causes")) {
    if (json::string_at(cause, "reason") != "ExitCode") continue;
    if (const auto code = parse_int(json::string_at(cause, "message")); code)
      return static_cast<int>(*code);
  }
  return fail(Code::kInternal, json::text_at(*parsed, "message"));
}

Task<Result<std::unique_ptr<Session>>> open_session(net::Loop& loop,
                                                    std::string url,
                                                    ExecConfig config) {
  auto upgraded = co_await upgrade(loop, std::move(url), kCommandProtocol);
  if (!upgraded) co_return fail(upgraded.error());
  const auto spdy = *upgraded;
  auto session = std::make_unique<CriSession>(loop, spdy);
  // In this order: the server counts them until it has all that were asked for.
  auto error = co_await open_stream(spdy, "error", 0);
  if (!error) co_return fail(error.error());
  session->error = *error;
  if (config.stdin_open) {
    auto stream = co_await open_stream(spdy, "stdin", 0);
    if (!stream) co_return fail(stream.error());
    session->stdin_spdy = *stream;
    session->in = std::make_unique<Lane>(spdy, *stream);
  }
  if (config.stdout_open) {
    auto stream = co_await open_stream(spdy, "stdout", 0);
    if (!stream) co_return fail(stream.error());
    session->out = std::make_unique<Lane>(spdy, *stream);
  }
  if (config.stderr_open && !config.tty) {
    auto stream = co_await open_stream(spdy, "stderr", 0);
    if (!stream) co_return fail(stream.error());
    session->err = std::make_unique<Lane>(spdy, *stream);
  }
  if (config.tty) {
    auto stream = co_await open_stream(spdy, "resize", 0);
    if (!stream) co_return fail(stream.error());
    session->sizes = *stream;
  }
  co_return std::unique_ptr<Session>(std::move(session));
}

Task<Result<std::unique_ptr<net::ByteStream>>> open_port(net::Loop& loop,
                                                         std::string url,
                                                         int port) {
  auto upgraded = co_await upgrade(loop, std::move(url), kPortProtocol);
  if (!upgraded) co_return fail(upgraded.error());
  const auto spdy = *upgraded;
  auto error = co_await open_stream(spdy, "error", port);
  if (!error) co_return fail(error.error());
  (void)co_await (*error)->finish();
  auto data = co_await open_stream(spdy, "data", port);
  if (!data) co_return fail(data.error());
  co_return std::unique_ptr<net::ByteStream>(std::make_unique<PortStream>(spdy, *error, *data));
}

}  // namespace muster::agent::cri
