#include "engine/model/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace muster::engine {
namespace {

/// The order of ended runs is kept up while runs come and old ones go; here it is made anew each
/// time.
TEST(History, EndedRunsAreInOrderHoweverManyCame) {
  History history;
  const RunKind kind{.user = 1, .stem = 2, .team = 3, .shape = 4};
  std::deque<std::int64_t> kept;
  std::uint64_t random = 7;
  for (int i = 0; i < 1000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::int64_t us = 1 + static_cast<std::int64_t>(random >> 60);  // often the same
    const bool ended = (random >> 40) % 4 != 0;
    history.learn(kind, {.us = us, .ended = ended});
    kept.push_back(ended ? us : -us);
    if (kept.size() > History::kRunsKept) kept.pop_front();
    std::vector<std::int64_t> wanted;
    std::copy_if(
        kept.begin(), kept.end(), std::back_inserter(wanted), [](auto each) { return each > 0; });
    std::sort(wanted.begin(), wanted.end());
    for (const std::uint32_t level : history.levels(kind)) {
      const auto found = history.ended(level);
      ASSERT_EQ(std::vector(found.begin(), found.end()), wanted) << i;
    }
  }
}

/// Some of many kinds are found by a short cut, which others take from them: whoever asks is answered
/// as if each run had been written down and looked through.
TEST(History, EveryKindIsAnsweredByTheFirstOfItsLevelsThatKnowsEnough) {
  struct Written {
    RunKind kind;
    std::int64_t us;
  };
  History history;
  std::deque<Written> all;
  std::uint64_t random = 11;
  const auto below = [&](std::uint64_t bound) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    return (random >> 33) % bound;
  };
  const auto any_kind = [&] {
    return RunKind{.user = below(30), .stem = below(12), .team = below(5), .shape = below(4)};
  };
  const auto expected = [&](const RunKind& kind, std::int64_t age, std::int32_t permille) {
    for (int level = 0; level < 5; ++level) {
      std::vector<std::int64_t> runs;
      for (auto run = all.rbegin(); run != all.rend() && runs.size() < History::kRunsKept; ++run) {
        const RunKind& k = run->kind;
        const bool same = level == 0
                              ? k.user == kind.user && k.shape == kind.shape && k.stem == kind.stem
                          : level == 1 ? k.user == kind.user && k.shape == kind.shape
                          : level == 2 ? k.team == kind.team && k.shape == kind.shape
                          : level == 3 ? k.team == kind.team
                                       : true;
        if (same) runs.push_back(run->us);
      }
      if (runs.size() < (level == 4 ? History::kEnoughOfAll : History::kEnough)) continue;
      std::erase_if(runs, [&](auto us) { return us <= age; });
      if (runs.size() < History::kEnough) continue;
      std::sort(runs.begin(), runs.end());
      return runs[std::min(runs.size() - 1,
                           runs.size() * static_cast<std::size_t>(permille) / 1000)];
    }
    return History::kUnknown;
  };
  for (int i = 0; i < 3000; ++i) {
    all.push_back({any_kind(), 1 + static_cast<std::int64_t>(below(1000))});
    history.learn(all.back().kind, {.us = all.back().us});
    if (i % 10 != 0) continue;
    const RunKind kind = i % 20 == 0 ? all.back().kind : any_kind();
    for (const std::int64_t age : {0, 300, 900, 1000}) {
      for (const std::int32_t permille : {50, 500, 800}) {
        const std::int64_t wanted = expected(kind, age, permille);
        ASSERT_EQ(history.estimate(kind, age, permille), wanted) << i << " after " << age;
        ASSERT_EQ(history.longer_than(history.levels(kind), age).quantile(permille), wanted) << i;
      }
    }
  }
}

}  // namespace
}  // namespace muster::engine
