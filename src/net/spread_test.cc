/// write_now() to many streams at once from several threads, and to a client that does not read.
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "net/client.h"
#include "net/loop.h"
#include "net/server.h"
#include "net/tls.h"

namespace muster::net {
namespace {

TEST(Spread, CallsEachOnceAndReturnsWhenAllAreDone) {
  Loop loop;
  std::vector<std::atomic<int>> calls(1000);
  for (int round = 0; round < 20; ++round) loop.spread(calls.size(), [&](std::size_t i) { ++calls[i]; });
  for (const auto& count : calls) EXPECT_EQ(count, 20);
  loop.spread(0, [](std::size_t) { FAIL(); });
}

/// Streams stay open and are written to from outside, as watches are.
struct Streams {
  Loop loop;
  std::set<ResponseWriter*> writers;
  std::unique_ptr<Signal> done = loop.make_signal();
  std::unique_ptr<Server> server;
  std::unique_ptr<Client> client;

  Streams() {
    const auto ca = make_ca("test", loop.now());
    CertificateRequest wanted;
    wanted.common_name = "server";
    wanted.addresses = {"127.0.0.1"};
    wanted.server = true;
    const auto pair = make_certificate(*ca, wanted, loop.now());
    ServerOptions options;
    options.certificate_pem = pair->certificate_pem;
    options.key_pem = pair->key_pem;
    server = std::move(*listen(loop, options, [this](Request, ResponseWriter& writer) { return hold(writer); }));
    ClientOptions to;
    to.url = "https://127.0.0.1:" + std::to_string(server->port());
    to.ca_pem = ca->certificate_pem;
    client = std::move(*make_client(loop, to));
  }
  ~Streams() {
    loop.run_until_done([](Streams& s) -> Task<void> { co_await s.server->stop(); }(*this));
  }

  Task<void> hold(ResponseWriter& writer) {
    Response head;
    const auto started = co_await writer.start(std::move(head));
    writers.insert(&writer);
    while (started && !writer.closed()) {
      const bool ended = co_await done->wait(std::chrono::milliseconds(20));
      const auto flushed = co_await writer.flush();
      if (ended || !flushed) break;
    }
    writers.erase(&writer);
    (void)co_await writer.finish();
  }

  Task<std::vector<std::unique_ptr<ResponseStream>>> open(std::size_t count) {
    std::vector<std::unique_ptr<ResponseStream>> streams;
    for (std::size_t i = 0; i < count; ++i) {
      Request request;
      request.method = "GET";
      request.target = "/";
      auto stream = co_await client->stream(std::move(request));
      EXPECT_TRUE(stream);
      if (stream) streams.push_back(std::move(*stream));
    }
    while (writers.size() < count) co_await loop.sleep(std::chrono::milliseconds(1));
    co_return streams;
  }
};

Task<std::string> read_bytes(ResponseStream& stream, std::size_t count) {
  std::string text;
  while (text.size() < count) {
    const auto piece = co_await stream.read();
    if (!piece || piece->empty()) break;
    text += *piece;
  }
  co_return text;
}

TEST(Spread, EveryStreamGetsEveryChunkInOrder) {
  Streams streams;
  streams.loop.run_until_done([](Streams& s) -> Task<void> {
    const auto clients = co_await s.open(40);
    std::string want;
    for (int round = 0; round < 50; ++round) {
      const auto chunk = std::make_shared<const std::string>("round " + std::to_string(round) + "\n");
      want += *chunk;
      const std::vector<ResponseWriter*> all(s.writers.begin(), s.writers.end());
      std::atomic<int> sent = 0;
      s.loop.spread(all.size(), [&](std::size_t i) { sent += all[i]->write_now(chunk) == ResponseWriter::Now::kSent; });
      EXPECT_EQ(sent, 40);
    }
    for (const auto& client : clients) {
      const std::string have = co_await read_bytes(*client, want.size());
      EXPECT_EQ(have, want);
    }
    s.done->notify();
  }(streams));
}

TEST(Spread, WhatASlowClientDidNotTakeComesLater) {
  Streams streams;
  streams.loop.run_until_done([](Streams& s) -> Task<void> {
    const auto clients = co_await s.open(1);
    const auto chunk = std::make_shared<const std::string>(1024 * 1024, 'x');
    ResponseWriter& writer = **s.writers.begin();
    std::size_t taken = 0;
    auto result = ResponseWriter::Now::kSent;
    while (result == ResponseWriter::Now::kSent && taken < 64) {
      result = writer.write_now(chunk);
      ++taken;
    }
    EXPECT_EQ(result, ResponseWriter::Now::kKept);
    EXPECT_EQ(writer.write_now(chunk), ResponseWriter::Now::kBusy);
    const std::string have = co_await read_bytes(*clients[0], taken * chunk->size());
    EXPECT_EQ(have.size(), taken * chunk->size());
    s.done->notify();
  }(streams));
}

}  // namespace
}  // namespace muster::net
