// Pods that must not be near each other, devices that are shared, and how long work may last at
// most.
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
      config.policy = PolicyKind::kVolcano;
      config.volcano.actions = {"enqueue", "allocate", "preempt", "backfill"};
      config.volcano.configurations = {{"preempt", {{"enableTopologyAwarePreemption", "true"}}}};
      config.volcano.tiers = {{{.name = "priority"}, {.name = "conformance"}},
                              {{.name = "predicates"}}};
    }
    Engine e(config);
    e.apply(QueueUpsert{Queue{.name = "default"}});
    for (const char* name : {"n1", "n2"}) {
      Node n = node(name, 8, {{"host", name}});
      e.apply(NodeUpsert{n});
    }
    const auto add = [&](const std::string& key,
                         const std::string& on,
                         std::int32_t priority,
                         const std::string& app) {
      Pod p = running(pod(key, 1, priority), on);
      p.labels = {{"app", app}};
      e.apply(PodUpsert{p});
    };
    add("d/near", "n1", 5, "web");
    add("d/other", "n1", 1, "batch");
    add("d/high", "n2", 900, "web");
    (void)e.decide(kNow);
    e.apply(PodUpsert{apart_from(pod("d/new", 1, 100), "web")});
    EXPECT_EQ(evicted(e.decide(kNow)), std::vector<std::string>{"d/near"})
        << (volcano ? "volcano" : "muster");
    e.apply(PodRemove{"d/near"});
    const Plan plan = e.decide(kNow);
    EXPECT_EQ(bound(plan), std::vector<std::string>{"d/new"}) << (volcano ? "volcano" : "muster");
  }
}

TEST(Preempt, AVolcanoGangThatMustBeTogetherTakesOneDomain) {
  // Each rack has two nodes of 4 GPUs. In r1 one node is taken by low work, in r2 both.
  Config config;
  config.policy = PolicyKind::kVolcano;
  config.volcano.actions = {"enqueue", "allocate", "gangpreempt", "backfill"};
  config.volcano.tiers = {{{.name = "priority"}, {.name = "gang"}, {.name = "conformance"}},
                          {{.name = "predicates"}}};
  Engine e(config);
  e.apply(QueueUpsert{Queue{.name = "default"}});
  for (const char* name : {"a1", "a2", "b1", "b2"})
    e.apply(NodeUpsert{node(name, 4, {{"rack", name[0] == 'a' ? "r2" : "r1"}})});
  for (const char* name : {"a1", "a2", "b2"})
    e.apply(PodUpsert{running(pod(std::string("d/low-") + name, 4), name)});
  (void)e.decide(kNow);
  Group g = group("d/g", 2, 100);
  g.topology = {{"rack", true}};
  add_gang(e, g, 2, 4);
  const Plan plan = e.decide(kNow);
  EXPECT_EQ(evicted(plan), std::vector<std::string>{"d/low-b2"});
  e.apply(PodRemove{"d/low-b2"});
  EXPECT_EQ(e.decide(kNow).binds.size(), 2U);
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

/// n1 of three GPUs, one busy for 100 s with work of another queue; a pod that needs all three
/// waits for it.
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
  // Nobody says how long it runs, but the queue ends pods after 80 s, before the reservation
  // starts.
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
