#include "apiserver/rest/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "net/loop/loop.h"

namespace muster::apiserver {
namespace {

struct Users {
  net::Loop loop;
  Shares shares{loop};
  std::vector<std::string> order;  // who was let go
  int refused = 0;

  static Task<void> one(Users& all, std::string user, Shares::Cost cost) {
    auto turn = all.shares.goes_now(user, {cost});
    if (!turn) {
      auto later = co_await all.shares.wait(user, {cost});
      if (!later) {
        ++all.refused;
        co_return;
      }
    }
    all.order.push_back(user);
  }
  void send(const std::string& user, int count, Shares::Cost cost = 2) {
    for (int i = 0; i < count; ++i) loop.spawn(one(*this, user, cost));
  }
  static Task<void> write(Users& all, std::string user, Signal& stored) {
    auto turn = all.shares.goes_now(user, {6, true});
    std::optional<Shares::Turn> later;
    if (!turn) {
      auto given = co_await all.shares.wait(user, {6, true});
      later.emplace(std::move(*given));
    }
    all.order.push_back(user);
    co_await stored.wait(Duration::zero());
  }
  static Task<void> make_long(Users& all, std::string user, Signal& sent) {
    auto turn = co_await all.shares.begin_long(user);
    all.order.push_back(user);
    turn.made();
    co_await sent.wait(Duration::zero());
  }
  Task<void> settle(int rounds) {
    const auto turn = loop.make_signal();
    for (int i = 0; i < rounds; ++i) {
      loop.post([&turn] { turn->notify(); });
      co_await turn->wait(Duration::zero());
    }
  }
  /// Where in the order a user's last request was.
  [[nodiscard]] int place_of(const std::string& user) const {
    for (std::size_t i = order.size(); i-- > 0;)
      if (order[i] == user) return static_cast<int>(i);
    return -1;
  }
};

TEST(Shares, AUserAloneNeverWaits) {
  Users all;
  all.loop.run_until_done([](Users& it) -> Task<void> {
    for (int i = 0; i < 5000; ++i) EXPECT_TRUE(it.shares.goes_now("one", {6}).has_value());
    co_return;
  }(all));
}

TEST(Shares, WhoHasUsedLittleGoesBeforeAFlood) {
  Users all;
  all.loop.run_until_done([](Users& it) -> Task<void> {
    it.send("quiet", 1);  // the server learns that there are two
    it.send("flood", 500);
    it.send("quiet", 1);
    co_await it.settle(400);
    EXPECT_EQ(it.order.size(), 502U);
    EXPECT_EQ(it.refused, 0);
    // What the first round lets go is under way before the quiet one's second request arrives; nothing else is.
    EXPECT_LT(it.place_of("quiet"), 25);
  }(all));
}

TEST(Shares, TwoFloodsGetTheSame) {
  Users all;
  all.loop.run_until_done([](Users& it) -> Task<void> {
    it.send("other", 1);
    it.send("one", 300);
    it.send("two", 300);
    co_await it.settle(400);
    EXPECT_EQ(it.order.size(), 601U);
    int one = 0, two = 0;
    for (std::size_t i = 0; i < 300; ++i) {
      one += it.order[i] == "one";
      two += it.order[i] == "two";
    }
    EXPECT_NEAR(one, two, 25);
  }(all));
}

TEST(Shares, WhatIsDearCountsForMore) {
  Users all;
  all.loop.run_until_done([](Users& it) -> Task<void> {
    it.send("other", 1);
    it.send("writer", 200, 6);
    it.send("reader", 200, 2);
    co_await it.settle(600);
    int written = 0, read = 0;
    for (std::size_t i = 0; i < 200; ++i) {
      written += it.order[i] == "writer";
      read += it.order[i] == "reader";
    }
    EXPECT_NEAR(read, 3 * written, 40);
  }(all));
}

TEST(Shares, AnAnswersSizeIsChargedToItsUser) {
  Users all;
  all.loop.run_until_done([](Users& it) -> Task<void> {
    it.send("lists", 1);
    it.send("gets", 1);
    co_await it.settle(10);
    it.shares.charge("lists", 200);
    it.order.clear();
    it.send("other", 20);  // keeps the first round busy, so that both wait
    it.send("lists", 40);
    it.send("gets", 40);
    co_await it.settle(200);
    EXPECT_EQ(it.order.size(), 100U);
    const auto first_list = std::find(it.order.begin(), it.order.end(), "lists");
    EXPECT_LT(it.place_of("gets"), first_list - it.order.begin());
  }(all));
}

TEST(Shares, AFloodIsRefusedBeforeItFillsTheMemory) {
  Users all;
  all.loop.run_until_done([](Users& it) -> Task<void> {
    it.send("quiet", 1);
    it.send("flood", 1500);
    co_await it.settle(2);
    EXPECT_GT(it.refused, 400);
    EXPECT_LE(it.shares.waiting(), 1000U);
    co_await it.settle(1000);
    EXPECT_EQ(it.order.size() + static_cast<std::size_t>(it.refused), 1501U);
  }(all));
}

TEST(Shares, OfOneUserOnlyAFewWritesAreUnderWayWhileThereAreOthers) {
  Users all;
  all.loop.run_until_done([](Users& it) -> Task<void> {
    const auto stored = it.loop.make_signal();
    it.send("quiet", 1);
    for (int i = 0; i < 64; ++i) it.loop.spawn(Users::write(it, "flood", *stored));
    co_await it.settle(200);
    EXPECT_EQ(it.order.size(), 9U) << "the others have not gone, though nothing else is to be done";
    EXPECT_EQ(it.shares.waiting(), 56U);
    it.loop.spawn(Users::write(it, "quiet", *stored));
    it.send("flood", 1);  // a read of the same user
    co_await it.settle(20);
    EXPECT_EQ(it.order.size(), 11U);
    EXPECT_GE(it.place_of("quiet"), 9);
    while (it.order.size() < 67) {
      const std::size_t before = it.order.size();
      stored->notify();
      co_await it.settle(40);
      EXPECT_LE(it.order.size() - before, 8U);
      if (it.order.size() == before) break;
    }
    EXPECT_EQ(it.order.size(), 67U);
    stored->notify();
    co_await it.settle(20);
  }(all));
}

TEST(Shares, OneLongAnswerOfAUserIsMadeAtATimeAndFewWaitToBeSent) {
  Users all;
  all.loop.run_until_done([](Users& it) -> Task<void> {
    const auto sent = it.loop.make_signal();
    for (int i = 0; i < 20; ++i) it.loop.spawn(Users::make_long(it, "reads not", *sent));
    co_await it.settle(100);
    EXPECT_EQ(it.order.size(), 2U);
    it.loop.spawn(Users::make_long(it, "other", *sent));
    co_await it.settle(20);
    EXPECT_EQ(it.order.back(), "other");
    while (it.order.size() < 21) {
      sent->notify();
      co_await it.settle(20);
    }
    sent->notify();
    co_await it.settle(20);
  }(all));
}

}  // namespace
}  // namespace muster::apiserver
