#include "answers/score.h"

#include <gtest/gtest.h>

#include "answers/durations.h"
#include "answers/forecast.h"
#include "base/random.h"
#include "engine/test_world.h"
#include "hived/config.h"
#include "sim/trace_world.h"

namespace muster::answers {
namespace {

using namespace std::chrono_literals;

/// Two days of jobs for four nodes, more than they can take.
std::vector<sim::Job> busy_trace(std::uint64_t seed) {
  Random random(seed);
  std::vector<sim::Job> jobs;
  Duration at{};
  for (int i = 0; i < 600; ++i) {
    sim::Job job;
    job.id = i;
    job.name = fmt::format("job-{}", i);
    job.queue = fmt::format("team-{}", i % 3);
    job.submit = at;
    job.duration = std::chrono::seconds(300 + random.below(i % 7 == 0 ? 40'000 : 4'000));
    job.gpus = 1LL << random.below(4);
    job.tasks = i % 40 == 0 ? 2 : 1;
    if (job.tasks == 2) job.gpus = 8;
    jobs.push_back(job);
    at += std::chrono::seconds(random.below(500));
  }
  return jobs;
}

TEST(Check04, TrueDurationsAndArrivalsAreExactAtEveryMoment) {
  const auto jobs = busy_trace(1);
  const auto nodes = *sim::parse_nodes("4x8");
  for (const Told told : {Told::kAll, Told::kNone}) {
    ScoreSettings settings;
    settings.told = told;
    settings.draws = 8;
    const auto policy = *sim::named_policy(told == Told::kAll ? "backfill" : "backfill-unknown");
    const Score s = score(jobs, nodes, policy, settings, {});
    ASSERT_FALSE(s.sets[1].rows.empty());
    EXPECT_GT(s.sets[1].rows.front().moments, 10);
    EXPECT_EQ(s.worst_harness, 0);
  }
}

/// bench/forecast/run holds the figures of the public trace against what they must be; here, that each
/// is there, and in the order that makes the forecasts worth having.
TEST(Check05, TheTableHasAllRowsAndSharedDrawsAreBest) {
  const auto nodes = *sim::parse_nodes("4x8");
  for (const Told told : {Told::kAll, Told::kNone}) {
    ScoreSettings settings;
    settings.told = told;
    settings.draws = 20;
    const auto policy = *sim::named_policy(told == Told::kAll ? "backfill" : "backfill-unknown");
    const Score s = score(busy_trace(5), nodes, policy, settings, {});
    const std::string table = score_table(s);
    ASSERT_EQ(s.sets.size(), 4U);
    const auto row = [&](std::string_view name) {
      for (const Figures& f : s.sets[1].rows) {
        if (f.name == name) return f;
      }
      ADD_FAILURE() << "no row of " << name << " in\n" << table;
      return Figures{};
    };
    for (const std::string_view name : {kLastWait,
                                        kPastWaits,
                                        kOneEstimate,
                                        kOneMedian,
                                        kIndependent,
                                        kCalibrated,
                                        kShared,
                                        kTrue}) {
      EXPECT_GT(row(name).moments, 10) << name;
      EXPECT_NE(table.find(name), std::string::npos) << name;
    }
    const Figures shared = row(kShared);
    EXPECT_LT(shared.loss, row(kPastWaits).loss) << table;
    EXPECT_LT(shared.loss, row(kLastWait).loss) << table;
    if (told == Told::kNone) {
      EXPECT_LT(shared.loss, row(kOneMedian).loss) << table;
      EXPECT_LT(row(kTrue).loss, shared.loss) << table;
    } else {
      EXPECT_NEAR(shared.loss, row(kTrue).loss, 0.005) << "what is declared is true\n" << table;
    }
  }
}

TEST(Check04, WhatComesLaterIsNotLookedAt) {
  const auto nodes = *sim::parse_nodes("4x8");
  const auto policy = *sim::named_policy("backfill-unknown");
  const Duration then = 24h;
  const auto said = [&](const std::vector<sim::Job>& jobs) {
    sim::TraceWorld world(jobs, nodes, policy, [](std::size_t) { return false; });
    world.play(sim::TraceWorld::kBegin + then);
    const Time now = world.now();
    Ask ask;
    ask.draws = 10;
    std::string out = fmt::format("{}\n", now.us);
    for (const Forecast& f :
         forecast_all(world.engine(), now, SharedDraws(world.engine(), now), ask).jobs)
      out += fmt::format("{} {}\n", f.job, f.start.range.p50 ? f.start.range.p50->us : -1);
    return out;
  };
  const auto jobs = busy_trace(2);
  auto poisoned = jobs;
  for (sim::Job& job : poisoned) {
    if (job.submit <= then) continue;
    job.duration = 1000h;
    job.priority = 100;
  }
  const std::string before = said(jobs);
  EXPECT_GT(std::count(before.begin(), before.end(), '\n'), 5);
  EXPECT_EQ(before, said(poisoned));
}

TEST(Check33, JobsOfVirtualClustersAreForetoldWithTheirCells) {
  const auto config = hived::parse_config(R"(
physicalCluster:
  cellTypes: {NODE: {childCellType: GPU, childCellNumber: 8, isNodeLevel: true}}
  physicalCells: [{cellType: NODE, cellAddress: n0}, {cellType: NODE, cellAddress: n1}]
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
  b: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
)");
  ASSERT_TRUE(config);
  engine::Engine e({});
  const Time now = engine::test::kNow;
  ASSERT_TRUE(e.configure_cells(config->cells, now));
  for (const char* name : {"n0", "n1"}) e.apply(engine::NodeUpsert{engine::test::node(name, 8)});
  for (const char* name : {"a", "b"}) e.apply(engine::QueueUpsert{{.name = name}});
  const auto submit = [&](const std::string& key, const char* vc, Duration lasts) {
    engine::Pod pod = engine::test::in_queue(engine::test::pod(key, 8), vc);
    pod.expected_duration = lasts;
    e.apply(engine::PodUpsert{pod});
    return e.decide(now).binds.size();
  };
  ASSERT_EQ(submit("d/first", "a", 2h), 1U);
  ASSERT_EQ(submit("d/other", "b", 1h), 1U);
  ASSERT_EQ(submit("d/second", "a", 1h), 0U);
  Ask ask;
  ask.jobs = {"d/second"};
  const Forecast f = forecast(e, now, SharedDraws(e, now), ask);
  if (f.start.basis == Basis::kNone) {
    EXPECT_FALSE(f.start.because.empty());
  } else {
    // Its guarantee is one node, which is free in two hours; b's, in one, is not its own.
    EXPECT_EQ(f.start.range.p50, now + 2h);
  }
}

}  // namespace
}  // namespace muster::answers
