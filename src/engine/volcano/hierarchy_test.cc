// The tree by hand, and for any tree: what was charged step by step weighs as if it had been there
// from the start.
#include "engine/volcano/hierarchy.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace muster::engine::volcano {
namespace {

constexpr std::size_t kDims = 2;

Amounts amounts(std::int64_t cpu, std::int64_t memory) {
  Amounts a;
  a[0] = static_cast<Wide>(cpu) * 1000;
  a[1] = static_cast<Wide>(memory) * 1000;
  return a;
}

TEST(Hierarchy, TheSmallerShareByWeightGoesFirst) {
  Hierarchy tree(amounts(1200, 1200), kDims);
  tree.add_queue(0, {"root/a", "1/3", "a"});
  tree.add_queue(1, {"root/b", "1/1", "b"});
  tree.add_job(0, 0, amounts(600, 0), amounts(1200, 0));
  tree.add_job(1, 1, amounts(200, 0), amounts(1200, 0));
  EXPECT_EQ(tree.compare(0, 1), 0);  // Thirds are equal, not nearly so.
  tree.charge(1, amounts(1, 0), true);
  EXPECT_LT(tree.compare(0, 1), 0);
  EXPECT_GT(tree.compare(1, 0), 0);
}

TEST(Hierarchy, TheUnsaturatedGoesFirstWhateverItHas) {
  Hierarchy tree(amounts(10, 10), kDims);
  tree.add_queue(0, {"root/a", "1/1", "a"});
  tree.add_queue(1, {"root/b", "1/1", "b"});
  tree.add_job(0, 0, amounts(1, 0), amounts(1, 0));
  tree.add_job(1, 1, amounts(7, 0), amounts(9, 0));
  EXPECT_GT(tree.compare(0, 1), 0);
  tree.charge(1, amounts(2, 0), true);  // Now nobody can have more of it.
  EXPECT_LT(tree.compare(0, 1), 0);
}

TEST(Hierarchy, TheRootMayBeLeftOutAndAQueueMayHaveNoPath) {
  Hierarchy tree(amounts(10, 10), kDims);
  tree.add_queue(0, {"a/x", "2/1", "a"});
  tree.add_queue(1, {"root/a/y", "1/2/1", "b"});
  tree.add_queue(2, {"", "", "c", 4});
  tree.add_job(0, 0, amounts(4, 0), amounts(9, 0));
  tree.add_job(1, 1, amounts(0, 0), amounts(9, 0));
  tree.add_job(2, 2, amounts(4, 0), amounts(9, 0));
  EXPECT_GT(tree.compare(0, 1), 0);  // In one branch: the second has nothing.
  EXPECT_LT(tree.compare(2, 1), 0);  // 4 by weight 4 against 4 by weight 2.
}

RC_GTEST_PROP(HierarchyProperty, StepsWeighLikeTheirSum, ()) {
  constexpr std::array<std::string_view, 5> kPaths = {
      "root/a", "root/b/x", "root/b/y", "root/c/x/1", "root/c/x/2"};
  const auto total =
      amounts(*rc::gen::inRange<std::int64_t>(1, 30), *rc::gen::inRange<std::int64_t>(1, 30));
  const auto small = [] {
    return amounts(*rc::gen::inRange<std::int64_t>(0, 6), *rc::gen::inRange<std::int64_t>(0, 6));
  };
  Hierarchy stepwise(total, kDims);
  Hierarchy at_once(total, kDims);
  for (std::size_t q = 0; q < kPaths.size(); ++q) {
    stepwise.add_queue(q, {kPaths[q], "1/2/3/1", ""});
    at_once.add_queue(q, {kPaths[q], "1/2/3/1", ""});
  }
  for (std::size_t job = 0; job < 8; ++job) {
    const auto queue = *rc::gen::inRange<std::size_t>(0, kPaths.size());
    const Amounts start = small();
    const Amounts more = small();
    const Amounts less = small();
    const Amounts request = start + more + small();
    stepwise.add_job(job, queue, start + less, request);
    at_once.add_job(job, queue, start + more, request);
    stepwise.charge(job, more, true);
    (void)stepwise.compare(0, queue);  // Weighed in between.
    stepwise.charge(job, less, false);
  }
  for (std::size_t a = 0; a < kPaths.size(); ++a) {
    for (std::size_t b = 0; b < kPaths.size(); ++b) {
      RC_ASSERT(stepwise.compare(a, b) == at_once.compare(a, b));
      RC_ASSERT(stepwise.compare(a, b) == -stepwise.compare(b, a));
    }
  }
}

}  // namespace
}  // namespace muster::engine::volcano
