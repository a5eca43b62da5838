#include "net/spdy/spdy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/test_turns.h"
#include "net/http/client.h"
#include "net/http/server.h"
#include "net/loop/loop.h"
#include "net/spdy/spdy_headers.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;

TEST(SpdyHeaders, DictionaryIsTheOneOfTheDraft) {
  // The first block of every SPDY/3 session begins with the dictionary's checksum: 78 bb e3 c6 a7
  // c2.
  const auto dictionary = spdy_dictionary();
  EXPECT_EQ(dictionary.size(), 1423u);
  EXPECT_EQ(adler32(adler32(0, nullptr, 0),
                    reinterpret_cast<const Bytef*>(dictionary.data()),
                    static_cast<uInt>(dictionary.size())),
            0xe3c6a7c2u);
}

TEST(SpdyHeaders, SurviveBothWaysBlockAfterBlock) {
  SpdyDeflater deflater;
  SpdyInflater inflater;
  for (int i = 0; i < 50; ++i) {
    Headers headers;
    headers.add("streamType", "error");
    headers.add("port", std::to_string(8000 + i));
    headers.add("x-many", "a");
    headers.add("x-many", "b");
    const auto back = inflater.unpack(deflater.pack(headers));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->get("streamtype"), "error");
    EXPECT_EQ(back->get("port"), std::to_string(8000 + i));
    EXPECT_EQ(back->all("x-many"), (std::vector<std::string_view>{"a", "b"}));
  }
}

TEST(SpdyHeaders, GarbageIsRefused) {
  SpdyInflater inflater;
  EXPECT_FALSE(inflater.unpack("this is no zlib at all"));
  SpdyInflater empty;
  EXPECT_FALSE(empty.unpack(""));
}

/// Two ends of a byte stream inside the process, through a real WebSocket pair (which also tests
/// the adapter).
struct Tunnel {
  Tunnel() {
    client = make_local_client(
        loop,
        [this](Request, ResponseWriter& writer) -> Task<void> {
          auto socket = co_await writer.upgrade_websocket("SPDY/3.1+portforward.k8s.io");
          if (!socket) co_return;
          server_session = make_spdy_session(
              loop, make_websocket_bytes(loop, std::move(*socket)), SpdyRole::kServer);
          ready->notify();
        },
        "me");
  }
  Task<void> connect() {
    Request request;
    request.method = "GET";
    request.target = "/";
    auto socket = co_await client->websocket(std::move(request), "SPDY/3.1+portforward.k8s.io");
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    client_session =
        make_spdy_session(loop, make_websocket_bytes(loop, std::move(*socket)), SpdyRole::kClient);
    while (!server_session) co_await ready->wait(Duration::zero());
  }
  Loop loop;
  std::unique_ptr<Signal> ready = loop.make_signal();
  std::unique_ptr<Client> client;
  std::unique_ptr<SpdySession> server_session, client_session;
};

Task<std::string> drain(SpdyStream& stream) {
  std::string text;
  while (true) {
    const auto piece = co_await stream.read();
    if (!piece) co_return text + " error: " + piece.error().message;
    if (piece->empty()) co_return text;
    text += *piece;
  }
}

/// Echoes every stream back, its header first.
Task<void> serve_echo(SpdySession& session, Loop& loop) {
  while (true) {
    const auto stream = co_await session.accept();
    if (!stream) co_return;
    loop.spawn([](std::shared_ptr<SpdyStream> s) -> Task<void> {
      auto ok = co_await s->write(std::string(s->headers().get("streamtype")) + ":");
      while (ok) {
        auto piece = co_await s->read();
        if (!piece || piece->empty()) break;
        ok = co_await s->write(std::move(*piece));
      }
      ok = co_await s->finish();
    }(stream));
  }
}

TEST(Spdy, StreamsAreIndependentAndWhole) {
  Tunnel tunnel;
  tunnel.loop.run_until_done([](Tunnel& t) -> Task<void> {
    co_await t.connect();
    t.loop.spawn(serve_echo(*t.server_session, t.loop));
    Headers error_headers, data_headers;
    error_headers.set("streamType", "error");
    data_headers.set("streamType", "data");
    const auto error_stream = co_await t.client_session->open(std::move(error_headers));
    const auto data_stream = co_await t.client_session->open(std::move(data_headers));
    EXPECT_TRUE(error_stream && data_stream);
    if (!error_stream || !data_stream) co_return;
    EXPECT_EQ((*error_stream)->id(), 1u);
    EXPECT_EQ((*data_stream)->id(), 3u);
    // Far more than any window, while the other stream stays open; written and read at once.
    std::string sent(3'000'000, 'x');
    for (std::size_t i = 0; i < sent.size(); i += 97) sent[i] = static_cast<char>('a' + i % 26);
    bool written = false;
    t.loop.spawn([](std::shared_ptr<SpdyStream> s, std::string bytes, bool& done) -> Task<void> {
      auto ok = co_await s->write(std::move(bytes));
      if (ok) ok = co_await s->finish();
      done = static_cast<bool>(ok);
    }(*data_stream, sent, written));
    const auto got = co_await drain(**data_stream);
    EXPECT_TRUE(written);
    EXPECT_EQ(got.size(), sent.size() + 5);
    EXPECT_TRUE(got == "data:" + sent);
    const auto finished = co_await (*error_stream)->finish();
    EXPECT_TRUE(finished);
    const auto rest = co_await drain(**error_stream);
    EXPECT_EQ(rest, "error:");
    co_await t.client_session->shutdown();
  }(tunnel));
}

TEST(Spdy, ResetAndEndAreSeen) {
  Tunnel tunnel;
  tunnel.loop.run_until_done([](Tunnel& t) -> Task<void> {
    co_await t.connect();
    Headers headers;
    headers.set("streamtype", "stdin");
    const auto opened = co_await t.client_session->open(std::move(headers));
    const auto accepted = co_await t.server_session->accept();
    EXPECT_TRUE(opened && accepted);
    if (!opened || !accepted) co_return;
    accepted->reset();
    const auto got = co_await (*opened)->read();
    EXPECT_FALSE(got);
    const auto written = co_await (*opened)->write("x");
    EXPECT_FALSE(written);
    Headers again;
    const auto second = co_await t.client_session->open(std::move(again));
    const auto second_accepted = co_await t.server_session->accept();
    EXPECT_TRUE(second && second_accepted);
    t.client_session->close();
    const auto none = co_await t.server_session->accept();
    EXPECT_EQ(none, nullptr);
    const auto cut = co_await second_accepted->read();
    EXPECT_FALSE(cut);
  }(tunnel));
}

TEST(Spdy, AReaderThatStopsHoldsTheWriterBack) {
  Tunnel tunnel;
  tunnel.loop.run_until_done([](Tunnel& t) -> Task<void> {
    co_await t.connect();
    Headers headers;
    const auto opened = co_await t.client_session->open(std::move(headers));
    const auto accepted = co_await t.server_session->accept();
    std::size_t written = 0;
    t.loop.spawn([](std::shared_ptr<SpdyStream> s, std::size_t& count) -> Task<void> {
      for (int i = 0; i < 100; ++i) {
        const auto ok = co_await s->write(std::string(100'000, 'z'));
        if (!ok) co_return;
        count += 100'000;
      }
      const auto ok = co_await s->finish();
      (void)ok;
    }(*opened, written));
    co_await turns(t.loop, 1000);
    EXPECT_LT(written, 4'000'000u) << "what is not read must not pile up";
    const auto got = co_await drain(*accepted);
    EXPECT_EQ(got.size(), 10'000'000u);
  }(tunnel));
}

TEST(Spdy, GarbageEndsTheSession) {
  Loop loop;
  bool ended = false;
  const auto over = loop.make_signal();
  const auto client = make_local_client(
      loop,
      [&](Request, ResponseWriter& writer) -> Task<void> {
        auto socket = co_await writer.upgrade_websocket("");
        const auto session = make_spdy_session(
            loop, make_websocket_bytes(loop, std::move(*socket)), SpdyRole::kServer);
        const auto stream = co_await session->accept();
        ended = stream == nullptr;
        over->notify();
      },
      "me");
  loop.run_until_done([](Client& c, Signal& end) -> Task<void> {
    Request request;
    request.method = "GET";
    request.target = "/";
    const auto socket = co_await c.websocket(std::move(request), "");
    WebSocket::Message message;
    message.data = std::string("\x80\x03\x00\x01\x00\x00\x00\x0cgarbagegarba", 20);
    const auto written = co_await (*socket)->write(std::move(message));
    EXPECT_TRUE(written);
    (void)co_await end.wait(10s);
  }(*client, *over));
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace muster::net
