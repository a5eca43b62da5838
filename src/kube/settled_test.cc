#include "kube/settled.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace muster::kube {
namespace {

ObjectPtr shared(json::Value value) {
  return std::make_shared<const json::Value>(std::move(value));
}

TEST(Settled, WhatTextCouldHaveGivenIsNotCopied) {
  const ObjectPtr object = shared({{"a", json::Array{1, 0.5, "ü", nullptr, true}},
                                   {"b", std::numeric_limits<std::uint64_t>::max()}});
  const auto result = settled(object);
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, object);
}

TEST(Settled, OneKindOfWholeNumber) {
  const ObjectPtr object = shared({{"a", json::Array{std::uint64_t{7}}}});
  const auto result = settled(object);
  ASSERT_TRUE(result);
  EXPECT_NE(*result, object);
  EXPECT_TRUE(json::array_at(**result, "a")[0].is_int64());
}

TEST(Settled, WhatJsonHasNotIsRefused) {
  EXPECT_FALSE(settled(shared({{"a", "\xff"}})));
  EXPECT_FALSE(settled(shared({{"\xc0\x80", "a"}})));
  EXPECT_FALSE(settled(shared({{"a", json::Array{std::numeric_limits<double>::infinity()}}})));
}

}  // namespace
}  // namespace muster::kube
