#include "net/http2/http2.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>

#include "base/test_turns.h"
#include "net/http2/hpack.h"
#include "net/loop/loop.h"

namespace muster::net {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr std::uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kWindowUpdate = 8;
constexpr std::uint8_t kEndStream = 1, kEndHeaders = 4;

struct Frame {
  std::uint8_t type = 0, flags = 0;
  std::uint32_t id = 0;
  std::string payload;
};

/// The other end of a connection, frame by frame, as a test wants it.
class Server {
 public:
  explicit Server(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

  /// The next frame that says something about a request.
  Task<Frame> next() {
    while (true) {
      while (in_.size() < kHead + preface_ || in_.size() < kHead + preface_ + size()) {
        char chunk[4096];
        const auto got = co_await stream_->read_some(asio::mutable_buffer(chunk, sizeof chunk));
        if (got.error) co_return Frame{0xff, 0, 0, got.error.message()};
        in_.append(chunk, got.bytes);
      }
      in_.erase(0, std::exchange(preface_, 0));
      Frame frame{static_cast<std::uint8_t>(in_[3]),
                  static_cast<std::uint8_t>(in_[4]),
                  number(5, 4),
                  in_.substr(kHead, size())};
      in_.erase(0, kHead + frame.payload.size());
      if (frame.type != kSettings && !(frame.type == kWindowUpdate && frame.id == 0))
        co_return frame;
    }
  }
  Task<void> send(Frame frame) {
    std::string out;
    for (const int shift : {16, 8, 0})
      out += static_cast<char>(frame.payload.size() >> shift & 0xff);
    out += static_cast<char>(frame.type);
    out += static_cast<char>(frame.flags);
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(frame.id >> shift & 0xff);
    out += frame.payload;
    const auto error = co_await stream_->write_all(out);
    EXPECT_FALSE(error);
  }
  Task<void> send_head(std::uint32_t id, std::string status) {
    std::string block;
    encoder_.encode(block, ":status", status, false);
    co_await send({kHeaders, kEndHeaders, id, block});
  }
  Task<void> send_data(std::uint32_t id, std::string text, bool last) {
    co_await send({kData, last ? kEndStream : std::uint8_t{0}, id, std::move(text)});
  }
  void close() { stream_->close(); }

 private:
  static constexpr std::size_t kHead = 9;
  [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t bytes) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | static_cast<unsigned char>(in_[preface_ + at + i]);
    return value;
  }
  [[nodiscard]] std::size_t size() const { return number(0, 3); }

  std::shared_ptr<Stream> stream_;
  HpackEncoder encoder_;
  std::string in_;
  std::size_t preface_ = 24;
};

/// Runs `test` with a connection and the server it talks to.
void with_connection(const std::function<Task<void>(Loop&, Http2Connection&, Server&)>& test) {
  Loop loop;
  loop.run_until_done(
      [](Loop& l,
         const std::function<Task<void>(Loop&, Http2Connection&, Server&)>& body) -> Task<void> {
        tcp::acceptor acceptor(l.context(), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
        tcp::socket ours(l.context()), theirs(l.context());
        ours.connect(acceptor.local_endpoint());
        acceptor.accept(theirs);
        Server server(make_plain_stream(std::move(theirs)));
        const auto connection =
            start_http2(make_plain_stream(std::move(ours)), "server", "", nullptr);
        co_await body(l, *connection, server);
        connection->close();
      }(loop, test));
}

Request get(std::string target) {
  Request request;
  request.method = "GET";
  request.target = std::move(target);
  return request;
}

/// A stream whose head has come.
Task<std::unique_ptr<ResponseStream>> open(Loop& loop,
                                           Http2Connection& connection,
                                           Server& server) {
  bool untouched = false;
  Result<std::unique_ptr<ResponseStream>> opened = fail(Code::kInternal, "not yet");
  const std::shared_ptr<Signal> done = loop.make_signal();
  loop.spawn([](Http2Connection& c,
                Result<std::unique_ptr<ResponseStream>>& out,
                bool& flag,
                std::shared_ptr<Signal> signal) -> Task<void> {
    out = co_await c.stream(get("/watch"), 10s, flag);
    signal->notify();
  }(connection, opened, untouched, done));
  const auto head = co_await server.next();
  EXPECT_EQ(head.type, kHeaders);
  co_await server.send_head(head.id, "200");
  co_await done->wait(10s);
  EXPECT_TRUE(opened) << opened.error().message;
  co_return opened ? std::move(*opened) : nullptr;
}

TEST(Http2Stream, IsReadPieceByPieceToItsEnd) {
  with_connection([](Loop& loop, Http2Connection& connection, Server& server) -> Task<void> {
    const auto stream = co_await open(loop, connection, server);
    EXPECT_EQ(stream->status(), 200);
    co_await server.send_data(1, "one", false);
    const auto one = co_await stream->read();
    EXPECT_EQ(one.value_or("-"), "one");
    co_await server.send_data(1, "two", true);
    const auto two = co_await stream->read();
    EXPECT_EQ(two.value_or("-"), "two");
    const auto end = co_await stream->read();
    EXPECT_EQ(end.value_or("-"), "");
  });
}

TEST(Http2Stream, LeavesTheConnectionToOthers) {
  with_connection([](Loop& loop, Http2Connection& connection, Server& server) -> Task<void> {
    const auto stream = co_await open(loop, connection, server);
    const std::shared_ptr<Signal> answered = loop.make_signal();
    int status = 0;
    const auto head = std::make_shared<const CommonHead>(CommonHead{"POST", {}});
    connection.submit(head, "/bind", "{}", 10s, [&](Result<Response> answer, bool) {
      status = answer ? answer->status : -1;
      answered->notify();
    });
    auto asked = co_await server.next();
    EXPECT_EQ(asked.id, 3U);
    asked = co_await server.next();
    EXPECT_EQ(asked.payload, "{}");
    co_await server.send_data(1, "event", false);
    co_await server.send_head(3, "201");
    co_await server.send_data(3, "", true);
    co_await answered->wait(10s);
    EXPECT_EQ(status, 201);
    const auto event = co_await stream->read();
    EXPECT_EQ(event.value_or("-"), "event");
  });
}

TEST(Http2Stream, GivenUpIsBrokenOffAtTheServer) {
  with_connection([](Loop& loop, Http2Connection& connection, Server& server) -> Task<void> {
    auto stream = co_await open(loop, connection, server);
    const std::shared_ptr<Signal> ended = loop.make_signal();
    bool failed = false;
    loop.spawn(
        [](ResponseStream& reading, bool& flag, std::shared_ptr<Signal> signal) -> Task<void> {
          const auto read = co_await reading.read();
          flag = !read;
          signal->notify();
        }(*stream, failed, ended));
    co_await turns(loop, 10);  // the read waits by now; one that began later would fail as well
    stream->close();
    co_await ended->wait(10s);
    EXPECT_TRUE(failed);
    const auto broken = co_await server.next();
    EXPECT_EQ(broken.type, kReset);
    EXPECT_EQ(broken.id, 1U);
    EXPECT_TRUE(connection.usable());
  });
}

TEST(Http2Stream, EndsWithTheConnection) {
  with_connection([](Loop& loop, Http2Connection& connection, Server& server) -> Task<void> {
    const auto stream = co_await open(loop, connection, server);
    server.close();
    const auto read = co_await stream->read();
    EXPECT_FALSE(read);
    EXPECT_FALSE(connection.usable());
    EXPECT_FALSE(connection.takes_stream());
  });
}

TEST(Http2Stream, TakesAtMostHalfOfTheRoom) {
  with_connection([](Loop& loop, Http2Connection& connection, Server& server) -> Task<void> {
    // Three requests at once.
    co_await server.send({kSettings, 0, 0, std::string("\0\3\0\0\0\3", 6)});
    const auto stream = co_await open(loop, connection, server);
    EXPECT_EQ(connection.room(), 2U);
    EXPECT_FALSE(connection.takes_stream());
  });
}

TEST(Http2Stream, GivesCreditBackForWhatWasRead) {
  with_connection([](Loop& loop, Http2Connection& connection, Server& server) -> Task<void> {
    const auto stream = co_await open(loop, connection, server);
    constexpr std::size_t kFrame = 16 * 1024, kFrames = 300;
    loop.spawn([](Server& sending) -> Task<void> {
      for (std::size_t i = 0; i < kFrames; ++i)
        co_await sending.send_data(1, std::string(kFrame, 'x'), false);
    }(server));
    for (std::size_t got = 0; got < kFrames * kFrame;) {
      const auto bytes = co_await stream->read();
      if (!bytes) break;
      got += bytes->size();
    }
    const auto credit = co_await server.next();
    EXPECT_EQ(credit.type, kWindowUpdate);
    EXPECT_EQ(credit.id, 1U);
  });
}

}  // namespace
}  // namespace muster::net
