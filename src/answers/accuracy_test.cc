#include "answers/accuracy.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.h"

namespace muster::answers {
namespace {

using namespace std::chrono_literals;

constexpr Time kNow{1'000'000'000'000};

/// Said at `at`: so long from then.
Foretold foretold(Time at, Duration p10, Duration p50, Duration p90) {
  Foretold said;
  said.at = at;
  said.basis = "learned";
  said.p10 = at + p10;
  said.p50 = at + p50;
  said.p90 = at + p90;
  return said;
}

Record started(std::vector<Foretold> said, Time at) {
  Record record;
  record.uid = "u";
  record.submitted = kNow;
  record.said = std::move(said);
  answers::Run run;
  run.start = at;
  record.runs.push_back(run);
  return record;
}

TEST(Accuracy, TheFirstCountsAndThenOneEveryTwoHours) {
  Accuracy accuracy;
  accuracy.judge(started({foretold(kNow, 1h, 2h, 3h),
                          foretold(kNow + 20min, 4h, 5h, 6h),
                          foretold(kNow + 2h, 30min, 2h, 3h)},
                         kNow + 2h + 30min));
  EXPECT_EQ(accuracy.judged(), 2) << "what moved in between is kept and not judged";
  EXPECT_EQ(accuracy.holds(), 1);
  const Quantiles two_hours{kNow + 1h, kNow + 2h, kNow + 3h};
  EXPECT_EQ(accuracy.calibration().side({Basis::kLearned, kNow, 0h, two_hours}).judged, 1);
  EXPECT_EQ(accuracy.calibration().side({Basis::kLearned, kNow, 2h, two_hours}).judged, 1)
      << "what is said of one that has waited for long is another matter";
}

TEST(Accuracy, WhatRestsOnNothingTeachesNothing) {
  Accuracy accuracy;
  Foretold none;
  none.at = kNow;
  none.basis = "none";
  accuracy.judge(started({none}, kNow + 1h));
  EXPECT_EQ(accuracy.judged(), 0);
}

TEST(Accuracy, JobsAreJudgedOnceWhenTheyStart) {
  Accuracy accuracy;
  std::map<std::string, Record> records;
  int asked = 0;
  const auto find = [&](const std::string& uid) {
    ++asked;
    const auto found = records.find(uid);
    return found == records.end() ? std::nullopt : std::optional<Record>(found->second);
  };
  Record waits;
  waits.said = {foretold(kNow, 1h, 2h, 3h)};
  records["a"] = waits;
  accuracy.said("a");
  accuracy.said("gone");
  accuracy.turned("gone");
  accuracy.turned("nobody spoke of it");
  accuracy.judge_started(find);
  EXPECT_EQ(accuracy.judged(), 0);
  EXPECT_EQ(asked, 1) << "those that wait cost nothing";
  records["a"] = started(waits.said, kNow + 4h);
  accuracy.turned("a");
  accuracy.judge_started(find);
  accuracy.turned("a");
  accuracy.judge_started(find);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(accuracy.judged(), 1);
  EXPECT_EQ(accuracy.holds(), 0);
  EXPECT_EQ(accuracy.error(), 0.5) << "four hours where two were said";
}

/// Whatever is told is wrong in the same way; a few hundred starts later 8 in 10 ranges hold.
TEST(Accuracy, RangesThatAreTooNarrowAreWidenedUntilTheyHold) {
  Accuracy accuracy;
  Random random(5);
  int held = 0, last = 0;
  for (int i = 0; i < 600; ++i) {
    Forecasts said;
    said.jobs.resize(1);
    said.jobs[0].start.basis = Basis::kLearned;
    said.jobs[0].since = kNow;
    said.jobs[0].start.range = {kNow + 115min, kNow + 2h, kNow + 125min};
    accuracy.widen(said, kNow);
    const Quantiles& range = said.jobs[0].start.range;
    EXPECT_EQ(range.p50, kNow + 2h);
    const Time begins = kNow + std::chrono::minutes(30 + random.below(300));
    if (i >= 400) {
      ++last;
      held += *range.p10 <= begins && begins <= *range.p90 ? 1 : 0;
    }
    accuracy.judge(
        started({foretold(kNow, *range.p10 - kNow, *range.p50 - kNow, *range.p90 - kNow)}, begins));
  }
  EXPECT_GE(held, last * 70 / 100);
  EXPECT_LE(held, last * 90 / 100);
}

/// Starts as they come, and what is said of them before: a range that is far too sure of itself.
class Overconfident {
 public:
  /// The share of so many starts that lay inside what was said; each is judged.
  double play(int starts, double lasts) {
    int held = 0;
    for (int i = 0; i < starts; ++i) {
      Forecasts said;
      said.jobs.resize(1);
      said.jobs[0].since = kNow;
      said.jobs[0].start.basis = Basis::kLearned;
      said.jobs[0].start.range = {kNow + 105min, kNow + 2h, kNow + 137min};
      accuracy_.widen(said, kNow);
      const Quantiles& range = said.jobs[0].start.range;
      // A sum of four even draws is near enough to a bell: the wait is 2 h times e to the power of
      // it.
      double bell = -2;
      for (int k = 0; k < 4; ++k) bell += static_cast<double>(random_.below(1'000'000)) / 1e6;
      const Time begins =
          kNow + Duration(static_cast<std::int64_t>(7.2e9 * lasts * std::exp(1.2 * bell)));
      held += *range.p10 <= begins && begins <= *range.p90 ? 1 : 0;
      accuracy_.judge(started(
          {foretold(kNow, *range.p10 - kNow, *range.p50 - kNow, *range.p90 - kNow)}, begins));
    }
    return static_cast<double>(held) / starts;
  }

 private:
  Accuracy accuracy_;
  Random random_{6};
};

TEST(Check06, CalibrationAloneMakesRangesOfIndependentDrawsHold) {
  Overconfident world;
  EXPECT_LT(world.play(20, 1), 0.45) << "nothing is learned from so few";
  (void)world.play(200, 1);
  const double holds = world.play(400, 1);
  EXPECT_GE(holds, 0.72);
  EXPECT_LE(holds, 0.88);
}

TEST(Check32, TheReportCountsAsTheScoreDoes) {
  Random random(9);
  const auto seconds = [&](std::uint64_t most) { return std::chrono::seconds(random.below(most)); };
  Tally scored;
  std::map<std::string, Judged> reported;
  for (int i = 0; i < 300; ++i) {
    const Time at = kNow + seconds(100'000);
    const Duration p10 = seconds(5000), p50 = p10 + seconds(5000), p90 = p50 + seconds(50'000);
    const Duration waited = seconds(12'000);
    const auto in_s = [](Duration d) { return static_cast<double>(d.count()) / 1e6; };
    scored.add({in_s(p10), in_s(p50), in_s(p90)}, in_s(waited));
    judge_by_basis(started({foretold(at, p10, p50, p90)}, at + waited), reported);
  }
  ASSERT_EQ(reported.size(), 1U);
  const Figures a = scored.figures(), b = reported["learned"].tally.figures();
  EXPECT_GT(a.moments, 250);
  EXPECT_EQ(a.moments, b.moments);
  EXPECT_EQ(a.err, b.err);
  EXPECT_EQ(a.err75, b.err75);
  EXPECT_EQ(a.x2, b.x2);
  EXPECT_EQ(a.holds, b.holds);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.loss, b.loss);
}

TEST(Check32, FiguresAsWorkedOutByHand) {
  Tally tally;
  tally.add({60, 120, 240}, 240);      // off by half, within a factor of 2, just inside
  tally.add({600, 900, 1200}, 300);    // off by 2, not within a factor of 2, outside
  tally.add({60, 60, 60}, 59);         // not counted
  tally.add({540, 1140, 2340}, 1140);  // exact
  const Figures f = tally.figures("x");
  EXPECT_EQ(f.name, "x");
  EXPECT_EQ(f.moments, 3);
  EXPECT_DOUBLE_EQ(f.err, 0.5);
  EXPECT_DOUBLE_EQ(f.err75, 2);
  EXPECT_DOUBLE_EQ(f.x2, 2.0 / 3);
  EXPECT_DOUBLE_EQ(f.holds, 2.0 / 3);
  EXPECT_DOUBLE_EQ(f.width, 2.5);
  // By quantile: 0.1 of what lies above p10, half of what lies beside p50, 0.1 of what lies below
  // p90.
  const double first = (0.1 * std::log(300 / 120.) + 0.5 * std::log(300 / 180.)) / 3;
  const double second =
      (0.9 * std::log(660 / 360.) + 0.5 * std::log(960 / 360.) + 0.1 * std::log(1260 / 360.)) / 3;
  const double third = (0.1 * std::log(2.) + 0.1 * std::log(2.)) / 3;
  EXPECT_NEAR(f.loss, (first + second + third) / 3, 1e-12);
}

TEST(Check32, AfterADriftRangesHoldAgainWithinTwoHundredStarts) {
  Overconfident world;
  (void)world.play(400, 1);
  EXPECT_LT(world.play(40, 2.5), 0.7) << "durations have more than doubled overnight";
  (void)world.play(160, 2.5);
  EXPECT_GT(world.play(200, 2.5), 0.7);
}

}  // namespace
}  // namespace muster::answers
