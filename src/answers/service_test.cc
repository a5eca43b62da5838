#include "answers/service.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "engine/test_world.h"
#include "net/loop/loop.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::test::kNow;
using engine::test::node;
using engine::test::pod;
using namespace std::chrono_literals;

/// One node with a pod on it; behind that "a/job-0" to "a/job-9" and the same in b and c.
Engine many_wait() {
  Engine e({});
  e.apply(engine::QueueUpsert{{.name = "default"}});
  e.apply(engine::NodeUpsert{node("n", 8)});
  e.apply(engine::PodUpsert{pod("a/runs", 8)});
  EXPECT_EQ(e.decide(kNow).binds.size(), 1U);
  for (const char* ns : {"a", "b", "c"}) {
    for (int i = 0; i < 10; ++i)
      e.apply(engine::PodUpsert{pod(fmt::format("{}/job-{}", ns, i), 8)});
  }
  (void)e.decide(kNow);
  return e;
}

/// Sees a and b only.
Visitor somebody() {
  Visitor visitor;
  visitor.user = "ann";
  visitor.may = [](std::string_view, std::string_view, std::string_view ns) {
    return ns == "a" || ns == "b";
  };
  return visitor;
}

std::string jobs_in(const json::Value& answer) {
  std::string out;
  for (const json::Value& item : json::array_at(answer, "items"))
    out += std::string(json::string_at(item, "job")) + " ";
  return out;
}

class When : public testing::Test {
 protected:
  json::Value ask(const Service::WhenAsk& question) {
    json::Value out;
    loop_.run_until_done([&]() -> Task<void> {
      const auto answer = co_await service_.when(somebody(), question);
      EXPECT_TRUE(answer);
      if (answer) out = *answer;
    }());
    return out;
  }
  void TearDown() override { loop_.run_until_done(live_.stop()); }

  Engine engine_ = many_wait();
  net::Loop loop_;
  Live live_{loop_, {.engine = [this] { return &engine_; }}};
  Service service_{loop_, nullptr, &live_};
};

TEST_F(When, AJobIsFoundByItsNameInItsNamespaceOrInAllThatTheVisitorSees) {
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(jobs_in(ask({.ns = "b", .name = "job-7"})), "b/job-7 ");
    EXPECT_EQ(jobs_in(ask({.name = "job-3"})), "a/job-3 b/job-3 ");
    EXPECT_EQ(jobs_in(ask({.ns = "a", .name = "runs"})), "");
    EXPECT_EQ(jobs_in(ask({.queue = "elsewhere", .name = "job-3"})), "");
  }
}

TEST_F(When, OthersAreCountedInListsAndNeverGivenAwayByAName) {
  const json::Value list = ask({});
  EXPECT_EQ(json::array_at(list, "items").size(), 20U);
  EXPECT_EQ(json::int_at(list, "others", "jobs"), 10);
  const json::Value hidden = ask({.ns = "c", .name = "job-3"});
  EXPECT_TRUE(json::array_at(hidden, "items").empty());
  EXPECT_EQ(json::int_at(hidden, "others", "jobs"), 0);
}

TEST_F(When, NamesAreThoseOfTheLatestOutlook) {
  EXPECT_EQ(jobs_in(ask({.name = "late"})), "");
  Live::Options options;
  options.engine = [this] { return &engine_; };
  options.fresh = Duration{};
  options.cpu_share = 1e6;
  Live live(loop_, std::move(options));
  Service service(loop_, nullptr, &live);
  const auto find = [&](const char* name) {
    std::string found;
    loop_.run_until_done([&]() -> Task<void> {
      Service::WhenAsk question;
      question.name = name;
      const auto answer = co_await service.when(somebody(), question);
      EXPECT_TRUE(answer);
      if (answer) found = jobs_in(*answer);
    }());
    return found;
  };
  EXPECT_EQ(find("late"), "");
  const engine::Event comes = engine::PodUpsert{pod("a/late", 8)};
  engine_.apply(comes);
  live.follower().heard(comes);
  live.follower().decided(kNow, engine_.decide(kNow));
  EXPECT_EQ(find("late"), "a/late ");
  loop_.run_until_done(live.stop());
}

}  // namespace
}  // namespace muster::answers
