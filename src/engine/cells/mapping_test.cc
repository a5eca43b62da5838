// Promises that only a gang of several preassigned cells, bad nodes and a recovery can break. Found
// by dst.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/cells/allocator.h"

namespace muster::engine::cells {
namespace {

/// `tops` cells, each one pair of nodes of three devices: n0 and n1, n2 and n3, ...
Config pairs(int tops) {
  Config config;
  config.cell_types = {
      {"node", "gpu", 3, true, 0}, {"pair", "node", 2, false, 0}, {"top", "pair", 1, false, 0}};
  for (int t = 0; t < tops; ++t) {
    PhysicalCellSpec pair;
    for (int n = 2 * t; n < 2 * t + 2; ++n) {
      PhysicalCellSpec node;
      node.address = fmt::format("n{}", n);
      pair.children.push_back(node);
    }
    PhysicalCellSpec top;
    top.type = "top";
    top.children.push_back(pair);
    config.physical_cells.push_back(top);
  }
  return config;
}

PodSpec gang(const std::string& vc, std::int32_t priority, std::int32_t pods) {
  PodSpec spec;
  spec.vc = vc;
  spec.priority = priority;
  spec.leaves = 3;
  spec.group = vc + "-gang";
  spec.members = {{pods, 3}};
  return spec;
}

/// Healthy: n0 and n1, n2, n5. "a" is promised a pair, "b" asks for its three nodes. Opportunistic
/// pods make n1 the least wanted, so that the tempting choice is one node of every pair, which
/// leaves no pair for "a".
void relaxed(std::vector<std::int32_t> on_n0, Decision::Kind want) {
  Config config = pairs(3);
  config.virtual_clusters = {{"a", {{"top.pair", 1, 0}, {"top.pair.node", 1, 0}}, {}, 0},
                             {"b", {{"top.pair.node", 3, 0}}, {}, 0}};
  auto made = CellAllocator::create(config, {});
  ASSERT_TRUE(made) << made.error().message;
  CellAllocator cells = std::move(*made);
  for (const char* node : {"n0", "n1", "n2", "n5"}) cells.set_node(node, true);
  for (const char* node : {"n3", "n4"}) cells.set_node(node, false);
  const auto occupy = [&](const std::string& node, std::vector<std::int32_t> leaves) {
    PodSpec spec = gang("b", -1, 1);
    spec.group = "on-" + node;
    spec.leaves = static_cast<std::int32_t>(leaves.size());
    spec.members = {{1, spec.leaves}};
    auto group = std::make_shared<std::vector<MemberPlacement>>(1);
    (*group)[0].pods.push_back({node, leaves, std::vector<std::string>(leaves.size())});
    ASSERT_TRUE(cells.add_allocated(
        {spec.group, "ns/" + spec.group}, spec, {node, leaves, "top", group}, Time{}));
  };
  occupy("n0", std::move(on_n0));
  occupy("n1", {0, 1, 2});
  occupy("n2", {0});
  const PodSpec spec = gang("b", 0, 3);
  const PodRef pod{"b0", "ns/b0"};
  const Decision decision = cells.schedule({pod, spec, Phase::kPreempting, nullptr, Time{}});
  EXPECT_EQ(decision.kind, want) << decision.reason;
  EXPECT_EQ(cells.find_group(spec.group) != nullptr, want == Decision::Kind::kPreempt)
      << "a preemption reserves";
  const Chain& chain = cells.cells().chain(0);
  EXPECT_EQ(chain.all_vc_free[3] + chain.all_vc_doomed[3], 1);
  EXPECT_GE(chain.total_left[3] + chain.all_vc_doomed[3], 1);
}

TEST(Mapping, RelaxedAllocationTakesTheSecondNodeOfAPairItHasOpened) {
  relaxed({0}, Decision::Kind::kPreempt);  // n5, n0, and n1 though n2 is emptier
}

TEST(Mapping, RelaxedAllocationLeavesThePairThatAnotherWasPromised) {
  relaxed({0, 1}, Decision::Kind::kWait);  // n5, n2, and the other node of both is bad
}

/// A gang whose later pods were bound after a downgrade: the pod that is listed first speaks for
/// all, as in HiveD.
TEST(Recovery, TheFirstPodOfAGangSaysWhetherItIsGuaranteed) {
  Config config = pairs(1);
  config.virtual_clusters = {{"a", {{"top.pair", 1, 0}}, {}, 0}};
  const PodSpec spec = gang("a", 0, 2);
  const auto bound = [](int i, const std::string& type) {
    auto group = std::make_shared<std::vector<MemberPlacement>>(1);
    for (const char* node : {"n0", "n1"})
      (*group)[0].pods.push_back({node, {0, 1, 2}, {type, type, type}});
    return BindInfo{fmt::format("n{}", i), {0, 1, 2}, "top", group};
  };
  for (const bool older_first : {true, false}) {
    auto made = CellAllocator::create(config, {});
    ASSERT_TRUE(made) << made.error().message;
    CellAllocator cells = std::move(*made);
    cells.set_node("n0", true);
    cells.set_node("n1", true);
    for (const int i : older_first ? std::vector<int>{0, 1} : std::vector<int>{1, 0}) {
      const PodRef pod{fmt::format("a{}", i), fmt::format("ns/a{}", i)};
      ASSERT_TRUE(cells.add_allocated(pod, spec, bound(i, i == 0 ? "pair" : ""), Time{}));
    }
    const Group* group = cells.find_group(spec.group);
    ASSERT_NE(group, nullptr);
    EXPECT_EQ(group->has_virtual, older_first);
    EXPECT_EQ(cells.cells().chain(0).all_vc_free[3], older_first ? 0 : 1)
        << "the promise is used, or free again";
  }
}

}  // namespace
}  // namespace muster::engine::cells
