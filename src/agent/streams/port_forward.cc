#include "agent/streams/port_forward.h"

#include <fmt/core.h>

#include <list>
#include <map>

#include "agent/pod/pod_worker.h"
#include "agent/streams/streams.h"
#include "base/strings.h"
#include "net/loop/descriptor.h"
#include "net/spdy/spdy.h"

namespace muster::agent {
namespace {

using StreamPtr = std::shared_ptr<net::SpdyStream>;

Task<void> copy_up(std::shared_ptr<net::ByteStream> pod,
                   StreamPtr client,
                   std::shared_ptr<Signal> done,
                   std::shared_ptr<bool> answered) {
  for (;;) {
    auto bytes = co_await pod->read();
    if (!bytes || bytes->empty()) break;
    const auto written = co_await client->write(std::move(*bytes));
    if (!written) break;
  }
  (void)co_await client->finish();
  *answered = true;
  done->notify();
}

/// The connections of one session; they end with it.
struct Connections {
  std::list<std::weak_ptr<net::ByteStream>> all;
  bool ended = false;
};

/// One connection: what the client sends goes to the port, what the port answers goes back.
Task<void> forward(Context& context,
                   std::string sandbox_id,
                   int port,
                   StreamPtr data,
                   StreamPtr error,
                   std::shared_ptr<Connections> connections) {
  auto connected = co_await context.runtime.connect(sandbox_id, port);
  if (!connected) {
    (void)co_await error->write(fmt::format("error forwarding port {} to pod {}, uid : {}",
                                            port,
                                            sandbox_id,
                                            connected.error().message));
    (void)co_await error->finish();
    data->reset();
    co_return;
  }
  const std::shared_ptr<net::ByteStream> pod = std::move(*connected);
  if (connections->ended) co_return;
  connections->all.remove_if([](const auto& other) { return other.expired(); });
  connections->all.push_back(pod);
  const std::shared_ptr<Signal> done = context.loop.make_signal();
  const auto answered = std::make_shared<bool>(false);
  context.loop.spawn(copy_up(pod, data, done, answered));
  for (;;) {
    auto bytes = co_await data->read();
    if (!bytes || bytes->empty()) break;
    const auto written = co_await pod->write(std::move(*bytes));
    if (!written) break;
  }
  // The client has no more to say; a server that answers only at the end still gets to, however
  // long that takes: the session's end closes the connection.
  net::end_writing(*pod);
  while (!*answered) co_await done->wait(Duration::zero());
  pod->close();
  (void)co_await error->finish();
}

Task<void> serve_session(Context& context,
                         std::string sandbox_id,
                         std::unique_ptr<net::SpdySession> session) {
  struct Pair {
    StreamPtr data, error;
    int port = 0;
  };
  const auto connections = std::make_shared<Connections>();
  std::map<std::string, Pair> pairs;  // by requestID, until both streams are there
  constexpr std::size_t kPairsMax = 256;
  for (;;) {
    auto stream = co_await session->accept();
    if (!stream) break;
    const auto id = std::string(stream->headers().get("requestid"));
    auto& pair = pairs[id];
    pair.port = static_cast<int>(parse_int(stream->headers().get("port")).value_or(0));
    (stream->headers().get("streamtype") == "error" ? pair.error : pair.data) = std::move(stream);
    if (pair.data && pair.error) {
      context.loop.spawn(
          forward(context, sandbox_id, pair.port, pair.data, pair.error, connections));
      pairs.erase(id);
    } else if (pairs.size() > kPairsMax) {
      break;
    }
  }
  session->close();
  connections->ended = true;
  for (const auto& connection : connections->all) {
    if (const auto open = connection.lock()) open->close();
  }
}

/// WebSocket v4 of the Python client: channels 2i and 2i+1 for the i-th port, each opened with the
/// port's number.
struct ChannelRelay {
  explicit ChannelRelay(net::Loop& loop) : changed(loop.make_signal()) {}
  std::unique_ptr<net::WebSocket> socket;
  std::unique_ptr<Signal> changed;
  bool writing = false;
  bool broken = false;
  std::vector<std::shared_ptr<net::ByteStream>> ports;
};

Task<bool> send_channel(std::shared_ptr<ChannelRelay> relay,
                        std::size_t channel,
                        std::string bytes) {
  while (relay->writing) co_await relay->changed->wait(Duration::zero());
  if (relay->broken) co_return false;
  relay->writing = true;
  net::WebSocket::Message message;
  message.data = std::string(1, static_cast<char>(channel)) + bytes;
  const auto written = co_await relay->socket->write(std::move(message));
  relay->writing = false;
  relay->broken = relay->broken || !written;
  relay->changed->notify();
  co_return written.has_value();
}

Task<void> pump_port(std::shared_ptr<ChannelRelay> relay, std::size_t index) {
  const auto port = relay->ports[index];
  for (;;) {
    auto bytes = co_await port->read();
    if (!bytes || bytes->empty()) co_return;
    const bool sent = co_await send_channel(relay, index * 2, std::move(*bytes));
    if (!sent) co_return;
  }
}

Task<void> serve_channels(Context& context,
                          std::string sandbox_id,
                          std::vector<std::string> ports,
                          std::unique_ptr<net::WebSocket> socket) {
  auto relay = std::make_shared<ChannelRelay>(*context.sockets);
  relay->socket = std::move(socket);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const int port = static_cast<int>(parse_int(ports[i]).value_or(0));
    const std::string number{static_cast<char>(port & 255), static_cast<char>(port >> 8)};
    (void)co_await send_channel(relay, i * 2, number);
    (void)co_await send_channel(relay, i * 2 + 1, number);
    auto connected = co_await context.runtime.connect(sandbox_id, port);
    if (!connected) (void)co_await send_channel(relay, i * 2 + 1, connected.error().message);
    relay->ports.push_back(connected ? std::shared_ptr<net::ByteStream>(std::move(*connected))
                                     : nullptr);
    if (relay->ports.back()) context.loop.spawn(pump_port(relay, i));
  }
  for (;;) {
    auto message = co_await relay->socket->read();
    if (!message || !*message) break;
    const auto& data = (*message)->data;
    if (data.empty()) continue;
    const auto index = static_cast<std::size_t>(static_cast<unsigned char>(data[0])) / 2;
    if (index < relay->ports.size() && relay->ports[index])
      (void)co_await relay->ports[index]->write(data.substr(1));
  }
  relay->broken = true;
  for (const auto& port : relay->ports) {
    if (port) port->close();
  }
  co_await relay->socket->close(1000, "");
}

}  // namespace

Task<void> serve_port_forward(Context& context,
                              std::shared_ptr<PodWorker> worker,
                              net::Target target,
                              net::Request request,
                              UpgradeKind upgrade,
                              net::ResponseWriter& writer) {
  if (upgrade == UpgradeKind::kSpdy) {
    net::Headers headers;
    headers.set("Connection", "Upgrade");
    headers.set("Upgrade", "SPDY/3.1");
    headers.set("X-Stream-Protocol-Version", "portforward.k8s.io");
    auto upgraded = co_await writer.upgrade_raw(std::move(headers));
    if (!upgraded) co_return;
    auto session =
        net::make_spdy_session(*context.sockets, std::move(*upgraded), net::SpdyRole::kServer);
    co_await serve_session(context, worker->uid(), std::move(session));
    co_return;
  }
  const auto protocol = choose_protocol(request.headers,
                                        "Sec-WebSocket-Protocol",
                                        {"SPDY/3.1+portforward.k8s.io", "v4.channel.k8s.io"});
  if (protocol.empty()) {
    Error error;
    error.code = Code::kBadRequest;
    error.message =
        "unable to upgrade: port-forward needs subprotocol SPDY/3.1+portforward.k8s.io or "
        "v4.channel.k8s.io";
    co_await send_error(writer, std::move(error));
    co_return;
  }
  auto upgraded = co_await writer.upgrade_websocket(protocol);
  if (!upgraded) co_return;
  if (protocol.starts_with("SPDY")) {
    auto bytes = net::make_websocket_bytes(*context.sockets, std::move(*upgraded));
    auto session =
        net::make_spdy_session(*context.sockets, std::move(bytes), net::SpdyRole::kServer);
    co_await serve_session(context, worker->uid(), std::move(session));
  } else {
    co_await serve_channels(context, worker->uid(), target.all("ports"), std::move(*upgraded));
  }
}

}  // namespace muster::agent
