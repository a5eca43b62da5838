#include "json/memory.h"

#include <gtest/gtest.h>

namespace muster::json {
namespace {

constexpr std::string_view kPod =
    R"({"metadata":{"name":"a","labels":{"app":"a name that is longer than what a value holds"}},"spec":{"containers":[{"name":"main","ports":[1,2,3]}]}})";

TEST(Memory, ATreeReadsAsAnyOther) {
  Memory memory;
  const auto tree = parse(kPod, nullptr, memory.storage());
  ASSERT_TRUE(tree);
  EXPECT_EQ(*tree, *parse(kPod));
}

TEST(Memory, WhatIsAssignedLiesInTheTreesMemory) {
  Memory memory;
  Value tree(*parse(kPod), memory.storage());
  make(tree, {"spec", "added"}) = *parse(R"(["a text that is longer than what a value holds"])");
  EXPECT_EQ(at(tree, "spec", "added").storage(), memory.storage());
}

TEST(Memory, ATreeMayBeDestroyedAfterItsMemory) {
  Value kept;
  auto memory = std::make_unique<Memory>();
  auto tree = std::make_unique<Value>(*parse(kPod), memory->storage());
  kept = *tree;  // a value of its own
  memory.reset();
  tree.reset();
  EXPECT_EQ(kept, *parse(kPod));
}

TEST(Memory, ReplaceTakesTheTreeAndItsMemory) {
  Memory memory;
  Value tree(*parse(kPod), memory.storage());
  const void* place = &at(tree, "metadata");
  Value target = "before";
  replace(target, std::move(tree));
  EXPECT_EQ(&at(target, "metadata"), place);
  EXPECT_EQ(target, *parse(kPod));
}

}  // namespace
}  // namespace muster::json
