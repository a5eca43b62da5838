/// Requests whose end two readers could see in different places are refused and their connection is
/// closed: what follows is never read as a request.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http/server.h"
#include "net/loop/loop.h"

namespace muster::net {
namespace {

/// Sends the bytes and returns all that comes until the server closes.
std::string exchange(std::uint16_t port, const std::string& bytes) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  const timeval patience{5, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    char piece[4096];
    for (ssize_t got = 0; (got = ::recv(socket, piece, sizeof piece, 0)) > 0;)
      answer.append(piece, static_cast<std::size_t>(got));
  }
  ::close(socket);
  return answer;
}

Task<void> answer_all(std::vector<std::string>& seen, Request request, ResponseWriter& writer) {
  seen.push_back(request.target);
  Response response;
  (void)co_await writer.send(std::move(response));
}

TEST(Framing, WhatIsNotPlainlyChunkedIsRefusedAndCloses) {
  const std::string head = "POST /a HTTP/1.1\r\nHost: x\r\n";
  const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"an unknown encoding", "Transfer-Encoding: xchunked\r\n\r\n"},
      {"something after chunked", "Transfer-Encoding: chunked, identity\r\n\r\n"},
      {"something before chunked", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {"chunked twice",
       "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"identity", "Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc"},
      {"a folded line", "X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n"},
      {"a folded line with a tab", "X-A: b\r\n\tc\r\nContent-Length: 0\r\n\r\n"}};
  Loop loop;
  loop.run_until_done(
      [](Loop& on, const auto& all, std::string start, std::string rest) -> Task<void> {
        std::vector<std::string> seen;
        auto listening = listen(on, {}, [&seen](Request request, ResponseWriter& writer) {
          return answer_all(seen, std::move(request), writer);
        });
        EXPECT_TRUE(listening.has_value());
        const std::uint16_t port = (*listening)->port();
        for (const auto& [name, tail] : all) {
          std::string answer;
          const std::string bytes = start + tail + rest;
          std::function<void()> work = [&answer, &bytes, port] { answer = exchange(port, bytes); };
          co_await on.run_on_worker(std::move(work));
          EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << name << ": " << answer;
          EXPECT_EQ(answer.find("HTTP/1.1 200"), std::string::npos) << name << ": " << answer;
        }
        EXPECT_TRUE(seen.empty()) << seen.front();
        std::string answer;
        const std::string good =
            start + "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + rest;
        std::function<void()> work = [&answer, &good, port] { answer = exchange(port, good); };
        co_await on.run_on_worker(std::move(work));
        EXPECT_EQ(seen, (std::vector<std::string>{"/a", "/smuggled"})) << answer;
        co_await (*listening)->stop();
      }(loop, cases, head, smuggled));
}

}  // namespace
}  // namespace muster::net
