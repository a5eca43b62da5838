/// Streams that cross between the loop and the front. What every server does is in net_test.cc, for
/// both kinds.
#include "net/http/front.h"

#include <gtest/gtest.h>

#include "base/test_turns.h"
#include "net/http/test_streams.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;

/// Each answer lasts until its client goes.
struct Streams : TestStreams {
  Streams()
      : TestStreams(&listen_apart,
                    [this](ResponseWriter& writer) { return until_closed(writer); }) {}

  Task<void> until_closed(ResponseWriter& writer) {
    const std::shared_ptr<Signal> ended = loop.make_signal();
    writer.on_close([ended] { ended->notify(); });
    co_await ended->wait(Duration::zero());
    EXPECT_TRUE(writer.closed());
  }
};

TEST(Front, EveryStreamGetsEveryChunkInOrder) {
  Streams streams;
  streams.loop.run_until_done([](Streams& s) -> Task<void> {
    auto clients = co_await s.open(80);
    std::string want;
    for (int round = 0; round < 50; ++round) {
      const auto chunk =
          std::make_shared<const std::string>("round " + std::to_string(round) + "\n");
      want += *chunk;
      for (ResponseWriter* writer : s.writers)
        EXPECT_EQ(writer->write_now(chunk), ResponseWriter::Now::kSent);
      if (round % 3 == 0) co_await turns(s.loop, 10);
    }
    for (const auto& client : clients) {
      const std::string have = co_await read_bytes(*client, want.size());
      EXPECT_EQ(have, want);
    }
    clients.clear();
    while (!s.writers.empty()) co_await s.changed->wait(Duration::zero());
  }(streams));
}

TEST(Front, AHandlerGetsNoFurtherThanItsClientReads) {
  Streams streams;
  streams.loop.run_until_done([](Streams& s) -> Task<void> {
    auto clients = co_await s.open(1);
    ResponseWriter& writer = **s.writers.begin();
    const auto chunk = std::make_shared<const std::string>(64 * 1024, 'x');
    std::size_t taken = 0;
    // The kernel takes some megabytes, the rest is ours: at most kStreamBytes.
    while (taken < 1000) {
      if (writer.write_now(chunk) == ResponseWriter::Now::kBusy) {
        // Whether it is the kernel that takes no more, nobody tells; it has had time to.
        co_await s.loop.sleep(100ms);
        if (writer.write_now(chunk) == ResponseWriter::Now::kBusy) break;
      }
      ++taken;
    }
    EXPECT_LT(taken, 1000u);
    bool written = false;
    s.loop.spawn(
        [](ResponseWriter& to, std::shared_ptr<const std::string> last, bool& end) -> Task<void> {
          const auto wrote = co_await to.write(last);
          end = wrote.has_value();
        }(writer, chunk, written));
    const std::string have = co_await read_bytes(*clients[0], (taken + 1) * chunk->size());
    EXPECT_EQ(have.size(), (taken + 1) * chunk->size());
    EXPECT_TRUE(written);
  }(streams));
}

TEST(Front, ServesManyConnectionsAtOnce) {
  Loop loop;
  int served = 0;
  auto server = listen_apart(
      loop, ServerOptions{}, [&](Request request, ResponseWriter& writer) -> Task<void> {
        ++served;  // the loop's, like all that handlers touch
        Response response;
        response.body = request.target + request.body;
        (void)co_await writer.send(std::move(response));
      });
  ASSERT_TRUE(server);
  ClientOptions to;
  to.url = "http://127.0.0.1:" + std::to_string((*server)->port());
  auto client = make_client(loop, to);
  loop.run_until_done([](Loop& l, Client& c, Server& s) -> Task<void> {
    constexpr int kClients = 16, kEach = 50;
    int left = kClients;
    const auto done = l.make_signal();
    for (int i = 0; i < kClients; ++i) {
      l.spawn([](Client& it, int index, int& count, Signal& end) -> Task<void> {
        for (int j = 0; j < kEach; ++j) {
          Request request;
          request.method = "POST";
          request.target = "/" + std::to_string(index);
          request.body = std::string(static_cast<std::size_t>(j), 'b');
          const std::string want = request.target + request.body;
          const auto answer = co_await it.request(std::move(request));
          EXPECT_TRUE(answer && answer->body == want);
        }
        if (--count == 0) end.notify();
      }(c, i, left, *done));
    }
    while (left > 0) co_await done->wait(Duration::zero());
    co_await s.stop();
  }(loop, **client, **server));
  EXPECT_EQ(served, 16 * 50);
}

TEST(Front, EndsWithStreamsOpenAndWithoutAStop) {
  Loop loop;
  auto server =
      listen_apart(loop, ServerOptions{}, [](Request, ResponseWriter& writer) -> Task<void> {
        Response head;
        (void)co_await writer.start(std::move(head));
        while (!writer.closed()) {
          const auto written =
              co_await writer.write(std::make_shared<const std::string>(100'000, 'x'));
          if (!written) break;
        }
      });
  ASSERT_TRUE(server);
  ClientOptions to;
  to.url = "http://127.0.0.1:" + std::to_string((*server)->port());
  auto client = make_client(loop, to);
  loop.run_until_done([](Client& c) -> Task<void> {
    Request request;
    request.method = "GET";
    request.target = "/";
    auto stream = co_await c.stream(std::move(request));
    EXPECT_TRUE(stream);
    if (!stream) co_return;
    const auto piece = co_await (*stream)->read();
    EXPECT_TRUE(piece);
  }(**client));
  server->reset();
}

}  // namespace
}  // namespace muster::net
