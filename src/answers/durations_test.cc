#include "answers/durations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "answers/normal.h"
#include "base/random.h"
#include "engine/test_world.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::PastRun;
using engine::test::kNow;
using namespace std::chrono_literals;

/// Runs of a user that ended before.
void past(Engine& e, int runs, Duration ran, Duration declared = {}, bool ended = true) {
  PastRun run;
  run.origin = {"ann", "train", "default"};
  run.device_milli = 8000;
  run.ran = ran;
  run.declared = declared;
  run.ended = ended;
  for (int i = 0; i < runs; ++i) e.apply(run);
}

engine::GangView like_them(Engine& e, Duration declared = {}, Duration limit = {}) {
  engine::Pod pod = engine::test::pod("d/train-9", 8);
  pod.origin = std::make_shared<const engine::Origin>("ann", "train", "");
  pod.expected_duration = declared;
  pod.limit = limit;
  e.apply(engine::PodUpsert{pod});
  return *e.gang("d/train-9");
}

std::map<Source, int> sources(const SharedDraws& draws, const engine::GangView& g, Duration age) {
  std::map<Source, int> out;
  for (int d = 0; d < 200; ++d) ++out[draws.draw(g, age, d).source];
  return out;
}

TEST(Check08, ADeadlineCutsAndIsNoEstimate) {
  Engine e({});
  past(e, 20, 10min);
  const engine::GangView g = like_them(e, {}, 24h);
  const SharedDraws draws(e, kNow);
  for (int d = 0; d < 200; ++d) EXPECT_EQ(draws.draw(g, {}, d).lasts, 10min);
  // Older than all that ended: a guess, and never beyond the limit.
  for (int d = 0; d < 200; ++d) {
    const Drawn drawn = draws.draw(g, 20h, d);
    EXPECT_EQ(drawn.source, Source::kGuessed);
    EXPECT_GE(drawn.lasts, 20h);
    EXPECT_LE(drawn.lasts, 24h);
  }
}

TEST(Check09, ADeclarationCountsAsMuchAsThoseBeforeWereTrue) {
  Engine e({});
  const engine::GangView g = like_them(e, 1h);
  EXPECT_EQ(SharedDraws(e, kNow).draw(g, {}, 0).lasts, 1h);  // Nothing else is known.
  past(e, 10, 3h, 1h);
  const SharedDraws draws(e, kNow);
  for (int d = 0; d < 50; ++d) {
    const Drawn drawn = draws.draw(g, 59min, d);
    EXPECT_EQ(drawn.lasts, 3h);
    EXPECT_EQ(drawn.source, Source::kDeclared);
  }
  // Overrun: from that moment on what others took counts.
  EXPECT_EQ(draws.draw(g, 60min, 0).source, Source::kLearned);
  EXPECT_EQ(draws.draw(g, 60min, 0).lasts, 3h);
}

/// Runs that declare an hour are deleted by their owner, or finish, after so long.
void run_and_leave(Engine& e, int runs, Duration ran, bool finish) {
  e.apply(engine::NodeUpsert{engine::test::node("a", 8)});
  Time now = kNow;
  for (int i = 0; i < runs; ++i) {
    engine::Pod pod = engine::test::pod("d/train-1", 8);
    pod.origin = std::make_shared<const engine::Origin>("ann", "train", "");
    pod.expected_duration = 1h;
    e.apply(engine::PodUpsert{pod});
    ASSERT_EQ(e.decide(now).binds.size(), 1U);
    now = now + ran;
    if (finish) {
      pod.finished = pod.succeeded = true;
      e.apply(engine::PodUpsert{pod});
    }
    e.apply(engine::PodRemove{pod.key});
    (void)e.decide(now);
  }
}

TEST(Check09, WhatIsDeletedEarlySaysNothingAboutDeclarations) {
  Engine e({});
  run_and_leave(e, 8, 10s, false);
  const auto lasts = [&] {
    const engine::GangView g = like_them(e, 1h);
    const SharedDraws draws(e, kNow);
    const Drawn first = draws.draw(g, {}, 0);
    for (int d = 1; d < 50; ++d) EXPECT_EQ(draws.draw(g, {}, d).lasts, first.lasts);
    EXPECT_TRUE(first.certain);
    e.apply(engine::PodRemove{"d/train-9"});
    return first.lasts;
  };
  EXPECT_EQ(lasts(), 1h);
  // Five that finish tell how true declarations are, whatever was deleted before they ended.
  run_and_leave(e, 5, 30min, true);
  EXPECT_EQ(lasts(), 30min);
  run_and_leave(e, 20, 10s, false);
  EXPECT_EQ(lasts(), 30min);
}

TEST(Check09, WhatIsDeletedAfterItsTimeTeachesThatItTookLonger) {
  Engine e({});
  run_and_leave(e, 5, 2h, false);
  EXPECT_EQ(SharedDraws(e, kNow).draw(like_them(e, 1h), {}, 0).lasts, 2h);
}

TEST(Check10, SurvivalAsWorkedOutByHand) {
  // Ended after 1, 3 and 4; cut off after 2.
  const Survival s({{1}, {3}, {4}, {2, false}});
  EXPECT_DOUBLE_EQ(s.after(0), 1);
  EXPECT_DOUBLE_EQ(s.after(1), 0.75);
  EXPECT_DOUBLE_EQ(s.after(2), 0.75);
  EXPECT_DOUBLE_EQ(s.after(3), 0.375);
  EXPECT_DOUBLE_EQ(s.after(4), 0);
  EXPECT_EQ(s.quantile(0, 0.2), 1);
  EXPECT_EQ(s.quantile(0, 0.5), 3);
  EXPECT_EQ(s.quantile(1, 0.4), 3);
  EXPECT_EQ(s.quantile(3, 0.1), 4);
}

/// The share that lasts longer than t, by giving each run that was cut off, one after the other, to
/// those that went on, in equal parts.
double redistributed(std::vector<std::pair<std::int64_t, bool>> runs, std::int64_t t) {
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<double> weight(runs.size(), 1.0 / static_cast<double>(runs.size()));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].second || i + 1 == runs.size()) continue;
    for (std::size_t j = i + 1; j < runs.size(); ++j)
      weight[j] += weight[i] / static_cast<double>(runs.size() - i - 1);
    weight[i] = 0;
  }
  double ended = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].second && runs[i].first <= t) ended += weight[i];
  }
  return 1 - ended;
}

TEST(Check10, SurvivalEqualsAnExactEnumeration) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<std::int64_t, bool>> runs;
    std::vector<Survival::Run> all;
    for (std::uint64_t i = 0; i < 1 + random.below(12); ++i) {
      runs.emplace_back(1 + static_cast<std::int64_t>(random.below(20)), random.chance(60));
      all.push_back({runs.back().first, runs.back().second, 0.5});
    }
    const Survival s(all);
    for (std::int64_t t = 0; t <= s.longest(); ++t)
      ASSERT_NEAR(s.after(t), redistributed(runs, t), 1e-9) << "round " << round << ", t " << t;
  }
}

TEST(Check10, WhatCountsTwiceIsAsGoodAsTwo) {
  const Survival twice({{1, true, 2}, {2, false, 2}, {3}, {4, true, 2}});
  const Survival each({{1}, {1}, {2, false}, {2, false}, {3}, {4}, {4}});
  for (std::int64_t t = 0; t <= 4; ++t) EXPECT_DOUBLE_EQ(twice.after(t), each.after(t)) << t;
  EXPECT_EQ(twice.after(4), 0);
}

TEST(Check10, WhatEndedLastCountsMost) {
  Engine e({});
  past(e, 100, 1h);
  past(e, 60, 10min);
  const engine::GangView g = like_them(e);
  const SharedDraws draws(e, kNow);
  int short_ones = 0;
  for (int d = 0; d < 40; ++d) short_ones += draws.draw(g, {}, d).lasts == 10min ? 1 : 0;
  EXPECT_GT(short_ones, 20);  // By number they would be fewer than half.
  EXPECT_LT(short_ones, 30);
}

TEST(Check10, WhatWasCutOffShortensNothing) {
  Engine e({});
  past(e, 10, 2h);
  const engine::GangView g = like_them(e);
  EXPECT_EQ(SharedDraws(e, kNow).draw(g, {}, 3).lasts, 2h);
  past(e, 30, 5min, {}, false);
  const SharedDraws draws(e, kNow);
  for (int d = 0; d < 100; ++d) EXPECT_GE(draws.draw(g, {}, d).lasts, 2h);
}

TEST(Check10, WithAllRunsCutOffNothingIsLearned) {
  Engine e({});
  past(e, 100, 1h, {}, false);
  const engine::GangView g = like_them(e);
  EXPECT_EQ(sources(SharedDraws(e, kNow), g, {}), (std::map<Source, int>{{Source::kGuessed, 200}}));
}

TEST(Check10, EveryEndTeachesAndEvictionsCutOff) {
  engine::Config config;
  config.preempt = false;
  Engine e(config);
  e.apply(engine::NodeUpsert{engine::test::node("a", 8)});
  Time now = kNow;
  for (int i = 0; i < 6; ++i) {
    engine::Pod pod = engine::test::pod(fmt::format("d/train-{}", i), 8);
    pod.origin = std::make_shared<const engine::Origin>("ann", "train", "");
    e.apply(engine::PodUpsert{pod});
    ASSERT_EQ(e.decide(now).binds.size(), 1U);
    now = now + 1h;
    if (i % 3 == 0) {  // It fails,
      pod.finished = true;
      e.apply(engine::PodUpsert{pod});
    } else if (i % 3 == 1) {  // succeeds,
      pod.finished = pod.succeeded = true;
      e.apply(engine::PodUpsert{pod});
    }  // or is deleted.
    e.apply(engine::PodRemove{pod.key});
    (void)e.decide(now);
  }
  const engine::GangView g = like_them(e);
  const std::uint32_t level = e.history().level_for(g.kind, 0);
  ASSERT_NE(level, engine::History::kNone);
  const auto ended = e.history().ended(level);
  ASSERT_EQ(ended.size(), 6U);
  for (const std::int64_t us : ended) EXPECT_EQ(Duration(us), 1h);
}

TEST(Check10, ANodeThatIsLostCutsOff) {
  Engine e({});
  e.apply(engine::NodeUpsert{engine::test::node("a", 8)});
  e.apply(engine::PodUpsert{engine::test::running(engine::test::pod("d/x", 8), "a")});
  (void)e.decide(kNow);
  e.apply(engine::NodeRemove{"a"});
  e.apply(engine::PodRemove{"d/x"});
  (void)e.decide(kNow + 1h);
  const engine::GangView g = like_them(e);
  const auto levels = e.history().levels(g.kind);
  ASSERT_NE(levels.back(), engine::History::kNone);
  EXPECT_TRUE(e.history().ended(levels.back()).empty());
  EXPECT_EQ(e.history().latest(levels.back()), (std::vector<std::int64_t>{-Duration(1h).count()}));
}

TEST(Normal, DrawsAreNormal) {
  double sum = 0, squares = 0;
  const int n = 100'000;
  for (int i = 0; i < n; ++i) {
    const double z = normal_from(bits_of(7, i, 99)) / 65536.0;
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.03);
  for (const double z : {-2.5, -1.0, 0.0, 0.3, 1.96}) {
    EXPECT_NEAR(share_below(static_cast<std::int32_t>(z * 65536)) / 4294967296.0,
                0.5 * std::erfc(-z / std::sqrt(2.0)),
                1e-4);
  }
}

TEST(Normal, DrawsOfOneSetFallIntoEqualParts) {
  for (const std::int32_t draws : {8, 20, 40}) {
    std::set<std::uint64_t> parts;
    for (std::int32_t d = 0; d < draws; ++d)
      parts.insert(static_cast<std::uint64_t>(even_bits_of(7, d, draws, 99)) *
                       static_cast<std::uint64_t>(draws) >>
                   32);
    EXPECT_EQ(parts.size(), static_cast<std::size_t>(draws));
  }
  EXPECT_EQ(even_bits_of(7, 50, 40, 99), bits_of(7, 50, 99));
}

TEST(Stem, IsWhatRepeatedNamesHaveInCommon) {
  EXPECT_EQ(engine::stem_of("resnet50-lr0.1-20261116-3f9c2"), "resnet-lr");
  EXPECT_EQ(engine::stem_of("train-1"), engine::stem_of("train-2"));
  EXPECT_EQ(engine::stem_of("bert"), "bert");
  EXPECT_EQ(engine::stem_of("2026-11-16"), "");
}

}  // namespace
}  // namespace muster::answers
