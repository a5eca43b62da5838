#include "agent/process/user_range.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::agent::process {
namespace {

TEST(UserRanges, AreApartAndStayBelowWhatProgramsTakeForNegative) {
  std::set<uid_t> firsts;
  for (std::uint32_t address = 0; address < kRanges; ++address) {
    const auto first = first_id(address, 244);
    EXPECT_GE(first, kRangesFrom);
    EXPECT_LT(std::uint64_t{first} + kRangeSize, 1ULL << 31);
    EXPECT_EQ((first - kRangesFrom) % kRangeSize, 0U);
    firsts.insert(first);
  }
  EXPECT_EQ(firsts.size(), kRanges);
  EXPECT_NE(first_id(0, 244), first_id(0, 245));
  const auto last = kRangesFrom + std::uint64_t{kRangeSize} * (kRanges + kRangesOfRuntime);
  EXPECT_LT(last, 1ULL << 31);
}

TEST(UserRanges, LeaveThoseOfOthersAlone) {
  const auto taken = ranges_in(
      "alice:100000:65536\nbob:1065000:65536\nbroken\nx:y:1\nminus:-5:3\nnone:7:0\n#c:1:1:1\n");
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_TRUE(overlaps(kRangesFrom, taken));
  EXPECT_TRUE(overlaps(kRangesFrom + kRangeSize, taken));
  EXPECT_FALSE(overlaps(kRangesFrom + 2 * kRangeSize, taken));
  EXPECT_FALSE(overlaps(kRangesFrom, {}));
}

}  // namespace
}  // namespace muster::agent::process
