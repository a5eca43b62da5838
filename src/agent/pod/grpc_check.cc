#include "agent/pod/grpc_check.h"

#include <fmt/core.h>

#include "net/loop/descriptor.h"

namespace muster::agent {
namespace {

enum FrameType { kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kPing = 6, kGoAway = 7 };
constexpr int kEndStream = 1, kAck = 1, kEndHeaders = 4;

std::string frame(FrameType type, int flags, int stream, const std::string& payload) {
  std::string out;
  const auto size = payload.size();
  for (const int shift : {16, 8, 0}) out += static_cast<char>(size >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift);
  return out + payload;
}

/// HPACK: literal header field without indexing, new name, no Huffman. Names and values here are
/// below 127 bytes.
std::string header(const std::string& name, const std::string& value) {
  std::string out(1, '\0');
  out += static_cast<char>(name.size());
  out += name;
  out += static_cast<char>(value.size());
  return out + value;
}

std::string request_bytes(const std::string& authority, const std::string& service) {
  std::string message;
  if (!service.empty()) message = std::string("\x0a") + static_cast<char>(service.size()) + service;
  std::string data(5, '\0');
  data[4] = static_cast<char>(message.size());
  data += message;
  const auto headers = header(":method", "POST") + header(":scheme", "http") +
                       header(":path", "/grpc.health.v1.Health/Check") +
                       header(":authority", authority) +
                       header("content-type", "application/grpc") + header("te", "trailers") +
                       header("user-agent", "kube-probe/1.34");
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "") +
         frame(kHeaders, kEndHeaders, 1, headers) + frame(kData, kEndStream, 1, data);
}

}  // namespace

Task<Result<void>> grpc_health_check(
    net::Loop& loop, std::string address, int port, std::string service, Duration timeout) {
  if (service.size() > 100)
    co_return fail(Code::kInvalid, "gRPC service name is longer than 100 characters");
  auto connected = co_await net::connect_tcp(loop, address, port, timeout);
  if (!connected) co_return fail(connected.error());
  auto* stream = connected->get();
  const auto timer = loop.after(timeout, [stream] { stream->close(); });
  const auto written =
      co_await stream->write(request_bytes(fmt::format("{}:{}", address, port), service));
  if (!written) co_return fail(written.error());
  std::string buffer, answer;
  for (;;) {
    while (buffer.size() >= 9) {
      const auto byte = [&buffer](std::size_t i) {
        return static_cast<std::size_t>(static_cast<unsigned char>(buffer[i]));
      };
      const auto size = byte(0) << 16 | byte(1) << 8 | byte(2);
      const auto type = byte(3), flags = byte(4);
      if (buffer.size() < 9 + size) break;
      const auto payload = buffer.substr(9, size);
      buffer.erase(0, 9 + size);
      if (type == kSettings && (flags & kAck) == 0) {
        const auto acknowledged = co_await stream->write(frame(kSettings, kAck, 0, ""));
        if (!acknowledged) co_return fail(acknowledged.error());
      }
      if (type == kData) answer += payload;
      if (type == kRstStream || type == kGoAway)
        co_return fail(Code::kUnavailable, "the server reset the gRPC call");
      const bool end = (type == kData || type == kHeaders) && (flags & kEndStream) != 0;
      if (!end && !(type == kData && answer.size() >= 7)) continue;
      // HealthCheckResponse{status: SERVING} is 08 01 behind five bytes of length.
      if (answer.size() >= 7 && answer[5] == 8 && answer[6] == 1) co_return Result<void>();
      co_return fail(Code::kUnavailable,
                     fmt::format("service unhealthy (responded with \"{}\")",
                                 answer.size() >= 7 && answer[6] == 2 ? "NOT_SERVING" : "UNKNOWN"));
    }
    const auto bytes = co_await stream->read();
    if (!bytes || bytes->empty())
      co_return fail(Code::kTimeout, "the gRPC health check got no answer in time");
    buffer += *bytes;
  }
}

}  // namespace muster::agent
