#include "answers/quantiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.h"

namespace muster::answers {
namespace {

using namespace std::chrono_literals;

const Time kBegin = Time::from_seconds(1'000'000);

std::vector<Time> after(const std::vector<std::int64_t>& seconds) {
  std::vector<Time> out;
  for (const std::int64_t s : seconds) out.push_back(kBegin + std::chrono::seconds(s));
  return out;
}

TEST(Quantiles, TheMiddleOfFiveAsWorkedOutByHand) {
  // (1 * 0 + 4 * 16 + 6 * 32 + 4 * 48 + 1 * 160) / 16, in any order.
  const Quantiles q = quantiles(after({160, 0, 48, 32, 16}), 5);
  EXPECT_EQ(q.p50, kBegin + 38s);
  EXPECT_FALSE(q.p10);  // Five courses give no range.
  EXPECT_FALSE(q.p90);
}

TEST(Quantiles, WhatIsTheSameInAllCoursesIsSaidToTheMicrosecond) {
  for (const std::size_t draws : {1, 2, 8, 20, 40, 200, 300}) {
    const Time at = kBegin + Duration(1'234'567);
    const Quantiles q = quantiles(std::vector<Time>(draws, at), draws, true);
    EXPECT_EQ(q, (Quantiles{at, at, at})) << draws;
  }
}

TEST(Quantiles, OfEvenlySpreadDrawsAreWhereTheyShouldBe) {
  std::vector<std::int64_t> seconds;
  for (int i = 0; i < 41; ++i) seconds.push_back(i * 100);
  const Quantiles q = quantiles(after(seconds), 41);
  // Of a straight line the mean of the binomial distribution: 40 p draws lie below. Rounded down.
  EXPECT_NEAR(static_cast<double>((*q.p10 - kBegin).count()), 400e6, 2);
  EXPECT_NEAR(static_cast<double>((*q.p50 - kBegin).count()), 2000e6, 2);
  EXPECT_NEAR(static_cast<double>((*q.p90 - kBegin).count()), 3600e6, 2);
}

TEST(Quantiles, StayInOrderAndWithinTheDraws) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> seconds;
    const std::size_t draws = 8 + random.below(300);
    for (std::size_t i = 0; i < draws; ++i)
      seconds.push_back(static_cast<std::int64_t>(random.below(1ULL << random.below(24))));
    const Quantiles q = quantiles(after(seconds), draws);
    const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
    EXPECT_LE(kBegin + std::chrono::seconds(*least), q.p10) << round;
    EXPECT_LE(q.p10, q.p50) << round;
    EXPECT_LE(q.p50, q.p90) << round;
    EXPECT_LE(q.p90, kBegin + std::chrono::seconds(*most)) << round;
  }
}

TEST(Quantiles, WhatLiesBeyondTheHorizonIsAbsent) {
  // Of ten draws six are there: the middle lies among them, the upper end does not.
  const Quantiles q = quantiles(after({1, 2, 3, 4, 5, 6}), 10);
  EXPECT_TRUE(q.p10);
  EXPECT_EQ(q.p50, kBegin + 5s + 500ms);
  EXPECT_FALSE(q.p90);
  EXPECT_EQ(quantiles({}, 10), Quantiles{});
  EXPECT_EQ(quantiles({}, 0), Quantiles{});
}

/// Spread of what the middle is said to be, over many sets of twenty draws.
double spread_of_middles(const std::function<double(std::vector<std::int64_t>)>& middle) {
  Random random(9);
  double sum = 0, squares = 0;
  const int sets = 2000;
  for (int set = 0; set < sets; ++set) {
    std::vector<std::int64_t> seconds(20);
    for (auto& s : seconds) s = static_cast<std::int64_t>(random.below(10'000));
    const double m = middle(seconds);
    sum += m;
    squares += m * m;
  }
  return std::sqrt(squares / sets - sum / sets * sum / sets);
}

TEST(Quantiles, DependLessOnChanceThanASingleDrawDoes) {
  const double smooth = spread_of_middles([](const std::vector<std::int64_t>& seconds) {
    return static_cast<double>((*quantiles(after(seconds), 20).p50 - kBegin).count()) / 1e6;
  });
  const double single = spread_of_middles([](std::vector<std::int64_t> seconds) {
    std::nth_element(seconds.begin(), seconds.begin() + 10, seconds.end());
    return static_cast<double>(seconds[10]);
  });
  EXPECT_LT(smooth, 0.95 * single);
}

}  // namespace
}  // namespace muster::answers
