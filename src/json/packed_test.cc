#include "json/packed.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"

namespace muster::json {
namespace {

Value parsed(std::string_view text) {
  auto value = parse(text);
  EXPECT_TRUE(value) << text;
  return value ? std::move(*value) : Value();
}

Value pod(int number, std::string_view second) {
  Object conditions_at{{"lastTransitionTime", fmt::format("2026-11-18T00:00:{}Z", second)}};
  Array conditions;
  for (const char* type : {"PodScheduled", "Initialized", "ContainersReady", "Ready"}) {
    Object condition{{"type", type}, {"status", "True"}, {"lastProbeTime", nullptr}};
    condition.insert(conditions_at.begin(), conditions_at.end());
    conditions.push_back(std::move(condition));
  }
  return Object{
      {"kind", "Pod"},
      {"metadata",
       Object{{"name", fmt::format("worker-{}", number)},
              {"uid", fmt::format("46af36a7-60db-4ec3-8acf-{:012}", number)},
              {"labels", Object{{"training.kubeflow.org/job-name", "a-job-with-a-long-name"}}}}},
      {"spec",
       Object{{"nodeName", fmt::format("node-{}", number)},
              {"containers",
               Array{Object{{"name", "pytorch"},
                            {"image", "registry.example/team/training:2.4.1-cuda12"},
                            {"resources", Object{{"limits", Object{{"nvidia.com/gpu", 8}}}}}}}}}},
      {"status", Object{{"phase", "Running"}, {"conditions", std::move(conditions)}}}};
}

TEST(Packed, ReadsAsTheTreeItWasMadeOf) {
  Packer packer;
  Object many;
  for (int i = 0; i < 40; ++i) many[fmt::format("a member with number {}", i)] = i;
  std::vector<Value> trees;
  for (const char* text : {"null",
                           "true",
                           "-7",
                           "18446744073709551615",
                           "0.1",
                           R"("")",
                           R"("short")",
                           R"("a text that is too long to stand in the value itself")",
                           "[]",
                           "{}",
                           R"({"":{"":[[],{},""]}})",
                           R"({"b":1,"a":[1,1.0,"1",true,null],"c":{"long":"fifteen letters"}})"})
    trees.push_back(parsed(text));
  trees.emplace_back(many);
  trees.emplace_back(Array{many, many, Object{{"inside", many}}});
  trees.push_back(pod(1, "00"));
  for (const Value& tree : trees) {
    // The third time parts of it are shared.
    for (int i = 0; i < 3; ++i) {
      const Packed packed = packer.pack(tree);
      EXPECT_EQ(dump(packed), dump(tree));
      EXPECT_TRUE(equal(packed, tree));
    }
  }
  const Packed packed = packer.pack(many);
  for (const auto& member : many)
    EXPECT_EQ(at(packed, member.key()).as_int64(), member.value().as_int64()) << member.key();
  EXPECT_EQ(packer.counts().misjudged, 0U);
}

TEST(Packed, ACopyIsAnOrdinaryTree) {
  Packer packer;
  const Packed first = packer.pack(pod(1, "00"));
  Value copy;
  {
    const Packed second = packer.pack(pod(2, "00"));
    copy = Value(second.value());
  }
  make(copy, {"metadata", "name"}) = "changed, and longer than what was there before";
  make(copy, {"status", "conditions"}).as_array().emplace_back("one more");
  make(copy, {"spec", "containers"}).as_array().clear();
  EXPECT_EQ(dump(first), dump(pod(1, "00")));
  EXPECT_EQ(string_at(copy, "metadata", "name"), "changed, and longer than what was there before");
}

TEST(Packed, WhatTreesHaveInCommonIsThereOnceAndGoesWithTheLastOfThem) {
  Packer packer;
  std::vector<Packed> all;
  for (int i = 0; i < 3; ++i) all.push_back(packer.pack(pod(i, "00")));
  const std::size_t before = packer.counts().bytes;
  for (int i = 3; i < 1003; ++i) all.push_back(packer.pack(pod(i, "00")));
  const std::size_t each = (packer.counts().bytes - before) / 1000;
  EXPECT_LT(each, 1100U) << "a pod by itself takes 2,000 bytes";
  EXPECT_EQ(packer.counts().trees, 1003U);
  EXPECT_GT(packer.counts().parts, 0U);
  EXPECT_EQ(dump(all.back()), dump(pod(1002, "00")));
  // Other pods with other conditions from now on, and nobody has the old ones any more.
  const std::size_t parts = packer.counts().parts;
  for (int i = 0; i < 1003; ++i)
    all[static_cast<std::size_t>(i)] = packer.pack(pod(2000 + i, "01"));
  EXPECT_LE(packer.counts().parts, parts);
  EXPECT_EQ(dump(all.front()), dump(pod(2000, "01")));
  all.clear();
  EXPECT_EQ(packer.counts().trees, 0U);
  EXPECT_EQ(packer.counts().parts, 0U);
  EXPECT_EQ(packer.counts().bytes, 0U);
  EXPECT_EQ(packer.counts().misjudged, 0U);
}

TEST(Packed, OutlivesItsPacker) {
  Packed kept;
  {
    Packer packer;
    for (int i = 0; i < 4; ++i) kept = packer.pack(pod(i, "00"));
  }
  EXPECT_EQ(dump(kept), dump(pod(3, "00")));
}

/// A tree of few words, so that parts of it are met again and again.
Value any_tree(Random& random, int depth) {
  const auto kind = random.next() % (depth > 0 ? 8 : 6);
  switch (kind) {
    case 0:
      return nullptr;
    case 1:
      return static_cast<std::int64_t>(random.next() % 3) - 1;
    case 2:
      return random.next() % 2 == 0;
    case 3:
      return String(fmt::format("{}", random.next() % 4));
    case 4:
      return String(random.next() % 40, 'x');
    case 5:
      return String(fmt::format("a longer text that ends in {}", random.next() % 3));
    case 6: {
      Array array;
      for (auto left = random.next() % 4; left > 0; --left)
        array.push_back(any_tree(random, depth - 1));
      return array;
    }
    default: {
      Object object;
      for (auto left = random.next() % 24; left > 0; --left)
        object[fmt::format("key-{}", random.next() % 30)] = any_tree(random, depth - 1);
      return object;
    }
  }
}

TEST(Packed, AnyTreesOnSeveralThreads) {
  Packer packer;
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&packer, seed] {
      Random random(seed);
      std::vector<std::pair<Packed, std::string>> held(32);
      for (int i = 0; i < 3000; ++i) {
        const Value tree = any_tree(random, 3);
        auto& [packed, text] = held[random.next() % held.size()];
        if (!text.empty()) EXPECT_EQ(dump(packed), text);
        packed = packer.pack(tree);
        text = dump(tree);
      }
      for (const auto& [packed, text] : held) {
        if (!text.empty()) EXPECT_EQ(dump(packed), text);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const Packer::Counts counts = packer.counts();
  EXPECT_EQ(counts.trees, 0U);
  EXPECT_EQ(counts.parts, 0U);
  EXPECT_EQ(counts.bytes, 0U);
  EXPECT_EQ(counts.misjudged, 0U);
}

}  // namespace
}  // namespace muster::json
