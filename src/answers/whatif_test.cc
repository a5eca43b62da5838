#include "answers/whatif.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "answers/durations.h"
#include "base/random.h"
#include "engine/test_world.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::Event;
using engine::test::kNow;
using engine::test::node;
using engine::test::pod;
using namespace std::chrono_literals;

/// Three nodes and fourteen jobs that all say how long they last; three run.
Engine busy_world(std::uint64_t seed) {
  engine::Config config;
  config.preempt = false;
  Engine e(config);
  e.apply(engine::QueueUpsert{{.name = "default"}});
  e.apply(engine::QueueUpsert{{.name = "ads", .capability = {{"nvidia.com/gpu", 8}}}});
  Random random(seed);
  for (int n = 0; n < 3; ++n) e.apply(engine::NodeUpsert{node(fmt::format("n{}", n), 8)});
  for (int i = 0; i < 14; ++i) {
    engine::Pod p = pod(fmt::format("d/job-{}", i), 4LL << random.below(2));
    p.created = kNow + std::chrono::seconds(i);
    p.queue = i % 3 == 0 ? "ads" : "default";
    p.expected_duration = std::chrono::minutes(20 + random.below(200));
    e.apply(engine::PodUpsert{p});
  }
  (void)e.decide(kNow + 1min);
  return e;
}

constexpr Duration kGrace = 30s;

/// Whoever is on the node is told to go and comes back as a pod that was never anywhere: those that
/// do, as they will be then.
std::vector<engine::Pod> drain(Engine& e, const std::string& name, Time now) {
  engine::Node closed = node(name, 8);
  closed.unschedulable = true;
  e.apply(engine::NodeUpsert{closed});
  std::vector<engine::Pod> back;
  const std::vector<std::string> there = e.node(name)->pods;
  for (const std::string& key : there) {
    engine::Pod going = *e.pod(key);
    engine::Pod again = going;
    going.terminating = true;
    going.terminating_until = now + kGrace;
    e.apply(engine::PodUpsert{going});
    again.uid += "-again";
    again.node.clear();
    again.device_indexes.clear();
    again.started = Time{};
    back.push_back(std::move(again));
  }
  return back;
}

/// The cluster itself, with a clock of its own: no part of what is tested but the engine.
std::map<std::string, Time> really(Engine e,
                                   Time now,
                                   const std::vector<Event>& events,
                                   const std::string& drained = "") {
  std::map<std::string, Time> starts, ends;
  std::vector<engine::Pod> back;
  const Time left = now + kGrace;
  for (const engine::GangView& g : e.gangs()) {
    if (g.running) ends[g.key] = g.started + g.declared;
  }
  for (const Event& event : events) e.apply(event);
  for (const Event& event : events) {
    if (const auto* gone = std::get_if<engine::PodRemove>(&event)) ends.erase(gone->key);
  }
  if (!drained.empty()) back = drain(e, drained, now);
  for (const engine::Pod& gone : back) ends.erase(gone.key);
  for (int round = 0; round < 1000; ++round) {
    const engine::Plan plan = e.decide(now);
    for (const engine::Bind& bind : plan.binds) {
      starts[bind.pod] = now;
      ends[bind.pod] = now + e.pod(bind.pod)->expected_duration;
    }
    if (ends.empty() && back.empty()) break;
    Time next =
        plan.wake && *plan.wake > now ? *plan.wake : Time{std::numeric_limits<std::int64_t>::max()};
    for (const auto& [key, at] : ends) next = std::min(next, at);
    if (!back.empty()) next = std::min(next, left);
    now = next;
    for (const engine::Pod& again : now >= left ? std::exchange(back, {}) : decltype(back){}) {
      e.apply(engine::PodRemove{again.key});
      e.apply(engine::PodUpsert{again});
    }
    for (auto it = ends.begin(); it != ends.end();) {
      if (it->second > now) {
        ++it;
        continue;
      }
      e.apply(engine::PodRemove{it->first});
      it = ends.erase(it);
    }
  }
  return starts;
}

Ask all() {
  Ask ask;
  ask.horizon = 24h * 30;
  ask.draws = 10;
  return ask;
}

/// What it says after the change, of every job it shows, is what then happens.
void holds_for(ChangeKind kind,
               const std::vector<Event>& events,
               const std::vector<std::string>& names) {
  int shown = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Engine e = busy_world(seed);
    const Time now = kNow + 10min;
    Change change;
    change.kind = kind;
    change.names = names;
    if (kind != ChangeKind::kStop) change.events = events;
    const std::uint64_t before = e.digest();
    const WhatIf answer = what_if(e, now, SharedDraws(e, now), {change}, all());
    EXPECT_EQ(e.digest(), before);
    const auto was = really(e.clone(), now, {});
    const auto is = really(e.clone(), now, events);
    for (const Moved& moved : answer.jobs) {
      if (!moved.after.p50 || !is.contains(moved.job)) continue;
      ++shown;
      EXPECT_EQ(*moved.before.p50, was.at(moved.job)) << "seed " << seed << ", " << moved.job;
      EXPECT_EQ(*moved.after.p50, is.at(moved.job)) << "seed " << seed << ", " << moved.job;
    }
  }
  EXPECT_GT(shown, 40);
}

TEST(Check22, WhatIsSubmittedWithoutADurationIsPlayedInEveryCourse) {
  Engine e({});
  e.apply(engine::QueueUpsert{{.name = "default"}});
  e.apply(engine::NodeUpsert{node("a", 8)});
  for (int i = 1; i <= 20; ++i) {
    engine::PastRun run;
    run.origin = {"", "", "default"};
    run.device_milli = 8000;
    run.ran = i * 10min;
    e.apply(run);
  }
  for (const char* name : {"d/first", "d/second"}) {
    engine::Pod p = pod(name, 8);
    p.expected_duration = 1h;
    e.apply(engine::PodUpsert{p});
    (void)e.decide(kNow);
  }
  Change change;
  change.kind = ChangeKind::kSubmit;
  engine::Pod ahead = pod("d/ahead", 8, 100);
  ahead.preemption_policy = engine::PreemptionPolicy::kNever;
  change.events = {engine::PodUpsert{ahead}};
  Ask ask = all();
  const WhatIf answer = what_if(e, kNow, SharedDraws(e, kNow), {change}, ask);
  EXPECT_EQ(answer.draws, ask.draws);
  ASSERT_EQ(answer.jobs.size(), 1U);
  const Moved& moved = answer.jobs[0];
  EXPECT_EQ(moved.before.p10, kNow + 1h);
  EXPECT_EQ(moved.before.p90, kNow + 1h);
  ASSERT_TRUE(moved.after.p10 && moved.after.p90);
  EXPECT_LT(*moved.after.p10 + 30min, *moved.after.p90)
      << "how long the new one lasts is not known";
}

TEST(Check20, MoreNodesDoWhatWasSaid) {
  holds_for(ChangeKind::kAddNodes, {engine::NodeUpsert{node("more", 8)}}, {});
}

TEST(Check20, AStoppedJobDoesWhatWasSaid) {
  holds_for(ChangeKind::kStop, {engine::PodRemove{"d/job-1"}}, {"d/job-1"});
}

TEST(Check20, AQueuesNumbersDoWhatWasSaid) {
  holds_for(ChangeKind::kQueue,
            {engine::QueueUpsert{{.name = "ads", .capability = {{"nvidia.com/gpu", 24}}}}},
            {});
}

TEST(Check20, ADrainDoesWhatWasSaid) {
  int shown = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Engine e = busy_world(seed);
    const Time now = kNow + 10min;
    Change change;
    change.kind = ChangeKind::kDrain;
    change.names = {"n1"};
    const WhatIf answer = what_if(e, now, SharedDraws(e, now), {change}, all());
    const auto is = really(e.clone(), now, {}, "n1");
    for (const Moved& moved : answer.jobs) {
      if (moved.evicted || !moved.after.p50) continue;
      ++shown;
      ASSERT_TRUE(is.contains(moved.job)) << "seed " << seed << ", " << moved.job;
      EXPECT_EQ(*moved.after.p50, is.at(moved.job)) << "seed " << seed << ", " << moved.job;
    }
  }
  EXPECT_GT(shown, 40);
}

TEST(Check20, APolicyDoesWhatWasSaid) {
  engine::Config config;
  config.preempt = false;
  config.reservations = 0;
  holds_for(ChangeKind::kPolicy, {engine::ConfigChange{config}}, {});
}

TEST(WhatIf, NoChangeMakesNoDifference) {
  const Engine e = busy_world(3);
  const Time now = kNow + 10min;
  const WhatIf answer = what_if(e, now, SharedDraws(e, now), {}, all());
  EXPECT_TRUE(answer.jobs.empty());
  EXPECT_EQ(answer.summary, "No job starts much earlier or later, and none is evicted.");
}

TEST(WhatIf, ADrainSendsAwayExactlyWhatIsThere) {
  const Engine e = busy_world(3);
  const Time now = kNow + 10min;
  Change drain;
  drain.kind = ChangeKind::kDrain;
  drain.names = {"n0"};
  const WhatIf answer = what_if(e, now, SharedDraws(e, now), {drain}, all());
  std::vector<std::string> evicted;
  for (const Moved& moved : answer.jobs) {
    if (moved.evicted) evicted.push_back(moved.job);
  }
  std::vector<std::string> there = e.node("n0")->pods;
  std::sort(there.begin(), there.end());
  std::sort(evicted.begin(), evicted.end());
  EXPECT_EQ(evicted, there);
}

}  // namespace
}  // namespace muster::answers
