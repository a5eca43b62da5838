#include "answers/accuracy.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(accuracy.calibration().side(Basis::kLearned, 1).judged, 2);
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
  const auto find = [&](const std::string& uid) {
    const auto found = records.find(uid);
    return found == records.end() ? std::nullopt : std::optional<Record>(found->second);
  };
  Record waits;
  waits.said = {foretold(kNow, 1h, 2h, 3h)};
  records["a"] = waits;
  accuracy.said("a");
  accuracy.said("gone");
  accuracy.judge_started(find);
  EXPECT_EQ(accuracy.judged(), 0);
  records["a"] = started(waits.said, kNow + 4h);
  accuracy.judge_started(find);
  accuracy.judge_started(find);
  EXPECT_EQ(accuracy.judged(), 1);
  EXPECT_EQ(accuracy.holds(), 0);
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

}  // namespace
}  // namespace muster::answers
