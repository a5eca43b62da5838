#include "engine/model/history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

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

}  // namespace
}  // namespace muster::engine
