#include "scheduler/lending.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "net/loop/loop.h"

namespace muster::scheduler {
namespace {

using namespace std::chrono_literals;

engine::Pod pod(int i) {
  engine::Pod out;
  out.key = out.uid = fmt::format("team/a-pod-with-a-name-{}", i);
  out.ns = "team";
  out.requests = {{"cpu", 1000}, {"nvidia.com/gpu", 1}};
  out.created = Time::from_seconds(1'000'000 + i);
  return out;
}

/// An engine that decides, and a loop that has something to tell it all the time.
class Busy {
 public:
  explicit Busy(int pods) : engine({}), lending(loop, engine) {
    engine::Node node;
    node.name = "n";
    node.allocatable = {{"cpu", 96'000}, {"nvidia.com/gpu", 8}, {"pods", 110}};
    engine.apply(engine::NodeUpsert{node});
    for (; told < pods; ++told) engine.apply(engine::PodUpsert{pod(told)});
    (void)engine.decide(Time::from_seconds(2'000'000));
  }

  /// As the scheduler does.
  void tell(const engine::Event& event) {
    const Loan::Hold hold = lending.try_hold();
    if (!hold) {
      lending.keep(event);
      ++kept;
      return;
    }
    engine.apply(event);
    if (copied) later.push_back(event);
  }
  void tick() {
    tell(engine::PodUpsert{pod(told++)});
    ++ticks;
    if (!done) timer = loop.after(200us, [this] { tick(); });
  }
  Task<void> copy() {
    tick();
    co_await lending.copy([this](engine::Engine made) { copied.emplace(std::move(made)); },
                          {[this](const engine::Event& event) { tell(event); }, [] {}});
    done = true;
  }

  net::Loop loop;
  engine::Engine engine;
  Lending lending;
  int told = 0, kept = 0, ticks = 0;
  bool done = false;
  std::optional<engine::Engine> copied;
  std::vector<engine::Event> later;  // than the copy
  std::unique_ptr<Timer> timer;
};

TEST(Check23, TheLoopGoesOnWhileTheEngineIsCopied) {
  Busy world(40'000);
  world.loop.run_until_done(world.copy());
  ASSERT_TRUE(world.copied);
  EXPECT_GE(world.ticks, 3) << "the loop was held";
  EXPECT_GE(world.kept, 1);
  EXPECT_TRUE(world.lending.idle());
}

TEST(Check02, WhatHappensMeanwhileIsToldInOrderAndNothingIsLost) {
  for (const int pods : {0, 50, 3'000}) {
    Busy world(pods);
    world.loop.run_until_done(world.copy());
    ASSERT_TRUE(world.copied);
    for (int i = 0; i < 20; ++i) world.tell(engine::PodUpsert{pod(world.told++)});
    for (const engine::Event& event : world.later) world.copied->apply(event);
    EXPECT_EQ(world.copied->digest(), world.engine.digest()) << pods;
    EXPECT_EQ(world.engine.stats().pods, world.told);
  }
}

TEST(Check23, WhoeverOnlyReadsDoesSoWhileTheEngineIsCopied) {
  Busy world(20'000);
  int meanwhile = 0;
  const auto look = [&]() -> Task<void> {
    for (; !world.done; co_await world.loop.sleep(100us)) {
      if (world.lending.try_hold()) continue;
      ++meanwhile;
      EXPECT_GE(world.engine.stats().pods, 20'000);
      const auto told = world.engine.told(pod(19'000).key);
      EXPECT_TRUE(told && told->refusal.reason != engine::Reason::kNone);
      EXPECT_EQ(world.engine.nodes_refused(pod(19'000).key, "Insufficient nvidia.com/gpu").size(),
                1U);
    }
  };
  world.loop.spawn(look());
  world.loop.run_until_done(world.copy());
  EXPECT_TRUE(world.copied);
  EXPECT_GE(meanwhile, 1);
}

TEST(Lending, WhatIsChangedAfterTheCopyIsCopiedAgain) {
  Busy world(2'000);
  bool changed = false;
  const auto change = [&]() -> Task<void> {
    co_await world.loop.sleep(500us);
    if (world.copied) co_return;  // it was too quick
    world.lending.claim();
    world.engine.apply(engine::PodUpsert{pod(1'000'000)});
    changed = true;
  };
  world.loop.spawn(change());
  world.loop.run_until_done(world.copy());
  ASSERT_TRUE(world.copied);
  for (const engine::Event& event : world.later) world.copied->apply(event);
  EXPECT_EQ(world.copied->digest(), world.engine.digest()) << changed;
}

}  // namespace
}  // namespace muster::scheduler
