#include "answers/live/live.h"

#include <gtest/gtest.h>

#include "engine/test_world.h"
#include "net/loop/loop.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::test::kNow;
using engine::test::node;
using engine::test::pod;
using namespace std::chrono_literals;

/// One node, one pod that runs on it for an hour, and one that waits.
Engine small_world() {
  Engine e({});
  e.apply(engine::QueueUpsert{{.name = "default"}});
  e.apply(engine::NodeUpsert{node("a", 8)});
  for (const char* name : {"d/runs", "d/waits"}) {
    engine::Pod p = pod(name, 8);
    p.expected_duration = 1h;
    e.apply(engine::PodUpsert{p});
    EXPECT_LE(e.decide(kNow).binds.size(), 1U);
  }
  return e;
}

TEST(Check24, WhatWasJustWorkedOutAnswersWithoutACopyOrACourse) {
  net::Loop loop;
  const Engine engine = small_world();
  int made = 0;
  Live live(loop, {.engine = [&] { return &engine; }, .made = [&](const OutlookPtr&) { ++made; }});
  const auto ask_often = [&]() -> Task<void> {
    const auto first = co_await live.outlook();
    EXPECT_TRUE(first);
    const double spent = live.cpu_s();
    for (int i = 0; i < 100; ++i) {
      const auto again = co_await live.outlook();
      EXPECT_TRUE(again && *again == *first) << i;
    }
    EXPECT_EQ(live.cpu_s(), spent);
    co_await live.stop();
  };
  loop.run_until_done(ask_often());
  EXPECT_EQ(made, 1);
  EXPECT_EQ(live.follower().made(), 1);
}

/// The same with one of which nobody says how long it lasts, so that courses differ.
struct Unsure {
  Unsure() {
    engine.apply(engine::PodUpsert{pod("d/unsure", 8)});
    (void)engine.decide(kNow);
  }
  Live::Options options() {
    Live::Options out;
    out.engine = [this] { return &engine; };
    out.made = [this](const OutlookPtr&) {
      ++made;
      told->notify();
    };
    return out;
  }
  /// Until the last course has been played.
  Task<void> whole() {
    while (made == 0) (void)co_await told->wait(50ms);
  }

  net::Loop loop;
  Engine engine = small_world();
  int made = 0;
  std::unique_ptr<Signal> told = loop.make_signal();
};

TEST(Check24, WhatTakesLongIsToldAfterTheFirstCoursesAndThenInFull) {
  Unsure world;
  auto options = world.options();
  options.cpu_first = Duration{};
  Live live(world.loop, std::move(options));
  const auto ask = [&]() -> Task<void> {
    const auto first = co_await live.outlook();
    EXPECT_TRUE(first && (*first)->forecasts.draws == 8 && !(*first)->forecasts.cut);
    EXPECT_EQ(world.made, 0) << "what eight courses say is not kept";
    co_await world.whole();
    const auto then = co_await live.outlook();
    EXPECT_TRUE(then && (*then)->forecasts.draws == 40);
    EXPECT_TRUE((*then)->asked == (*first)->asked);
    EXPECT_GE((*then)->cpu_s, (*first)->cpu_s);
    EXPECT_EQ(live.cpu_s(), (*then)->cpu_s);
    co_await live.stop();
  };
  world.loop.run_until_done(ask());
  EXPECT_EQ(world.made, 1);
  EXPECT_EQ(live.follower().made(), 1);
}

TEST(Check24, WhereACourseTakesLongOneIsToldAndEightFollowForARange) {
  Unsure world;
  auto options = world.options();
  options.cpu_most = 1us;
  Live live(world.loop, std::move(options));
  const auto ask = [&]() -> Task<void> {
    const auto first = co_await live.outlook();
    EXPECT_TRUE(first && (*first)->forecasts.draws == 1);
    co_await world.whole();
    const auto then = co_await live.outlook();
    EXPECT_TRUE(then && (*then)->forecasts.draws == 8 && (*then)->forecasts.cut);
    co_await live.stop();
  };
  world.loop.run_until_done(ask());
  EXPECT_EQ(world.made, 1);
}

TEST(Check24, WhatCostsMuchIsKeptForLonger) {
  net::Loop loop;
  const Engine engine = small_world();
  int made = 0;
  Live::Options options;
  options.engine = [&] { return &engine; };
  options.made = [&](const OutlookPtr&) { ++made; };
  options.fresh = Duration{};
  // At a millionth of a core even these courses must do for longer than the test takes.
  options.cpu_share = 1e-6;
  Live live(loop, std::move(options));
  const auto ask_twice = [&]() -> Task<void> {
    (void)co_await live.outlook();
    (void)co_await live.outlook();
    co_await live.stop();
  };
  loop.run_until_done(ask_twice());
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace muster::answers
