/// write_now() to many streams at once from several threads, and to a client that does not read.
#include <gtest/gtest.h>

#include <atomic>

#include "net/http/test_streams.h"

namespace muster::net {
namespace {

TEST(Spread, CallsEachOnceAndReturnsWhenAllAreDone) {
  Loop loop;
  std::vector<std::atomic<int>> calls(1000);
  for (int round = 0; round < 20; ++round)
    loop.spread(calls.size(), [&](std::size_t i) { ++calls[i]; });
  for (const auto& count : calls) EXPECT_EQ(count, 20);
  loop.spread(0, [](std::size_t) { FAIL(); });
}

/// Each answer lasts until the test is done; what a client did not take at once is sent meanwhile.
struct Streams : TestStreams {
  Streams() : TestStreams(&listen, [this](ResponseWriter& writer) { return until_done(writer); }) {}

  Task<void> until_done(ResponseWriter& writer) {
    while (!writer.closed()) {
      const bool ended = co_await done->wait(std::chrono::milliseconds(20));
      const auto flushed = co_await writer.flush();
      if (ended || !flushed) break;
    }
    (void)co_await writer.finish();
  }
};

TEST(Spread, EveryStreamGetsEveryChunkInOrder) {
  Streams streams;
  streams.loop.run_until_done([](Streams& s) -> Task<void> {
    const auto clients = co_await s.open(40);
    std::string want;
    for (int round = 0; round < 50; ++round) {
      const auto chunk =
          std::make_shared<const std::string>("round " + std::to_string(round) + "\n");
      want += *chunk;
      const std::vector<ResponseWriter*> all(s.writers.begin(), s.writers.end());
      std::atomic<int> sent = 0;
      s.loop.spread(all.size(), [&](std::size_t i) {
        sent += all[i]->write_now(chunk) == ResponseWriter::Now::kSent;
      });
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
