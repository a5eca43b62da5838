#include "answers/alternatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/random.h"
#include "engine/test_world.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::Plan;
using engine::test::add_gang;
using engine::test::group;
using engine::test::kNow;
using engine::test::node;
using engine::test::pod;
using engine::test::running;
using namespace std::chrono_literals;

AlternativesAsk asking(const std::string& job) {
  AlternativesAsk ask;
  ask.job = job;
  return ask;
}

/// A small cluster with queues, taints, labels, models and priorities, busy at random.
Engine random_world(std::uint64_t seed, Random& random) {
  engine::Config config;
  config.preempt = seed % 2 == 0;
  Engine e(config);
  for (const char* name : {"default", "other"}) {
    engine::Queue queue;
    queue.name = name;
    if (random.chance(30))
      queue.capability = {{"nvidia.com/gpu", 8 + static_cast<std::int64_t>(random.below(16))}};
    e.apply(engine::QueueUpsert{queue});
  }
  const auto nodes = 2 + random.below(4);
  for (std::uint64_t n = 0; n < nodes; ++n) {
    engine::Node made = node(fmt::format("n{}", n), 8, {{"rack", fmt::format("r{}", n % 2)}});
    const std::string model = n % 2 == 0 ? "A100" : "V100";
    for (int d = 0; d < 8; ++d) made.devices.push_back({d, model, true});
    if (random.chance(20)) made.taints.push_back({"special", "", engine::TaintEffect::kNoSchedule});
    e.apply(engine::NodeUpsert{made});
  }
  const auto busy = 3 + random.below(9);
  for (std::uint64_t i = 0; i < busy; ++i) {
    engine::Pod p = pod(fmt::format("d/busy-{}", i),
                        1LL << random.below(4),
                        static_cast<std::int32_t>(random.below(3)) * 10);
    p.queue = random.chance(50) ? "default" : "other";
    if (random.chance(60)) p.expected_duration = std::chrono::minutes(10 + random.below(200));
    e.apply(engine::PodUpsert{p});
  }
  (void)e.decide(kNow);
  return e;
}

void add_asker(Engine& e, Random& random) {
  engine::Group g = group("d/me", 1 + static_cast<std::int32_t>(random.below(3)));
  g.created = kNow + 1min;
  if (random.chance(30)) g.topology = {{"rack", random.chance(50)}};
  const std::int32_t members = g.min_member;
  e.apply(engine::GroupUpsert{g});
  for (std::int32_t i = 0; i < members; ++i) {
    engine::Pod p = pod(fmt::format("d/me-{}", i), 1LL << random.below(4));
    p.group = g.key;
    p.created = g.created;
    if (random.chance(20)) p.node_selector = {{"rack", "r0"}};
    if (random.chance(20)) p.device_models = {"A100"};
    e.apply(engine::PodUpsert{p});
  }
}

TEST(Check15, EachAlternativeReallyAppliedStartsWhereItSaid) {
  std::set<std::string> kinds;
  int offered = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    Engine e = random_world(seed, random);
    add_asker(e, random);
    const Time now = kNow + 2min;
    (void)e.decide(now);
    const auto view = e.gang("d/me");
    if (!view || !view->waiting) continue;
    AlternativesAsk ask = asking("d/me");
    ask.most = 100;
    ask.asker.workers_min = 1;
    ask.asker.other_pieces = true;
    ask.asker.queues = {"other"};
    ask.asker.priorities = {{"high", 100}};
    for (int i = 0; i < 4; ++i) ask.asker.own_jobs.push_back(fmt::format("d/busy-{}", i));
    ask.asker.admin = true;
    const std::uint64_t before = e.digest();
    const Time next = now + 1s;
    for (const Tried& tried : try_alternatives(e, next, ask)) {
      const Alternative& a = tried.alternative;
      ++offered;
      kinds.insert(a.change);
      Engine real = e.clone();
      for (const engine::Event& event : tried.events) real.apply(event);
      const Plan plan = real.decide(next);
      std::set<std::tuple<std::string, std::string, std::vector<std::int32_t>>> seats, bound;
      for (const Seat& seat : a.placement) seats.emplace(seat.task, seat.node, seat.gpus);
      const auto mine = real.gang("d/me");
      ASSERT_TRUE(mine) << seed;
      for (const engine::Bind& bind : plan.binds) {
        if (std::find(mine->pods.begin(), mine->pods.end(), bind.pod) != mine->pods.end())
          bound.emplace(bind.pod, bind.node, bind.devices);
      }
      EXPECT_EQ(seats, bound) << "seed " << seed << ", " << a.change;
      for (const auto& [task, node, gpus] : seats)
        EXPECT_FALSE(gpus.empty()) << "seed " << seed << ", " << a.change;
      std::vector<std::string> victims;
      for (const engine::Evict& evict : plan.evicts) {
        if (evict.for_whom == "d/me") victims.push_back(evict.pod);
      }
      EXPECT_EQ(a.victims, victims) << "seed " << seed << ", " << a.change;
      if (a.verdict == Verdict::kStarts) {
        EXPECT_TRUE(mine->running) << "seed " << seed << ", " << a.change;
      } else {
        EXPECT_FALSE(victims.empty()) << "seed " << seed << ", " << a.change;
      }
    }
    EXPECT_EQ(e.digest(), before);
  }
  EXPECT_GT(offered, 500);
  for (const char* kind : {"duration",
                           "limit",
                           "model",
                           "node",
                           "pieces",
                           "priority",
                           "queue",
                           "selector",
                           "stop",
                           "toleration",
                           "topology",
                           "victims",
                           "workers"})
    EXPECT_TRUE(kinds.contains(kind)) << kind << " was never offered";
}

TEST(Check16, NothingIsOfferedThatTheAskerMayNotDo) {
  Random random(7);
  Engine e = random_world(4, random);
  add_gang(e, group("d/me", 6), 6, 8);
  (void)e.decide(kNow + 1min);
  AlternativesAsk ask = asking("d/me");
  ask.asker.own_job = false;
  EXPECT_TRUE(alternatives(e, kNow + 1min, ask).empty());
  ask.asker.own_job = true;
  for (const Alternative& a : alternatives(e, kNow + 1min, ask)) {
    EXPECT_NE(a.change, "queue");
    EXPECT_NE(a.change, "priority");
    EXPECT_NE(a.change, "stop");
    EXPECT_NE(a.change, "workers");
    EXPECT_NE(a.change, "pieces");
    EXPECT_NE(a.change, "victims");
    EXPECT_NE(a.change, "node");
  }
  ask.asker.workers_min = 1;
  ask.asker.admin = true;
  const auto offered = alternatives(e, kNow + 1min, ask);
  EXPECT_LE(offered.size(), 5U);
}

TEST(Check16, AJobThatStartsAnywayIsOfferedNothing) {
  Engine e({});
  e.apply(engine::NodeUpsert{node("a", 8)});
  e.apply(engine::PodUpsert{pod("d/me", 8)});
  AlternativesAsk ask = asking("d/me");
  ask.asker.admin = true;
  EXPECT_TRUE(alternatives(e, kNow, ask).empty());
}

TEST(Check17, TheLongestDurationThatFitsBeforeAReservation) {
  engine::Config config;
  config.preempt = false;
  Engine e(config);
  e.apply(engine::QueueUpsert{{.name = "default"}});
  e.apply(engine::NodeUpsert{node("a", 8)});
  engine::Pod busy = running(pod("d/busy", 4), "a");
  busy.expected_duration = 2h;
  e.apply(engine::PodUpsert{busy});
  e.apply(engine::PodUpsert{pod("d/head", 8)});
  engine::Pod me = pod("d/me", 4);
  me.created = kNow + 1s;
  e.apply(engine::PodUpsert{me});
  const Time now = kNow + 30min;
  (void)e.decide(now);
  ASSERT_TRUE(e.gang("d/me")->waiting);
  const auto found = try_alternatives(e, now, asking("d/me"));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].alternative.flag, "--expected-duration=90m");
  const auto starts = [&](Duration lasts) {
    me.expected_duration = lasts;
    return e.try_gang({"d/me", {engine::PodUpsert{me}}, now}).verdict == engine::Verdict::kStarts;
  };
  EXPECT_TRUE(starts(90min));
  EXPECT_FALSE(starts(91min));
}

}  // namespace
}  // namespace muster::answers
