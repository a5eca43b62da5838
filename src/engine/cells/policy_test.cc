#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/test_world.h"

namespace muster::engine {
namespace {

using test::bound;
using test::evicted;
using test::group;
using test::kNow;
using test::why;

/// Three nodes of 2 switches with 2 devices each; `a` owns two nodes, `b` one.
cells::Config three_nodes() {
  cells::Config config;
  config.cell_types = {{"SWITCH", "K80", 2, false, 0}, {"NODE", "SWITCH", 2, true, 0}};
  for (const char* name : {"n0", "n1", "n2"})
    config.physical_cells.push_back({"NODE", name, "", {}, 0});
  config.virtual_clusters = {{"a", {{"NODE", 2, 0}}, {}, 0}, {"b", {{"NODE", 1, 0}}, {}, 0}};
  return config;
}

Engine cluster(Config config = {}) {
  Engine e(std::move(config));
  EXPECT_TRUE(e.configure_cells(three_nodes(), kNow));
  for (const char* name : {"n0", "n1", "n2"}) e.apply(NodeUpsert{test::node(name, 4)});
  for (const char* name : {"a", "b"}) e.apply(QueueUpsert{Queue{.name = name}});
  return e;
}

Pod pod(const std::string& name, std::int64_t gpus, const std::string& queue = "a") {
  return test::in_queue(test::pod("ns/" + name, gpus), queue);
}

Pod member(const std::string& name, std::int64_t gpus, const std::string& gang) {
  Pod p = test::pod("ns/" + name, gpus);
  p.group = gang;
  return p;
}

Group gang(const std::string& key, std::int32_t least, const std::string& queue = "a") {
  Group g = group(key, least);
  g.queue = queue;
  return g;
}

TEST(CellPolicy, AGangWithoutAnnotationStartsWhole) {
  Engine e = cluster();
  e.apply(GroupUpsert{gang("volcano:ns/job", 2)});
  e.apply(PodUpsert{member("w0", 4, "volcano:ns/job")});
  const Plan one = e.decide(kNow);
  EXPECT_TRUE(one.binds.empty());
  ASSERT_EQ(one.waits.size(), 1U);
  EXPECT_EQ(one.waits[0].group, "volcano:ns/job");
  EXPECT_EQ(describe(one.waits[0].refusal), "its gang ns/job has 1 of 2 pods");
  EXPECT_EQ(e.stats().gangs_waiting, 1);
  EXPECT_EQ(e.queue("a")->gangs_waiting, 1);
  EXPECT_EQ(e.queue("a")->virtual_cluster, "a");
  ASSERT_EQ(e.waiting("a", 10).size(), 1U);
  e.apply(PodUpsert{member("w1", 4, "volcano:ns/job")});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 2U);
  EXPECT_NE(plan.binds[0].node, plan.binds[1].node);
  EXPECT_EQ(plan.binds[0].devices, (std::vector<std::int32_t>{0, 1, 2, 3}));
  ASSERT_TRUE(plan.binds[0].cells && plan.binds[0].cells->spec);
  EXPECT_EQ(plan.binds[0].cells->spec->group, "ns/job");
  ASSERT_EQ(plan.binds[0].cells->spec->members.size(), 1U);
  EXPECT_EQ(plan.binds[0].cells->spec->members[0].pods, 2);
  ASSERT_EQ(plan.phases.size(), 1U);
  EXPECT_EQ(plan.phases[0].phase, GroupPhase::kRunning);
  EXPECT_EQ(e.queue("a")->gangs_running, 1);
  EXPECT_EQ(e.stats().gangs_waiting, 0);
  EXPECT_GT(e.stats().attempts, 0);
  // One that comes later comes on top, alone.
  e.apply(PodUpsert{member("w2", 1, "volcano:ns/job")});
  (void)e.decide(kNow);
  EXPECT_NE(why(e, "volcano:ns/job").find("insufficient capacity"), std::string::npos);
}

TEST(CellPolicy, WhatAPodAsksForInItsNoteIsSeen) {
  Engine e = cluster();
  Pod asks = pod("p", 0);
  cells::PodNote note;
  note.spec.emplace();
  note.spec->vc = "a";
  note.spec->leaves = 4;
  asks.cells = std::make_shared<cells::PodNote>(note);
  e.apply(PodUpsert{asks});
  const auto seen = e.gang("ns/p");
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->by_cells);
  EXPECT_EQ(seen->device_milli, 4000);
}

TEST(CellPolicy, AGangWaitsForItsPodsThatAreStillGated) {
  Engine e = cluster();
  e.apply(GroupUpsert{gang("volcano:ns/job", 2)});
  e.apply(PodUpsert{member("w0", 4, "volcano:ns/job")});
  Pod gated = member("w1", 4, "volcano:ns/job");
  gated.gated = true;
  e.apply(PodUpsert{gated});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  EXPECT_EQ(why(e, "volcano:ns/job"),
            "its gang ns/job has 1 of 2 pods, beside 1 with scheduling gates");
  gated.gated = false;
  e.apply(PodUpsert{gated});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
}

TEST(CellPolicy, APodOfARunningGangWaitsWhileTheNodeOfItsCellsIsNotWell) {
  Engine e = cluster();
  e.apply(GroupUpsert{gang("volcano:ns/job", 2)});
  for (const char* name : {"w0", "w1"}) e.apply(PodUpsert{member(name, 4, "volcano:ns/job")});
  const Plan first = e.decide(kNow);
  ASSERT_EQ(first.binds.size(), 2U);
  // Its node is cordoned, and the pod comes again: its gang's cells are there and nowhere else.
  Node node = test::node(first.binds[1].node, 4);
  node.unschedulable = true;
  e.apply(NodeUpsert{node});
  Pod again = member(first.binds[1].pod.substr(3), 4, "volcano:ns/job");
  again.uid = "another";
  e.apply(PodUpsert{again});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  EXPECT_EQ(why(e, "volcano:ns/job"),
            fmt::format("its gang holds cells for it on node {}, which is cordoned", node.name));
  e.apply(NodeRemove{node.name});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(NodeUpsert{test::node(node.name, 4)});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{again.key});
}

TEST(CellPolicy, AGangForWhichOthersLeftIsNotBoundToANodeThatFailedMeanwhile) {
  Engine e = cluster();
  for (const char* name : {"o0", "o1", "o2"}) {
    Pod idle = pod(name, 4);
    idle.priority = -1;
    e.apply(PodUpsert{idle});
  }
  ASSERT_EQ(e.decide(kNow).binds.size(), 3U);
  e.apply(PodUpsert{pod("w0", 4)});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.evicts.size(), 1U);
  Node failed = test::node(plan.evicts[0].node, 4);
  failed.ready = false;
  e.apply(NodeUpsert{failed});
  e.apply(PodRemove{plan.evicts[0].pod});
  const Plan other = e.decide(kNow);
  EXPECT_TRUE(other.binds.empty());
  ASSERT_EQ(other.evicts.size(), 1U);
  e.apply(PodRemove{other.evicts[0].pod});
  const Plan last = e.decide(kNow);
  ASSERT_EQ(bound(last), std::vector<std::string>{"ns/w0"});
  EXPECT_EQ(last.binds[0].node, other.evicts[0].node);
}

TEST(CellPolicy, WhatIsWrittenOnThePodIsEnoughForARestart) {
  Engine e = cluster();
  e.apply(PodUpsert{pod("w0", 2)});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 1U);
  // Pods may come before nodes and queues do.
  Engine again({});
  ASSERT_TRUE(again.configure_cells(three_nodes(), kNow));
  Pod found = test::running(pod("w0", 2), plan.binds[0].node);
  found.device_indexes = plan.binds[0].devices;
  cells::PodNote note{plan.binds[0].cells->spec, "", plan.binds[0].cells->bind};
  found.cells = std::make_shared<cells::PodNote>(note);
  again.apply(PodUpsert{found});
  for (const char* name : {"n0", "n1", "n2"}) again.apply(NodeUpsert{test::node(name, 4)});
  for (const char* name : {"a", "b"}) again.apply(QueueUpsert{Queue{.name = name}});
  // It holds a node of `a`: one more whole node is left there.
  again.apply(PodUpsert{pod("w1", 4)});
  again.apply(PodUpsert{pod("w2", 4)});
  EXPECT_EQ(again.decide(kNow).binds.size(), 1U);
}

TEST(CellPolicy, APodBoundBeforeTheCellsHoldsItsDevicesAndGivesWay) {
  Engine e({});
  for (const char* name : {"n0", "n1", "n2"}) e.apply(NodeUpsert{test::node(name, 4)});
  for (const char* name : {"a", "b"}) e.apply(QueueUpsert{Queue{.name = name}});
  Pod old = test::running(test::pod("ns/old", 2), "n0");
  old.device_indexes = {0, 1};
  e.apply(PodUpsert{old});
  (void)e.decide(kNow);
  ASSERT_TRUE(e.configure_cells(three_nodes(), kNow));
  e.apply(PodUpsert{pod("w0", 4)});
  e.apply(PodUpsert{pod("w1", 4)});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
  e.apply(PodUpsert{pod("w2", 4, "b")});
  EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"ns/old"});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
  // An eviction that fails is tried again, a little later.
  e.apply(EvictResult{"ns/old", false});
  const Plan spared = e.decide(kNow);
  EXPECT_TRUE(spared.evicts.empty());
  ASSERT_TRUE(spared.wake);
  EXPECT_EQ(evicted(e.decide(*spared.wake)), std::vector<std::string>{"ns/old"});
  e.apply(PodRemove{"ns/old"});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/w2"});
}

TEST(CellPolicy, AGangLosesAPlaceInWhichAnotherPodIsFound) {
  // Whichever of the two is seen first.
  for (const char* name : {"early", "zebra"}) {
    Engine before = cluster();
    before.apply(GroupUpsert{gang("volcano:ns/job", 2)});
    for (const char* w : {"w0", "w1"}) before.apply(PodUpsert{member(w, 4, "volcano:ns/job")});
    const Plan plan = before.decide(kNow);
    ASSERT_EQ(plan.binds.size(), 2U);
    // While there were no cells, a pod of the gang went, and another one came to its devices.
    Engine e({});
    for (const char* n : {"n0", "n1", "n2"}) e.apply(NodeUpsert{test::node(n, 4)});
    for (const char* queue : {"a", "b"}) e.apply(QueueUpsert{Queue{.name = queue}});
    e.apply(GroupUpsert{gang("volcano:ns/job", 2)});
    Pod left = test::running(member("w0", 4, "volcano:ns/job"), plan.binds[0].node);
    left.device_indexes = plan.binds[0].devices;
    cells::PodNote note{plan.binds[0].cells->spec, "", plan.binds[0].cells->bind};
    left.cells = std::make_shared<cells::PodNote>(note);
    e.apply(PodUpsert{left});
    Pod other = test::running(pod(name, 2, "b"), plan.binds[1].node);
    other.device_indexes = {1, 2};
    e.apply(PodUpsert{other});
    (void)e.decide(kNow);
    ASSERT_TRUE(e.configure_cells(three_nodes(), kNow));
    Pod again = member("w1", 4, "volcano:ns/job");
    again.uid = "another";
    e.apply(PodUpsert{again});
    // There is another node for it.
    const Plan next = e.decide(kNow);
    ASSERT_EQ(bound(next), std::vector<std::string>{"ns/w1"}) << name;
    EXPECT_NE(next.binds[0].node, plan.binds[0].node) << name;
    EXPECT_NE(next.binds[0].node, plan.binds[1].node) << name;
  }
}

TEST(CellPolicy, APodThatRunsElsewhereThanItCarriesHoldsItsDevices) {
  Engine e = cluster();
  e.apply(PodUpsert{pod("w0", 4, "b")});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 1U);
  e.apply(PodRemove{"ns/w0"});
  Pod other = test::running(pod("other", 1, "b"), plan.binds[0].node);
  other.device_indexes = {3};
  cells::PodNote note{plan.binds[0].cells->spec, "", plan.binds[0].cells->bind};
  note.bind->node = "nowhere";
  other.cells = std::make_shared<cells::PodNote>(note);
  e.apply(PodUpsert{other});
  for (const char* name : {"x0", "x1"}) e.apply(PodUpsert{pod(name, 4)});
  const Plan first = e.decide(kNow);
  ASSERT_EQ(first.binds.size(), 2U);
  for (const Bind& bind : first.binds) EXPECT_NE(bind.node, plan.binds[0].node);
  // Whoever is guaranteed the node gets it.
  e.apply(PodUpsert{pod("x2", 4, "b")});
  EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"ns/other"});
}

TEST(CellPolicy, APodThatInsistsOnAPlaceInWhichAnotherIsFoundWaits) {
  // As OpenPAI submits: every pod says what its whole gang asks for.
  const auto asking = [](const std::string& name) {
    Pod made = pod(name, 4);
    cells::PodNote note;
    note.spec.emplace();
    note.spec->vc = "a";
    note.spec->group = "ns/job";
    note.spec->leaves = 4;
    note.spec->members = {{2, 4}};
    made.cells = std::make_shared<cells::PodNote>(note);
    return made;
  };
  Engine before = cluster();
  for (const char* name : {"w0", "w1"}) before.apply(PodUpsert{asking(name)});
  const Plan plan = before.decide(kNow);
  ASSERT_EQ(plan.binds.size(), 2U);
  Engine e = cluster();
  Pod other = test::running(pod("other", 1, "b"), plan.binds[1].node);
  other.device_indexes = {3};
  e.apply(PodUpsert{other});
  Pod left = test::running(asking("w0"), plan.binds[0].node);
  cells::PodNote note = *left.cells;
  note.bind = plan.binds[0].cells->bind;
  left.cells = std::make_shared<cells::PodNote>(note);
  e.apply(PodUpsert{left});
  e.apply(PodUpsert{asking("w1")});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  EXPECT_EQ(
      why(e, "ns/w1"),
      fmt::format("device 3 of its cells on node {} is used by a pod that has no right to them",
                  plan.binds[1].node));
  e.apply(PodRemove{"ns/other"});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/w1"});
}

TEST(CellPolicy, QueuesBelowAVirtualClusterKeepTheirLimitAndShare) {
  Engine e = cluster();
  Queue vision{.name = "vision"}, child{.name = "child"}, other{.name = "other"};
  vision.virtual_cluster = other.virtual_cluster = "a";
  vision.capability = {{"nvidia.com/gpu", 3}};
  child.parent = "vision";
  for (const Queue& one : {vision, child, other}) e.apply(QueueUpsert{one});
  EXPECT_EQ(e.queue("child")->virtual_cluster, "a");
  e.apply(PodUpsert{pod("c0", 2, "child")});
  EXPECT_EQ(e.decide(kNow).binds.size(), 1U);
  e.apply(PodUpsert{pod("c1", 2, "child")});
  (void)e.decide(kNow);
  EXPECT_EQ(why(e, "ns/c1"),
            "queue vision may hold 3 nvidia.com/gpu, holds 2, and this gang needs 2");
  // Among equals the queue with the smaller share goes first.
  e.apply(PodUpsert{pod("c2", 1, "child")});
  e.apply(PodUpsert{pod("o0", 1, "other")});
  EXPECT_EQ(bound(e.decide(kNow)), (std::vector<std::string>{"ns/o0", "ns/c2"}));
  // A limit that grows lets the next one start, and nobody else had to happen.
  vision.capability = {{"nvidia.com/gpu", 8}};
  e.apply(QueueUpsert{vision});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/c1"});
}

TEST(CellPolicy, WhoOnlyUsesWhatIsLeftOverLeavesAQueueAtItsLimit) {
  Engine e = cluster();
  Queue vision{.name = "vision"};
  vision.virtual_cluster = "a";
  vision.capability = {{"nvidia.com/gpu", 4}};
  e.apply(QueueUpsert{vision});
  const auto spare = [](const std::string& name, int age_s) {
    Pod made = pod(name, 1, "vision");
    made.priority = -1;
    made.created = kNow - std::chrono::seconds(age_s);
    return made;
  };
  e.apply(PodUpsert{spare("old", 20)});
  e.apply(PodUpsert{spare("new", 10)});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
  // More than the queue may ever hold: nobody has to leave for that.
  e.apply(PodUpsert{pod("huge", 5, "vision")});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
  e.apply(PodUpsert{pod("guaranteed", 3, "vision")});
  EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"ns/new"});
  EXPECT_EQ(why(e, "ns/guaranteed"), "waiting for the pods it preempts to leave their cells");
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
  e.apply(PodRemove{"ns/new"});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/guaranteed"});
  // Those without a right to it never do so themselves.
  e.apply(PodUpsert{spare("late", 0)});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
}

TEST(CellPolicy, AQueueKeepsItsLimitWhileAGangOfItWaitsForOthersToLeave) {
  Engine e = cluster();
  Queue vision{.name = "vision"};
  vision.virtual_cluster = "a";
  vision.capability = {{"nvidia.com/gpu", 5}};
  e.apply(QueueUpsert{vision});
  for (const char* name : {"o0", "o1", "o2"}) {
    Pod idle = pod(name, 3, "b");
    idle.priority = -1;
    e.apply(PodUpsert{idle});
  }
  ASSERT_EQ(e.decide(kNow).binds.size(), 3U);
  e.apply(PodUpsert{pod("large", 4, "vision")});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.evicts.size(), 1U);
  // Two would fit beside what runs, but not beside what is about to.
  Pod two = pod("two", 2, "vision");
  two.priority = -1;
  e.apply(PodUpsert{two});
  Pod one = pod("one", 1, "vision");
  one.priority = -1;
  e.apply(PodUpsert{one});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/one"});
  e.apply(PodRemove{plan.evicts[0].pod});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/large"});
  EXPECT_EQ(why(e, "ns/two"),
            "queue vision may hold 5 nvidia.com/gpu, holds 5, and this gang needs 2");
}

TEST(CellPolicy, AGangThatCannotStartAnyMoreKeepsNoCellsFromOthers) {
  Engine e = cluster();
  e.apply(PodUpsert{pod("idle", 4, "b")});
  for (const char* name : {"low0", "low1"}) e.apply(PodUpsert{pod(name, 4)});
  ASSERT_EQ(e.decide(kNow).binds.size(), 3U);
  Group high = gang("volcano:ns/high", 2);
  high.priority = 5;
  e.apply(GroupUpsert{high});
  for (const char* name : {"w0", "w1"}) e.apply(PodUpsert{member(name, 4, "volcano:ns/high")});
  ASSERT_EQ(evicted(e.decide(kNow)), (std::vector<std::string>{"ns/low0", "ns/low1"}));
  for (const char* name : {"low0", "low1"}) {
    e.apply(PodRemove{std::string("ns/") + name});
    Pod again = pod(name, 4);
    again.uid = "another";
    e.apply(PodUpsert{again});
  }
  // Before it can start, one of its pods is held back.
  Pod gated = member("w1", 4, "volcano:ns/high");
  gated.gated = true;
  e.apply(PodUpsert{gated});
  EXPECT_EQ(bound(e.decide(kNow)), (std::vector<std::string>{"ns/low0", "ns/low1"}));
}

TEST(CellPolicy, AGangThatShrinksWhileOthersLeaveKeepsNoPlaceForThePodThatWent) {
  Engine e = cluster();
  for (const char* name : {"low0", "low1"}) e.apply(PodUpsert{pod(name, 4)});
  ASSERT_EQ(e.decide(kNow).binds.size(), 2U);
  Group high = gang("volcano:ns/high", 1);
  high.priority = 5;
  e.apply(GroupUpsert{high});
  for (const char* name : {"w0", "w1"}) e.apply(PodUpsert{member(name, 4, "volcano:ns/high")});
  ASSERT_EQ(e.decide(kNow).evicts.size(), 2U);
  e.apply(PodRemove{"ns/w1"});
  for (const char* name : {"low0", "low1"}) e.apply(PodRemove{std::string("ns/") + name});
  Pod again = pod("low0", 4);
  again.uid = "another";
  e.apply(PodUpsert{again});
  EXPECT_EQ(bound(e.decide(kNow)), (std::vector<std::string>{"ns/w0", "ns/low0"}));
}

TEST(CellPolicy, NobodyComesBackToAGangWithoutGuaranteeOnlyToBeEvicted) {
  Engine e = cluster();
  Group urgent = gang("volcano:ns/job", 2);
  urgent.priority = 5;
  e.apply(GroupUpsert{urgent});
  for (const char* name : {"w0", "w1"}) e.apply(PodUpsert{member(name, 4, "volcano:ns/job")});
  ASSERT_EQ(e.decide(kNow).binds.size(), 2U);
  // Its virtual cluster shrinks: the gang runs on, guaranteed nothing.
  cells::Config smaller = three_nodes();
  smaller.virtual_clusters = {{"a", {{"NODE", 1, 0}}, {}, 0}, {"b", {{"NODE", 2, 0}}, {}, 0}};
  ASSERT_TRUE(e.configure_cells(smaller, kNow));
  // A pod of it comes again just when another virtual cluster wants what it owns.
  e.apply(PodRemove{"ns/w0"});
  Pod again = member("w0", 4, "volcano:ns/job");
  again.uid = "another";
  e.apply(PodUpsert{again});
  e.apply(GroupUpsert{gang("volcano:ns/owner", 2, "b")});
  for (const char* name : {"o0", "o1"}) e.apply(PodUpsert{member(name, 4, "volcano:ns/owner")});
  const Plan plan = e.decide(kNow);
  EXPECT_TRUE(plan.binds.empty());
  EXPECT_EQ(evicted(plan), std::vector<std::string>{"ns/w1"});
  e.apply(PodRemove{"ns/w1"});
  EXPECT_EQ(bound(e.decide(kNow)), (std::vector<std::string>{"ns/o0", "ns/o1"}));
}

TEST(CellPolicy, WhatWasReservedAndIsLostDoesNotCountForItsQueue) {
  Engine e = cluster();
  Queue vision{.name = "vision"};
  vision.virtual_cluster = "a";
  vision.capability = {{"nvidia.com/gpu", 4}};
  e.apply(QueueUpsert{vision});
  for (const char* name : {"o0", "o1", "o2"}) {
    Pod idle = pod(name, 3, "b");
    idle.priority = -1;
    e.apply(PodUpsert{idle});
  }
  ASSERT_EQ(e.decide(kNow).binds.size(), 3U);
  e.apply(PodUpsert{pod("large", 4, "vision")});
  ASSERT_EQ(e.decide(kNow).evicts.size(), 1U);
  // Others of a higher rank take all of the virtual cluster: what is left of the queue's limit is
  // there for one that needs no guarantee, in the same plan.
  for (const char* name : {"high0", "high1"}) {
    Pod high = pod(name, 4);
    high.priority = 5;
    e.apply(PodUpsert{high});
  }
  Pod spare = pod("spare", 1, "vision");
  spare.priority = -1;
  e.apply(PodUpsert{spare});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/spare"});
}

TEST(CellPolicy, AGangStartsInTheVirtualClusterThatItsQueueBelongsToByThen) {
  Engine e = cluster();
  Queue vision{.name = "vision"};
  vision.virtual_cluster = "a";
  e.apply(QueueUpsert{vision});
  for (const char* name : {"o0", "o1", "o2"}) {
    Pod idle = pod(name, 4, "b");
    idle.priority = -1;
    e.apply(PodUpsert{idle});
  }
  ASSERT_EQ(e.decide(kNow).binds.size(), 3U);
  e.apply(PodUpsert{pod("w0", 4, "vision")});
  const Plan asked = e.decide(kNow);
  ASSERT_EQ(asked.evicts.size(), 1U);
  vision.virtual_cluster = "b";
  e.apply(QueueUpsert{vision});
  for (const char* name : {"o0", "o1", "o2"}) e.apply(PodRemove{std::string("ns/") + name});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(bound(plan), std::vector<std::string>{"ns/w0"});
  EXPECT_EQ(plan.binds[0].cells->spec->vc, "b");
  // It uses what `b` owns and nothing of `a`.
  e.apply(PodUpsert{pod("b0", 4, "b")});
  for (const char* name : {"a0", "a1"}) e.apply(PodUpsert{pod(name, 4)});
  EXPECT_EQ(bound(e.decide(kNow)), (std::vector<std::string>{"ns/a0", "ns/a1"}));
}

TEST(CellPolicy, APodThatComesBackToItsGangCarriesWhoseCellsTheGangHas) {
  Engine e = cluster();
  Queue vision{.name = "vision"};
  vision.virtual_cluster = "a";
  e.apply(QueueUpsert{vision});
  e.apply(GroupUpsert{gang("volcano:ns/job", 2, "vision")});
  for (const char* name : {"w0", "w1"}) e.apply(PodUpsert{member(name, 4, "volcano:ns/job")});
  ASSERT_EQ(e.decide(kNow).binds.size(), 2U);
  vision.virtual_cluster = "b";
  e.apply(QueueUpsert{vision});
  e.apply(PodRemove{"ns/w0"});
  Pod again = member("w0", 4, "volcano:ns/job");
  again.uid = "another";
  e.apply(PodUpsert{again});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(bound(plan), std::vector<std::string>{"ns/w0"});
  EXPECT_EQ(plan.binds[0].cells->spec->vc, "a");
}

TEST(CellPolicy, WhoBelongsToNoVirtualClusterIsToldSo) {
  Engine e = cluster();
  e.apply(QueueUpsert{Queue{.name = "nobody"}});
  e.apply(PodUpsert{pod("lost", 1, "nobody")});
  Pod share = test::share_of(pod("share", 0), 500);
  e.apply(PodUpsert{share});
  Pod broken = pod("broken", 1);
  cells::PodNote note;
  note.error = "leafCellNumber is non-positive";
  broken.cells = std::make_shared<cells::PodNote>(note);
  e.apply(PodUpsert{broken});
  const Plan plan = e.decide(kNow);
  EXPECT_TRUE(plan.binds.empty());
  EXPECT_EQ(plan.waits.size(), 3U);
  EXPECT_TRUE(
      why(e, "ns/lost")
          .starts_with(
              "this cluster hands out nvidia.com/gpu by virtual cluster (a, b) and queue nobody belongs to none"))
      << why(e, "ns/lost");
  EXPECT_TRUE(
      why(e, "ns/share").starts_with("this cluster hands out GPUs as cells, whole ones only"));
  EXPECT_EQ(why(e, "ns/broken"), "leafCellNumber is non-positive");
  EXPECT_TRUE(e.decide(kNow).waits.empty());
}

TEST(CellPolicy, APodWhoseGroupIsNotThereYetIsToldSoAndNothingElse) {
  Engine e({});
  ASSERT_TRUE(e.configure_cells(three_nodes(), kNow));
  for (const char* name : {"n0", "n1", "n2"}) e.apply(NodeUpsert{test::node(name, 4)});
  e.apply(PodUpsert{member("w0", 4, "volcano:ns/job")});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.waits.size(), 1U);
  EXPECT_EQ(plan.waits[0].pod, "ns/w0");
  EXPECT_EQ(describe(plan.waits[0].refusal), "it waits for its group: no such PodGroup yet");
  e.apply(GroupUpsert{gang("volcano:ns/job", 2)});
  const Plan known = e.decide(kNow);
  ASSERT_EQ(known.waits.size(), 1U);
  EXPECT_EQ(known.waits[0].group, "volcano:ns/job");
  EXPECT_EQ(describe(known.waits[0].refusal), "its gang ns/job has 1 of 2 pods");
}

TEST(CellPolicy, AGangThatWaitsLongHasItsVirtualClusterKeptFree) {
  Engine e = cluster();
  Pod runs = pod("runs", 2);
  runs.expected_duration = std::chrono::hours(1);
  e.apply(PodUpsert{runs});
  ASSERT_EQ(e.decide(kNow).binds.size(), 1U);
  e.apply(GroupUpsert{gang("volcano:ns/big", 2)});
  for (const char* name : {"big0", "big1"}) e.apply(PodUpsert{member(name, 4, "volcano:ns/big")});
  const Plan first = e.decide(kNow);
  EXPECT_NE(
      why(e, "volcano:ns/big")
          .find("a needs 2 x 4 leaf cells, each pod in one cell; of 2 NODE 1 free, 1 partly free"),
      std::string::npos)
      << why(e, "volcano:ns/big");
  ASSERT_TRUE(first.wake);
  const Time later = *first.wake;
  // Whoever asks before then is answered the same, and the time stays.
  EXPECT_EQ(e.decide(kNow + Duration(1)).wake, first.wake);
  Pod small = pod("small", 1);
  small.created = later;
  e.apply(PodUpsert{small});
  const Plan held = e.decide(later);
  EXPECT_TRUE(held.binds.empty());
  EXPECT_NE(why(e, "ns/small").find("a is kept free for ns/big"), std::string::npos)
      << why(e, "ns/small");
  ASSERT_TRUE(held.reservations_changed);
  ASSERT_EQ(held.reservations.size(), 1U);
  EXPECT_EQ(held.reservations[0].holder, "ns/big");
  EXPECT_EQ(held.reservations[0].start, kNow + std::chrono::hours(1));
  // One that ends before the running one does delays nobody.
  Pod brief = pod("brief", 1);
  brief.created = later;
  brief.expected_duration = std::chrono::minutes(10);
  e.apply(PodUpsert{brief});
  ASSERT_EQ(e.decide(later).binds.size(), 1U);
  // Nor does an opportunistic one, or one of another virtual cluster.
  Pod idle = pod("idle", 1);
  idle.priority = -5;
  e.apply(PodUpsert{idle});
  e.apply(PodUpsert{pod("other", 1, "b")});
  EXPECT_EQ(e.decide(later).binds.size(), 2U);
}

TEST(CellPolicy, WhatAsksForNoDeviceIsPlacedBesideUnderEveryPolicy) {
  for (const PolicyKind kind : {PolicyKind::kMuster, PolicyKind::kVolcano}) {
    Config config;
    config.policy = kind;
    config.volcano.tiers = {{{.name = "priority"}, {.name = "gang"}}, {{.name = "predicates"}}};
    Engine e = cluster(config);
    e.apply(GroupUpsert{gang("volcano:ns/mpi", 2)});
    e.apply(PodUpsert{member("launcher", 0, "volcano:ns/mpi")});
    e.apply(PodUpsert{member("worker", 4, "volcano:ns/mpi")});
    Plan plan = e.decide(kNow);
    std::vector<std::string> pods = bound(plan);
    for (const std::string& more : bound(e.decide(kNow))) pods.push_back(more);
    std::sort(pods.begin(), pods.end());
    EXPECT_EQ(pods, (std::vector<std::string>{"ns/launcher", "ns/worker"}))
        << (kind == PolicyKind::kMuster ? "muster" : "volcano");
  }
}

TEST(CellPolicy, ACloneDecidesTheSameAndWhatBecomesOfItChangesNothing) {
  Engine e = cluster();
  for (int i = 0; i < 6; ++i)
    e.apply(PodUpsert{pod(fmt::format("w{}", i), 1 + i % 4, i % 2 == 0 ? "a" : "b")});
  (void)e.decide(kNow);
  e.apply(PodRemove{"ns/w1"});
  for (int i = 6; i < 12; ++i) e.apply(PodUpsert{pod(fmt::format("w{}", i), 2)});
  const std::uint64_t before = e.digest();
  Engine clone = e.clone();
  EXPECT_EQ(clone.digest(), before);
  const Plan foretold = clone.decide(kNow);
  clone.apply(NodeRemove{"n0"});
  ASSERT_TRUE(clone.configure_cells(three_nodes(), kNow));
  (void)clone.decide(kNow + std::chrono::hours(1));
  (void)e.waiting("a", 10);
  EXPECT_EQ(e.digest(), before);
  const Plan plan = e.decide(kNow);
  EXPECT_FALSE(plan.binds.empty());
  EXPECT_EQ(plan.binds, foretold.binds);
  EXPECT_EQ(plan.waits.size(), foretold.waits.size());
  EXPECT_EQ(plan.wake, foretold.wake);
  EXPECT_NE(e.digest(), before);
}

TEST(CellPolicy, ABindThatFailsIsTakenBackAndAWrongConfigurationChangesNothing) {
  Engine e = cluster();
  e.apply(PodUpsert{pod("w0", 4)});
  ASSERT_EQ(e.decide(kNow).binds.size(), 1U);
  e.apply(BindResult{"ns/w0", false});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/w0"});
  cells::Config wrong = three_nodes();
  wrong.virtual_clusters[1].cells[0].number = 7;
  EXPECT_FALSE(e.configure_cells(wrong, kNow));
  e.apply(PodUpsert{pod("w1", 4, "b")});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/w1"});
  // With one node less for `a` its running pod stays, and the next finds no room.
  cells::Config smaller = three_nodes();
  smaller.virtual_clusters[0].cells[0].number = 1;
  ASSERT_TRUE(e.configure_cells(smaller, kNow));
  e.apply(PodUpsert{pod("w2", 4)});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodRemove{"ns/w0"});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"ns/w2"});
}

}  // namespace
}  // namespace muster::engine
