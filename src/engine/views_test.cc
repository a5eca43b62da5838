// What queues and metrics are told, under every policy.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

Config volcano() {
  Config config;
  config.policy = PolicyKind::kVolcano;
  config.volcano.tiers = {{{.name = "priority"}, {.name = "gang"}}, {{.name = "predicates"}}};
  return config;
}

/// Node a of 8 GPUs; "d/big" holds all of them, two gangs and a pod wait.
Engine full(Config config) {
  Engine e(std::move(config));
  e.apply(QueueUpsert{Queue{.name = "default"}});
  e.apply(QueueUpsert{Queue{.name = "other"}});
  e.apply(NodeUpsert{node("a", 8)});
  add_gang(e, group("d/big", 2), 2, 4);
  (void)e.decide(kNow);
  Group late = group("d/late", 2);
  late.created = kNow + Duration(1);
  add_gang(e, late, 2, 4);
  Group urgent = group("d/urgent", 1, 0);
  urgent.queue = "other";
  add_gang(e, urgent, 1, 8);
  e.apply(PodUpsert{pod("d/alone", 1)});
  (void)e.decide(kNow);
  return e;
}

class Views : public testing::TestWithParam<bool> {
 protected:
  static Config config() {
    Config config = GetParam() ? volcano() : Config{};
    config.preempt = false;
    return config;
  }
};
constexpr auto kPolicy = [](const testing::TestParamInfo<bool>& p) {
  return p.param ? "volcano" : "muster";
};
INSTANTIATE_TEST_SUITE_P(EveryPolicy, Views, testing::Bool(), kPolicy);
/// One state; tests/dst clones at random points of many.
class Check01 : public Views {};
INSTANTIATE_TEST_SUITE_P(EveryPolicy, Check01, testing::Bool(), kPolicy);

TEST_P(Views, CountTheGangsThatWaitAndThoseThatRun) {
  Engine e = full(config());
  EXPECT_EQ(e.stats().gangs_waiting, 3);
  EXPECT_GT(e.stats().attempts, 0);
  EXPECT_EQ(e.queue("default")->gangs_waiting, 2);
  EXPECT_EQ(e.queue("default")->gangs_running, 1);
  EXPECT_EQ(e.queue("other")->gangs_waiting, 1);
  // One of two members is gone: the gang does not run any more, and nobody of it waits.
  e.apply(PodRemove{"d/big-0"});
  EXPECT_EQ(e.queue("default")->gangs_running, 0);
  EXPECT_EQ(e.queue("default")->gangs_waiting, 2);
  e.apply(PodRemove{"d/big-1"});
  (void)e.decide(kNow + std::chrono::seconds(2));
  EXPECT_EQ(e.stats().gangs_waiting,
            e.queue("default")->gangs_waiting + e.queue("other")->gangs_waiting);
  EXPECT_EQ(
      e.queue("default")->gangs_running + e.queue("other")->gangs_running + e.stats().gangs_waiting,
      3);
}

TEST_P(Views, ListWhatWaitsInAQueueWithItsReason) {
  Engine e = full(config());
  const auto waiting = e.waiting("default", 10);
  ASSERT_EQ(waiting.size(), 2U);
  EXPECT_EQ(waiting[0].key, "d/alone");
  EXPECT_EQ(waiting[1].key, "d/late");
  EXPECT_EQ(waiting[1].rank, 1);
  EXPECT_EQ(waiting[1].refusal.reason, Reason::kNoNodeFits);
  EXPECT_EQ(e.waiting("default", 1).size(), 1U);
  EXPECT_TRUE(e.waiting("nobody", 10).empty());
  EXPECT_TRUE(e.why("d/late"));
}

TEST_P(Views, ListAReasonForEachOfManyThatCameTogether) {
  Engine e = full(config());
  for (int i = 0; i < 12; ++i) {
    e.apply(PodUpsert{pod(fmt::format("d/alike-{}", i), 1)});
    e.apply(PodUpsert{pod(fmt::format("d/huge-{}", i), 64)});
  }
  (void)e.decide(kNow + std::chrono::seconds(2));
  const auto waiting = e.waiting("default", 100);
  EXPECT_EQ(waiting.size(), 26U);
  for (const WaitView& one : waiting) {
    EXPECT_NE(one.refusal.reason, Reason::kNone) << one.key;
    EXPECT_EQ(one.refusal.reason, e.why(one.key)->refusal.reason) << one.key;
  }
}

TEST_P(Views, NameTheNodesThatACauseMeans) {
  Engine e = full(config());
  Node small = node("b", 2);
  e.apply(NodeUpsert{small});
  Node off = node("c", 8);
  off.unschedulable = true;
  e.apply(NodeUpsert{off});
  (void)e.decide(kNow + std::chrono::seconds(2));
  const auto why = e.why("d/late");
  ASSERT_TRUE(why);
  for (const NodeCount& cause : why->refusal.by_cause) {
    const auto named = e.nodes_refused("d/late", cause.cause);
    EXPECT_EQ(named.size(), static_cast<std::size_t>(cause.nodes)) << cause.cause;
  }
  const std::vector<std::string> full{"a", "b"};
  EXPECT_EQ(e.nodes_refused("d/late", "Insufficient nvidia.com/gpu"), full);
  EXPECT_EQ(e.nodes_refused("d/late", "node(s) were unschedulable"), std::vector<std::string>{"c"});
  EXPECT_TRUE(e.nodes_refused("d/late", "no such cause").empty());
  EXPECT_TRUE(e.nodes_refused("d/nobody", "Insufficient nvidia.com/gpu").empty());
}

TEST_P(Views, ASuspendedGangAndAStrangersPodWaitForNobody) {
  Engine e(config());
  e.apply(QueueUpsert{Queue{.name = "default"}});
  Pod gated = pod("d/gated", 1);
  gated.gated = true;
  e.apply(PodUpsert{gated});
  Pod foreign = pod("d/foreign", 1);
  foreign.ours = false;
  e.apply(PodUpsert{foreign});
  EXPECT_EQ(e.stats().gangs_waiting, 0);
  foreign.ours = true;
  e.apply(PodUpsert{foreign});
  EXPECT_EQ(e.stats().gangs_waiting, 1);
  EXPECT_EQ(e.queue("default")->gangs_waiting, 1);
}

TEST_P(Check01, ACloneDecidesTheSameAndWhatBecomesOfItChangesNothing) {
  Engine e = full(config());
  e.apply(PodRemove{"d/big-0"});
  const std::uint64_t before = e.digest();
  Engine clone = e.clone();
  EXPECT_EQ(clone.digest(), before);
  const Plan foretold = clone.decide(kNow);
  clone.apply(NodeRemove{"a"});
  (void)clone.decide(kNow);
  EXPECT_EQ(e.digest(), before);
  const Plan plan = e.decide(kNow);
  EXPECT_FALSE(plan.binds.empty());
  EXPECT_EQ(plan.binds, foretold.binds);
  EXPECT_NE(e.digest(), before);
}

TEST_P(Views, AGangIsCountedInTheQueueItMovesTo) {
  Engine e = full(config());
  Group moved = group("d/late", 2);
  moved.queue = "other";
  e.apply(GroupUpsert{moved});
  EXPECT_EQ(e.queue("default")->gangs_waiting, 1);
  EXPECT_EQ(e.queue("other")->gangs_waiting, 2);
  // With another minimum half of the gang is enough.
  Group smaller = group("d/big", 1);
  e.apply(GroupUpsert{smaller});
  e.apply(PodRemove{"d/big-0"});
  EXPECT_EQ(e.queue("default")->gangs_running, 1);
}

TEST(Views, PodsThatAreSeenBeforeTheirNodeKeepTheirDevices) {
  Engine e({});
  Pod unknown = test::running(test::pod("ns/unknown", 1), "n0");
  Pod known = test::running(test::pod("ns/known", 2), "n0");
  known.device_indexes = {0, 1};
  e.apply(PodUpsert{unknown});
  e.apply(PodUpsert{known});
  e.apply(NodeUpsert{test::node("n0", 4)});
  EXPECT_EQ(e.pod("ns/known")->device_indexes, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(e.pod("ns/unknown")->device_indexes, std::vector<std::int32_t>{2});
  EXPECT_EQ(e.node("n0")->free_devices, std::vector<std::int32_t>{3});
  // A node that says for a while that it has no devices.
  e.apply(NodeUpsert{test::node("n0", 0)});
  e.apply(NodeUpsert{test::node("n0", 4)});
  EXPECT_EQ(e.pod("ns/known")->device_indexes, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(e.node("n0")->free_devices, std::vector<std::int32_t>{3});
}

}  // namespace
}  // namespace muster::engine
