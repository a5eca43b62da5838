// Who goes, what is said when nobody can, and who learns from what ended.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"

namespace muster::engine {
namespace {

constexpr Time kNow = Time{1'000'000'000};

Node node(const std::string& name, std::int64_t gpus, Labels labels = {}) {
  Node n;
  n.name = name;
  n.labels = std::move(labels);
  n.allocatable = {
      {"cpu", 64'000}, {"memory", 256LL << 30}, {"pods", 110}, {"nvidia.com/gpu", gpus}};
  return n;
}

Pod pod(const std::string& key, std::int64_t gpus, std::int32_t priority = 0) {
  Pod p;
  p.key = key;
  p.uid = key + "-uid";
  p.ns = "d";
  p.priority = priority;
  p.requests = {{"cpu", 1000}, {"nvidia.com/gpu", gpus}};
  return p;
}

Pod running(Pod p, const std::string& on, Time started = kNow) {
  p.node = on;
  p.started = started;
  return p;
}

/// Three nodes full with a job of one member each; members may have started in any order.
Engine full_with_medium(bool grouped, std::int32_t min_member) {
  Engine e({});
  const char* names[] = {"d/medium-master-0", "d/medium-worker-0", "d/medium-worker-1"};
  const char* nodes[] = {"n208", "n210", "n209"};
  if (grouped) {
    Group g;
    g.key = "d/medium";
    g.min_member = min_member;
    g.priority = 10;
    e.apply(GroupUpsert{g});
  }
  for (int i = 0; i < 3; ++i) {
    e.apply(NodeUpsert{node(nodes[i], 4)});
    Pod p = running(pod(names[i], 4, 10), nodes[i]);
    p.created = kNow;
    if (grouped) p.group = "d/medium";
    if (grouped) p.started = kNow + std::chrono::seconds(3 - i);
    e.apply(PodUpsert{p});
  }
  (void)e.decide(kNow);
  return e;
}

TEST(Preempt, OfEqualVictimsTheLastMemberGoes) {
  for (const bool grouped : {false, true}) {
    Engine e = full_with_medium(grouped, 1);
    e.apply(PodUpsert{pod("d/critical-master-0", 1, 11)});
    const Plan plan = e.decide(kNow + std::chrono::seconds(60));
    ASSERT_EQ(plan.evicts.size(), 1U) << grouped;
    EXPECT_EQ(plan.evicts[0].pod, "d/medium-worker-1") << grouped;
  }
}

TEST(Preempt, SurplusOnOneNodeIsTheLastMembersWithNumbersInOrder) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 12)});
  Group g;
  g.key = "d/j";
  g.min_member = 11;
  e.apply(GroupUpsert{g});
  for (int i = 11; i >= 0; --i) {
    Pod p = running(pod(fmt::format("d/j-worker-{}", i), 1), "a");
    p.group = "d/j";
    e.apply(PodUpsert{p});
  }
  e.apply(PodUpsert{pod("d/high", 1, 5)});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.evicts.size(), 1U);
  EXPECT_EQ(plan.evicts[0].pod, "d/j-worker-11");
}

TEST(Preempt, SaysWhyEvictionDidNotHelp) {
  Engine e = full_with_medium(false, 1);
  e.apply(PodUpsert{pod("d/equal", 1, 10)});
  const Plan none = e.decide(kNow);
  ASSERT_EQ(none.waits.size(), 1U);
  EXPECT_EQ(
      node_message(none.waits[0].refusal),
      "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: 3 No preemption victims found "
      "for incoming pod.");
  Pod never = pod("d/never", 2, 99);
  never.preemption_policy = PreemptionPolicy::kNever;
  e.apply(PodUpsert{never});
  const Plan refused = e.decide(kNow);
  EXPECT_TRUE(refused.evicts.empty());
  ASSERT_EQ(refused.waits.size(), 1U);
  EXPECT_EQ(
      node_message(refused.waits[0].refusal),
      "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: not eligible due to preemptionPolicy=Never.");
  Pod elsewhere = pod("d/elsewhere", 1, 99);
  elsewhere.node_selector = {{"zone", "x"}};
  e.apply(PodUpsert{elsewhere});
  const Plan useless = e.decide(kNow);
  ASSERT_EQ(useless.waits.size(), 1U);
  EXPECT_THAT(
      node_message(useless.waits[0].refusal),
      testing::EndsWith(
          "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."));
}

TEST(Preempt, AGangWithATopologyTakesOneRackAndTheFewestVictims) {
  Engine e({});
  for (int i = 0; i < 4; ++i)
    e.apply(NodeUpsert{node(fmt::format("n{}", i), 8, {{"rack", i < 2 ? "x" : "y"}})});
  // Rack x: two victims on each node would have to go; rack y: one on each.
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 2; ++k)
      e.apply(PodUpsert{running(pod(fmt::format("d/x-{}-{}", i, k), 4), fmt::format("n{}", i))});
    e.apply(PodUpsert{running(pod(fmt::format("d/y-{}", i), 8), fmt::format("n{}", i + 2))});
  }
  (void)e.decide(kNow);
  Group g;
  g.key = "d/g";
  g.min_member = 2;
  g.priority = 9;
  g.topology = {{"rack", true}};
  e.apply(GroupUpsert{g});
  for (int i = 0; i < 2; ++i) {
    Pod p = pod(fmt::format("d/g-{}", i), 8, 9);
    p.group = "d/g";
    e.apply(PodUpsert{p});
  }
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.evicts.size(), 2U);
  EXPECT_THAT((std::vector{plan.evicts[0].pod, plan.evicts[1].pod}),
              testing::UnorderedElementsAre("d/y-0", "d/y-1"));
  for (const auto& v : plan.evicts) e.apply(PodRemove{v.pod});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
}

TEST(Preempt, AHigherRankTakesRoomHeldForALowerOne) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 8)});
  Pod safe = running(pod("d/safe", 8), "b");
  safe.preemptable = false;
  e.apply(PodUpsert{safe});
  e.apply(PodUpsert{running(pod("d/low", 8), "a")});
  e.apply(PodUpsert{pod("d/mid", 8, 10)});
  ASSERT_EQ(e.decide(kNow).evicts.size(), 1U);
  e.apply(PodUpsert{pod("d/top", 8, 20)});
  const Plan plan = e.decide(kNow);
  EXPECT_TRUE(plan.evicts.empty());
  EXPECT_THAT(plan.nominations,
              testing::Contains(Nominate{"d/top", "a", {0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_THAT(plan.nominations, testing::Contains(Nominate{"d/mid", "", {}}));
  e.apply(PodRemove{"d/low"});
  const Plan after = e.decide(kNow);
  ASSERT_EQ(after.binds.size(), 1U);
  EXPECT_EQ(after.binds[0].pod, "d/top");
  // The loser waits like anybody else and gets the next room.
  e.apply(PodRemove{"d/safe"});
  const Plan last = e.decide(kNow);
  ASSERT_EQ(last.binds.size(), 1U);
  EXPECT_EQ(last.binds[0].pod, "d/mid");
}

TEST(Preempt, RoomHeldForALowerGangThatIsFreeAlreadyIsBoundAtOnce) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 8)});
  for (const char* n : {"a", "b"})
    e.apply(PodUpsert{running(pod(fmt::format("d/low-{}", n), 8), n)});
  Group g;
  g.key = "d/g";
  g.min_member = 2;
  g.priority = 10;
  e.apply(GroupUpsert{g});
  for (int i = 0; i < 2; ++i) {
    Pod p = pod(fmt::format("d/g-{}", i), 8, 10);
    p.group = "d/g";
    e.apply(PodUpsert{p});
  }
  ASSERT_EQ(e.decide(kNow).evicts.size(), 2U);
  e.apply(PodRemove{"d/low-a"});  // b is still leaving
  ASSERT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodUpsert{pod("d/top", 8, 20)});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 1U);
  EXPECT_EQ(plan.binds[0].pod, "d/top");
  EXPECT_EQ(plan.binds[0].node, "a");
}

TEST(Preempt, WhoMayBeEvictedFromNowOnIsEvictedForOneThatWaits) {
  struct Case {
    const char* name;
    void (*protect)(Pod&);
  };
  for (const auto& c : {Case{"was not to be evicted", [](Pod& p) { p.preemptable = false; }},
                        Case{"had the same rank", [](Pod& p) { p.priority = 10; }}}) {
    SCOPED_TRACE(c.name);
    Engine e({});
    e.apply(NodeUpsert{node("a", 4)});
    const Pod low = running(pod("d/low", 4), "a");
    Pod kept = low;
    c.protect(kept);
    e.apply(PodUpsert{kept});
    e.apply(PodUpsert{pod("d/urgent", 4, 10)});
    EXPECT_TRUE(e.decide(kNow).evicts.empty());
    e.apply(PodUpsert{low});
    const Plan plan = e.decide(kNow);
    ASSERT_EQ(plan.evicts.size(), 1U);
    EXPECT_EQ(plan.evicts[0].pod, "d/low");
  }
}

TEST(Waiting, AttemptsThatAreUndoneWakeNobody) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  const auto gang = [&](const std::string& key, const std::vector<std::int64_t>& gpus) {
    Group g;
    g.key = key;
    g.min_member = static_cast<std::int32_t>(gpus.size());
    e.apply(GroupUpsert{g});
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      Pod p = pod(fmt::format("{}-{}", key, i), gpus[i]);
      p.group = key;
      e.apply(PodUpsert{p});
    }
  };
  gang("d/one", {6, 4});
  gang("d/two", {4, 4, 4});
  (void)e.decide(kNow);
  const auto attempts = e.stats().attempts;
  for (int i = 1; i < 10; ++i) (void)e.decide(kNow + std::chrono::milliseconds(i));
  EXPECT_EQ(e.stats().attempts, attempts);
}

TEST(Durations, CompletedWorkTeachesTheEstimate) {
  Config c;
  c.preempt = false;
  Engine e(c);
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 8)});
  for (int i = 0; i < 5; ++i) {
    Pod p = running(pod(fmt::format("d/past-{}", i), 8), "a", kNow);
    e.apply(PodUpsert{p});
    (void)e.decide(kNow);
    p.finished = p.succeeded = true;
    e.apply(PodUpsert{p});
    (void)e.decide(kNow + std::chrono::seconds(100));
  }
  // Nobody says how long this one takes; others like it took 100 s.
  const Time later = kNow + std::chrono::seconds(1000);
  e.apply(PodUpsert{running(pod("d/now", 8), "a", later)});
  Group wide;
  wide.key = "d/wide";
  wide.min_member = 2;
  e.apply(GroupUpsert{wide});
  for (int i = 0; i < 2; ++i) {
    Pod p = pod(fmt::format("d/wide-{}", i), 8);
    p.group = "d/wide";
    e.apply(PodUpsert{p});
  }
  const Plan plan = e.decide(later);
  ASSERT_EQ(plan.reservations.size(), 1U);
  EXPECT_EQ(plan.reservations[0].start, later + std::chrono::seconds(100));
}

}  // namespace
}  // namespace muster::engine
