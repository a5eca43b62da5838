// Who fills a gap first.
#include "engine/muster/fill_order.h"

#include <gtest/gtest.h>

#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;
using namespace std::chrono_literals;

Rank rank(std::int64_t created, std::int64_t priority = 0) {
  return {.low_priority = -priority, .created_us = created};
}

/// In the order in which they would start if each that is first did.
std::vector<std::uint32_t> drain(FillOrder& order,
                                 const std::map<std::uint32_t, FillOrder::Length>& lengths) {
  std::vector<std::uint32_t> out;
  while (order.size() > 0) {
    EXPECT_TRUE(order.consistent());
    const auto [low_priority, us, of, gang] = order.first();
    EXPECT_TRUE(order.erase(of, gang, lengths.at(gang.value)));
    out.push_back(gang.value);
  }
  return out;
}

TEST(FillOrder, ThoseOfOneKindStayInTheirOrderWhateverWasThoughtOfEach) {
  const std::map<std::uint32_t, FillOrder::Length> lengths = {
      {1, {50, 7}}, {2, {50, 7}}, {3, {10, 7}}, {4, {20, 0}}, {5, {5, 0}}, {6, {40, 8}}};
  FillOrder order;
  for (const auto& [gang, length] : lengths) order.insert(rank(gang), GangId(gang), length);
  EXPECT_EQ(drain(order, lengths), (std::vector<std::uint32_t>{5, 1, 2, 3, 4, 6}));
}

TEST(FillOrder, APriorityGoesFirst) {
  FillOrder order;
  order.insert(rank(1), GangId(1), {10, 7});
  order.insert(rank(2, 5), GangId(2), {90, 7});
  order.insert(rank(3, 5), GangId(3), {20, 0});
  const std::map<std::uint32_t, FillOrder::Length> lengths = {
      {1, {10, 7}}, {2, {90, 7}}, {3, {20, 0}}};
  EXPECT_EQ(drain(order, lengths), (std::vector<std::uint32_t>{2, 3, 1}));
}

TEST(FillOrder, WhatIsNotThereCannotBeTakenOut) {
  FillOrder order;
  EXPECT_FALSE(order.erase(rank(1), GangId(1), {10, 7}));
  order.insert(rank(1), GangId(1), {10, 7});
  EXPECT_FALSE(order.erase(rank(2), GangId(2), {10, 7}));
  EXPECT_EQ(order.size(), 1U);
}

/// A gang that needs both nodes holds a reservation, and small pods of one team and size fill the
/// gap beside it. Short runs of theirs end while they wait: who came first still starts first.
TEST(FillOrder, WhoComesAfterShortRunsHaveEndedOvertakesNobodyOfItsKind) {
  Engine e{Config{}};
  e.apply(QueueUpsert{{.name = "default"}});
  for (const char* name : {"a", "b"}) e.apply(NodeUpsert{node(name, 8)});
  const auto run = [&](Duration ran) {
    PastRun past;
    past.origin = {"", "", "default"};
    past.device_milli = 1000;
    past.ran = ran;
    e.apply(past);
  };
  for (int i = 0; i < 30; ++i) run(50min);
  Pod busy = running(pod("d/busy", 7), "a");
  busy.expected_duration = 10h;
  e.apply(PodUpsert{busy});
  Pod full = running(pod("d/full", 8), "b");
  full.expected_duration = 2h;
  e.apply(PodUpsert{full});
  Pod last = running(pod("d/last", 1), "a");
  last.expected_duration = 1h;
  e.apply(PodUpsert{last});
  Group both = group("d/both", 2);
  both.expected_duration = 1h;
  add_gang(e, both, 2, 8);
  (void)e.decide(kNow);
  Time now = kNow;
  const auto submit = [&](const std::string& name) {
    now = now + 1min;
    Pod p = pod(name, 1);
    p.created = now;
    e.apply(PodUpsert{p});
    (void)e.decide(now);
  };
  submit("d/first");
  submit("d/second");
  for (int i = 0; i < 100; ++i) run(5min);
  submit("d/third");
  e.apply(PodRemove{"d/last"});
  const Plan plan = e.decide(now + 1min);
  ASSERT_EQ(plan.binds.size(), 1U);
  EXPECT_EQ(plan.binds.front().pod, "d/first");
}

}  // namespace
}  // namespace muster::engine
