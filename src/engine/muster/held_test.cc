// Room that is held: on devices and in queues for those whose victims leave, in the future for
// those with a reservation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

TEST(Held, NoShareGoesToAWholeDeviceThatIsHeldForSomebody) {
  // Of seven devices five have 300 left, one is taken by low work and one is free; both of the
  // latter are for the important pod. The 1,500 left of the others are enough for a share of 400 in
  // sum, but on none of them.
  Engine e(Config{});
  e.apply(NodeUpsert{node("n1", 7)});
  for (std::int32_t i = 0; i < 5; ++i)
    e.apply(PodUpsert{sharing(fmt::format("d/part-{}", i), 700, i)});
  Pod low = running(pod("d/low", 1), "n1");
  low.device_indexes = {5};
  e.apply(PodUpsert{low});
  (void)e.decide(kNow);
  e.apply(PodUpsert{pod("d/high", 2, 100)});
  EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"d/low"});
  e.apply(PodUpsert{share_of(pod("d/share", 0), 400)});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  // One that fits beside the others is in nobody's way.
  e.apply(PodUpsert{share_of(pod("d/small", 0), 300)});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/small"});
  e.apply(PodRemove{"d/low"});
  const Plan plan = e.decide(kNow);
  EXPECT_EQ(bound(plan), std::vector<std::string>{"d/high"});
  EXPECT_TRUE(plan.evicts.empty());
}

TEST(Held, NobodyGetsADeviceWholeOfWhichAShareIsHeldForSomebody) {
  // The important share of 950 finds no device but the untouched one, and waits for low work to
  // give back something else.
  Engine e(Config{});
  Node n = node("n1", 3);
  n.allocatable.push_back({"example.com/seat", 1});
  e.apply(NodeUpsert{n});
  e.apply(PodUpsert{sharing("d/part-0", 100, 0)});
  e.apply(PodUpsert{sharing("d/part-1", 100, 1)});
  Pod low = running(pod("d/low", 0), "n1");
  low.requests.push_back({"example.com/seat", 1});
  e.apply(PodUpsert{low});
  (void)e.decide(kNow);
  Pod high = share_of(pod("d/high", 0, 100), 950);
  high.requests.push_back({"example.com/seat", 1});
  e.apply(PodUpsert{high});
  EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"d/low"});
  e.apply(PodUpsert{pod("d/whole", 1)});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodRemove{"d/low"});
  const Plan plan = e.decide(kNow);
  EXPECT_EQ(bound(plan), std::vector<std::string>{"d/high"});
  EXPECT_EQ(plan.binds.at(0).devices, std::vector<std::int32_t>{2});
}

TEST(Held, OneNeedNotWaitForTheVictimsOfAnother) {
  Engine e(Config{});
  e.apply(NodeUpsert{node("n1", 2)});
  for (const char* key : {"d/low-0", "d/low-1"}) e.apply(PodUpsert{running(pod(key, 1), "n1")});
  (void)e.decide(kNow);
  e.apply(PodUpsert{pod("d/high-0", 1, 100)});
  const auto first = evicted(e.decide(kNow));
  e.apply(PodUpsert{pod("d/high-1", 1, 100)});
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(e.decide(kNow).evicts.size(), 1U);
  e.apply(PodRemove{first.front()});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/high-0"});
}

TEST(Held, AQueuesLimitCountsThoseWhoseVictimsLeave) {
  // The queue is full. One of the low ones goes for the important pod; another low one must not
  // take its part, though there is a free node.
  Engine e(Config{});
  Queue queue{.name = "default"};
  queue.capability = {{"nvidia.com/gpu", 8}};
  e.apply(QueueUpsert{queue});
  for (const char* name : {"a", "b"}) e.apply(NodeUpsert{node(name, 8)});
  for (const char* key : {"d/low-0", "d/low-1"}) e.apply(PodUpsert{running(pod(key, 4), "a")});
  (void)e.decide(kNow);
  e.apply(PodUpsert{pod("d/high", 4, 100)});
  e.apply(PodUpsert{pod("d/low-2", 4)});
  const Plan plan = e.decide(kNow);
  ASSERT_EQ(plan.evicts.size(), 1U);
  EXPECT_TRUE(plan.binds.empty());
  e.apply(PodRemove{plan.evicts[0].pod});
  const Plan next = e.decide(kNow);
  EXPECT_EQ(bound(next), std::vector<std::string>{"d/high"});
  EXPECT_TRUE(next.evicts.empty());
}

TEST(Held, AQueueTakesBackNoMoreThanItsDue) {
  // It deserves four GPUs and waits for them already.
  Engine e(Config{});
  Queue starved{.name = "starved"};
  starved.deserved = {{"nvidia.com/gpu", 4}};
  e.apply(QueueUpsert{starved});
  e.apply(QueueUpsert{Queue{.name = "greedy"}});
  e.apply(NodeUpsert{node("a", 8)});
  for (const char* key : {"d/low-0", "d/low-1"})
    e.apply(PodUpsert{in_queue(running(pod(key, 4), "a"), "greedy")});
  (void)e.decide(kNow);
  e.apply(PodUpsert{in_queue(pod("d/first", 4), "starved")});
  EXPECT_EQ(e.decide(kNow).evicts.size(), 1U);
  e.apply(PodUpsert{in_queue(pod("d/second", 4), "starved")});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
}

TEST(Held, WhoEvictsDoesNotDelayThoseAheadEither) {
  // The first in line starts in 100 s, when both have ended. Evicting the low one for long work
  // would put that off.
  Engine e(Config{});
  e.apply(NodeUpsert{node("a", 8)});
  const auto lasting = [](Pod p, int seconds) {
    p.expected_duration = std::chrono::seconds(seconds);
    return p;
  };
  e.apply(PodUpsert{lasting(running(pod("d/firm", 4, 10), "a"), 100)});
  e.apply(PodUpsert{lasting(running(pod("d/low", 4), "a"), 50)});
  e.apply(PodUpsert{pod("d/head", 8, 10)});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
  Pod later = pod("d/later", 4, 10);
  later.created = kNow + std::chrono::seconds(1);
  e.apply(PodUpsert{later});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
  EXPECT_THAT(
      why(e, "d/later"),
      testing::HasSubstr("would delay \"d/head\", expected to start at 1970-01-01T00:18:20Z"));
  Pod brief = lasting(later, 60);
  brief.key = brief.uid = "d/brief";
  e.apply(PodUpsert{brief});
  EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"d/low"});
}

TEST(Held, AQueueWhoseNomineeIsPushedAsideMayUseItsPartAtOnce) {
  Engine e(Config{});
  Queue queue{.name = "small"};
  queue.capability = {{"nvidia.com/gpu", 8}};
  e.apply(QueueUpsert{queue});
  e.apply(QueueUpsert{Queue{.name = "default"}});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(NodeUpsert{node("b", 4)});
  e.apply(PodUpsert{running(pod("d/low", 8), "a")});
  (void)e.decide(kNow);
  e.apply(PodUpsert{in_queue(pod("d/mid", 8, 10), "small")});
  EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"d/low"});
  e.apply(PodUpsert{in_queue(pod("d/little", 4), "small")});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodUpsert{pod("d/high", 8, 100)});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/little"});
}

TEST(Held, PriorityDoesNotTakeAnotherQueuesDue) {
  // What "owner" takes back from "lender" is its due. The more important work of "lender" would
  // take it again, and so on forever.
  Engine e(Config{});
  Queue owner{.name = "owner"};
  owner.deserved = {{"nvidia.com/gpu", 8}};
  e.apply(QueueUpsert{owner});
  e.apply(QueueUpsert{Queue{.name = "lender"}});
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(PodUpsert{running(in_queue(pod("d/lent", 8, 100), "lender"), "a")});
  (void)e.decide(kNow);
  e.apply(PodUpsert{in_queue(pod("d/own", 8), "owner")});
  EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"d/lent"});
  e.apply(PodUpsert{in_queue(pod("d/important", 8, 100), "lender")});
  EXPECT_TRUE(e.decide(kNow).nominations.empty());
  e.apply(PodRemove{"d/lent"});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/own"});
  EXPECT_TRUE(e.decide(kNow).evicts.empty());
}

}  // namespace
}  // namespace muster::engine
