#include "net/http2/cleartext.h"

#include <fmt/core.h>

#include "net/http2/http2.h"
#include "net/loop/other_network.h"

namespace muster::net {
namespace {

constexpr std::size_t kAnswerBytesMax = 1024 * 1024;

}  // namespace

Task<Result<Response>> request_cleartext(Loop& loop,
                                         CleartextServer server,
                                         Request request,
                                         Duration timeout) {
  const auto name = fmt::format("{}:{}", server.address, server.port);
  ErrorCode bad;
  const auto address = asio::ip::make_address(server.address, bad);
  if (bad || server.port < 1 || server.port > 65535)
    co_return fail(Code::kBadRequest, fmt::format("\"{}\" is not an IP address and a port", name));
  asio::ip::tcp::socket socket(loop.context());
  std::shared_ptr<Http2Connection> connection;
  bool late = false;
  const auto timer = loop.after(timeout, [&] {
    late = true;
    ErrorCode ignored;
    if (connection)
      connection->close();
    else
      socket.close(ignored);
  });
  const asio::ip::tcp::endpoint end(address, static_cast<std::uint16_t>(server.port));
  if (address.is_v4() && in_other_network(address.to_v4().to_uint())) {
    const int made = open_socket(address.to_v4().to_uint(), SOCK_STREAM);
    ErrorCode ignored;  // the connecting fails then
    if (made >= 0) socket.assign(asio::ip::tcp::v4(), made, ignored);
  }
  const auto [error] = co_await socket.async_connect(end, kAwaitTuple);
  if (error && !late) co_return fail(io_error("connect to " + name, error));
  Result<Response> answer = fail(Code::kTimeout, fmt::format("{}: no answer in time", name));
  if (late) co_return answer;
  connection = start_http2(make_plain_stream(std::move(socket)),
                           name,
                           /*path=*/"",
                           /*freed=*/nullptr,
                           {.scheme = "http", .pings = false, .answer_bytes_max = kAnswerBytesMax});
  bool untouched = false;
  auto given = co_await connection->request(std::move(request), 2 * timeout, untouched);
  connection->close();
  if (given || !late) answer = std::move(given);
  co_return answer;
}

}  // namespace muster::net
