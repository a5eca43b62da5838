#include "engine/state/positions.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

std::vector<std::uint16_t> listed(const Positions& positions) {
  return {positions.begin(), positions.end()};
}

TEST(Positions, KeepTheirOrderHoweverManyThereAre) {
  for (const std::uint16_t count : {0, 1, 7, 8, 9, 16, 300}) {
    Positions positions;
    std::vector<std::uint16_t> wanted;
    for (std::uint16_t i = 0; i < count; ++i) {
      const auto position = static_cast<std::uint16_t>(1000 - i);
      positions.push_back(position);
      wanted.push_back(position);
    }
    EXPECT_EQ(listed(positions), wanted);
    EXPECT_EQ(positions.size(), wanted.size());
    EXPECT_EQ(positions.empty(), wanted.empty());

    Positions copy = positions;
    EXPECT_EQ(copy, positions);
    const Positions moved = std::move(positions);
    EXPECT_EQ(listed(moved), wanted);
    copy.clear();
    EXPECT_TRUE(copy.empty());
    copy.push_back(3);
    EXPECT_EQ(listed(copy), std::vector<std::uint16_t>{3}) << count;
    EXPECT_EQ(listed(moved), wanted) << "a copy is its own";
  }
}

TEST(Positions, AnAssignedListForgetsWhatItHad) {
  Positions many;
  for (std::uint16_t i = 0; i < 20; ++i) many.push_back(i);
  Positions few{5, 2};
  Positions target = many;
  target = few;
  EXPECT_EQ(listed(target), (std::vector<std::uint16_t>{5, 2}));
  target = many;
  EXPECT_EQ(target, many);
  target = std::move(few);
  EXPECT_EQ(listed(target), (std::vector<std::uint16_t>{5, 2}));
  EXPECT_FALSE(target == many);
}

}  // namespace
}  // namespace muster::engine
