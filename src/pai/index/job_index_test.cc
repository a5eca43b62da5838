#include "pai/index/job_index.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/random.h"
#include "base/time.h"
#include "client/test_client.h"
#include "pai/people/records.h"

namespace muster::pai {
namespace {

/// A Framework as the protocol makes it, with only what a list shows.
client::ObjectPtr job(int number, std::string_view user, std::string_view vc, bool done) {
  json::Value made =
      json::Object{{"metadata",
                    {{"name", fmt::format("{:032x}", number)},
                     {"uid", fmt::format("u{}", number)},
                     {"resourceVersion", std::to_string(number + 1)},
                     {"creationTimestamp", format_time(Time::from_seconds(1'700'000'000 + number))},
                     {"labels", {{"userName", user}, {"virtualCluster", vc}}},
                     {"annotations",
                      {{"jobName", fmt::format("job_{}", (number * 7919) % 100'003)},
                       {"totalGpuNumber", std::to_string(number % 17)},
                       {"totalTaskNumber", "2"},
                       {"tags", number % 10 == 0 ? "nightly,big" : ""}}}}},
                   {"spec", {{"executionType", "Start"}}},
                   {"status",
                    {{"state", done ? "Completed" : "AttemptRunning"},
                     {"attemptStatus", {{"completionStatus", {{"code", 0}}}}}}}};
  return std::make_shared<const json::Value>(std::move(made));
}

void fill(JobIndex& index, int count) {
  for (int i = 0; i < count; ++i)
    index.put(fmt::format("{:032x}", i),
              job(i, fmt::format("user{}", i % 50), i % 3 == 0 ? "vc1" : "default", i % 4 != 0));
}

TEST(JobIndex, ListsTheNewestFirstPageByPage) {
  JobIndex index;
  fill(index, 25);
  JobQuery query;
  query.limit = 10;
  std::vector<std::string> seen;
  for (query.offset = 0; query.offset < 40; query.offset += 10) {
    const JobPage page = index.list(query);
    EXPECT_EQ(page.total, 25U);
    for (const ListedJob* each : page.jobs) seen.push_back(each->framework);
  }
  ASSERT_EQ(seen.size(), 25U);
  for (int i = 0; i < 25; ++i)
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], fmt::format("{:032x}", 24 - i));
}

TEST(JobIndex, EveryFilterEqualsLookingAtEveryJob) {
  JobIndex index;
  fill(index, 2000);
  const auto count = [&](const std::function<bool(int)>& fits) {
    std::size_t found = 0;
    for (int i = 0; i < 2000; ++i) found += fits(i) ? 1 : 0;
    return found;
  };
  JobQuery query;
  query.users = {"user1", "user7", "nobody"};
  EXPECT_EQ(index.list(query).total, count([](int i) { return i % 50 == 1 || i % 50 == 7; }));
  query = {};
  query.vcs = {"vc1"};
  query.states = {"RUNNING"};
  EXPECT_EQ(index.list(query).total, count([](int i) { return i % 3 == 0 && i % 4 == 0; }));
  query = {};
  query.tags_any = {"nightly"};
  EXPECT_EQ(index.list(query).total, count([](int i) { return i % 10 == 0; }));
  query = {};
  query.tags_none = {"big"};
  EXPECT_EQ(index.list(query).total, count([](int i) { return i % 10 != 0; }));
  query = {};
  query.keyword = "user12";
  EXPECT_EQ(index.list(query).total, count([](int i) { return i % 50 == 12; }));
  query.keyword = "job_7919";
  EXPECT_EQ(index.list(query).total, count([](int i) {
              return fmt::format("job_{}", (i * 7919) % 100'003).find("job_7919") !=
                     std::string::npos;
            }));
  query = {};
  query.priorities = {"default"};
  EXPECT_EQ(index.list(query).total, 2000U);
  query.priorities = {"prod"};
  EXPECT_EQ(index.list(query).total, 0U);
}

TEST(JobIndex, EachOrderIsAnOrder) {
  JobIndex index;
  fill(index, 500);
  for (const JobOrder order : {JobOrder::kSubmitted,
                               JobOrder::kName,
                               JobOrder::kUser,
                               JobOrder::kVc,
                               JobOrder::kRetries,
                               JobOrder::kTasks,
                               JobOrder::kGpus,
                               JobOrder::kState,
                               JobOrder::kCompleted,
                               JobOrder::kPriority}) {
    JobQuery query;
    query.order = order;
    query.ascending = true;
    const JobPage page = index.list(query);
    ASSERT_EQ(page.jobs.size(), 500U);
    for (std::size_t i = 1; i < page.jobs.size(); ++i) {
      const ListedJob &a = *page.jobs[i - 1], &b = *page.jobs[i];
      if (order == JobOrder::kName) EXPECT_LE(a.name, b.name);
      if (order == JobOrder::kUser) EXPECT_LE(a.user, b.user);
      if (order == JobOrder::kSubmitted) EXPECT_LT(a.framework, b.framework);
    }
  }
}

/// The same answers as a sort of everything gives, after jobs have come, changed and gone.
TEST(JobIndex, PagesAreCutFromTheWholeOrder) {
  struct Known {
    int number = 0;
    std::string user, vc;
    bool done = false;
  };
  std::map<std::string, Known> known;
  JobIndex index;
  Random random(7);
  for (int i = 0; i < 4000; ++i) {
    const auto number = static_cast<int>(random.below(900));
    const std::string framework = fmt::format("{:032x}", number);
    if (random.below(5) == 0) {
      index.put(framework, nullptr);
      known.erase(framework);
      continue;
    }
    const Known one{number,
                    fmt::format("user{}", random.below(5)),
                    fmt::format("vc{}", random.below(3)),
                    random.below(2) == 0};
    index.put(framework, job(number, one.user, one.vc, one.done));
    known[framework] = one;
  }
  ASSERT_EQ(index.size(), known.size());
  using Key = std::function<std::pair<std::int64_t, std::string>(const Known&)>;
  struct {
    JobOrder order;
    bool own_list;
    Key key;
  } orders[] = {
      {JobOrder::kSubmitted, true, [](const Known& one) { return std::pair(one.number, ""); }},
      {JobOrder::kName,
       true,
       [](const Known& one) {
         return std::pair(0, fmt::format("job_{}", (one.number * 7919) % 100'003));
       }},
      {JobOrder::kUser, false, [](const Known& one) { return std::pair(0, one.user); }},
      {JobOrder::kVc, false, [](const Known& one) { return std::pair(0, one.vc); }},
      {JobOrder::kState,
       false,
       [](const Known& one) { return std::pair(0, one.done ? "SUCCEEDED" : "RUNNING"); }},
      {JobOrder::kGpus, false, [](const Known& one) { return std::pair(one.number % 17, ""); }},
      {JobOrder::kCompleted, true, [](const Known&) { return std::pair(0, ""); }},
  };
  const std::vector<std::string> nobody, one_user{"user2"}, two_users{"user4", "user1"};
  for (const auto& each : orders) {
    for (const bool ascending : {true, false}) {
      for (const auto& users : {nobody, one_user, two_users}) {
        for (const std::string vc : {"", "vc1"}) {
          std::vector<Known> fit;
          for (const auto& [name, one] : known)
            if ((users.empty() || contains(users, one.user)) && (vc.empty() || vc == one.vc))
              fit.push_back(one);
          std::sort(fit.begin(), fit.end(), [&](const Known& a, const Known& b) {
            const auto first = each.key(a), second = each.key(b);
            if (first != second) return ascending ? first < second : first > second;
            return each.own_list && !ascending ? a.number < b.number : a.number > b.number;
          });
          JobQuery query;
          query.order = each.order;
          query.ascending = ascending;
          query.users = users;
          if (!vc.empty()) query.vcs = {vc};
          query.limit = 37;
          std::vector<std::string> seen, want;
          for (query.offset = 0; query.offset <= fit.size(); query.offset += query.limit) {
            const JobPage page = index.list(query);
            EXPECT_EQ(page.total, fit.size());
            for (const ListedJob* job : page.jobs) seen.push_back(job->framework);
          }
          for (const Known& one : fit) want.push_back(fmt::format("{:032x}", one.number));
          EXPECT_EQ(seen, want) << static_cast<int>(each.order) << ascending << users.size() << vc;
        }
      }
    }
  }
}

TEST(JobIndex, JobsOfOneSecondAreListedInTheirOrder) {
  JobIndex index;
  for (const int number : {2, 0, 1}) {
    auto one = std::make_shared<json::Value>(*job(number, "alice", "vc1", true));
    json::make(*one, {"metadata", "annotations", "muster.dev/submitted-at"}) =
        format_micro_time(Time{1'700'000'000'000'000 + number});
    index.put(fmt::format("{:032x}", number), one);
  }
  const JobPage page = index.list({});
  ASSERT_EQ(page.jobs.size(), 3U);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(page.jobs[static_cast<std::size_t>(i)]->framework, fmt::format("{:032x}", 2 - i));
}

TEST(JobIndex, AnOldStateDoesNotReplaceANewerOneAndAJobThatIsGoneIsGone) {
  JobIndex index;
  fill(index, 3);
  auto newer = std::make_shared<json::Value>(*job(1, "alice", "vc1", true));
  json::make(*newer, {"metadata", "resourceVersion"}) = "100";
  index.put(fmt::format("{:032x}", 1), newer);
  index.put(fmt::format("{:032x}", 1), job(1, "user1", "default", false));
  EXPECT_EQ(index.find(fmt::format("{:032x}", 1))->user, "alice");
  index.put(fmt::format("{:032x}", 0), nullptr);
  EXPECT_EQ(index.find(fmt::format("{:032x}", 0)), nullptr);
  EXPECT_EQ(index.size(), 2U);
  EXPECT_EQ(index.find(fmt::format("{:032x}", 1))->user, "alice");
}

class LongFirstList : public client::ClientTest {};

TEST_F(LongFirstList, OthersGetTheLoopEveryFewHundredJobs) {
  constexpr int kJobs = 20'000, kMost = 256;
  server_.serves_initial = true;
  for (int i = 0; i < kJobs; ++i)
    server_.put(fmt::format("/frameworks/{:032x}", i), *job(i, "alice", "default", i % 4 != 0));
  JobIndex index;
  client::Informers informers(loop_, *client_);
  index.follow(informers, "default");
  int since = 0, most = 0;
  index.on_change([&](const client::ObjectPtr&, const client::ObjectPtr&) {
    if (++since == 1) loop_.post([&] { most = std::max(most, std::exchange(since, 0)); });
  });
  informers.start_all();
  run([&]() -> Task<void> {
    co_await informers.wait_synced();
    EXPECT_EQ(index.size(), static_cast<std::size_t>(kJobs));
    co_await informers.stop_all();
  });
  EXPECT_GT(most, 0);
  EXPECT_LE(most, kMost);
}

TEST(JobIndex, AHundredThousandJobsAreListedInTenMilliseconds) {
  JobIndex index;
  fill(index, 100'000);
  JobQuery name, keyword, plain, user, mixed;
  name.order = JobOrder::kName;
  keyword.keyword = "99";
  user.users = {"user7"};
  mixed.users = {"user7", "user8"};
  mixed.states = {"RUNNING", "SUCCEEDED"};
  for (auto [what, query] : {std::pair{"newest", plain},
                             std::pair{"by name", name},
                             std::pair{"keyword", keyword},
                             std::pair{"of a user", user},
                             std::pair{"of users and states", mixed}}) {
    query.limit = 20;
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      const JobPage page = index.list(query);
      best = std::min(best, std::chrono::steady_clock::now() - begun);
      EXPECT_GT(page.total, 0U);
    }
    const double ms = std::chrono::duration<double, std::milli>(best).count();
    fmt::print("{}: {:.1f} ms\n", what, ms);
    // Twice the budget: the machine may be shared, and the test must not fail for that.
    EXPECT_LT(ms, 20.0) << what;
  }
}

}  // namespace
}  // namespace muster::pai
