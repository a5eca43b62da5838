/// Any bytes as what a client sends to the server: requests, pipelined ones, bodies, WebSocket
/// messages, raw bytes after an upgrade. The server answers or refuses, and closes when the client
/// has.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "net/http/server.h"
#include "net/http/websocket.h"
#include "net/loop/socket.h"
#include "net/loop/stream.h"

using namespace muster;

namespace {

Task<void> echo_messages(net::ResponseWriter& writer) {
  const auto socket = co_await writer.upgrade_websocket("");
  if (!socket) co_return;
  while (true) {
    auto message = co_await (*socket)->read();
    if (!message || !*message) co_return;
    const auto written = co_await (*socket)->write(std::move(**message));
    if (!written) co_return;
  }
}

Task<void> echo_bytes(net::ResponseWriter& writer) {
  net::Headers headers;
  headers.set("Upgrade", "raw");
  const auto stream = co_await writer.upgrade_raw(headers);
  if (!stream) co_return;
  while (true) {
    auto bytes = co_await (*stream)->read();
    if (!bytes || bytes->empty()) co_return;
    const auto written = co_await (*stream)->write(std::move(*bytes));
    if (!written) co_return;
  }
}

Task<void> answer(net::Request request, net::ResponseWriter& writer) {
  net::Response response;
  response.headers.set("X-Target", request.target);
  if (net::wants_websocket(request)) {
    co_await echo_messages(writer);
  } else if (request.target == "/raw") {
    co_await echo_bytes(writer);
  } else if (request.target == "/stream") {
    (void)co_await writer.start(std::move(response));
    (void)co_await writer.write(std::make_shared<const std::string>(std::move(request.body)));
    (void)co_await writer.finish();
  } else {
    response.body = std::move(request.body);
    (void)co_await writer.send(std::move(response));
  }
}

Task<void> talk(net::Loop& loop, const std::string& path, std::string_view client) {
  const int fd = net::connect_unix(path);
  if (fd < 0) std::abort();
  net::asio::ip::tcp::socket socket(loop.context());
  socket.assign(net::asio::ip::tcp::v4(), fd);
  const auto stream = net::make_plain_stream(std::move(socket));
  (void)::send(fd, client.data(), client.size(), MSG_NOSIGNAL);
  ::shutdown(fd, SHUT_WR);
  std::string bytes(4096, '\0');
  while (true) {
    const auto got = co_await stream->read_some(net::asio::buffer(bytes));
    if (got.error) break;
  }
  stream->close();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static net::Loop loop;
  static const std::string path =
      std::filesystem::temp_directory_path() / ("muster-http-fuzz-" + std::to_string(::getpid()));
  static const auto server = [] {
    net::ServerOptions options;
    options.unix_path = path;
    return std::move(*net::listen(loop, options, answer));
  }();
  loop.run_until_done(
      talk(loop, path, std::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
