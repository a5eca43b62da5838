// A policy that changes while the cluster runs: what waits and what is indexed follows it in the
// next decision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

std::string place_of(const Plan& plan, const std::string& pod) {
  for (const Bind& bind : plan.binds) {
    if (bind.pod == pod) return bind.node;
  }
  return "(not bound)";
}

TEST(ConfigChange, PlacementTurnsFromPackingToSpreadingAndBack) {
  Config config;
  Engine e(config);
  for (const char* name : {"a", "b"}) e.apply(NodeUpsert{node(name, 8)});
  const auto place = [&](const std::string& name) {
    e.apply(PodUpsert{pod(name, 1)});
    return place_of(e.decide(kNow), name);
  };
  EXPECT_EQ(place("d/1"), "a");
  EXPECT_EQ(place("d/2"), "a");
  config.placement = PlacementRule::kSpread;
  e.apply(ConfigChange{config});
  EXPECT_EQ(place("d/3"), "b");
  EXPECT_EQ(place("d/4"), "b");
  config.placement = PlacementRule::kPack;
  e.apply(NodeUpsert{node("c", 8)});
  e.apply(ConfigChange{config});
  EXPECT_NE(place("d/5"), "c");
  config.placement = PlacementRule::kFragmentation;
  e.apply(ConfigChange{config});
  EXPECT_NE(place("d/6"), "(not bound)");
}

TEST(ConfigChange, WhatMayNotPreemptMayOnceThePolicyAllowsIt) {
  Config config;
  config.preempt = false;
  Engine e(config);
  e.apply(NodeUpsert{node("a", 8)});
  e.apply(PodUpsert{running(pod("d/low", 8, 0), "a")});
  e.apply(PodUpsert{pod("d/high", 8, 10)});
  EXPECT_THAT(evicted(e.decide(kNow)), testing::IsEmpty());
  config.preempt = true;
  e.apply(ConfigChange{config});
  EXPECT_THAT(evicted(e.decide(kNow)), testing::ElementsAre("d/low"));
}

TEST(ConfigChange, TheOrderInsideAQueueIsMadeAnew) {
  Config config;
  Engine e(config);
  e.apply(NodeUpsert{node("a", 8)});
  // The older gang has half of everything and wants one more; the younger has nothing.
  Group elder = group("d/elder", 1), younger = group("d/younger", 1);
  younger.created = kNow + std::chrono::seconds(1);
  e.apply(GroupUpsert{elder});
  e.apply(GroupUpsert{younger});
  const auto member = [](const std::string& key, const Group& of, std::int64_t gpus) {
    Pod p = pod(key, gpus);
    p.group = of.key;
    return p;
  };
  e.apply(PodUpsert{running(member("d/elder-0", elder, 4), "a")});
  e.apply(PodUpsert{running(pod("d/other", 4, 100), "a")});
  e.apply(PodUpsert{member("d/elder-1", elder, 4)});
  e.apply(PodUpsert{member("d/younger-0", younger, 4)});
  EXPECT_THAT(bound(e.decide(kNow)), testing::IsEmpty());
  EXPECT_EQ(e.waiting("default", 9).front().key, "d/younger")
      << "members above the minimum come last";

  Group both = elder;
  both.min_member = 2;  // now its second member is part of the least
  e.apply(GroupUpsert{both});
  (void)e.decide(kNow);
  EXPECT_EQ(e.waiting("default", 9).front().key, "d/elder");
  config.drf = true;
  e.apply(ConfigChange{config});
  (void)e.decide(kNow);
  EXPECT_EQ(e.waiting("default", 9).front().key, "d/younger") << "it has the smaller share";
}

}  // namespace
}  // namespace muster::engine
