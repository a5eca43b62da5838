/// /kube/…: what pages need of the cluster's own API, under the visitor's name and rights.
#include <fmt/core.h>

#include "base/strings.h"
#include "net/http/query.h"
#include "net/http/websocket.h"
#include "portal/api/api.h"

namespace muster::portal {
namespace {

net::Response status_answer(const Error& error) {
  const int code = http_status_of(error.code);
  return json_answer(code,
                     json::dump(json::Value{{"kind", "Status"},
                                            {"apiVersion", "v1"},
                                            {"metadata", json::Object{}},
                                            {"status", "Failure"},
                                            {"message", error.message},
                                            {"reason", reason_of(error.code)},
                                            {"code", code}}) +
                         "\n");
}

net::Headers passed_on(const net::Headers& from) {
  net::Headers headers;
  for (const std::string_view name :
       {"Content-Type", "Content-Encoding", "Warning", "Retry-After"}) {
    for (const std::string_view value : from.all(name))
      headers.add(std::string(name), std::string(value));
  }
  headers.set("Cache-Control", "no-store");
  return headers;
}

/// Watches by path, which never end, and logs, which may be long: passed on piece by piece, not
/// gathered here.
bool has_no_bound(const net::Target& target) {
  const auto& parts = target.segments;
  const std::size_t first = !parts.empty() && parts[0] == "apis" ? 3 : 2;
  return (parts.size() > first && parts[first] == "watch") ||
         (!parts.empty() && parts.back() == "log");
}

Task<void> pass_socket(World& world,
                       const User& user,
                       net::Request request,
                       net::ResponseWriter& writer) {
  const std::string wanted(trim(request.headers.get("Sec-WebSocket-Protocol")));
  const std::string protocol(trim(std::string_view(wanted).substr(0, wanted.find(','))));
  net::Request inner;
  inner.method = "GET";
  inner.target = request.target;
  auto other =
      co_await world.kube.http().websocket(world.kube.request_as(user, std::move(inner)), protocol);
  if (!other) {
    co_await answer(writer, status_answer(other.error()));
    co_return;
  }
  auto socket = co_await writer.upgrade_websocket(protocol);
  if (!socket) co_return;
  co_await join_sockets(world.env, std::move(*socket), std::move(*other));
}

Task<void> pass_stream(World& world,
                       const User& user,
                       net::Request request,
                       net::ResponseWriter& writer) {
  auto stream = co_await world.kube.http().stream(world.kube.request_as(user, std::move(request)));
  if (!stream) {
    co_await answer(writer, status_answer(stream.error()));
    co_return;
  }
  net::Response head;
  head.status = (*stream)->status();
  head.headers = passed_on((*stream)->headers());
  const auto started = co_await writer.start(std::move(head));
  if (!started) co_return;
  net::ResponseStream* raw = stream->get();
  writer.on_close([raw] { raw->close(); });
  while (!writer.closed()) {
    auto piece = co_await (*stream)->read();
    if (!piece || piece->empty()) break;
    const auto sent = co_await writer.write(std::make_shared<const std::string>(std::move(*piece)));
    if (!sent) break;
  }
  writer.on_close({});
  const auto finished = co_await writer.finish();
  (void)finished;
}

/// One direction. Ends both when its side ends.
Task<void> pump(std::shared_ptr<net::WebSocket> from,
                std::shared_ptr<net::WebSocket> to,
                std::shared_ptr<Signal> ended) {
  while (true) {
    auto message = co_await from->read();
    if (!message || !*message) break;
    const auto sent = co_await to->write(std::move(**message));
    if (!sent) break;
  }
  co_await to->close(1000, "");
  ended->notify();
}

}  // namespace

Task<void> join_sockets(Env& env,
                        std::unique_ptr<net::WebSocket> one,
                        std::unique_ptr<net::WebSocket> other) {
  const std::shared_ptr<net::WebSocket> left = std::move(one), right = std::move(other);
  const std::shared_ptr<Signal> ended = env.make_signal();
  env.spawn(pump(right, left, ended));
  co_await pump(left, right, std::shared_ptr<Signal>(env.make_signal()));
  co_await ended->wait(std::chrono::seconds(10));
}

Task<void> serve_kube(World& world,
                      Visitor visitor,
                      net::Request request,
                      net::ResponseWriter& writer) {
  request.target = request.target.substr(std::string_view("/kube").size());
  if (!request.target.starts_with("/api/") && !request.target.starts_with("/apis/") &&
      request.target != "/version") {
    co_await answer(
        writer,
        status_answer(Error{.code = Code::kNotFound,
                            .message = "below /kube there are /api, /apis and /version"}));
    co_return;
  }
  const auto target = net::parse_target(request.target);
  if (!target) {
    co_await answer(writer, status_answer(target.error()));
    co_return;
  }
  if (net::wants_websocket(request)) {
    co_await pass_socket(world, visitor.user, std::move(request), writer);
    co_return;
  }
  const bool streams =
      net::on(*target, "watch") || net::on(*target, "follow") || has_no_bound(*target);
  if (streams) {
    co_await pass_stream(world, visitor.user, std::move(request), writer);
    co_return;
  }
  auto response = co_await world.kube.send_as(visitor.user, std::move(request));
  if (!response) {
    co_await answer(writer, status_answer(response.error()));
    co_return;
  }
  net::Response out;
  out.status = response->status;
  out.headers = passed_on(response->headers);
  out.body = std::move(response->body);
  co_await answer(writer, std::move(out));
}

}  // namespace muster::portal
