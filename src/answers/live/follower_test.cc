#include "answers/live/follower.h"

#include <gtest/gtest.h>

#include "answers/durations.h"
#include "answers/forecast.h"
#include "base/random.h"
#include "engine/test_world.h"
#include "net/loop/loop.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::test::kNow;
using engine::test::node;
using engine::test::pod;

/// An engine that decides, and who follows it.
class Leading {
 public:
  explicit Leading(Duration spare = std::chrono::minutes(1))
      : engine({}),
        follower(loop, {.engine = [this] { return &engine; }, .spare = spare, .batch = 50}) {}

  void tell(const engine::Event& event) {
    engine.apply(event);
    follower.heard(event);
  }
  void decide() {
    now = now + std::chrono::seconds(1);
    const engine::Plan plan = engine.decide(now);
    for (const engine::Bind& bind : plan.binds) running.push_back(bind.pod);
    follower.decided(now, plan);
  }
  /// Something happens, as in a cluster: pods come and end, nodes come and go.
  void step() {
    const std::uint64_t dice = random.below(10);
    if (dice < 6) {
      engine::Pod p = pod(fmt::format("d/p{}", ++serial), 1LL << random.below(4));
      p.created = now;
      p.priority = static_cast<std::int32_t>(random.below(3));
      tell(engine::PodUpsert{p});
    } else if (dice < 9 && !running.empty()) {
      const std::size_t at = random.below(running.size());
      tell(engine::PodRemove{running[at]});
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      tell(engine::NodeUpsert{node(fmt::format("n{}", random.below(8)), 8)});
    }
    if (random.below(3) == 0) decide();
  }
  std::shared_ptr<Engine> copy(Follower::Again again = Follower::Again::kNo) {
    std::shared_ptr<Engine> out;
    loop.run_until_done(
        [](Follower& asked, Follower::Again how, std::shared_ptr<Engine>& into) -> Task<void> {
          const auto made = co_await asked.copy(how);
          if (made) into = *made;
        }(follower, again, out));
    return out;
  }
  /// Until the copy for the next question is there, or is not.
  bool wait_for_spare(bool there) {
    loop.run_until_done([](net::Loop& clock, Follower& asked, bool wanted) -> Task<void> {
      for (int i = 0; i < 500 && asked.has_spare() != wanted; ++i)
        co_await clock.sleep(std::chrono::milliseconds(10));
    }(loop, follower, there));
    return follower.has_spare() == there;
  }
  void close() { loop.run_until_done(follower.stop()); }

  net::Loop loop;
  Engine engine;
  Follower follower;
  Random random{7};
  Time now = kNow;
  int serial = 0;
  std::vector<std::string> running;
};

TEST(Check02, KnowsAtEveryQuestionWhatTheEngineKnows) {
  Leading world;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 40; ++i) world.step();
    const auto copy = world.copy();
    ASSERT_TRUE(copy);
    EXPECT_EQ(copy->digest(), world.engine.digest()) << "round " << round;
  }
  EXPECT_EQ(world.follower.made(), 1);
  EXPECT_EQ(world.follower.differences(), 0);
  world.close();
}

TEST(Check02, ADifferenceIsFoundAndTheFollowerIsMadeAgain) {
  Leading world;
  for (int i = 0; i < 100; ++i) world.step();
  ASSERT_TRUE(world.copy());
  // The engine hears of a node that the follower does not hear of.
  world.engine.apply(engine::NodeUpsert{node("unheard", 8)});
  for (int i = 0; i < 100; ++i) world.step();
  const auto copy = world.copy();
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->digest(), world.engine.digest());
  EXPECT_EQ(world.follower.differences(), 1);
  EXPECT_EQ(world.follower.made(), 2);
  world.close();
}

TEST(Check02, ADifferenceIsFoundWithinAThousandEventsThoughNobodyAsks) {
  Leading world;
  for (int i = 0; i < 100; ++i) world.step();
  ASSERT_TRUE(world.copy());
  world.engine.apply(engine::NodeUpsert{node("unheard", 8)});
  for (int i = 0; i < 900; ++i) world.step();
  world.close();
  EXPECT_EQ(world.follower.differences(), 1) << "found, and told of once";
}

TEST(Follower, TheCopyThatIsMadeBeforehandKnowsWhatHappenedSince) {
  Leading world;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 40; ++i) world.step();
    const auto copy = world.copy(Follower::Again::kSoon);
    ASSERT_TRUE(copy);
    EXPECT_EQ(copy->digest(), world.engine.digest()) << "round " << round;
    ASSERT_TRUE(world.wait_for_spare(true));
  }
  EXPECT_EQ(world.follower.made(), 1);
  EXPECT_EQ(world.follower.differences(), 0);
  world.close();
  EXPECT_FALSE(world.follower.has_spare());
}

TEST(Follower, TheCopyThatIsMadeBeforehandIsLetGoWhenNobodyAsksAgain) {
  Leading world(std::chrono::milliseconds(100));
  for (int i = 0; i < 100; ++i) world.step();
  ASSERT_TRUE(world.copy(Follower::Again::kSoon));
  ASSERT_TRUE(world.wait_for_spare(true));
  EXPECT_TRUE(world.wait_for_spare(false));
  EXPECT_TRUE(world.follower.follows());
  world.close();
}

TEST(Follower, OnlyWhoAsksAgainSoonHasACopyMadeBeforehand) {
  Leading world;
  for (int i = 0; i < 100; ++i) world.step();
  ASSERT_TRUE(world.copy());
  for (int i = 0; i < 100; ++i) world.step();
  ASSERT_TRUE(world.copy());
  EXPECT_FALSE(world.follower.has_spare());
  world.close();
}

TEST(Follower, NoAnswerComesFromACopyMadeBeforehandThatDiffers) {
  Leading world;
  for (int i = 0; i < 100; ++i) world.step();
  ASSERT_TRUE(world.copy(Follower::Again::kSoon));
  ASSERT_TRUE(world.wait_for_spare(true));
  world.engine.apply(engine::NodeUpsert{node("unheard", 8)});
  for (int i = 0; i < 100; ++i) world.step();
  const auto copy = world.copy(Follower::Again::kSoon);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->digest(), world.engine.digest());
  EXPECT_EQ(world.follower.differences(), 1);
  world.close();
}

/// What a world decides from a seed on, asked or not.
std::vector<std::uint64_t> plans(std::uint64_t seed, bool asked) {
  Leading world;
  world.random = Random(seed);
  std::vector<std::uint64_t> out;
  for (int i = 0; i < 40; ++i) {
    world.step();
    if (asked && i % 13 == 0) {
      const auto copy = world.copy();
      EXPECT_TRUE(copy);
      Ask ask;
      ask.draws = 2;
      (void)forecast_all(*copy, world.now, SharedDraws(*copy, world.now), ask);
    }
    out.push_back(world.engine.digest());
  }
  world.close();
  return out;
}

TEST(Check34, ForecastsChangeNoPlan) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed)
    ASSERT_EQ(plans(seed, true), plans(seed, false)) << "seed " << seed;
}

TEST(Follower, NobodyIsFollowedBeforeTheFirstQuestion) {
  Leading world;
  for (int i = 0; i < 100; ++i) world.step();
  EXPECT_FALSE(world.follower.follows());
  ASSERT_TRUE(world.copy());
  EXPECT_TRUE(world.follower.follows());
  world.close();
  EXPECT_FALSE(world.follower.follows());
}

}  // namespace
}  // namespace muster::answers
