// Every reason as its user reads it: what is short, where, by how much, and who is ahead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

Engine one_node(Config c = {}) {
  Engine e(c);
  e.apply(NodeUpsert{node("a", 8)});
  return e;
}

Queue queue(const std::string& name) {
  Queue q;
  q.name = name;
  return q;
}

TEST(Reasons, MissingMembersAndRoles) {
  Engine e = one_node();
  add_gang(e, group("d/g", 3), 2, 1);
  Group roles = group("d/r", 2);
  roles.min_task_member = {{"worker", 2}};
  e.apply(GroupUpsert{roles});
  for (const char* role : {"worker", "master"}) {
    Pod p = pod(fmt::format("d/r-{}", role), 1);
    p.group = "d/r";
    p.role = role;
    e.apply(PodUpsert{p});
  }
  (void)e.decide(kNow);
  EXPECT_EQ(why(e, "d/g"), "waits for members: 2 of 3 exist");
  EXPECT_EQ(why(e, "d/r"), "waits for members of role \"worker\": 1 of 2 exist");
}

TEST(Reasons, GatesAndSuspension) {
  Engine e = one_node();
  Pod gated = pod("d/gated", 1);
  gated.gated = true;
  e.apply(PodUpsert{gated});
  Group g = group("d/held", 1);
  g.hold = true;
  add_gang(e, g, 1, 1);
  (void)e.decide(kNow);
  EXPECT_EQ(why(e, "d/gated"), "1 of 1 waiting members are held by a scheduling gate");
  EXPECT_EQ(why(e, "d/held"), "suspended by its owner");
}

TEST(Reasons, MissingGroupsAndQueues) {
  Engine e = one_node();
  Pod p = pod("d/p", 1);
  p.group = "d/nobody";
  e.apply(PodUpsert{p});
  e.apply(PodUpsert{in_queue(pod("d/q", 1), "ghost")});
  (void)e.decide(kNow);
  EXPECT_EQ(why(e, "d/nobody"), "its pod group \"d/nobody\" does not exist");
  EXPECT_EQ(why(e, "d/q"), "queue \"ghost\" does not exist");
}

TEST(Reasons, AQueueThatClosesOrGoesStartsNothingOfWhatWaitsInIt) {
  for (const bool deleted : {false, true}) {
    Engine e = one_node();
    Queue q = queue("team");
    q.capability = {{"nvidia.com/gpu", 2}};
    e.apply(QueueUpsert{q});
    e.apply(PodUpsert{running(in_queue(pod("d/runs", 2), "team"), "a")});
    e.apply(PodUpsert{in_queue(pod("d/waits", 2), "team")});
    (void)e.decide(kNow);
    EXPECT_EQ(why(e, "d/waits"),
              "queue \"team\" is at its limit; nvidia.com/gpu: wants 2, 0 left of 2");
    q.state = QueueState::kClosed;
    deleted ? e.apply(QueueRemove{"team"}) : e.apply(QueueUpsert{q});
    e.apply(PodRemove{"d/runs"});
    EXPECT_TRUE(e.decide(kNow).binds.empty()) << (deleted ? "deleted" : "closed");
    EXPECT_EQ(why(e, "d/waits"),
              deleted ? "queue \"team\" does not exist"
                      : "queue \"team\" is closed: it takes no new work");
    q.state = QueueState::kOpen;
    e.apply(QueueUpsert{q});
    EXPECT_EQ(e.decide(kNow).binds.size(), 1U);
  }
}

TEST(Reasons, LimitsSayHowMuchIsLeftOfWhat) {
  Engine e = one_node();
  Queue q = queue("team");
  q.capability = {{"nvidia.com/gpu", 4}};
  e.apply(QueueUpsert{q});
  e.apply(PodUpsert{running(in_queue(pod("d/runs", 3), "team"), "a")});
  e.apply(PodUpsert{in_queue(pod("d/p", 2), "team")});
  (void)e.decide(kNow);
  EXPECT_EQ(why(e, "d/p"), "queue \"team\" is at its limit; nvidia.com/gpu: wants 2, 1 left of 4");
}

TEST(Reasons, WhatIsGuaranteedToOthers) {
  Engine e = one_node();
  Queue owner = queue("owner");
  owner.guarantee = {{"nvidia.com/gpu", 6}};
  e.apply(QueueUpsert{owner});
  e.apply(QueueUpsert{queue("team")});
  e.apply(PodUpsert{in_queue(pod("d/p", 4), "team")});
  (void)e.decide(kNow);
  EXPECT_EQ(why(e, "d/p"),
            "what is free is guaranteed to other queues; nvidia.com/gpu: wants 4, 2 left of 2");
}

TEST(Reasons, AdmissionNamesWhatTheQueueLacks) {
  Config c;
  c.admission = true;
  Engine e = one_node(c);
  Queue q = queue("team");
  q.capability = {{"nvidia.com/gpu", 2}};
  e.apply(QueueUpsert{q});
  Group g = group("d/g", 1);
  g.queue = "team";
  g.min_resources = ResourceList{{"nvidia.com/gpu", 4}};
  add_gang(e, g, 1, 4);
  (void)e.decide(kNow);
  EXPECT_EQ(why(e, "d/g"), "not admitted to queue \"team\"; nvidia.com/gpu: wants 4, 2 left of 2");
}

TEST(Reasons, NoRoomCountsNodesByCauseAndNamesTheBest) {
  Config c;
  c.preempt = false;
  Engine e(c);
  e.apply(NodeUpsert{node("a", 8)});
  Node cordoned = node("b", 8);
  cordoned.unschedulable = true;
  e.apply(NodeUpsert{cordoned});
  e.apply(PodUpsert{running(pod("d/runs", 5), "a")});
  add_gang(e, group("d/g", 2), 2, 4);
  (void)e.decide(kNow);
  EXPECT_EQ(
      why(e, "d/g"),
      "0 of 2 members can be placed; 0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable. "
      "nvidia.com/gpu: a member wants 4, most free on one node 3");
}

TEST(Reasons, WhatCanNeverFitNamesTheLargestNode) {
  Engine e = one_node();
  e.apply(PodUpsert{running(pod("d/runs", 8), "a")});
  e.apply(PodUpsert{pod("d/p", 16)});
  (void)e.decide(kNow);
  EXPECT_EQ(
      why(e, "d/p"),
      "no node could hold a member even when empty; nvidia.com/gpu: a member wants 16, the largest node has 8");
}

TEST(Reasons, TopologyNamesTheBestDomain) {
  Engine e({});
  for (int i = 0; i < 4; ++i)
    e.apply(NodeUpsert{node(fmt::format("n{}", i), 8, {{"rack", i < 3 ? "x" : "y"}})});
  e.apply(PodUpsert{running(pod("d/runs", 8, 99), "n0")});
  Group g = group("d/g", 3);
  g.topology = {{"rack", true}};
  add_gang(e, g, 3, 8);
  (void)e.decide(kNow);
  EXPECT_EQ(why(e, "d/g"),
            "no single topology domain holds all members: the best, \"rack=x\", takes 2 of 3");
}

TEST(Reasons, AReservationInTheWaySaysWhoseAndWhen) {
  Engine e = blocked_head(std::chrono::seconds(100));
  Pod longer = pod("d/longer", 4);
  longer.created = kNow + std::chrono::seconds(1);
  longer.expected_duration = std::chrono::seconds(200);
  e.apply(PodUpsert{longer});
  (void)e.decide(kNow + std::chrono::seconds(1));
  EXPECT_EQ(
      why(e, "d/longer"),
      "room is free, but starting now would delay \"d/head\", expected to start at 1970-01-01T00:18:20Z; 1 ahead (first \"d/head\")");
  EXPECT_THAT(why(e, "d/head"), testing::EndsWith("expected to start at 1970-01-01T00:18:20Z"));
}

TEST(Reasons, VictimsThatHaveYetToLeave) {
  Engine e = one_node();
  Pod low = running(pod("d/low", 8), "a");
  e.apply(PodUpsert{low});
  e.apply(PodUpsert{pod("d/high", 8, 10)});
  ASSERT_EQ(e.decide(kNow).evicts.size(), 1U);
  low.terminating = true;
  low.terminating_until = kNow + std::chrono::seconds(30);
  e.apply(PodUpsert{low});
  (void)e.decide(kNow + std::chrono::seconds(1));
  EXPECT_EQ(
      why(e, "d/high"),
      "its room is held; waiting for 1 evicted pod to leave (\"d/low\", at the latest at 1970-01-01T00:17:10Z)");
}

TEST(Reasons, SayHowManyAreAheadOverAllKindsOfWork) {
  Engine e = one_node();
  e.apply(PodUpsert{running(pod("d/runs", 8, 99), "a")});
  for (int i = 0; i < 4; ++i) {
    Pod p = pod(fmt::format("d/p{}", i), 1 + i);
    p.created = kNow + std::chrono::seconds(i);
    e.apply(PodUpsert{p});
  }
  (void)e.decide(kNow);
  EXPECT_THAT(why(e, "d/p3"), testing::HasSubstr("; 3 ahead (first \"d/p0\")"));
  EXPECT_EQ(e.why("d/p3")->refusal.ahead, (std::vector<std::string>{"d/p0", "d/p1", "d/p2"}));
}

TEST(Reasons, AKindBeforeTheNameIsForTheEngineAlone) {
  Refusal r;
  r.reason = Reason::kQueueMissing;
  r.queue = "t9k:team";
  r.ahead_count = 1;
  r.ahead = {"volcano:ns/job"};
  EXPECT_EQ(describe(r), "queue \"team\" does not exist; 1 ahead (first \"ns/job\")");
  r.reason = Reason::kGroupMissing;
  r.subject = "native:ns/group";
  EXPECT_EQ(describe(r), "its pod group \"ns/group\" does not exist; 1 ahead (first \"ns/job\")");
}

}  // namespace
}  // namespace muster::engine
