#include "engine/model/resources.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

/// 1, 2, 3 … of so many resources.
ResourceVector rising(std::size_t count) {
  ResourceVector v;
  for (std::size_t i = 0; i < count; ++i) v.set(i, static_cast<std::int64_t>(i) + 1);
  return v;
}

TEST(ResourceVector, FewAndManyBehaveAlike) {
  for (std::size_t a = 0; a <= ResourceVector::kMax; ++a) {
    for (std::size_t b = 0; b <= ResourceVector::kMax; ++b) {
      const ResourceVector x = rising(a), y = rising(b);
      const ResourceVector sum = x + y, left = sum - y;
      for (std::size_t i = 0; i < ResourceVector::kMax; ++i) {
        EXPECT_EQ(sum[i], x[i] + y[i]) << a << " " << b << " " << i;
        EXPECT_EQ(left[i], x[i]);
      }
      EXPECT_EQ(left, x);
      EXPECT_EQ(x == y, a == b);
      EXPECT_EQ(x.all_le(y), a <= b);
      EXPECT_EQ(x.fits_in(y), a <= b);
      ResourceVector copy = y;
      copy = x;
      EXPECT_EQ(copy, x);
      copy.add(0, 5);
      EXPECT_EQ(x[0], a > 0 ? 1 : 0);
      ResourceVector moved = std::move(copy);
      EXPECT_EQ(moved[0], x[0] + 5);
    }
  }
}

TEST(ResourceVector, WhatWasNeverSetIsNothing) {
  ResourceVector v;
  v.set(10, 7);
  EXPECT_EQ(v[9], 0);
  EXPECT_EQ(v[10], 7);
  EXPECT_EQ(v[19], 0);
  EXPECT_FALSE(v.is_zero());
  v.scale(0);
  EXPECT_TRUE(v.is_zero());
  EXPECT_EQ(v, ResourceVector());
}

}  // namespace
}  // namespace muster::engine
