#include "agent/pod/grpc_check.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "net/http2/cleartext.h"
#include "net/http2/grpc.h"

namespace muster::agent {
namespace {

/// HealthCheckRequest{service}: field 1, a string.
std::string question(const std::string& service) {
  return service.empty() ? "" : std::string("\x0a") + static_cast<char>(service.size()) + service;
}

/// HealthCheckResponse{status}: field 1, an enumerator; 0, the unknown, is left out.
int status_in(std::string_view message) {
  return message.size() >= 2 && message[0] == 8 ? message[1] : 0;
}

}  // namespace

Task<Result<void>> grpc_health_check(
    net::Loop& loop, std::string address, int port, std::string service, Duration timeout) {
  if (service.size() > 100)
    co_return fail(Code::kInvalid, "gRPC service name is longer than 100 characters");
  net::Request request;
  request.method = "POST";
  request.target = "/grpc.health.v1.Health/Check";
  request.headers.set("content-type", "application/grpc");
  request.headers.set("te", "trailers");
  request.headers.set("user-agent", "kube-probe/1.34");
  request.body = net::grpc_frame(question(service));
  const auto answer =
      co_await net::request_cleartext(loop, {address, port}, std::move(request), timeout);
  if (!answer) co_return fail(answer.error());
  const auto failed = parse_int(answer->headers.get("grpc-status")).value_or(0);
  if (failed != 0)
    co_return fail(net::grpc_error(static_cast<int>(failed), answer->headers.get("grpc-message")));
  const auto message = net::grpc_unframe(answer->body);
  if (!message) co_return fail(message.error());
  const int status = status_in(*message);
  if (status == 1) co_return Result<void>();
  co_return fail(Code::kUnavailable,
                 fmt::format("service unhealthy (responded with \"{}\")",
                             status == 2   ? "NOT_SERVING"
                             : status == 3 ? "SERVICE_UNKNOWN"
                                           : "UNKNOWN"));
}

}  // namespace muster::agent
