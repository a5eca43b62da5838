#include "scheduler/cells.h"

#include <gtest/gtest.h>

#include "hived/annotations.h"
#include "hived/config.h"

namespace muster::scheduler {
namespace {

constexpr Time kNow{1'700'000'000'000'000};
const GangGate kOpen = [](const std::string&) -> std::optional<std::string> {
  return std::nullopt;
};

/// Two nodes of 2 switches with 2 devices in each chain; `a` owns two nodes, `b` one.
std::unique_ptr<CellQueue> queue() {
  const auto config = hived::parse_config(R"(
physicalCluster:
  cellTypes:
    SWITCH: {childCellType: K80, childCellNumber: 2}
    NODE: {childCellType: SWITCH, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
  - {cellType: NODE, cellAddress: n0}
  - {cellType: NODE, cellAddress: n1}
  - {cellType: NODE, cellAddress: n2}
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 2}]}
  b: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
)");
  auto made = CellQueue::create(config->cells, "nvidia.com/gpu");
  for (const char* node : {"n0", "n1", "n2"}) (*made)->node_seen(node, true);
  return std::move(*made);
}

CellRequest pod(const std::string& name,
                std::int32_t leaves,
                const std::string& vc = "a",
                const std::string& gang = "") {
  CellRequest out;
  out.ns = "ns";
  out.name = name;
  out.uid = "u-" + name;
  out.virtual_cluster = vc;
  out.queue = vc;
  out.gang = gang;
  out.leaves = leaves;
  out.created = kNow;
  return out;
}

std::string reason_of(const CellPlan& plan, const std::string& key) {
  for (const CellWait& wait : plan.waits) {
    if (wait.pod == key) return wait.reason;
  }
  return "";
}

TEST(CellQueue, AGangWithoutAnnotationStartsWhole) {
  auto cells = queue();
  cells->pod_seen(pod("w0", 4, "a", "volcano:ns/job"), kNow);
  const GangGate one_of_two = [](const std::string&) {
    return std::optional<std::string>("its gang ns/job has 1 of 2 pods");
  };
  EXPECT_EQ(reason_of(cells->decide(kNow, one_of_two), "ns/w0"), "its gang ns/job has 1 of 2 pods");
  cells->pod_seen(pod("w1", 4, "a", "volcano:ns/job"), kNow);
  const CellPlan plan = cells->decide(kNow, kOpen);
  ASSERT_EQ(plan.binds.size(), 2U);
  EXPECT_NE(plan.binds[0].node, plan.binds[1].node);
  const auto spec = hived::parse_scheduling_spec(plan.binds[0].scheduling_spec, "ns", "w0");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->group, "ns/job");
  ASSERT_EQ(spec->members.size(), 1U);
  EXPECT_EQ(spec->members[0].pods, 2);
  // One that comes later comes on top, alone.
  cells->pod_seen(pod("w2", 1, "a", "volcano:ns/job"), kNow);
  EXPECT_NE(reason_of(cells->decide(kNow, kOpen), "ns/w2").find("insufficient capacity"),
            std::string::npos);
}

TEST(CellQueue, WhatIsWrittenOnThePodIsEnoughForARestart) {
  auto cells = queue();
  cells->pod_seen(pod("w0", 2), kNow);
  const CellPlan plan = cells->decide(kNow, kOpen);
  ASSERT_EQ(plan.binds.size(), 1U);
  auto again = queue();
  CellRequest found = pod("w0", 2);
  found.node = plan.binds[0].node;
  found.scheduling_spec = plan.binds[0].scheduling_spec;
  found.bind_info = plan.binds[0].bind_info;
  again->pod_seen(found, kNow);
  const auto* group = again->allocator().find_group("ns/w0");
  ASSERT_NE(group, nullptr);
  EXPECT_TRUE(group->has_virtual);
  EXPECT_EQ(group->allocated_pods, 1);
}

TEST(CellQueue, APodBoundBeforeTheCellsHoldsItsDevicesAndGivesWay) {
  auto cells = queue();
  CellRequest old = pod("old", 2, "");
  old.node = "n0";
  old.device_indexes = {0, 1};
  cells->pod_seen(old, kNow);
  cells->pod_seen(pod("w0", 4), kNow);
  cells->pod_seen(pod("w1", 4), kNow);
  EXPECT_EQ(cells->decide(kNow, kOpen).binds.size(), 2U);
  cells->pod_seen(pod("w2", 4, "b"), kNow);
  const CellPlan plan = cells->decide(kNow, kOpen);
  ASSERT_EQ(plan.evicts.size(), 1U);
  EXPECT_EQ(plan.evicts[0].pod, "ns/old");
  cells->pod_gone("ns/old");
  ASSERT_EQ(cells->decide(kNow, kOpen).binds.size(), 1U);
}

TEST(CellQueue, QueuesBelowAVirtualClusterKeepTheirLimitAndShare) {
  auto cells = queue();
  engine::Queue parent, child, other;
  parent.name = "vision";
  parent.virtual_cluster = "a";
  parent.capability = {{"nvidia.com/gpu", 3}};
  child.name = "child";
  child.parent = "vision";
  other.name = "other";
  other.virtual_cluster = "a";
  for (const engine::Queue& one : {parent, child, other}) cells->queue_seen(one);
  EXPECT_EQ(cells->virtual_cluster_of("child"), "a");
  EXPECT_EQ(cells->virtual_cluster_of("b"), "b");
  EXPECT_EQ(cells->virtual_cluster_of("nobody"), "");
  const auto in_queue =
      [&](const std::string& name, std::int32_t leaves, const std::string& queue_name) {
        CellRequest request = pod(name, leaves);
        request.queue = queue_name;
        cells->pod_seen(request, kNow);
      };
  in_queue("c0", 2, "child");
  EXPECT_EQ(cells->decide(kNow, kOpen).binds.size(), 1U);
  in_queue("c1", 2, "child");
  EXPECT_EQ(reason_of(cells->decide(kNow, kOpen), "ns/c1"),
            "queue vision may hold 3 nvidia.com/gpu, holds 2, and this gang needs 2");
  // Among equals the queue with the smaller share goes first.
  in_queue("c2", 1, "child");
  in_queue("o0", 1, "other");
  const CellPlan plan = cells->decide(kNow, kOpen);
  ASSERT_EQ(plan.binds.size(), 2U);
  EXPECT_EQ(plan.binds[0].pod, "ns/o0");
}

TEST(CellQueue, AGangThatWaitsLongHasItsVirtualClusterKeptFree) {
  auto cells = queue();
  CellRequest runs = pod("runs", 2);
  runs.expected_duration = std::chrono::hours(1);
  cells->pod_seen(runs, kNow);
  ASSERT_EQ(cells->decide(kNow, kOpen).binds.size(), 1U);
  runs.node = "n0";
  runs.started = kNow;
  cells->pod_seen(runs, kNow);
  CellRequest big = pod("big0", 4, "a", "volcano:ns/big");
  cells->pod_seen(big, kNow);
  big.name = "big1";
  big.uid = "u-big1";
  cells->pod_seen(big, kNow);
  const CellPlan first = cells->decide(kNow, kOpen);
  EXPECT_NE(
      reason_of(first, "ns/big0")
          .find("a needs 2 x 4 leaf cells, each pod in one cell; of 2 NODE 1 free, 1 partly free"),
      std::string::npos)
      << reason_of(first, "ns/big0");
  ASSERT_TRUE(first.wake);
  const Time later = *first.wake;
  CellRequest small = pod("small", 1);
  small.created = later;
  cells->pod_seen(small, later);
  const CellPlan held = cells->decide(later, kOpen);
  EXPECT_TRUE(held.binds.empty());
  EXPECT_NE(reason_of(held, "ns/small").find("a is kept free for ns/big"), std::string::npos)
      << reason_of(held, "ns/small");
  // One that ends before the running one does delays nobody.
  CellRequest brief = pod("brief", 1);
  brief.created = later;
  brief.expected_duration = std::chrono::minutes(10);
  cells->pod_seen(brief, later);
  ASSERT_EQ(cells->decide(later, kOpen).binds.size(), 1U);
  // Nor does an opportunistic one, or one of another virtual cluster.
  CellRequest idle = pod("idle", 1);
  idle.priority = -5;
  cells->pod_seen(idle, later);
  cells->pod_seen(pod("other", 1, "b"), later);
  EXPECT_EQ(cells->decide(later, kOpen).binds.size(), 2U);
}

}  // namespace
}  // namespace muster::scheduler
