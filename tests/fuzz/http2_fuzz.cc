/// Any bytes as what an HTTP/2 server says while a request and a stream wait for their answers:
/// both end one way or another.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/http2/http2.h"
#include "net/loop/loop.h"

using namespace muster;

namespace {

net::Request get(std::string target) {
  net::Request request;
  request.method = "GET";
  request.target = std::move(target);
  return request;
}

Task<void> ask(net::Http2Connection& connection) {
  bool untouched = false;
  (void)co_await connection.request(get("/once"), std::chrono::seconds(60), untouched);
}

Task<void> follow(net::Http2Connection& connection) {
  bool untouched = false;
  const auto stream =
      co_await connection.stream(get("/watch"), std::chrono::seconds(60), untouched);
  if (!stream) co_return;
  while (true) {
    const auto bytes = co_await (*stream)->read();
    if (!bytes || bytes->empty()) co_return;
  }
}

Task<void> count_down(Task<void> task, int& left, Signal& done) {
  co_await std::move(task);
  --left;
  done.notify();
}

Task<void> listen_to(net::Loop& loop, std::string_view server) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  net::asio::ip::tcp::socket ours(loop.context());
  ours.assign(net::asio::ip::tcp::v4(), ends[0]);
  const auto connection =
      net::start_http2(net::make_plain_stream(std::move(ours)), "server", "", nullptr);
  const auto done = loop.make_signal();
  int left = 2;
  loop.spawn(count_down(ask(*connection), left, *done));
  loop.spawn(count_down(follow(*connection), left, *done));
  (void)::send(ends[1], server.data(), server.size(), MSG_NOSIGNAL);
  ::shutdown(ends[1], SHUT_WR);
  while (left > 0) co_await done->wait(Duration::zero());
  connection->close();
  ::close(ends[1]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static net::Loop loop;
  loop.run_until_done(listen_to(loop, std::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
