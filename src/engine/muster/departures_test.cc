// When pods will leave their nodes is kept from decision to decision. Config::check_tables compares it
// after each of them with what the pods say, and stops the program where the two differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

/// Pods of several kinds: most say nothing about how long they take, some declare it, some have a
/// limit.
Pod work(int id, Random& random, Time now) {
  Pod p = pod(fmt::format("d/p{}", id), std::int64_t{1} << random.below(4));
  p.queue = fmt::format("q{}", random.below(3));
  p.created = now;
  if (random.below(6) == 0) p.expected_duration = std::chrono::seconds(30 + random.below(300));
  if (random.below(6) == 0) p.limit = std::chrono::seconds(60 + random.below(300));
  if (random.below(2) == 0) {
    p.origin = std::make_shared<Origin>(
        Origin{fmt::format("user{}", random.below(3)), fmt::format("job{}", random.below(2)), ""});
  }
  return p;
}

TEST(Departures, AfterEveryEndTheyAreWhatThePodsSay) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Config config;
    config.check_tables = true;
    Engine e(config);
    Random random(seed);
    Time now = kNow;
    for (int q = 0; q < 3; ++q) e.apply(QueueUpsert{{.name = fmt::format("q{}", q)}});
    for (int n = 0; n < 6; ++n) e.apply(NodeUpsert{node(fmt::format("n{}", n), 8)});
    std::vector<std::string> runs;
    bool reserved = false;
    int made = 0;
    for (int step = 0; step < 400; ++step) {
      now = now + std::chrono::seconds(1 + random.below(20));
      for (std::uint64_t i = random.below(3); i > 0; --i)
        e.apply(PodUpsert{work(made++, random, now)});
      if (step % 40 == 0) {
        // One that has to wait for whole nodes, and holds a place for the time they come free.
        const std::string key = fmt::format("d/g{}", step);
        Group g = group(key, 3, 1);
        g.queue = "q0";
        g.created = now;
        add_gang(e, g, 3, 8);
      }
      if (!runs.empty() && random.below(3) != 0) {
        const std::size_t at = random.below(runs.size());
        e.apply(PodRemove{runs[at]});
        runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const Plan plan = e.decide(now);
      for (const Bind& b : plan.binds) runs.push_back(b.pod);
      reserved |= !plan.reservations.empty();
    }
    EXPECT_GT(e.history().taught(), 50U) << seed;
    EXPECT_TRUE(reserved) << "nothing asked when pods leave: seed " << seed;
  }
}

/// Config::check_tables also compares each search for a place with one that looks at all nodes.
TEST(Departures, ASearchAmongThoseThatComeFreeFirstFindsWhatAllNodesTell) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Config config;
    config.check_tables = true;
    Engine e(config);
    Random random(seed);
    Time now = kNow;
    e.apply(QueueUpsert{{.name = "q0"}});
    e.apply(QueueUpsert{{.name = "q1"}});
    e.apply(QueueUpsert{{.name = "q2"}});
    for (int n = 0; n < 60; ++n) {
      Node some = node(fmt::format("n{}", n), n % 5 == 0 ? 4 : 8);
      // Devices alone do not tell what fits on these.
      if (n % 3 == 0) some.allocatable[0].value /= 2;
      e.apply(NodeUpsert{some});
    }
    std::vector<std::string> runs;
    std::size_t reserved = 0;
    int made = 0;
    for (int step = 0; step < 120; ++step) {
      now = now + std::chrono::seconds(1 + random.below(40));
      for (std::uint64_t i = step == 0 ? 300 : random.below(8); i > 0; --i)
        e.apply(PodUpsert{work(made++, random, now)});
      if (step % 10 == 1) {
        const std::string key = fmt::format("d/g{}", step);
        Group g = group(key, 2 + step % 7, 1);
        g.queue = "q0";
        g.created = now;
        add_gang(e, g, 2 + step % 7, 8);
      }
      for (std::uint64_t i = random.below(6); i > 0 && !runs.empty(); --i) {
        const std::size_t at = random.below(runs.size());
        e.apply(PodRemove{runs[at]});
        runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const Plan plan = e.decide(now);
      for (const Bind& b : plan.binds) runs.push_back(b.pod);
      reserved = std::max(reserved, plan.reservations.size());
    }
    EXPECT_GT(reserved, 1U) << "nothing was looked for: seed " << seed;
  }
}

}  // namespace
}  // namespace muster::engine
