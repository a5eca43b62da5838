#include <gtest/gtest.h>

#include "hived/annotations.h"
#include "hived/config.h"
#include "hived/explain.h"
#include "hived/extender.h"
#include "hived/tree.h"
#include "lib/data.h"

namespace muster::hived {
namespace {

using namespace engine::cells;

constexpr const char* kCluster = R"(physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
    POOL: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
  - cellType: POOL
    cellChildren:
    - cellAddress: n0
    - cellAddress: n1
)";

std::string with_vcs(const std::string& vcs) {
  return std::string(kCluster) + "virtualClusters:\n" + vcs;
}

std::string load_error(const std::string& yaml) {
  const auto config = parse_config(yaml);
  if (!config) return config.error().message;
  const auto allocator = CellAllocator::create(config->cells, {});
  return allocator ? "" : allocator.error().message;
}

CellAllocator load(const std::string& yaml) {
  auto allocator = CellAllocator::create(parse_config(yaml)->cells, {});
  for (const Node& node : std::vector<Node>(allocator->cells().nodes))
    allocator->set_node(node.name, true);
  return std::move(*allocator);
}

PodSpec spec_of(const std::string& vc,
                std::int32_t priority,
                std::int32_t leaves,
                const std::string& group,
                std::int32_t pods = 1) {
  PodSpec spec;
  spec.vc = vc;
  spec.priority = priority;
  spec.leaves = leaves;
  spec.group = group;
  spec.members = {{pods, leaves}};
  return spec;
}

struct BadFile {
  const char* name;
  std::string yaml;
  const char* error;  // must be part of the message
};

TEST(HivedConfig, EveryInvalidFileSaysWhereAndWhat) {
  const BadFile cases[] = {
      {"not YAML", "a: [1", "line 2: not YAML"},
      {"number expected",
       "physicalCluster:\n  cellTypes:\n    A: {childCellType: G, childCellNumber: many}\n",
       "line 3: childCellNumber: wanted a whole number of 32 bits, such as 2, found \"many\""},
      {"list expected",
       "physicalCluster:\n  physicalCells: {}\n",
       "line 2: physicalCells: wanted a list"},
      {"unknown top type",
       "physicalCluster:\n  cellTypes:\n    NODE: {childCellType: G, childCellNumber: 1, isNodeLevel: true}\n  physicalCells:\n  - cellType: NODES\n",
       "line 5: physicalCells contains unknown cellType: NODES"},
      {"top below node",
       "physicalCluster:\n  cellTypes:\n    SW: {childCellType: G, childCellNumber: 1}\n  physicalCells:\n  - cellType: SW\n",
       "line 5: top cell must be node-level or above: SW"},
      {"type cycle",
       "physicalCluster:\n  cellTypes:\n    A: {childCellType: B, childCellNumber: 1}\n    B: {childCellType: A, childCellNumber: 1}\n",
       "contains itself"},
      {"leaf address",
       "physicalCluster:\n  cellTypes:\n    NODE: {childCellType: G, childCellNumber: 1, isNodeLevel: true}\n  physicalCells:\n  - cellType: NODE\n    cellChildren:\n    - cellAddress: x\n",
       "line 7: cell \"0/x\": the address of a leaf cell is its device index, invalid literal for int32"},
      {"unknown VC type",
       with_vcs("  a:\n    virtualCells:\n    - {cellType: POOL.NOD, cellNumber: 1}\n"),
       "line 13: virtualClusters.a: unknown cell type \"NOD\""},
      {"unknown chain",
       with_vcs("  a:\n    virtualCells:\n    - {cellType: NODE, cellNumber: 1}\n"),
       "Chain NODE does not exists in physical cluster"},
      {"too much",
       with_vcs("  a:\n    virtualCells:\n    - {cellType: POOL.NODE, cellNumber: 3}\n"),
       "Insufficient physical cells at chain POOL level 2: 3 needed, 2 available"},
      {"unknown pin",
       with_vcs("  a:\n    pinnedCells:\n    - pinnedCellId: p\n"),
       "line 13: pinned cell not found in physicalCells: VC: a, ID: p"},
  };
  for (const BadFile& c : cases)
    EXPECT_NE(load_error(c.yaml).find(c.error), std::string::npos)
        << c.name << ": " << load_error(c.yaml);
}

TEST(HivedConfig, OddFilesAreAcceptedWithWarnings) {
  EXPECT_EQ(load_error(""), "");
  EXPECT_EQ(load_error(kCluster), "");  // a chain that nobody owns
  EXPECT_EQ(load_error(with_vcs(
                "  a:\n    virtualCells:\n    - {cellType: POOL.WRONG.NODE, cellNumber: 1}\n")),
            "");
  EXPECT_EQ(
      load_error(with_vcs(
          "  a:\n    virtualCells:\n    - {cellType: POOL.NODE, cellNumber: 0}\n  b: null\n")),
      "");
}

TEST(HivedAnnotations, BindInfoReadsBackAsWritten) {
  BindInfo bind;
  bind.node = "10.0";  // looks like a number, is a name
  bind.leaves = {3, 1};
  bind.chain = "POOL";
  bind.group = std::make_shared<std::vector<MemberPlacement>>(std::vector<MemberPlacement>{
      {{{"10.0", {3, 1}, {"NODE", "NODE"}}, {"n1", {0, 2}, {"", ""}}}}});
  const std::string text = format_bind_info(bind);
  const auto read = parse_bind_info(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->node, bind.node);
  EXPECT_EQ(read->leaves, bind.leaves);
  EXPECT_EQ(*read->group, *bind.group);
  EXPECT_EQ(text.substr(0, text.find('\n')), "node: \"10.0\"");
  EXPECT_EQ(format_isolation(bind), "3,1");
}

TEST(HivedAnnotations, OldNamesAndWrongSpecs) {
  const auto old =
      parse_scheduling_spec("virtualCluster: a\ngpuType: GPU\ngpuNumber: 2\n", "ns", "p");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->leaf_type, "GPU");
  EXPECT_EQ(old->leaves, 2);
  EXPECT_EQ(old->group, "ns/p");
  const std::pair<const char*, const char*> cases[] = {
      {"", "does not exist or is empty"},
      {"priority: 1", "VirtualCluster is empty"},
      {"{virtualCluster: a, priority: -2}", "Priority is less than -1"},
      {"{virtualCluster: a, priority: 1001}", "Priority is greater than 1000"},
      {"{virtualCluster: a}", "LeafCellNumber is non-positive"},
      {"{virtualCluster: a, leafCellNumber: 1, affinityGroup: {members: []}}",
       "AffinityGroup.Name is empty"},
      {"{virtualCluster: a, leafCellNumber: 1, affinityGroup: {name: g, members: [{podNumber: 0, leafCellNumber: 1}]}}",
       "non-positive PodNumber"},
      {"{virtualCluster: a, leafCellNumber: 1, affinityGroup: {name: g, members: [{podNumber: 1, leafCellNumber: 2}]}}",
       "does not contains current Pod"},
      {"{virtualCluster: a, leafCellNumber: x}", "wanted a whole number, found \"x\""},
  };
  for (const auto& [yaml, text] : cases) {
    const auto spec = parse_scheduling_spec(yaml, "ns", "p");
    ASSERT_FALSE(spec) << yaml;
    EXPECT_NE(spec.error().message.find(text), std::string::npos) << spec.error().message;
  }
}

TEST(HivedCheck, TellsWhoWouldBeDowngraded) {
  const auto old_config = *parse_config(
      with_vcs("  a:\n    virtualCells:\n    - {cellType: POOL.NODE, cellNumber: 1}\n"));
  const auto new_config = *parse_config(
      with_vcs("  b:\n    virtualCells:\n    - {cellType: POOL.NODE, cellNumber: 2}\n"));
  CellAllocator allocator =
      load(with_vcs("  a:\n    virtualCells:\n    - {cellType: POOL.NODE, cellNumber: 1}\n"));
  const PodRef pod{"u1", "ns/p1"};
  const PodSpec spec = spec_of("a", 10, 4, "job");
  const Decision decision = allocator.schedule({pod, spec, Phase::kFiltering, nullptr, Time{}});
  ASSERT_EQ(decision.kind, Decision::Kind::kBind);
  ASSERT_TRUE(allocator.add_allocated(pod, spec, decision.bind, Time{}));
  const auto report = check(old_config, new_config, {{pod, spec, decision.bind}});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->changes.size(), 1U);
  EXPECT_EQ(report->changes[0].effect, GroupChange::Effect::kDowngraded);
  EXPECT_NE(to_string(*report).find("virtual cluster \"a\" is gone"), std::string::npos)
      << to_string(*report);
  const std::string tree = tree_text(allocator, {});
  EXPECT_NE(tree.find("NODE 0/n0 = a/0  [0-3] job (a, priority 10)"), std::string::npos) << tree;
  EXPECT_NE(tree.find("virtual cluster a"), std::string::npos);
}

TEST(HivedExplain, NamesWhatIsFreeAndWhoHoldsTheRest) {
  CellAllocator allocator =
      load(with_vcs("  a:\n    virtualCells:\n    - {cellType: POOL.NODE, cellNumber: 1}\n"));
  const PodRef pod{"u1", "ns/p1"};
  const PodSpec small = spec_of("a", 10, 1, "small");
  const Decision decision = allocator.schedule({pod, small, Phase::kFiltering, nullptr, Time{}});
  ASSERT_TRUE(allocator.add_allocated(pod, small, decision.bind, Time{}));
  EXPECT_EQ(
      allocator.explain(spec_of("a", 10, 4, "big")),
      "a needs 1 x 4 leaf cells, each pod in one cell; of 1 NODE 0 free, 1 partly free (at most 3 in one): free one or wait for small");
}

TEST(HivedExplain, AFreeCellDoesNotHideWhomAGangWaitsFor) {
  CellAllocator allocator =
      load(with_vcs("  a:\n    virtualCells:\n    - {cellType: POOL.NODE, cellNumber: 2}\n"));
  const PodRef pod{"u1", "ns/p1"};
  const PodSpec small = spec_of("a", 10, 2, "small");
  const Decision decision = allocator.schedule({pod, small, Phase::kFiltering, nullptr, Time{}});
  ASSERT_TRUE(allocator.add_allocated(pod, small, decision.bind, Time{}));
  EXPECT_EQ(
      allocator.explain(spec_of("a", 10, 4, "gang", 2)),
      "a needs 2 x 4 leaf cells, each pod in one cell; of 2 NODE 1 free, 1 partly free (at most 2 in one): free one or wait for small");
}

TEST(HivedExtender, FilterBindAndInspect) {
  auto extender = Extender::create(*parse_config(
      with_vcs("  a:\n    virtualCells:\n    - {cellType: POOL.NODE, cellNumber: 1}\n")));
  ASSERT_TRUE(extender);
  extender->node_added("n0", true);
  extender->node_added("n1", true);
  const std::string pod =
      R"({"metadata":{"name":"p","namespace":"ns","uid":"u","annotations":{"hivedscheduler.microsoft.com/pod-scheduling-spec":"virtualCluster: a\nleafCellNumber: 2\n"}},
    "spec":{"containers":[{"resources":{"limits":{"hivedscheduler.microsoft.com/pod-scheduling-enable":1}}}]}})";
  const std::string request = R"({"Pod":)" + pod + R"(,"NodeNames":["n0","n1"]})";
  EXPECT_NE(extender->handle("POST", "/v1/extender/filter", request, Time{}).body.find("Code: 400"),
            std::string::npos);  // not informed yet
  extender->pod_added(*json::parse(pod), Time{});
  EXPECT_EQ(extender->handle("POST", "/v1/extender/filter", request, Time{}).body,
            R"({"Nodes":null,"NodeNames":["n0"],"FailedNodes":null,"Error":""})");
  const std::string bind = R"({"podName":"p","podNamespace":"ns","podUID":"u","node":"n0"})";
  const HttpAnswer asked = extender->handle("POST", "/v1/extender/bind", bind, Time{});
  ASSERT_TRUE(asked.waits_for_binding);
  EXPECT_EQ(json::text_at(asked.binding, "metadata", "annotations", kLeafCellIsolation), "0,1");
  EXPECT_EQ(Extender::bound(asked.binding, 201).body, R"({"Error":""})");
  EXPECT_NE(Extender::bound(asked.binding, 409).body.find("Code: 500"), std::string::npos);
  json::Value bound = *json::parse(pod);
  json::make(bound, {"spec", "nodeName"}) = "n0";
  extender->pod_updated(bound, Time{});
  const HttpAnswer again = extender->handle("POST", "/v1/extender/bind", bind, Time{});
  EXPECT_TRUE(again.binding.is_null());
  EXPECT_NE(again.body.find("Pod has already been bound to node n0"), std::string::npos);
  EXPECT_EQ(extender->handle("GET", "/v1/inspect/affinitygroups/ns/p", "", Time{}).status, 200);
  EXPECT_EQ(extender->handle("GET", "/v1/inspect/affinitygroups/none", "", Time{}).status, 400);
  EXPECT_EQ(extender->handle("GET", "/nowhere", "", Time{}).status, 404);
  EXPECT_EQ(extender->handle("DELETE", "/v1/inspect/clusterstatus", "", Time{}).status, 400);
  extender->pod_deleted(*json::parse(pod));
  EXPECT_EQ(extender->handle("GET", "/v1/inspect/affinitygroups/", "", Time{}).body,
            R"({"items":null})");
}

TEST(HivedPodGroups, ATreeIsReadAndItsPlacesAreWrittenAndReadBack) {
  const std::string text = R"(
version: v2
virtualCluster: a
priority: 3
cellType: SWITCH
cellNumber: 1
podRootGroup:
  name: tree
  withinOneCell: POOL
  childGroups:
  - {name: left, withinOneCell: NODE, pod: {podMinNumber: 2, podMaxNumber: 2, cellsPerPod: {cellType: SWITCH, cellNumber: 1}, containsCurrentPod: true}}
  - {name: right, pod: {podMinNumber: 1, podMaxNumber: 1, cellsPerPod: {cellType: GPU, cellNumber: 3}}}
)";
  const auto spec = parse_scheduling_spec(text, "ns", "p");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->group, "tree");
  EXPECT_EQ(spec->member, 0);
  ASSERT_EQ(spec->members.size(), 2U);
  EXPECT_EQ(spec->members[1].cell_number, 3);
  EXPECT_EQ(spec->root[0].children[0].within, "NODE");

  const std::string config = R"(physicalCluster:
  cellTypes:
    SWITCH: {childCellType: GPU, childCellNumber: 2}
    NODE: {childCellType: SWITCH, childCellNumber: 2, isNodeLevel: true}
    POOL: {childCellType: NODE, childCellNumber: 2}
  physicalCells: [{cellType: POOL, cellChildren: [{cellAddress: n0}, {cellAddress: n1}]}]
virtualClusters: {a: {virtualCells: [{cellType: POOL, cellNumber: 1}]}}
)";
  CellAllocator cells = load(config);
  const PodRef pod{"u", "ns/p"};
  const Decision decision = cells.schedule({pod, *spec, Phase::kFiltering, nullptr, Time{}});
  ASSERT_EQ(decision.kind, Decision::Kind::kBind) << decision.reason;
  const std::string written = format_bind_info(decision.bind);
  EXPECT_NE(written.find("version: v2"), std::string::npos);
  const auto read = parse_bind_info(written);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read->group, *decision.bind.group);

  // After a restart the whole tree holds its cells again, from this one pod.
  ASSERT_TRUE(cells.add_allocated(pod, *spec, decision.bind, Time{}));
  CellAllocator again = load(config);
  ASSERT_TRUE(again.add_allocated(pod, *spec, *read, Time{}));
  const PodRef second{"v", "ns/q"};
  const Decision next = again.schedule({second, *spec, Phase::kFiltering, nullptr, Time{}});
  ASSERT_EQ(next.kind, Decision::Kind::kBind) << next.reason;
  EXPECT_EQ(next.bind.node, decision.bind.node);
  EXPECT_NE(next.bind.leaves, decision.bind.leaves);
}

TEST(HivedPodGroups, WhatIsWrongWithATreeIsSaid) {
  const auto problem = [](const std::string& tree) {
    const auto spec = parse_scheduling_spec(
        "version: v2\nvirtualCluster: a\ncellType: GPU\ncellNumber: 1\n" + tree, "ns", "p");
    return spec ? "" : spec.error().message.substr(spec.error().message.rfind(": ") + 2);
  };
  const std::string pod = "pod: {podMinNumber: 1, cellsPerPod: {cellType: GPU, cellNumber: 1}";
  EXPECT_EQ(problem(""), "");
  EXPECT_EQ(problem("podRootGroup: {name: g, " + pod + ", containsCurrentPod: true}}"), "");
  EXPECT_EQ(problem("podRootGroup: {" + pod + ", containsCurrentPod: true}}"),
            "PodRootGroup.Name is empty");
  EXPECT_EQ(problem("podRootGroup: {name: g, " + pod + "}}"),
            "PodRootGroup does not contain the current pod");
  EXPECT_EQ(
      problem("podRootGroup: {name: g, " + pod + ", containsCurrentPod: true}, childGroups: [{" +
              pod + ", containsCurrentPod: true}}]}"),
      "PodRootGroup contains the current pod more than once");
  EXPECT_EQ(problem("podRootGroup: {name: g, pod: {containsCurrentPod: true}}"),
            "PodRootGroup has non-positive PodMinNumber");
  std::string deep = "podRootGroup: {name: g, childGroups: [";
  for (int i = 0; i < 20; ++i) deep += "{childGroups: [";
  for (int i = 0; i < 20; ++i) deep += "]}";
  EXPECT_EQ(problem(deep + "]}"), "PodRootGroup is a tree of more than 1000 groups or 16 levels");
}

TEST(HivedExplain, AVirtualClusterSaysWhatItOwnsAndWhoSitsThere) {
  CellAllocator cells = load(with_vcs(
      "  a: {virtualCells: [{cellType: POOL.NODE, cellNumber: 1}]}\n  b: {virtualCells: [{cellType: POOL.NODE, cellNumber: 1}]}\n"));
  EXPECT_EQ(
      explain_virtual_cluster(cells, "a"),
      "Virtual cluster a owns:\n  1 NODE of 4 devices in POOL: 0 full, 0 partly in use, 1 free\n\nIt is not in use.\n");
  EXPECT_EQ(explain_virtual_cluster(cells, "c"), "");
  const auto start = [&](const std::string& name, std::int32_t priority, std::int32_t leaves) {
    const PodRef pod{name, "ns/" + name};
    const PodSpec spec = spec_of("a", priority, leaves, name, 1);
    const Decision decision = cells.schedule({pod, spec, Phase::kFiltering, nullptr, Time{}});
    ASSERT_EQ(decision.kind, Decision::Kind::kBind) << decision.reason;
    ASSERT_TRUE(cells.add_allocated(pod, spec, decision.bind, Time{}));
  };
  start("train", 10, 4);
  start("borrow", -1, 2);
  EXPECT_EQ(
      explain_virtual_cluster(cells, "a"),
      "Virtual cluster a owns:\n  1 NODE of 4 devices in POOL: 1 full, 0 partly in use, 0 free\n\n"
      "Gangs:\n  borrow: 2 devices on n1, opportunistic\n  train: 4 devices on n0, priority 10\n\n"
      "2 of the devices it uses are not its own: their owners may take them back at any time.\n");
}

/// The experiments of the course's sixth lab, as pods: one GPU on each of two nodes.
class Course : public ::testing::Test {
 protected:
  Decision run(CellAllocator& cells,
               const std::string& vc,
               std::int32_t priority,
               const std::string& name,
               std::int32_t pods = 1,
               std::int32_t pod = 0) {
    const PodRef ref{name + std::to_string(pod), "default/" + name + std::to_string(pod)};
    const PodSpec spec = spec_of(vc, priority, 1, name, pods);
    Decision decision = cells.schedule({ref, spec, Phase::kFiltering, nullptr, Time{}});
    if (decision.kind == Decision::Kind::kBind)
      EXPECT_TRUE(cells.add_allocated(ref, spec, decision.bind, Time{}));
    return decision;
  }
};

TEST_F(Course, TwoVirtualClustersOnOneNodeEach) {
  const std::string config = tests::read_data("hived/course-a.yaml");
  CellAllocator cells = load(config);
  EXPECT_EQ(run(cells, "vc1", 10, "test").bind.node, "hostname-dan");
  // 4.2: prod takes test's cell.
  EXPECT_EQ(run(cells, "vc1", 100, "prod").kind, Decision::Kind::kPreempt);
  EXPECT_EQ(run(cells, "vc1", 10, "second").kind, Decision::Kind::kWait);  // same class waits
  // 4.3: opportunistic borrows default's.
  EXPECT_EQ(run(cells, "vc1", -1, "oppo").bind.node, "hostname-carol");
  const Decision owner = run(cells, "default", 100, "owner");  // 4.4: the owner takes it back
  ASSERT_EQ(owner.kind, Decision::Kind::kPreempt);
  EXPECT_EQ(owner.victims[0].pods[0].name, "default/oppo0");
}

TEST_F(Course, GangsAndSingleTasksInOneVirtualCluster) {
  const std::string config = tests::read_data("hived/course-b.yaml");
  CellAllocator cells = load(config);
  EXPECT_EQ(run(cells, "default", 100, "five").kind, Decision::Kind::kBind);
  // 4.6: both tasks or none.
  EXPECT_EQ(run(cells, "default", 100, "gang", 2, 0).kind, Decision::Kind::kWait);
  EXPECT_EQ(run(cells, "default", 100, "gang", 2, 1).kind, Decision::Kind::kWait);
  // 4.7: without a gang one starts.
  EXPECT_EQ(run(cells, "default", 100, "single-a").kind, Decision::Kind::kBind);
  EXPECT_EQ(run(cells, "default", 100, "single-b").kind, Decision::Kind::kWait);
}

}  // namespace
}  // namespace muster::hived
