#include "engine/engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::engine {
namespace {

Node node(const std::string& name, std::int64_t gpus, Labels labels = {}) {
  Node n;
  n.name = name;
  n.labels = std::move(labels);
  n.allocatable = {
      {"cpu", 64'000}, {"memory", 256LL << 30}, {"pods", 110}, {"nvidia.com/gpu", gpus}};
  return n;
}

Pod pod(const std::string& key, std::int64_t gpus, const std::string& group = "") {
  Pod p;
  p.key = key;
  p.uid = key + "-uid";
  p.ns = "d";
  p.group = group;
  p.requests = {{"cpu", 1000}, {"nvidia.com/gpu", gpus}};
  return p;
}

Group group(const std::string& key, std::int32_t min_member, std::int32_t priority = 0) {
  Group g;
  g.key = key;
  g.min_member = min_member;
  g.priority = priority;
  return g;
}

constexpr Time kNow = Time{1'000'000'000};

TEST(Engine, PlacesAWholeGangWithDeviceIndexes) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 4)});
  e.apply(GroupUpsert{group("d/g", 2)});
  e.apply(PodUpsert{pod("d/g-0", 2, "d/g")});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodUpsert{pod("d/g-1", 2, "d/g")});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 2U);
  EXPECT_THAT(plan.binds[0].devices, testing::ElementsAre(0, 1));
  EXPECT_THAT(plan.binds[1].devices, testing::ElementsAre(2, 3));
}

TEST(Engine, SaysWhyAGangWaitsWithNumbers) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 4)});
  Node cordoned = node("b", 8);
  cordoned.unschedulable = true;
  e.apply(NodeUpsert{cordoned});
  e.apply(PodUpsert{pod("d/p", 8)});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.waits.size(), 1U);
  EXPECT_EQ(plan.waits[0].pod, "d/p");
  EXPECT_EQ(
      node_message(plan.waits[0].refusal),
      "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: "
      "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.");
  ASSERT_EQ(plan.waits[0].refusal.shortages.size(), 1U);
  EXPECT_EQ(plan.waits[0].refusal.shortages[0].wanted, 8);
  EXPECT_EQ(plan.waits[0].refusal.shortages[0].available, 4);
  EXPECT_TRUE(e.why("d/p").has_value());
}

TEST(Engine, TellsAboutTheQueueThatIsFull) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  Queue q;
  q.name = "team";
  q.capability = {{"nvidia.com/gpu", 4}};
  e.apply(QueueUpsert{q});
  Pod p = pod("d/p", 8);
  p.queue = "team";
  e.apply(PodUpsert{p});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.waits.size(), 1U);
  EXPECT_EQ(plan.waits[0].refusal.reason, Reason::kTenantOverLimit);
  EXPECT_EQ(describe(plan.waits[0].refusal),
            "queue \"team\" is at its limit; nvidia.com/gpu: wants 8, 4 left of 4");
}

TEST(Engine, EvictsTheFewestAndBindsOnlyWhenTheyAreGone) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 8)});
  for (int i = 0; i < 8; ++i) {
    Pod p = pod(fmt::format("d/small-{}", i), 1);
    p.node = "a";
    e.apply(PodUpsert{p});
  }
  Pod big = pod("d/big", 8);
  big.node = "b";
  e.apply(PodUpsert{big});
  Pod urgent = pod("d/urgent", 8);
  urgent.priority = 100;
  e.apply(PodUpsert{urgent});
  const Plan plan = e.decide(kNow);
  EXPECT_TRUE(plan.binds.empty());
  ASSERT_EQ(plan.evicts.size(), 1U);
  EXPECT_EQ(plan.evicts[0].pod, "d/big");
  EXPECT_EQ(plan.evicts[0].message, "Preempted by d/urgent on node b");
  // The room is held: nobody else gets it in between.
  e.apply(PodUpsert{pod("d/late", 8)});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodRemove{"d/big"});
  const Plan after = e.decide(kNow);
  ASSERT_EQ(after.binds.size(), 1U);
  EXPECT_EQ(after.binds[0].pod, "d/urgent");
}

TEST(Engine, FailedBindGivesTheRoomBack) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 1)});
  e.apply(PodUpsert{pod("d/x", 1)});
  ASSERT_EQ(e.decide(kNow).binds.size(), 1U);
  e.apply(BindResult{"d/x", false});
  EXPECT_EQ(e.decide(kNow).binds.size(), 1U);
}

TEST(Engine, FailedBindGivesTheRoomBackAlsoWhenThePodChangedMeanwhile) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 1)});
  Pod x = pod("d/x", 1);
  e.apply(PodUpsert{x});
  ASSERT_EQ(e.decide(kNow).binds.size(), 1U);
  Pod changed = x;
  changed.labels = {{"some", "label"}};
  changed.node = "a";  // where it is being bound
  e.apply(PodUpsert{changed});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(BindResult{"d/x", false});
  EXPECT_EQ(e.decide(kNow).binds.size(), 1U);
}

TEST(Engine, BackfillsOnlyWhatCannotDelayTheReservation) {
  Config c;
  c.preempt = false;
  Engine e(c);
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 8)});
  Pod running = pod("d/running", 8);
  running.node = "a";
  running.started = kNow;
  running.expected_duration = std::chrono::seconds(100);
  e.apply(PodUpsert{running});
  e.apply(GroupUpsert{group("d/wide", 2)});
  for (int i = 0; i < 2; ++i) e.apply(PodUpsert{pod(fmt::format("d/wide-{}", i), 8, "d/wide")});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  Pod longer = pod("d/longer", 8);
  longer.created = kNow + std::chrono::seconds(1);
  longer.expected_duration = std::chrono::seconds(500);
  e.apply(PodUpsert{longer});
  const Plan held = e.decide(kNow);
  EXPECT_TRUE(held.binds.empty());
  ASSERT_FALSE(held.waits.empty());
  EXPECT_EQ(held.waits[0].refusal.reason, Reason::kHeldForReservation);
  Pod shorter = pod("d/shorter", 8);
  shorter.created = kNow + std::chrono::seconds(2);
  shorter.expected_duration = std::chrono::seconds(50);
  e.apply(PodUpsert{shorter});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 1U);
  EXPECT_EQ(plan.binds[0].pod, "d/shorter");
}

TEST(Engine, HardTopologyKeepsAGangInOneRack) {
  Engine e({});
  for (int i = 0; i < 4; ++i)
    e.apply(NodeUpsert{node(fmt::format("n{}", i), 8, {{"rack", i < 2 ? "x" : "y"}})});
  Pod busy = pod("d/busy", 8);
  busy.node = "n0";
  e.apply(PodUpsert{busy});
  Group g = group("d/g", 2);
  g.topology = {{"rack", true}};
  e.apply(GroupUpsert{g});
  for (int i = 0; i < 2; ++i) e.apply(PodUpsert{pod(fmt::format("d/g-{}", i), 8, "d/g")});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 2U);
  EXPECT_THAT((std::vector{plan.binds[0].node, plan.binds[1].node}),
              testing::UnorderedElementsAre("n2", "n3"));
}

TEST(Engine, SharesOfOneDeviceGather) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 2)});
  std::vector<Plan> plans;
  for (int i = 0; i < 3; ++i) {
    Pod p = pod(fmt::format("d/s{}", i), 0);
    p.requests = {{"cpu", 100}};
    p.device_share_milli = 400;
    e.apply(PodUpsert{p});
    plans.push_back(e.decide(kNow));
  }
  EXPECT_EQ(plans[0].binds.at(0).devices, plans[1].binds.at(0).devices);
  EXPECT_NE(plans[1].binds.at(0).devices, plans[2].binds.at(0).devices);
}

TEST(Engine, ReclaimTakesOnlyWhatIsAboveTheDue) {
  Engine e({});
  e.apply(NodeUpsert{node("a", 8)});
  for (const char* name : {"one", "two"}) {
    Queue q;
    q.name = name;
    q.deserved = {{"nvidia.com/gpu", 4}};
    e.apply(QueueUpsert{q});
  }
  for (int i = 0; i < 8; ++i) {
    Pod p = pod(fmt::format("d/one-{}", i), 1);
    p.queue = "one";
    p.node = "a";
    e.apply(PodUpsert{p});
  }
  std::size_t evicted = 0;
  for (int i = 0; i < 6; ++i) {
    Pod p = pod(fmt::format("d/two-{}", i), 1);
    p.queue = "two";
    e.apply(PodUpsert{p});
    evicted += e.decide(kNow).evicts.size();
  }
  EXPECT_EQ(evicted, 4U);
}

}  // namespace
}  // namespace muster::engine
