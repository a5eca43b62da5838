// Pods that must not be near each other, devices that are shared, and how long work may last at most.
#include <gtest/gtest.h>

#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

Pod apart_from(Pod p, const std::string& app) {
  PodTerm term;
  term.selector = Selector{{{.key = "app", .values = {app}}}};
  term.namespaces = {"d"};
  term.topology_key = "host";
  p.pod_anti_affinity = {term};
  return p;
}

TEST(Preempt, OnesThatMayNotBeNearGoAndNobodyElse) {
  // Both nodes have room; on each an important pod may not be beside the one that runs there.
  for (const bool volcano : {false, true}) {
    Config config;
    if (volcano) {
      config.policy = Policy::kVolcano;
      config.volcano.actions = {"enqueue", "allocate", "preempt", "backfill"};
      config.volcano.configurations = {{"preempt", {{"enableTopologyAwarePreemption", "true"}}}};
      config.volcano.tiers = {{{.name = "priority"}, {.name = "conformance"}}, {{.name = "predicates"}}};
    }
    Engine e(config);
    e.apply(QueueUpsert{Queue{.name = "default"}});
    for (const char* name : {"n1", "n2"}) {
      Node n = node(name, 8, {{"host", name}});
      e.apply(NodeUpsert{n});
    }
    const auto add = [&](const std::string& key, const std::string& on, std::int32_t priority, const std::string& app) {
      Pod p = running(pod(key, 1, priority), on);
      p.labels = {{"app", app}};
      e.apply(PodUpsert{p});
    };
    add("d/near", "n1", 5, "web");
    add("d/other", "n1", 1, "batch");
    add("d/high", "n2", 900, "web");
    (void)e.decide(kNow);
    e.apply(PodUpsert{apart_from(pod("d/new", 1, 100), "web")});
    EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"d/near"}) << (volcano ? "volcano" : "muster");
    e.apply(PodRemove{"d/near"});
    const Plan plan = e.decide(kNow);
    EXPECT_EQ(bound(plan), std::vector<std::string>{"d/new"}) << (volcano ? "volcano" : "muster");
  }
}

TEST(Preempt, AVolcanoGangThatMustBeTogetherTakesOneDomain) {
  // Each rack has two nodes of 4 GPUs. In r1 one node is taken by low work, in r2 both.
  Config config;
  config.policy = Policy::kVolcano;
  config.volcano.actions = {"enqueue", "allocate", "gangpreempt", "backfill"};
  config.volcano.tiers = {{{.name = "priority"}, {.name = "gang"}, {.name = "conformance"}}, {{.name = "predicates"}}};
  Engine e(config);
  e.apply(QueueUpsert{Queue{.name = "default"}});
  for (const char* name : {"a1", "a2", "b1", "b2"}) e.apply(NodeUpsert{node(name, 4, {{"rack", name[0] == 'a' ? "r2" : "r1"}})});
  for (const char* name : {"a1", "a2", "b2"}) e.apply(PodUpsert{running(pod(std::string("d/low-") + name, 4), name)});
  (void)e.decide(kNow);
  Group g = group("d/g", 2, 100);
  g.topology = {{"rack", true}};
  add_gang(e, g, 2, 4);
  const Plan plan = e.decide(kNow);
  EXPECT_EQ(evicted(plan), std::vector<std::string>{"d/low-b2"});
  e.apply(PodRemove{"d/low-b2"});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
}

Pod share_of(Pod p, std::int32_t milli) {
  p.device_share_milli = milli;
  std::erase_if(p.requests, [](const Amount& a) { return a.name == "nvidia.com/gpu"; });
  return p;
}

/// A share that runs on the device with that index and makes way for nobody here.
Pod sharing(const std::string& key, std::int32_t milli, std::int32_t device) {
  Pod p = share_of(running(pod(key, 0, 100), "n1"), milli);
  p.device_indexes = {device};
  return p;
}

TEST(Preempt, NoShareGoesToAWholeDeviceThatIsHeldForSomebody) {
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

TEST(Preempt, NobodyGetsADeviceWholeOfWhichAShareIsHeldForSomebody) {
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

TEST(Preempt, OneNeedNotWaitForTheVictimsOfAnother) {
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

TEST(Waiting, AShareThatGoesWakesThoseThatNeedTheWholeDevice) {
  Engine e(Config{});
  e.apply(NodeUpsert{node("n1", 4)});
  e.apply(PodUpsert{sharing("d/share", 300, 0)});
  (void)e.decide(kNow);
  // 3.7 GPUs are free, three of them whole; four are wanted.
  add_gang(e, group("d/g", 4), 4, 1);
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  e.apply(PodRemove{"d/share"});
  EXPECT_EQ(e.decide(kNow).binds.size(), 4U);
}

/// n1 of three GPUs, one busy for 100 s with work of another queue; a pod that needs all three waits for it.
Engine with_reservation(const Queue& queue) {
  Config config;
  config.reservations = 1;
  config.preempt = false;
  Engine e(config);
  e.apply(QueueUpsert{queue});
  e.apply(QueueUpsert{Queue{.name = "other"}});
  e.apply(NodeUpsert{node("n1", 3)});
  Pod busy = in_queue(running(pod("d/busy", 1), "n1"), "other");
  busy.device_indexes = {0};
  busy.expected_duration = std::chrono::seconds(100);
  e.apply(PodUpsert{busy});
  e.apply(PodUpsert{in_queue(pod("d/big", 3), queue.name)});
  (void)e.decide(kNow);
  return e;
}

TEST(Reservations, AShareMayNotBreakADeviceThatIsNeededWhole) {
  // Free by then: three devices of three. A share of unknown length on any of them would leave two.
  Engine e = with_reservation(Queue{.name = "default"});
  Pod share = pod("d/share", 0);
  share.device_share_milli = 100;
  e.apply(PodUpsert{share});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
  Pod brief = share;
  brief.key = brief.uid = "d/brief";
  brief.expected_duration = std::chrono::seconds(50);
  e.apply(PodUpsert{brief});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/brief"});
}

TEST(Reservations, AQueuesLongestAgeBoundsItsWork) {
  // Nobody says how long it runs, but the queue ends pods after 80 s, before the reservation starts.
  Queue queue{.name = "default"};
  queue.max_duration = std::chrono::seconds(80);
  Engine e = with_reservation(queue);
  e.apply(PodUpsert{pod("d/young", 1)});
  EXPECT_EQ(bound(e.decide(kNow)), std::vector<std::string>{"d/young"});
}

TEST(Reservations, WithoutSuchAnAgeItIsNotLetPass) {
  Engine e = with_reservation(Queue{.name = "default"});
  e.apply(PodUpsert{pod("d/young", 1)});
  EXPECT_TRUE(e.decide(kNow).binds.empty());
}

}  // namespace
}  // namespace muster::engine
