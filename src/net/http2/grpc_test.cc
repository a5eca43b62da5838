#include "net/http2/grpc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "net/http2/hpack.h"
#include "net/loop/socket.h"
#include "net/loop/stream.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;

TEST(Grpc, AMessageComesBackAsItWasFramed) {
  for (const std::string text : {"", "x", "hello"}) {
    const auto framed = grpc_frame(text);
    EXPECT_EQ(framed.size(), text.size() + 5);
    EXPECT_EQ(*grpc_unframe(framed), text);
  }
}

TEST(Grpc, BrokenFramesAreErrors) {
  EXPECT_FALSE(grpc_unframe(""));
  EXPECT_FALSE(grpc_unframe(std::string_view("\0\0\0\0", 4)));
  EXPECT_FALSE(grpc_unframe(std::string_view("\0\0\0\0\2x", 6)));   // cut
  EXPECT_FALSE(grpc_unframe(std::string_view("\0\0\0\0\1xy", 7)));  // more than one
  EXPECT_FALSE(grpc_unframe(std::string_view("\1\0\0\0\1x", 6)));   // compressed
}

TEST(Grpc, ErrorsReadAsGoShowsThem) {
  const auto error = grpc_error(5, "image %22x%22 not found%3A \xe2\x82\xac");
  EXPECT_EQ(error.message, "rpc error: code = NotFound desc = image \"x\" not found: \xe2\x82\xac");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(grpc_error(12, "m").code, Code::kMethodNotAllowed);
  // What cannot be decoded is shown as it came; a status that nobody knows is Unknown.
  EXPECT_EQ(grpc_error(99, "50%").message, "rpc error: code = Unknown desc = 50%");
}

TEST(Grpc, DeadlinesHaveAtMostEightDigits) {
  EXPECT_EQ(grpc_timeout(1500ms), "1500m");
  EXPECT_EQ(grpc_timeout(0ms), "1m");
  EXPECT_EQ(grpc_timeout(27h), "97200000m");
  EXPECT_EQ(grpc_timeout(28h), "100800S");
}

/// A server that reads one request and answers with what a test says.
class OneAnswer {
 public:
  OneAnswer(Loop& loop, std::string trailers_status) : status_(std::move(trailers_status)) {
    char name[] = "/tmp/muster-grpc-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/s";
    listener_ = std::make_unique<asio::ip::tcp::acceptor>(loop.context());
    listener_->assign(asio::ip::tcp::v4(), listen_unix(path_));
    asio::co_spawn(loop.context(), serve(), asio::detached);
  }
  ~OneAnswer() {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  const std::string& path() const { return path_; }
  std::string seen;

 private:
  static std::string frame(int type, int flags, int stream, const std::string& payload) {
    std::string out;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift & 0xff);
    out += static_cast<char>(type);
    out += static_cast<char>(flags);
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift & 0xff);
    return out + payload;
  }

  Task<void> serve() {
    auto socket = co_await listener_->async_accept(asio::use_awaitable);
    auto stream = make_plain_stream(std::move(socket));
    char chunk[4096];
    // The request's message is the last that comes.
    while (seen.find("ask me") == std::string::npos) {
      const auto got = co_await stream->read_some(asio::mutable_buffer(chunk, sizeof chunk));
      if (got.error) co_return;
      seen.append(chunk, got.bytes);
    }
    HpackEncoder encoder;
    std::string head, trailers;
    encoder.encode(head, ":status", "200", false);
    encoder.encode(head, "content-type", "application/grpc", false);
    encoder.encode(trailers, "grpc-status", status_, false);
    encoder.encode(trailers, "grpc-message", "no%20such", false);
    auto out = frame(4, 0, 0, "") + frame(1, 4, 1, head);
    if (status_ == "0") out += frame(0, 0, 1, grpc_frame("answer"));
    out += frame(1, 5, 1, trailers);
    co_await stream->write_all(out);
  }

  std::string status_, folder_, path_;
  std::unique_ptr<asio::ip::tcp::acceptor> listener_;
};

Result<std::string> ask(Loop& loop, const std::string& path) {
  Result<std::string> out;
  auto client = make_grpc_client(loop, path);
  auto work = [&]() -> Task<void> {
    GrpcCall call;
    call.method = "/test.Service/Ask";
    call.message = "ask me";
    out = co_await client->call(std::move(call));
  };
  loop.run_until_done(work());
  return out;
}

TEST(Grpc, ACallHasItsAnswerAndItsStatusFromTheTrailers) {
  Loop loop;
  OneAnswer server(loop, "0");
  EXPECT_EQ(ask(loop, server.path()).value_or("failed"), "answer");
  EXPECT_NE(server.seen.find("/test.Service/Ask"), std::string::npos);
  EXPECT_NE(server.seen.find("trailers"), std::string::npos);
}

TEST(Grpc, AnErrorOfTheServerIsTheCallers) {
  Loop loop;
  OneAnswer server(loop, "5");
  const auto answer = ask(loop, server.path());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "rpc error: code = NotFound desc = no such");
}

TEST(Grpc, ASocketThatNobodyListensAtIsUnavailable) {
  Loop loop;
  const auto answer = ask(loop, "/nowhere/at/all.sock");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace muster::net
