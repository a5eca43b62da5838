// The rules of queues and waiting, one at a time: T9k queues, DRF, closing, surplus, topology
// levels, shares of devices, bounded delay, and what may pass whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

Queue queue(const std::string& name) {
  Queue q;
  q.name = name;
  return q;
}

// --------------------------------------------------------------------------------------------- T9k

Queue t9k(const std::string& name, std::int32_t priority, bool preemptible = true) {
  Queue q = queue(name);
  q.t9k = true;
  q.priority = priority;
  q.preemptible = preemptible;
  return q;
}

TEST(T9k, AQuotaOfRequestsIsAHardLimit) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  Queue q = t9k("team", 0);
  q.capability = {{"nvidia.com/gpu", 2}};
  e.apply(QueueUpsert{q});
  for (int i = 0; i < 3; ++i) e.apply(PodUpsert{in_queue(pod(fmt::format("d/p{}", i), 1), "team")});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
  EXPECT_THAT(
      why(e, "d/p2"),
      testing::HasSubstr("queue \"team\" is at its limit; nvidia.com/gpu: wants 1, 0 left of 2"));
}

TEST(T9k, AQueueOfHigherPriorityTakesFromAPreemptibleOneWhateverThePodsSay) {
  for (const bool preemptible : {true, false}) {
    Engine e({});
    e.apply(NodeUpsert{node("a", 8)});
    e.apply(QueueUpsert{t9k("low", 1, preemptible)});
    e.apply(QueueUpsert{t9k("high", 2)});
    e.apply(PodUpsert{running(in_queue(pod("d/runs", 8, 1000), "low"), "a")});
    e.apply(PodUpsert{in_queue(pod("d/wants", 8, 0), "high")});
    EXPECT_EQ(e.decide(kNow).evicts.size(), preemptible ? 1U : 0U);
  }
}

TEST(T9k, NobodyIsPreemptedInsideAQueueOrByALowerOne) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(QueueUpsert{t9k("low", 1)});
  e.apply(QueueUpsert{t9k("high", 2)});
  e.apply(PodUpsert{running(in_queue(pod("d/runs", 8, 0), "high"), "a")});
  e.apply(PodUpsert{in_queue(pod("d/same", 8, 100), "high")});
  e.apply(PodUpsert{in_queue(pod("d/lower", 8, 100), "low")});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
}

TEST(T9k, ANodeSelectorOfTheQueueBoundsItsNodes) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 8, {{"pool", "x"}})});
  Queue q = t9k("team", 0);
  q.node_selector = Selector{{{"pool", Operator::kIn, {"x"}}}};
  e.apply(QueueUpsert{q});
  e.apply(PodUpsert{in_queue(pod("d/p", 1), "team")});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 1U);
  EXPECT_EQ(plan.binds[0].node, "b");
}

// ------------------------------------------------------------------------------------------ order
// in a queue

TEST(Drf, TheGangWithTheSmallerDominantShareGoesFirst) {
  // big runs 4 GPUs, small 1; one GPU is left for one more member of either.
  for (const bool drf : {false, true}) {
    Config c;
    c.drf = drf;
    Engine e(c);
    e.apply(NodeUpsert{node("a", 6)});
    const auto gang = [&](const std::string& key, std::int32_t runs, Time created) {
      Group g = group(key, 1);
      g.created = created;
      e.apply(GroupUpsert{g});
      for (std::int32_t i = 0; i <= runs; ++i) {
        Pod p = pod(fmt::format("{}-{}", key, i), 1);
        p.group = key;
        e.apply(PodUpsert{i < runs ? running(p, "a") : p});
      }
    };
    gang("d/big", 4, kNow);
    gang("d/small", 1, kNow + std::chrono::seconds(1));
    const Plan plan = e.decide(kNow);
    ASSERT_EQ(plan.binds.size(), 1U);
    EXPECT_EQ(plan.binds[0].pod, drf ? "d/small-1" : "d/big-4");
  }
}

TEST(Queues, AClosingOrClosedQueueStartsNothingNewAndKeepsWhatRuns) {
  for (const auto& [state, word] :
       {std::pair(QueueState::kClosing, "closing"), std::pair(QueueState::kClosed, "closed")}) {
    Engine e({});
    e.apply(NodeUpsert{node("a", 8)});
    Queue q = queue("team");
    q.state = state;
    e.apply(QueueUpsert{q});
    e.apply(PodUpsert{running(in_queue(pod("d/runs", 1), "team"), "a")});
    e.apply(PodUpsert{in_queue(pod("d/new", 1), "team")});
    const Plan plan = e.decide(kNow);
    EXPECT_TRUE(plan.binds.empty());
    EXPECT_TRUE(plan.evicts.empty());
    EXPECT_EQ(why(e, "d/new"), fmt::format("queue \"team\" is {}: it takes no new work", word));
    q.state = QueueState::kOpen;
    e.apply(QueueUpsert{q});
    EXPECT_THAT(bound(e.decide(kNow)), testing::ElementsAre("d/new"));
  }
}

TEST(Surplus, MembersAboveTheMinimumComeAfterEverybodysMinimum) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 3)});
  Group first = group("d/first", 1);
  add_gang(e, first, 3, 1);
  Group second = group("d/second", 2);
  second.created = kNow + std::chrono::seconds(1);
  add_gang(e, second, 2, 1);
  EXPECT_THAT(bound(e.decide(kNow)),
              testing::UnorderedElementsAre("d/first-0", "d/second-0", "d/second-1"));
  // Room for one more goes to the surplus.
  e.apply(NodeUpsert{node("b", 1)});
  EXPECT_EQ(e.decide(kNow).binds.size(), 1U);
}

TEST(Surplus, GoesFirstAndAGangNeverStaysBelowItsMinimum) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(GroupUpsert{group("d/g", 2)});
  for (int i = 0; i < 4; ++i) {
    Pod p = running(pod(fmt::format("d/g-{}", i), 2), "a");
    p.group = "d/g";
    e.apply(PodUpsert{p});
  }
  (void)e.decide(kNow);
  e.apply(PodUpsert{pod("d/small", 4, 10)});
  EXPECT_EQ(e.decide(kNow).evicts.size(), 2U);  // the surplus
  Engine whole({});
  whole.apply(NodeUpsert{node("a", 8)});
  whole.apply(GroupUpsert{group("d/g", 4)});
  for (int i = 0; i < 4; ++i) {
    Pod p = running(pod(fmt::format("d/g-{}", i), 2), "a");
    p.group = "d/g";
    whole.apply(PodUpsert{p});
  }
  (void)whole.decide(kNow);
  whole.apply(PodUpsert{pod("d/small", 4, 10)});
  // Two would do, but then two useless ones would stay.
  EXPECT_EQ(whole.decide(kNow).evicts.size(), 4U);
}

TEST(Roles, PreemptionLetsInWhatEachRoleNeeds) {
  Engine e({});
  for (const char* n : {"a", "b"}) {
    e.apply(NodeUpsert{node(n, 8)});
    e.apply(PodUpsert{running(pod(fmt::format("d/low-{}", n), 8), n)});
  }
  Group g = group("d/g", 2, 10);
  g.min_task_member = {{"master", 1}, {"worker", 1}};
  e.apply(GroupUpsert{g});
  for (const char* name : {"worker-0", "worker-1", "master-0"}) {
    Pod p = pod(fmt::format("d/g-{}", name), name[0] == 'w' ? 8 : 1, 10);
    p.group = "d/g";
    p.role = std::string(name).substr(0, 6);
    e.apply(PodUpsert{p});
  }
  for (const auto& v : e.decide(kNow).evicts) e.apply(PodRemove{v.pod});
  EXPECT_THAT(bound(e.decide(kNow)), testing::Contains("d/g-master-0"));
}

// ---------------------------------------------------------------------------------------- topology

Engine two_zones_of_two_racks() {
  Engine e({});
  for (int i = 0; i < 8; ++i) {
    e.apply(NodeUpsert{node(fmt::format("n{}", i),
                            8,
                            {{"zone", i < 4 ? "z0" : "z1"}, {"rack", fmt::format("r{}", i / 2)}})});
  }
  return e;
}

std::set<std::string> racks(const Plan& plan) {
  std::set<std::string> out;
  for (const auto& b : plan.binds) out.insert(fmt::format("r{}", (b.node[1] - '0') / 2));
  return out;
}

TEST(Topology, APreferredRackInsideAHardZoneIsTakenWhenItHoldsAll) {
  Engine e = two_zones_of_two_racks();
  Group g = group("d/g", 2);
  g.topology = {{"zone", true}, {"rack", false}};
  add_gang(e, g, 2, 8);
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 2U);
  EXPECT_EQ(racks(plan).size(), 1U);
}

TEST(Topology, APreferredRackIsGivenUpButTheHardZoneIsNot) {
  Engine e = two_zones_of_two_racks();
  // One node of each rack is taken: no rack holds two, each zone holds two.
  for (const int i : {0, 2, 4, 6})
    e.apply(PodUpsert{running(pod(fmt::format("d/busy-{}", i), 8), fmt::format("n{}", i))});
  Group g = group("d/g", 2);
  g.topology = {{"zone", true}, {"rack", false}};
  add_gang(e, g, 2, 8);
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 2U);
  const auto zone = [](const std::string& name) { return (name[1] - '0') / 4; };
  EXPECT_EQ(zone(plan.binds[0].node), zone(plan.binds[1].node));
  // The other zone still holds two, and then nothing is left.
  Group other = group("d/other", 2);
  other.topology = {{"zone", true}};
  add_gang(e, other, 2, 8);
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
  Group last = group("d/last", 1);
  add_gang(e, last, 1, 8);
  EXPECT_TRUE(e.decide(kNow).binds.empty());
}

// ---------------------------------------------------------------------------------------- shares
// of devices

TEST(Shares, AShareNeedsOneDeviceWithThatMuchLeft) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 2)});
  const auto share = [](const std::string& key, std::int32_t milli) {
    Pod p = pod(key, 0);
    p.requests = {{"cpu", 100}};
    p.device_share_milli = milli;
    return p;
  };
  e.apply(PodUpsert{share("d/x", 600)});
  e.apply(PodUpsert{share("d/y", 600)});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
  // 800 milli are free, 400 on each device: neither a share of 500 nor a whole device is to be had.
  e.apply(PodUpsert{share("d/z", 500)});
  e.apply(PodUpsert{pod("d/whole", 1)});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodUpsert{share("d/w", 400)});
  EXPECT_THAT(bound(e.decide(kNow)), testing::ElementsAre("d/w"));
}

// ------------------------------------------------------------------------------------- who may
// pass whom

Engine blocked_head(BackfillMode mode) {
  Queue q = queue("q");
  q.backfill = mode;
  Config c;
  c.patience = std::chrono::minutes(10);
  return test::blocked_head({}, c, q);
}

Pod small(Duration expected = {}) {
  Pod p = pod("d/small", 2);
  p.created = kNow + std::chrono::seconds(1);
  p.expected_duration = expected;
  return p;
}

TEST(Passing, InAStrictQueueNobodyPasses) {
  Engine e = blocked_head(BackfillMode::kFifo);
  e.apply(PodUpsert{small(std::chrono::seconds(1))});
  EXPECT_TRUE(e.decide(kNow + std::chrono::seconds(2)).binds.empty());
  EXPECT_EQ(why(e, "d/small"), "queue \"q\" is first in, first out; 1 ahead (first \"d/head\")");
  e.apply(PodRemove{"d/head"});
  EXPECT_THAT(bound(e.decide(kNow + std::chrono::seconds(3))), testing::ElementsAre("d/small"));
}

TEST(Passing, InASkippingQueueEverybodyPassesForEver) {
  Engine e = blocked_head(BackfillMode::kSkip);
  (void)e.decide(kNow + std::chrono::hours(100));
  e.apply(PodUpsert{small()});
  EXPECT_THAT(bound(e.decide(kNow + std::chrono::hours(100))), testing::ElementsAre("d/small"));
}

TEST(Passing, WithUnknownTimesNobodyIsHeldBackBeforePatienceIsOver) {
  Engine e = blocked_head(BackfillMode::kReservation);
  e.apply(PodUpsert{small()});
  EXPECT_THAT(bound(e.decide(kNow + std::chrono::minutes(5))), testing::ElementsAre("d/small"));
}

TEST(Passing, AfterPatienceOnlyWhatIsSurelyShortPasses) {
  Engine e = blocked_head(BackfillMode::kReservation);
  const Time later = kNow + std::chrono::minutes(11);
  (void)e.decide(later);
  e.apply(PodUpsert{small()});
  EXPECT_TRUE(e.decide(later).binds.empty());
  EXPECT_THAT(why(e, "d/small"),
              testing::HasSubstr("room is free, but starting now would delay \"d/head\""));
  e.apply(PodUpsert{small(std::chrono::minutes(5))});
  Pod quick = small(std::chrono::minutes(5));
  quick.key = "d/quick";
  quick.uid = "quick";
  e.apply(PodUpsert{quick});
  EXPECT_THAT(bound(e.decide(later)), testing::Contains("d/quick"));
}

TEST(Passing, TheShortestFillsTheGapFirst) {
  Engine e = test::blocked_head(std::chrono::seconds(100));
  for (const int s : {90, 30, 60}) {
    Pod p = pod(fmt::format("d/fill-{}", s), 4);
    p.created = kNow + std::chrono::seconds(s == 90 ? 1 : 2);
    p.expected_duration = std::chrono::seconds(s);
    e.apply(PodUpsert{p});
  }
  EXPECT_THAT(bound(e.decide(kNow)), testing::ElementsAre("d/fill-30"));
}

TEST(Passing, WorkThatEndsTogetherSharesANode) {
  // b's job ends when the new one does; a is fuller, but would be kept busy longer.
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 8)});
  Pod soon = running(pod("d/soon", 6), "a");
  soon.expected_duration = std::chrono::seconds(10);
  Pod late = running(pod("d/late", 4), "b");
  late.expected_duration = std::chrono::seconds(1000);
  e.apply(PodUpsert{soon});
  e.apply(PodUpsert{late});
  Pod p = pod("d/new", 2);
  p.expected_duration = std::chrono::seconds(900);
  e.apply(PodUpsert{p});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 1U);
  EXPECT_EQ(plan.binds[0].node, "b");
}

// -------------------------------------------------------------------------------------------- what
// is due

TEST(Reclaim, MovesBetweenSiblingsOfAFullParent) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  Queue parent = queue("parent");
  parent.deserved = {{"nvidia.com/gpu", 8}};
  e.apply(QueueUpsert{parent});
  for (const char* name : {"one", "two"}) {
    Queue q = queue(name);
    q.parent = "parent";
    q.deserved = {{"nvidia.com/gpu", 4}};
    e.apply(QueueUpsert{q});
  }
  for (int i = 0; i < 8; ++i)
    e.apply(PodUpsert{running(in_queue(pod(fmt::format("d/one-{}", i), 1), "one"), "a")});
  std::size_t taken = 0;
  for (int i = 0; i < 6; ++i) {
    e.apply(PodUpsert{in_queue(pod(fmt::format("d/two-{}", i), 1), "two")});
    taken += e.decide(kNow).evicts.size();
  }
  EXPECT_EQ(taken, 4U);
}

TEST(Preempt, TakesNoQueueBelowItsGuaranteeHoweverManyVictims) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  Queue q = queue("safe");
  q.guarantee = {{"nvidia.com/gpu", 6}};
  e.apply(QueueUpsert{q});
  for (int i = 0; i < 8; ++i)
    e.apply(PodUpsert{running(in_queue(pod(fmt::format("d/p-{}", i), 1), "safe"), "a")});
  e.apply(PodUpsert{pod("d/two", 2, 100)});
  EXPECT_EQ(e.decide(kNow).evicts.size(), 2U);
  Engine full({});
  full.apply(NodeUpsert{node("a", 8)});
  full.apply(QueueUpsert{q});
  for (int i = 0; i < 8; ++i)
    full.apply(PodUpsert{running(in_queue(pod(fmt::format("d/p-{}", i), 1), "safe"), "a")});
  full.apply(PodUpsert{pod("d/three", 3, 100)});
  EXPECT_TRUE(full.decide(kNow).evicts.empty());
}

TEST(Preempt, EvictsNobodyForADeviceModelThatIsNotThere) {
  Engine e({});
  Node n = node("a", 2);
  n.devices = {{0, "T4", true}, {1, "T4", true}};
  e.apply(NodeUpsert{n});
  e.apply(PodUpsert{running(pod("d/low", 2), "a")});
  Pod p = pod("d/high", 1, 10);
  p.device_models = {"A100"};
  e.apply(PodUpsert{p});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
}

TEST(Preempt, SeesThatAGangGotSurplusOnAnotherNode) {
  // The gang runs with its minimum, so no member goes alone; nothing changes on a and b when a
  // third comes to run on c.
  Engine e({});
  for (const char* n : {"a", "b"}) e.apply(NodeUpsert{node(n, 8)});
  e.apply(NodeUpsert{node("c", 4)});
  e.apply(GroupUpsert{group("d/g", 2)});
  const auto member = [&](int i, std::int64_t gpus, const std::string& on) {
    Pod p = running(pod(fmt::format("d/g-{}", i), gpus), on);
    p.group = "d/g";
    return p;
  };
  e.apply(PodUpsert{member(0, 8, "a")});
  e.apply(PodUpsert{member(1, 8, "b")});
  (void)e.decide(kNow);
  Pod first = pod("d/first", 8, 10);
  first.preemption_policy = PreemptionPolicy::kNever;
  e.apply(PodUpsert{first});
  (void)e.decide(kNow);
  e.apply(PodUpsert{member(2, 4, "c")});
  (void)e.decide(kNow);
  e.apply(PodUpsert{pod("d/second", 8, 10)});
  EXPECT_EQ(e.decide(kNow).evicts.size(), 1U);
}

}  // namespace
}  // namespace muster::engine
