#include "net/http2/grpc.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "net/http2/http2.h"
#include "net/loop/socket.h"

namespace muster::net {
namespace {

constexpr std::size_t kFrameHead = 5;
constexpr Duration kNoLimit = std::chrono::hours(24 * 365 * 10);

struct StatusName {
  std::string_view name;
  Code code;
};
/// By number, as gRPC has them.
constexpr std::array<StatusName, 17> kStatuses{{{"OK", Code::kInternal},
                                                {"Canceled", Code::kTimeout},
                                                {"Unknown", Code::kInternal},
                                                {"InvalidArgument", Code::kBadRequest},
                                                {"DeadlineExceeded", Code::kTimeout},
                                                {"NotFound", Code::kNotFound},
                                                {"AlreadyExists", Code::kAlreadyExists},
                                                {"PermissionDenied", Code::kForbidden},
                                                {"ResourceExhausted", Code::kTooManyRequests},
                                                {"FailedPrecondition", Code::kConflict},
                                                {"Aborted", Code::kConflict},
                                                {"OutOfRange", Code::kBadRequest},
                                                {"Unimplemented", Code::kMethodNotAllowed},
                                                {"Internal", Code::kInternal},
                                                {"Unavailable", Code::kUnavailable},
                                                {"DataLoss", Code::kInternal},
                                                {"Unauthenticated", Code::kUnauthorized}}};
constexpr int kUnknown = 2, kDeadlineExceeded = 4, kUnavailable = 14, kInternal = 13;

Error status_error(int status, std::string_view text) {
  const bool known = status > 0 && status < static_cast<int>(kStatuses.size());
  const auto& name = kStatuses[static_cast<std::size_t>(known ? status : kUnknown)];
  Error error;
  error.code = name.code;
  error.message = fmt::format("rpc error: code = {} desc = {}", name.name, text);
  return error;
}

class UnixClient final : public GrpcClient {
 public:
  UnixClient(Loop& loop, std::string path) : loop_(loop), path_(std::move(path)) {}
  ~UnixClient() override { close(); }

  Task<Result<std::string>> call(GrpcCall call) override {
    const auto connected = connect();
    if (!connected) co_return fail(connected.error());
    const auto connection = connection_;  // stays while the call is under way
    auto request = make_request(call);
    request.headers.set("grpc-timeout", grpc_timeout(call.timeout));
    bool untouched = false;
    // The server ends it in time and says so; this side only notices a server that does not.
    const auto patience = call.timeout + std::chrono::seconds(5);
    auto answer = co_await connection->request(std::move(request), patience, untouched);
    if (!answer)
      co_return fail(
          status_error(answer.error().code == Code::kTimeout ? kDeadlineExceeded : kUnavailable,
                       answer.error().message));
    co_return read(*answer);
  }

  Task<Result<void>> follow(GrpcCall call, std::function<void(std::string)> each) override {
    const auto connected = connect();
    if (!connected) co_return fail(connected.error());
    const auto connection = connection_;
    bool untouched = false;
    // The head comes with the first message, which may be tomorrow's.
    auto answer = co_await connection->stream(make_request(call), kNoLimit, untouched);
    if (!answer) co_return fail(status_error(kUnavailable, answer.error().message));
    const auto stream = std::move(*answer);
    if (const auto status = parse_int(stream->headers().get("grpc-status")); status && *status != 0)
      co_return fail(grpc_error(static_cast<int>(*status), stream->headers().get("grpc-message")));
    std::string received;
    for (;;) {
      auto bytes = co_await stream->read();
      if (!bytes) co_return fail(status_error(kUnavailable, bytes.error().message));
      if (bytes->empty()) co_return Result<void>();
      received += *bytes;
      for (;;) {
        auto message = grpc_next(received);
        if (!message) co_return fail(message.error());
        if (!*message) break;
        each(std::move(**message));
      }
    }
  }

  void close() override {
    if (connection_) connection_->close();
    connection_.reset();
  }

 private:
  Result<void> connect() {
    if (connection_ && connection_->room() > 0) return {};
    const int descriptor = connect_unix(path_);
    if (descriptor < 0)
      return fail(status_error(kUnavailable,
                               fmt::format("connect to \"{}\": {}", path_, std::strerror(errno))));
    asio::ip::tcp::socket socket(loop_.context());
    ErrorCode error;
    socket.assign(asio::ip::tcp::v4(), descriptor, error);
    if (error) return fail(status_error(kUnavailable, error.message()));
    Http2Manners manners;
    manners.scheme = "http";
    manners.pings = false;
    manners.answer_bytes_max = kGrpcMessageBytesMax + kFrameHead;
    connection_ =
        start_http2(make_plain_stream(std::move(socket)), "localhost", "", nullptr, manners);
    return {};
  }

  static Request make_request(GrpcCall& call) {
    Request request;
    request.method = "POST";
    request.target = std::move(call.method);
    request.body = grpc_frame(call.message);
    request.headers.set("content-type", "application/grpc");
    request.headers.set("te", "trailers");
    request.headers.set("user-agent", "muster");
    for (auto& [name, value] : call.metadata) request.headers.set(name, value);
    return request;
  }

  static Result<std::string> read(const Response& answer) {
    const auto status = parse_int(answer.headers.get("grpc-status"));
    if (answer.status != 200 || !status)
      return fail(status_error(
          kUnavailable,
          fmt::format("the server does not speak gRPC: HTTP status {}", answer.status)));
    if (*status != 0)
      return fail(grpc_error(static_cast<int>(*status), answer.headers.get("grpc-message")));
    return grpc_unframe(answer.body);
  }

  Loop& loop_;
  std::string path_;
  std::shared_ptr<Http2Connection> connection_;
};

}  // namespace

std::string grpc_frame(std::string_view message) {
  std::string out(1, '\0');
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(message.size() >> shift & 0xff);
  out.append(message);
  return out;
}

Result<std::optional<std::string>> grpc_next(std::string& received) {
  if (received.size() < kFrameHead) return std::optional<std::string>();
  if (received[0] != 0) return fail(status_error(kInternal, "the answer is compressed"));
  std::size_t size = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i)
    size = size << 8 | static_cast<unsigned char>(received[i]);
  if (size > kGrpcMessageBytesMax)
    return fail(status_error(kInternal, fmt::format("a message of {} bytes is too large", size)));
  if (received.size() < kFrameHead + size) return std::optional<std::string>();
  std::optional<std::string> out(received.substr(kFrameHead, size));
  received.erase(0, kFrameHead + size);
  return out;
}

Result<std::string> grpc_unframe(std::string_view body) {
  if (body.size() < kFrameHead) return fail(status_error(kInternal, "the answer has no message"));
  if (body[0] != 0) return fail(status_error(kInternal, "the answer is compressed"));
  std::size_t size = 0;
  for (std::size_t i = 1; i < kFrameHead; ++i)
    size = size << 8 | static_cast<unsigned char>(body[i]);
  body.remove_prefix(kFrameHead);
  if (size != body.size())
    return fail(status_error(
        kInternal,
        fmt::format("wanted one message of {} bytes, found {} bytes", size, body.size())));
  return std::string(body);
}

Error grpc_error(int status, std::string_view message) {
  const auto decoded = percent_decode(message, false);
  return status_error(status, decoded ? std::string_view(*decoded) : message);
}

std::string grpc_timeout(Duration timeout) {
  constexpr std::int64_t kDigitsMax = 99'999'999;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  if (ms <= kDigitsMax) return fmt::format("{}m", std::max<std::int64_t>(ms, 1));
  return fmt::format("{}S", std::min<std::int64_t>(ms / 1000, kDigitsMax));
}

std::unique_ptr<GrpcClient> make_grpc_client(Loop& loop, std::string unix_path) {
  return std::make_unique<UnixClient>(loop, std::move(unix_path));
}

}  // namespace muster::net
