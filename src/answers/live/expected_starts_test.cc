#include "answers/live/expected_starts.h"

#include <gtest/gtest.h>

#include "answers/live/sayings.h"
#include "net/loop/loop.h"

namespace muster::answers {
namespace {

using namespace std::chrono_literals;

const Time kThen = Time::from_seconds(1'763'290'000);  // 2025-11-16T10:46:40Z

Forecast told(const std::string& gang, Time asked, Duration p50, Basis basis = Basis::kLearned) {
  Forecast forecast;
  forecast.job = gang;
  forecast.asked = asked;
  forecast.state = State::kWaits;
  forecast.start.basis = basis;
  forecast.start.range = {asked + p50 / 2, asked + p50, asked + p50 * 2};
  return forecast;
}

TEST(ExpectedStarts, TheTextHasTheMiddleTheRangeAndWhatItRestsOn) {
  const Forecast forecast = told("volcano:d/a", kThen, 20min);
  EXPECT_EQ(expected_start_text(forecast.start), "2025-11-16T11:06Z 10:56/11:26 learned");
  EXPECT_FALSE(expected_start_text(told("volcano:d/a", kThen, 20min, Basis::kNone).start));
}

/// Writes of one outlook of so many gangs, for so long.
struct Written {
  std::map<std::string, std::optional<std::string>> values;
  std::int64_t writes = 0;
};

Task<void> play(net::Loop& loop,
                ExpectedStarts& starts,
                std::vector<OutlookPtr> outlooks,
                Duration time) {
  for (OutlookPtr& outlook : outlooks) starts.note(std::move(outlook));
  co_await loop.sleep(time);
  co_await starts.stop();
}

ExpectedStarts::Options into(Written& written) {
  ExpectedStarts::Options options;
  options.write = [&written](std::string gang, std::optional<std::string> value) -> Task<void> {
    ++written.writes;
    written.values[gang] = std::move(value);
    co_return;
  };
  return options;
}

OutlookPtr outlook_of(std::vector<Forecast> forecasts) {
  auto out = std::make_shared<Outlook>();
  out->forecasts.jobs = std::move(forecasts);
  return out;
}

TEST(Check27, AtMostTwentyASecondAndNoneWhileBindingsWait) {
  net::Loop loop;
  Written written, held;
  std::vector<Forecast> many;
  for (int i = 0; i < 5000; ++i)
    many.push_back(told(fmt::format("volcano:d/g{}", i), loop.now(), 1h));
  ExpectedStarts quick(loop, into(written));
  loop.run_until_done(play(loop, quick, {outlook_of(many)}, 1s));
  EXPECT_GE(written.writes, 1);
  EXPECT_LE(written.writes, 21);
  ExpectedStarts::Options options = into(held);
  options.must_wait = [] { return true; };
  ExpectedStarts waiting(loop, std::move(options));
  loop.run_until_done(play(loop, waiting, {outlook_of(many)}, 300ms));
  EXPECT_EQ(held.writes, 0);
}

/// At no moment of five seconds more than twenty within any second, and none between the first
/// binding and the last.
TEST(Check27, NoSecondHasMoreThanTwentyAndBindingsGoFirst) {
  net::Loop loop;
  std::vector<Duration> at;
  const auto written = loop.make_signal();
  bool binding = false;
  int while_binding = 0;
  ExpectedStarts::Options options;
  options.write = [&](std::string, std::optional<std::string>) -> Task<void> {
    at.push_back(loop.monotonic());
    while_binding += binding ? 1 : 0;
    written->notify();
    co_return;
  };
  options.must_wait = [&] { return binding; };
  ExpectedStarts starts(loop, std::move(options));
  std::vector<Forecast> many;
  for (int i = 0; i < 5000; ++i)
    many.push_back(told(fmt::format("volcano:d/g{}", i), loop.now(), 1h));
  const auto play_on = [&]() -> Task<void> {
    starts.note(outlook_of(many));
    while (at.size() < 22) co_await written->wait(1s);
    binding = true;
    const std::size_t before = at.size();
    co_await loop.sleep(600ms);
    EXPECT_EQ(at.size(), before);
    binding = false;
    while (at.size() < before + 5) co_await written->wait(1s);
    co_await starts.stop();
  };
  loop.run_until_done(play_on());
  EXPECT_EQ(while_binding, 0);
  for (std::size_t i = 20; i < at.size(); ++i)
    EXPECT_GE(at[i] - at[i - 20], 990ms) << "write " << i;
}

TEST(ExpectedStarts, WhatHardlyMovedOrWasJustWrittenIsLeftAlone) {
  net::Loop loop;
  Written written;
  ExpectedStarts::Options options = into(written);
  options.per_second = 1000;
  ExpectedStarts starts(loop, std::move(options));
  const auto play_twice = [&](Duration second) -> Task<void> {
    starts.note(outlook_of({told("volcano:d/a", loop.now(), 1h), told("d/pod", loop.now(), 1h)}));
    co_await loop.sleep(50ms);
    starts.note(outlook_of({told("volcano:d/a", loop.now(), second)}));
    co_await loop.sleep(50ms);
    co_await starts.stop();
  };
  loop.run_until_done(play_twice(3h));
  EXPECT_EQ(written.writes, 1) << "within five minutes";
  EXPECT_FALSE(written.values.contains("d/pod")) << "pods without a group carry none";
}

TEST(ExpectedStarts, WhatCanBeToldNoLongerIsTakenAway) {
  net::Loop loop;
  Written written;
  ExpectedStarts::Options options = into(written);
  options.per_second = 1000;
  options.rest = Duration{};
  ExpectedStarts starts(loop, std::move(options));
  const auto play_three = [&]() -> Task<void> {
    starts.note(outlook_of({told("volcano:d/a", loop.now(), 1h)}));
    co_await loop.sleep(50ms);
    starts.note(outlook_of({told("volcano:d/a", loop.now(), 65min)}));  // less than a quarter
    co_await loop.sleep(50ms);
    EXPECT_EQ(written.writes, 1);
    starts.note(outlook_of({told("volcano:d/a", loop.now(), 1h, Basis::kNone)}));
    co_await loop.sleep(50ms);
    co_await starts.stop();
  };
  loop.run_until_done(play_three());
  EXPECT_EQ(written.writes, 2);
  EXPECT_FALSE(written.values["volcano:d/a"]);
}

TEST(Sayings, TheFirstAFarMoveAndOneEveryTwoHoursAreKept) {
  const auto said = [](Duration p50) {
    return std::optional<Foretold>({kThen, kThen, kThen + p50, kThen, "learned", ""});
  };
  EXPECT_TRUE(is_news(std::nullopt, told("d/a", kThen, 1h)));
  EXPECT_FALSE(is_news(std::nullopt, told("d/a", kThen, 1h, Basis::kNone)));
  EXPECT_FALSE(is_news(said(1h), told("d/a", kThen, 90min)));
  EXPECT_TRUE(is_news(said(1h), told("d/a", kThen, 3h)));
  EXPECT_TRUE(is_news(said(3h), told("d/a", kThen, 1h)));
  EXPECT_TRUE(is_news(said(1h), told("d/a", kThen, 1h, Basis::kNone)));
  EXPECT_TRUE(is_news(said(4h), told("d/a", kThen + 2h, 2h)));
}

}  // namespace
}  // namespace muster::answers
