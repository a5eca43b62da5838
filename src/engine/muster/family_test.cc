// Groups of groups: they start, preempt and go as a whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

Group top(const std::string& key, std::int32_t min_groups, const std::string& parent = "") {
  Group g = group(key, 1);
  g.is_parent = true;
  g.min_groups = min_groups;
  g.parent = parent;
  return g;
}

void add_child(Engine& e,
               const std::string& parent,
               const std::string& key,
               std::int32_t members,
               std::int64_t gpus,
               std::int32_t priority = 0) {
  Group g = group(key, members, priority);
  g.parent = parent;
  add_gang(e, g, members, gpus);
}

TEST(Family, StartsWithItsMinimumOfGroupsOrNotAtAll) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(GroupUpsert{top("d/f", 2)});
  add_child(e, "d/f", "d/one", 1, 4);
  add_child(e, "d/f", "d/two", 1, 8);
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(NodeUpsert{node("b", 8)});
  EXPECT_THAT(bound(e.decide(kNow)), testing::UnorderedElementsAre("d/one-0", "d/two-0"));
}

TEST(Family, ReservesForWhatMustStartTogether) {
  // Both nodes are partly busy for an hour. One of the two groups is enough for the family to
  // start, and one node for that.
  Config config;
  config.preempt = false;
  Engine e(config);
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 8)});
  Pod runs = running(pod("d/runs", 4), "a");
  runs.expected_duration = std::chrono::hours(1);
  Pod stays = running(pod("d/stays", 2), "b");
  stays.expected_duration = std::chrono::hours(1);
  e.apply(PodUpsert{runs});
  e.apply(PodUpsert{stays});
  e.apply(GroupUpsert{top("d/f", 1)});
  add_child(e, "d/f", "d/one", 1, 8);
  add_child(e, "d/f", "d/two", 1, 8);
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  // Longer than an hour: it may use the other node.
  Pod later = pod("d/later", 6);
  later.expected_duration = std::chrono::hours(5);
  e.apply(PodUpsert{later});
  EXPECT_THAT(bound(e.decide(kNow)), testing::ElementsAre("d/later"));
}

TEST(Family, WaitsForTheGroupAbove) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  add_child(e, "d/f", "d/one", 1, 4);
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  EXPECT_EQ(why(e, "d/one"), "the group \"d/f\" above its group does not exist");
  e.apply(GroupUpsert{top("d/f", 1)});
  e.apply(GroupUpsert{group("d/other", 1)});
  Group one = group("d/one", 1);
  one.parent = "d/f";
  e.apply(GroupUpsert{one});
  EXPECT_THAT(bound(e.decide(kNow)), testing::ElementsAre("d/one-0"));
}

TEST(Family, OfSeveralLevelsStartsFromItsRoot) {
  // root (both) -> left (both of a, b), right (c)
  Engine e({});
  e.apply(NodeUpsert{node("n", 8)});
  e.apply(GroupUpsert{top("d/root", 2)});
  e.apply(GroupUpsert{top("d/left", 2, "d/root")});
  e.apply(GroupUpsert{top("d/right", 1, "d/root")});
  add_child(e, "d/left", "d/a", 1, 4);
  add_child(e, "d/left", "d/b", 1, 4);
  add_child(e, "d/right", "d/c", 1, 4);
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(NodeUpsert{node("m", 4)});
  EXPECT_THAT(bound(e.decide(kNow)), testing::UnorderedElementsAre("d/a-0", "d/b-0", "d/c-0"));
}

TEST(Family, ChoosesADomainThatHoldsAllItsGroups) {
  // Rack x holds one of the two gangs and is the tighter one; only y holds both.
  Engine e({});
  e.apply(NodeUpsert{node("x0", 8, {{"rack", "x"}})});
  e.apply(NodeUpsert{node("y0", 8, {{"rack", "y"}})});
  e.apply(NodeUpsert{node("y1", 8, {{"rack", "y"}})});
  Group f = top("d/f", 2);
  f.topology = {{"rack", true}};
  e.apply(GroupUpsert{f});
  add_child(e, "d/f", "d/one", 1, 8);
  add_child(e, "d/f", "d/two", 1, 8);
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 2U);
  EXPECT_THAT((std::vector{plan.binds[0].node, plan.binds[1].node}),
              testing::UnorderedElementsAre("y0", "y1"));
}

TEST(Family, StaysWithinTheLimitOfItsQueue) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  Queue q;
  q.name = "default";
  q.capability = {{"nvidia.com/gpu", 6}};
  e.apply(QueueUpsert{q});
  e.apply(GroupUpsert{top("d/f", 2)});
  add_child(e, "d/f", "d/one", 1, 4);
  add_child(e, "d/f", "d/two", 1, 4);
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  q.capability = {{"nvidia.com/gpu", 8}};
  e.apply(QueueUpsert{q});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
}

TEST(Family, PreemptsAsAWhole) {
  Engine e({});
  for (const char* n : {"a", "b", "c"}) {
    e.apply(NodeUpsert{node(n, 8)});
    e.apply(PodUpsert{running(pod(fmt::format("d/low-{}", n), 8), n)});
  }
  e.apply(GroupUpsert{top("d/f", 2)});
  add_child(e, "d/f", "d/one", 1, 8, 10);
  add_child(e, "d/f", "d/two", 1, 8, 10);
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.evicts.size(), 2U);
  // One victim gone is not enough: both start together.
  e.apply(PodRemove{plan.evicts[0].pod});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodRemove{plan.evicts[1].pod});
  EXPECT_THAT(bound(e.decide(kNow)), testing::UnorderedElementsAre("d/one-0", "d/two-0"));
}

TEST(Family, EvictsNobodyWhenOnlyPartOfItCouldStart) {
  Engine e({});
  for (const char* n : {"a", "b"}) {
    e.apply(NodeUpsert{node(n, 8)});
    e.apply(
        PodUpsert{running(pod(fmt::format("d/run-{}", n), 8, n == std::string("a") ? 0 : 99), n)});
  }
  e.apply(GroupUpsert{top("d/f", 2)});
  add_child(e, "d/f", "d/one", 1, 8, 10);
  add_child(e, "d/f", "d/two", 1, 8, 10);
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
}

TEST(Family, ReclaimsAsAWhole) {
  Engine e({});
  for (const char* n : {"a", "b"}) {
    e.apply(NodeUpsert{node(n, 8)});
    e.apply(PodUpsert{running(in_queue(pod(fmt::format("d/lent-{}", n), 8), "lender"), n)});
  }
  Queue owner;
  owner.name = "owner";
  owner.deserved = {{"nvidia.com/gpu", 16}};
  e.apply(QueueUpsert{owner});
  Queue lender;
  lender.name = "lender";
  e.apply(QueueUpsert{lender});
  e.apply(GroupUpsert{top("d/f", 2)});
  for (const char* key : {"d/one", "d/two"}) {
    Group g = group(key, 1);
    g.parent = "d/f";
    g.queue = "owner";
    add_gang(e, g, 1, 8);
  }
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.evicts.size(), 2U);
  EXPECT_EQ(plan.evicts[0].kind, EvictKind::kReclaim);
  for (const auto& v : plan.evicts) e.apply(PodRemove{v.pod});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
}

/// A family of two gangs of one pod each runs on a and b, a lone pod on c; a pod of higher rank
/// wants a node.
Engine with_running_family(DisruptionMode mode, std::int32_t min_groups) {
  Engine e({});
  for (const char* n : {"a", "b", "c"}) e.apply(NodeUpsert{node(n, 8)});
  Group f = top("d/f", min_groups);
  f.disruption = mode;
  e.apply(GroupUpsert{f});
  for (const char* n : {"a", "b"}) {
    Group g = group(fmt::format("d/g{}", n), 1);
    g.parent = "d/f";
    e.apply(GroupUpsert{g});
    Pod p = running(pod(fmt::format("d/g{}-0", n), 8), n);
    p.group = g.key;
    e.apply(PodUpsert{p});
  }
  Pod safe = running(pod("d/safe", 8), "c");
  safe.preemptable = false;
  e.apply(PodUpsert{safe});
  (void)e.decide(kNow);
  e.apply(PodUpsert{pod("d/high", 8, 10)});
  return e;
}

TEST(Family, GoesWholeWhenItWouldFallBelowItsMinimum) {
  Engine both = with_running_family(DisruptionMode::kGang, 2);
  EXPECT_THAT(evicted(both.decide(kNow)), testing::UnorderedElementsAre("d/ga-0", "d/gb-0"));
  Engine one = with_running_family(DisruptionMode::kGang, 1);
  EXPECT_EQ(one.decide(kNow).evicts.size(), 1U);
}

TEST(Family, GoesWholeWhenItSaysSo) {
  Engine e = with_running_family(DisruptionMode::kWhole, 1);
  EXPECT_THAT(evicted(e.decide(kNow)), testing::UnorderedElementsAre("d/ga-0", "d/gb-0"));
}

/// Low work fills nodes a and b; a family of two gangs that start together waits for it to go.
Engine with_waiting_family(std::int32_t min_groups, std::vector<Evict>& victims) {
  Engine e({});
  for (const char* n : {"a", "b"}) {
    e.apply(NodeUpsert{node(n, 8, {{"host", n}})});
    e.apply(PodUpsert{running(pod(fmt::format("d/low-{}", n), 8), n)});
  }
  (void)e.decide(kNow);
  e.apply(GroupUpsert{top("d/f", min_groups)});
  add_child(e, "d/f", "d/one", 1, 8, 10);
  add_child(e, "d/f", "d/two", 1, 8, 10);
  victims = e.decide(kNow).evicts;
  return e;
}

/// Wants the node that is held for the pod.
Pod rival(const std::vector<Evict>& victims, const std::string& for_whom) {
  Pod p = pod("d/rival", 8, 100);
  for (const Evict& v : victims) {
    if (v.for_whom_pod == for_whom) p.node_selector = {{"host", v.node}};
  }
  return p;
}

TEST(Family, LosesNoRoomWhileAnotherOfItsGroupsIsTried) {
  std::vector<Evict> victims;
  Engine e = with_waiting_family(2, victims);
  ASSERT_EQ(victims.size(), 2U);
  add_child(e, "d/f", "d/three", 1, 1, 10);
  e.apply(NodeUpsert{node("c", 8)});
  for (int i = 0; i < 2; ++i) {
    const Plan plan = e.decide(kNow);
    EXPECT_TRUE(plan.binds.empty());
    EXPECT_TRUE(plan.nominations.empty());
  }
  for (const auto& v : victims) e.apply(PodRemove{v.pod});
  const Plan plan = e.decide(kNow);
  EXPECT_THAT(bound(plan), testing::UnorderedElementsAre("d/one-0", "d/two-0", "d/three-0"));
  EXPECT_TRUE(plan.evicts.empty());
}

TEST(Family, HoldsNothingWhenARivalTakesTheRoomOfOneGroupTooMany) {
  std::vector<Evict> victims;
  Engine e = with_waiting_family(2, victims);
  ASSERT_EQ(victims.size(), 2U);
  e.apply(PodUpsert{rival(victims, "d/one-0")});
  std::set<std::string> lost;
  for (const Nominate& n : e.decide(kNow).nominations) {
    if (n.node.empty()) lost.insert(n.pod);
  }
  EXPECT_THAT(lost, testing::UnorderedElementsAre("d/one-0", "d/two-0"));
}

TEST(Family, DoesNotWaitForAGroupThatARivalPushedAside) {
  std::vector<Evict> victims;
  Engine e = with_waiting_family(1, victims);
  ASSERT_EQ(victims.size(), 2U);
  for (const auto& v : victims) {
    if (v.for_whom_pod == "d/two-0") e.apply(PodRemove{v.pod});
  }
  EXPECT_TRUE(e.decide(kNow).binds.empty());  // Both start together.
  e.apply(PodUpsert{rival(victims, "d/one-0")});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/two-0"});
}

TEST(Family, EvictsNobodyMoreBecauseItsGroupsWereSeatedOneByOne) {
  // Two shares of 400 and two of 600 fit on two devices, though the former would fit on one and
  // leave each of the latter another.
  Engine e({});
  e.apply(NodeUpsert{node("n1", 4)});
  for (int i = 0; i < 2; ++i) {
    Pod low = running(pod(fmt::format("d/low-{}", i), 2), "n1");
    low.device_indexes = {2 * i, 2 * i + 1};
    e.apply(PodUpsert{low});
  }
  (void)e.decide(kNow);
  e.apply(GroupUpsert{top("d/f", 2)});
  for (const std::int32_t milli : {400, 600}) {
    Group g = group(fmt::format("d/g{}", milli), 2, 10);
    g.parent = "d/f";
    e.apply(GroupUpsert{g});
    for (int i = 0; i < 2; ++i) {
      Pod p = share_of(pod(fmt::format("{}-{}", g.key, i), 0, 10), milli);
      p.group = g.key;
      e.apply(PodUpsert{p});
    }
  }
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.evicts.size(), 1U);
  e.apply(PodRemove{plan.evicts[0].pod});
  EXPECT_EQ(e.decide(kNow).binds.size(), 4U);
}

TEST(Family, HoldsNothingOnceOneOfItsNodesIsNoPlaceAnyMore) {
  std::vector<Evict> victims;
  Engine e = with_waiting_family(2, victims);
  ASSERT_EQ(victims.size(), 2U);
  Node b = node("b", 8, {{"host", "b"}});
  b.unschedulable = true;
  e.apply(NodeUpsert{b});
  EXPECT_EQ(e.decide(kNow).nominations.size(), 2U);
  // The other node is free for others again.
  e.apply(PodRemove{"d/low-a"});
  e.apply(PodUpsert{pod("d/later", 8, 5)});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/later"});
}

TEST(Family, KeepsItsReservationWhenASmallerGroupStarts) {
  // The large group is expected to start when "first" ends. The small one fits before; the other
  // queue's turn is next then, and its pod would be in the way.
  Engine e({});
  for (const char* q : {"default", "other"}) e.apply(QueueUpsert{Queue{.name = q}});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 4)});
  const auto lasting = [](Pod p, int seconds) {
    p.expected_duration = std::chrono::seconds(seconds);
    return p;
  };
  e.apply(PodUpsert{lasting(running(pod("d/first", 4), "a"), 100)});
  e.apply(PodUpsert{lasting(running(pod("d/second", 4), "a"), 50)});
  e.apply(PodUpsert{lasting(running(in_queue(pod("d/third", 4), "other"), "b"), 1000)});
  e.apply(GroupUpsert{top("d/f", 1)});
  add_child(e, "d/f", "d/large", 1, 8);
  Group small = group("d/small", 1);
  small.parent = "d/f";
  e.apply(GroupUpsert{small});
  Pod member = lasting(pod("d/small-0", 1), 60);
  member.requests[0].value = 100;
  member.group = "d/small";
  e.apply(PodUpsert{member});
  Pod behind = in_queue(pod("d/behind", 2), "other");
  behind.created = kNow + std::chrono::seconds(1);
  e.apply(PodUpsert{behind});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodRemove{"d/second"});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/small-0"});
}

}  // namespace
}  // namespace muster::engine
