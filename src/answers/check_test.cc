#include "answers/check.h"

#include <gtest/gtest.h>

#include "answers/json.h"
#include "engine/test_world.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::test::kNow;
using engine::test::node;
using engine::test::pod;
using namespace std::chrono_literals;

Engine two_nodes(engine::Config config = {}) {
  Engine e(std::move(config));
  e.apply(engine::QueueUpsert{{.name = "default"}});
  for (int n = 0; n < 2; ++n) e.apply(engine::NodeUpsert{node(fmt::format("n{}", n), 8)});
  (void)e.decide(kNow);
  return e;
}

void run(Engine& e, const std::string& key, std::int64_t gpus, Duration lasts, int priority = 0) {
  engine::Pod p = pod(key, gpus);
  p.created = kNow;
  p.expected_duration = lasts;
  p.priority = priority;
  e.apply(engine::PodUpsert{p});
  (void)e.decide(kNow);
}

Draft lone(const std::string& key, std::int64_t gpus, int priority = 0) {
  Draft draft{.ns = "d", .kind = "pod", .name = key.substr(key.find('/') + 1)};
  engine::Pod p = pod(key, gpus);
  p.created = kNow + 1min;
  p.priority = priority;
  draft.pods.emplace_back(engine::PodUpsert{p});
  return draft;
}

Decision asked(Engine& e, const Draft& draft) {
  CheckAsk ask;
  ask.asker.admin = true;
  return check(e, kNow + 1min, draft, ask);
}

TEST(Check, AJobThatFitsStartsWhereItIsSaid) {
  Engine e = two_nodes();
  const Decision said = asked(e, lone("d/new", 4));
  EXPECT_EQ(said.fate, Fate::kStarts);
  ASSERT_EQ(said.placement.size(), 1U);
  EXPECT_EQ(said.text, "starts at once on " + said.placement[0].node);
  EXPECT_EQ(said.placement[0].gpus.size(), 4U);
  EXPECT_TRUE(said.alternatives.empty());
}

TEST(Check, AJobThatWaitsIsToldItsStart) {
  Engine e = two_nodes({.preempt = false});
  run(e, "d/a", 8, 1h);
  run(e, "d/b", 8, 3h);
  const Decision said = asked(e, lone("d/new", 8));
  EXPECT_EQ(said.fate, Fate::kWaits);
  EXPECT_EQ(said.forecast.start.basis, Basis::kKnown);
  ASSERT_TRUE(said.forecast.start.range.p50);
  EXPECT_EQ(*said.forecast.start.range.p50, kNow + 1h);
  EXPECT_FALSE(said.alternatives.empty());
}

TEST(Check, AJobThatNeverFitsSaysSo) {
  Engine e = two_nodes();
  const Decision said = asked(e, lone("d/new", 64));
  EXPECT_EQ(said.fate, Fate::kNever);
  EXPECT_EQ(said.forecast.start.basis, Basis::kNone);
  EXPECT_FALSE(said.forecast.start.range.p50);
}

TEST(Check, AJobThatIsMoreThanItsQueueMayEverHoldNeverStarts) {
  Engine e = two_nodes();
  e.apply(engine::QueueUpsert{{.name = "small", .capability = {{"nvidia.com/gpu", 4}}}});
  (void)e.decide(kNow);
  Draft draft = lone("d/new", 8);
  std::get<engine::PodUpsert>(draft.pods[0]).pod.queue = "small";
  EXPECT_EQ(asked(e, draft).fate, Fate::kNever);
}

TEST(Check, ThoseThatHaveToLeaveAreNamed) {
  Engine e = two_nodes();
  run(e, "d/a", 8, 1h);
  run(e, "d/b", 8, 3h);
  const Decision said = asked(e, lone("d/new", 8, 100));
  EXPECT_EQ(said.fate, Fate::kEvicts);
  ASSERT_EQ(said.victims.size(), 1U);
  EXPECT_EQ(fate_name(said.fate), "starts");
}

TEST(Check, AJobWithoutAGangStartsInPart) {
  Engine e = two_nodes({.preempt = false});
  run(e, "d/a", 8, 1h);
  Draft draft = lone("d/new-0", 8);
  draft.pods.push_back(lone("d/new-1", 8).pods[0]);
  const Decision said = asked(e, draft);
  EXPECT_EQ(said.fate, Fate::kStarts);
  EXPECT_TRUE(said.text.starts_with("1 of 2 tasks start at once")) << said.text;
}

TEST(Check, WhatIsRefusedOrIdleIsNotTried) {
  Engine e = two_nodes();
  const std::uint64_t before = e.digest();
  Draft draft = lone("d/new", 4);
  draft.refused = "no";
  EXPECT_EQ(asked(e, draft).fate, Fate::kRefused);
  draft.refused.clear();
  draft.idle = "it is suspended";
  const Decision idle = asked(e, draft);
  EXPECT_EQ(idle.fate, Fate::kWaits);
  EXPECT_EQ(idle.text, "it is suspended");
  EXPECT_EQ(idle.forecast.start.basis, Basis::kNone);
  EXPECT_EQ(e.digest(), before);
}

TEST(Check, NamesThatTheAskerMayNotKnowAreNotInTheText) {
  Engine e = two_nodes({.preempt = false});
  run(e, "secret/a", 8, 1h);
  run(e, "secret/b", 8, 3h);
  run(e, "secret/c", 8, 3h);
  const Decision said = asked(e, lone("d/new", 8));
  const Naming naming = [](std::string_view gang) {
    return gang.starts_with("d/") ? std::string(gang) : std::string(kAnothersJob);
  };
  EXPECT_EQ(json::dump(decision_json(said, naming)).find("secret"), std::string::npos);
  engine::Refusal cells;
  cells.words = "of 1 cell 0 free: free one or wait for secret/a, or d/mine";
  EXPECT_EQ(refusal_text(cells, naming),
            "of 1 cell 0 free: free one or wait for another team's job, or d/mine");
}

}  // namespace
}  // namespace muster::answers
