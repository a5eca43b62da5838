#include "answers/forecast.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "answers/durations.h"
#include "base/random.h"
#include "engine/test_world.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::test::kNow;
using engine::test::node;
using engine::test::pod;
using engine::test::running;
using namespace std::chrono_literals;

Ask about(const std::string& job) {
  Ask ask;
  ask.jobs = {job};
  return ask;
}

Forecast ask(const Engine& e, Time now, const std::string& job) {
  return forecast(e, now, SharedDraws(e, now), about(job));
}

engine::Config calm() {
  engine::Config config;
  config.preempt = false;
  return config;
}

/// Two nodes, both busy for as long as is said, and "d/head" waits for one of them.
Engine two_busy(Duration first, Duration second) {
  Engine e(calm());
  e.apply(engine::QueueUpsert{{.name = "default"}});
  for (const char* name : {"a", "b"}) e.apply(engine::NodeUpsert{node(name, 8)});
  engine::Pod one = running(pod("d/one", 8), "a");
  one.expected_duration = first;
  engine::Pod two = running(pod("d/two", 8), "b");
  two.expected_duration = second;
  e.apply(engine::PodUpsert{one});
  e.apply(engine::PodUpsert{two});
  engine::Pod head = pod("d/head", 8);
  head.expected_duration = 1h;
  e.apply(engine::PodUpsert{head});
  (void)e.decide(kNow);
  return e;
}

std::string spell(const Forecasts& all) {
  std::string out;
  const auto time = [](const std::optional<Time>& at) { return at ? at->us : -1; };
  for (const Forecast& f : all.jobs) {
    out += fmt::format("{} {} {} {} {} {} {} {:.6f} {}\n",
                       f.job,
                       f.place,
                       f.of,
                       time(f.start.range.p10),
                       time(f.start.range.p50),
                       time(f.start.range.p90),
                       basis_name(f.start.basis),
                       f.start.support.learned,
                       f.start.because);
    for (const WaitsFor& w : f.waits_for)
      out += fmt::format("  {} {} {}\n", w.job, w.share, time(w.end.p50));
  }
  return out;
}

/// Twelve runs of each of three users are over, of many lengths; four nodes are busy and ten wait.
Engine learned_world() {
  Engine e(calm());
  e.apply(engine::QueueUpsert{{.name = "default"}});
  Random random(5);
  for (int i = 0; i < 36; ++i) {
    engine::PastRun run;
    run.origin = {fmt::format("user-{}", i % 3), "train", "default"};
    run.device_milli = 8000;
    run.ran = std::chrono::minutes(5 + random.below(300));
    e.apply(run);
  }
  for (int i = 0; i < 4; ++i) e.apply(engine::NodeUpsert{node(fmt::format("n{}", i), 8)});
  for (int i = 0; i < 14; ++i) {
    engine::Pod p = pod(fmt::format("d/train-{}", i), 8);
    p.origin = std::make_shared<const engine::Origin>(fmt::format("user-{}", i % 3), "train", "");
    p.created = kNow + std::chrono::seconds(i);
    e.apply(engine::PodUpsert{p});
  }
  EXPECT_EQ(e.decide(kNow + 1min).binds.size(), 4U);
  return e;
}

TEST(Check03, TheSameStateAndQuestionGiveTheSameBytes) {
  const Engine e = learned_world();
  const Engine again = learned_world();
  const Time now = kNow + 20min;
  const std::uint64_t before = e.digest();
  const std::string said = spell(forecast_all(e, now, SharedDraws(e, now), Ask{}));
  EXPECT_NE(said.find("learned"), std::string::npos) << said;
  EXPECT_EQ(said, spell(forecast_all(e, now, SharedDraws(e, now), Ask{})));
  EXPECT_EQ(said, spell(forecast_all(again, now, SharedDraws(again, now), Ask{})));
  EXPECT_EQ(e.digest(), before);
}

TEST(Check03, WhereAllIsDeclaredOneCourseIsPlayedAndCountsForAll) {
  const Engine e = two_busy(1h, 2h);
  int played = 0;
  Ask ask;
  ask.go_on = [&] {
    ++played;
    return true;
  };
  const Forecasts all = forecast_all(e, kNow + 1min, SharedDraws(e, kNow + 1min), ask);
  EXPECT_EQ(all.draws, 40);
  EXPECT_EQ(played, 1);
}

TEST(Check03, CoursesPlayedInPartsSayWhatAllSayAtOnce) {
  const Engine e = learned_world();
  const Time now = kNow + 20min;
  const SharedDraws lasting(e, now);
  Ask ask;
  ask.gantt = true;
  const Forecasts whole = forecast_all(e, now, lasting, ask);
  Courses courses(e, now, lasting, ask);
  courses.play(8);
  EXPECT_FALSE(courses.over());
  const Forecasts first = courses.told();
  Ask few = ask;
  few.draws = 8;
  EXPECT_EQ(first.draws, 8);
  EXPECT_EQ(spell(first), spell(forecast_all(e, now, lasting, few)));
  EXPECT_NE(spell(first), spell(whole));
  courses.play(ask.draws);
  EXPECT_TRUE(courses.over());
  EXPECT_EQ(spell(courses.told()), spell(whole));
  EXPECT_EQ(courses.told().gantt.size(), 14U);
}

TEST(Check03, AnotherProcessGivesTheSameBytes) {
  // This test, run once more by itself, writes what it says into a file.
  constexpr const char* kInto = "MUSTER_TEST_SAYS_INTO";
  const Engine e = learned_world();
  const Time now = kNow + 20min;
  const std::string said = spell(forecast_all(e, now, SharedDraws(e, now), Ask{}));
  if (const char* into = std::getenv(kInto)) {
    std::ofstream(into) << said;
    return;
  }
  const std::string file = fmt::format("{}check03-{}", testing::TempDir(), getpid());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv(kInto, file.c_str(), 1);
    execl("/proc/self/exe",
          "answers_test",
          "--gtest_filter=Check03.AnotherProcessGivesTheSameBytes",
          "--gtest_brief=1",
          nullptr);
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::stringstream other;
  other << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  EXPECT_NE(said.find("learned"), std::string::npos) << said;
  EXPECT_EQ(other.str(), said);
}

TEST(Check03, AnotherSeedMovesTheMiddleByLessThanTheRange) {
  const Engine e = learned_world();
  const Time now = kNow + 20min;
  const Forecasts one = forecast_all(e, now, SharedDraws(e, now, {1, 600}), Ask{});
  const Forecasts two = forecast_all(e, now, SharedDraws(e, now, {2, 600}), Ask{});
  ASSERT_EQ(one.jobs.size(), 10U);
  for (std::size_t i = 0; i < one.jobs.size(); ++i) {
    const Quantiles& range = one.jobs[i].start.range;
    ASSERT_TRUE(range.p50 && two.jobs[i].start.range.p50);
    const Duration moved = *range.p50 - *two.jobs[i].start.range.p50;
    EXPECT_LT(std::abs(moved.count()), (*range.p90 - *range.p10).count() + 1);
  }
}

TEST(Check07, AFreshClusterSaysNothing) {
  Engine e = two_busy({}, {});
  const Forecast f = ask(e, kNow, "d/head");
  EXPECT_EQ(f.start.basis, Basis::kNone);
  EXPECT_FALSE(f.start.range.p10 || f.start.range.p50 || f.start.range.p90);
  EXPECT_TRUE(f.waits_for.empty());
  EXPECT_FALSE(f.end.p50);
  EXPECT_NE(f.start.because.find("unknown"), std::string::npos);
  for (int i = 0; i < 5; ++i) {
    engine::PastRun run;
    run.origin = {"", "", "default"};
    run.device_milli = 8000;
    run.ran = 40min;
    e.apply(run);
  }
  const Forecast learned = ask(e, kNow, "d/head");
  EXPECT_EQ(learned.start.basis, Basis::kLearned) << learned.start.because;
  ASSERT_TRUE(learned.start.range.p50);
  EXPECT_EQ(*learned.start.range.p50, kNow + 40min);
  ASSERT_FALSE(learned.waits_for.empty());
  EXPECT_EQ(learned.waits_for[0].runs, 5);
}

TEST(Check11, WhatNoEndHelpsIsToldWithItsReason) {
  Engine e = two_busy(1h, 2h);
  e.apply(engine::QueueUpsert{{.name = "closed", .state = engine::QueueState::kClosed}});
  engine::Pod large = pod("d/large", 9);
  engine::Pod closed = engine::test::in_queue(pod("d/closed", 8), "closed");
  engine::Pod lost = engine::test::in_queue(pod("d/lost", 8), "nowhere");
  engine::Group short_of = engine::test::group("d/short", 3);
  engine::Group held = engine::test::group("d/held", 1);
  held.hold = true;
  for (const auto& p : {large, closed, lost}) e.apply(engine::PodUpsert{p});
  engine::test::add_gang(e, short_of, 2, 8);
  engine::test::add_gang(e, held, 1, 8);
  (void)e.decide(kNow);
  for (const char* key : {"d/large", "d/closed", "d/lost", "d/short", "d/held"}) {
    const Forecast f = ask(e, kNow, key);
    EXPECT_EQ(f.start.basis, Basis::kNone) << key;
    EXPECT_FALSE(f.start.range.p50) << key;
    const auto why = e.why(key);
    ASSERT_TRUE(why) << key;
    EXPECT_EQ(f.refusal.reason, why->refusal.reason) << key;
    EXPECT_EQ(f.start.because, engine::describe(why->refusal)) << key;
  }
  engine::Pod gated = pod("d/gated", 8);
  gated.gated = true;
  e.apply(engine::PodUpsert{gated});
  (void)e.decide(kNow);
  EXPECT_EQ(ask(e, kNow, "d/gated").start.basis, Basis::kNone);
}

TEST(Check13, TheHolderOfAReservationIsForetoldItsStart) {
  const Engine e = two_busy(90min, 3h);
  const Forecast f = ask(e, kNow + 10min, "d/head");
  EXPECT_EQ(f.start.basis, Basis::kKnown);
  EXPECT_EQ(f.start.range.p50, kNow + 90min);
  EXPECT_EQ(f.start.range.p10, kNow + 90min);
  EXPECT_EQ(f.start.range.p90, kNow + 90min);
  EXPECT_EQ(f.end.p50, kNow + 150min);
  EXPECT_EQ(f.place, 1);
  ASSERT_EQ(f.waits_for.size(), 1U);
  EXPECT_EQ(f.waits_for[0].job, "d/one");
  EXPECT_EQ(f.waits_for[0].end.p50, kNow + 90min);
}

TEST(Check12, JobsThatWereDeletedMakeNoOtherStartLookEarlier) {
  Engine e(calm());
  e.apply(engine::QueueUpsert{{.name = "default"}});
  e.apply(engine::NodeUpsert{node("a", 8)});
  const auto job = [](const std::string& name, Duration declared) {
    engine::Pod made = pod("d/" + name, 8);
    made.origin = std::make_shared<const engine::Origin>("ann", name, "");
    made.expected_duration = declared;
    return made;
  };
  for (int i = 0; i < 6; ++i) {
    e.apply(engine::PodUpsert{job("mistake", 1h)});
    ASSERT_EQ(e.decide(kNow + std::chrono::minutes(i)).binds.size(), 1U);
    e.apply(engine::PodRemove{"d/mistake"});
    (void)e.decide(kNow + std::chrono::minutes(i) + 5s);
  }
  const Time now = kNow + 10min;
  for (const char* name : {"first", "second", "third"}) {
    e.apply(engine::PodUpsert{job(name, 20min)});
    (void)e.decide(now);
  }
  EXPECT_EQ(ask(e, now, "d/second").start.range.p50, now + 20min);
  EXPECT_EQ(ask(e, now, "d/third").start.range.p50, now + 40min);
}

TEST(Check13, NothingIsForetoldForThePast) {
  const Engine e = two_busy(10min, 20min);
  // Both have overrun what they declared, and nobody like them has ended.
  const Time now = kNow + 1h;
  const Forecast f = ask(e, now, "d/head");
  EXPECT_EQ(f.start.basis, Basis::kNone);
  Forecast later = forecast(e, now, Declared(), about("d/head"));
  if (later.start.range.p50) EXPECT_GE(*later.start.range.p50, now);
}

TEST(Check14, WhoComesAheadMovesTheAnswer) {
  Engine e = two_busy(1h, 3h);
  EXPECT_EQ(ask(e, kNow, "d/head").start.range.p50, kNow + 1h);
  engine::Pod urgent = pod("d/urgent", 8, 100);
  urgent.expected_duration = 30min;
  e.apply(engine::PodUpsert{urgent});
  (void)e.decide(kNow + 1s);
  const Forecast f = ask(e, kNow + 1s, "d/head");
  EXPECT_EQ(f.start.range.p50, kNow + 90min);
  ASSERT_FALSE(f.waits_for.empty());
  EXPECT_EQ(f.waits_for[0].job, "d/urgent");
}

TEST(Forecast, FewerCoursesWhenTheBudgetEnds) {
  const Engine e = learned_world();
  const Time now = kNow + 20min;
  Ask limited;
  int left = 5;
  limited.go_on = [&] { return left-- > 0; };
  const Forecasts all = forecast_all(e, now, SharedDraws(e, now), limited);
  EXPECT_TRUE(all.cut);
  EXPECT_EQ(all.draws, 5);
  for (const Forecast& f : all.jobs) {
    EXPECT_TRUE(f.start.range.p50);
    EXPECT_FALSE(f.start.range.p10 || f.start.range.p90);  // Too few for a range.
  }
}

TEST(Forecast, OneCourseIsEnoughWhereEveryEndIsSettled) {
  const Engine e = two_busy(1h, 2h);
  Ask all;
  int courses = 0;
  all.go_on = [&] { return ++courses > 0; };
  const Forecasts made = forecast_all(e, kNow, SharedDraws(e, kNow), all);
  EXPECT_EQ(courses, 1);
  EXPECT_EQ(made.draws, all.draws);
  ASSERT_EQ(made.jobs.size(), 1U);
  EXPECT_EQ(made.jobs[0].start.draws, all.draws);
  EXPECT_EQ(made.jobs[0].start.range.p50, kNow + 1h);
}

TEST(Forecast, TheGanttIsOneCourse) {
  const Engine e = learned_world();
  const Time now = kNow + 20min;
  Ask with_bars;
  with_bars.gantt = true;
  const Forecasts all = forecast_all(e, now, SharedDraws(e, now), with_bars);
  ASSERT_EQ(all.gantt.size(), 14U);
  for (const Bar& bar : all.gantt) EXPECT_LT(bar.start, bar.end);
}

TEST(Forecast, VictimsComeBack) {
  engine::Config config;
  Engine e(config);
  e.apply(engine::QueueUpsert{{.name = "default"}});
  e.apply(engine::NodeUpsert{node("a", 8)});
  engine::Pod low = running(pod("d/low", 8), "a");
  low.expected_duration = 1h;
  e.apply(engine::PodUpsert{low});
  (void)e.decide(kNow);
  engine::Pod high = pod("d/high", 8, 100);
  high.expected_duration = 2h;
  e.apply(engine::PodUpsert{high});
  ASSERT_EQ(e.decide(kNow + 10min).evicts.size(), 1U);
  const Forecast f = ask(e, kNow + 10min, "d/high");
  EXPECT_EQ(f.start.range.p50, kNow + 10min + 30s);
}

/// Counts how often it is asked.
class Counted : public Lasting {
 public:
  explicit Counted(const Lasting& inner) : inner_(inner) {}
  [[nodiscard]] Drawn draw(const engine::GangView& gang,
                           Duration age,
                           std::int32_t draw) const override {
    ++asked_;
    return inner_.draw(gang, age, draw);
  }
  [[nodiscard]] std::int64_t asked() const { return asked_; }

 private:
  const Lasting& inner_;
  mutable std::int64_t asked_ = 0;
};

/// What it costs in time is measured by bench/answers; here is what can be counted.
TEST(Check24, ACourseAsksAtMostOncePerGangAndStopsWhenItIsTold) {
  const Engine e = learned_world();
  const Time now = kNow + 2min;
  const SharedDraws draws(e, now);
  const Counted counted(draws);
  const auto gangs = static_cast<std::int64_t>(e.gangs().size());
  Ask all;
  const Forecasts made = forecast_all(e, now, counted, all);
  EXPECT_EQ(made.draws, all.draws);
  EXPECT_FALSE(made.cut);
  // Once more in all, to see whether anything is uncertain.
  EXPECT_LE(counted.asked(), (all.draws + 1) * gangs);
  const Counted again(draws);
  int courses = 0;
  all.go_on = [&] { return courses++ < 8; };
  const Forecasts cut = forecast_all(e, now, again, all);
  EXPECT_EQ(cut.draws, 8);
  EXPECT_TRUE(cut.cut);
  EXPECT_LE(again.asked(), 9 * gangs);
  EXPECT_TRUE(cut.jobs.front().start.range.p10) << "eight courses make a range";
}

}  // namespace
}  // namespace muster::answers
