#include "pai/deploy/layout.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "hived/config.h"
#include "hived/tree.h"

namespace muster::pai {
namespace {

class LayoutTest : public testing::Test {
 protected:
  LayoutTest() : folder_(std::filesystem::path(testing::TempDir()) / "muster-layout") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~LayoutTest() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, std::string_view text) { std::ofstream(folder_ / name) << text; }
  std::filesystem::path folder_;
};

TEST_F(LayoutTest, TheCoursesFilesAreThreeMachinesAndOneVirtualCluster) {
  write("master.csv", "hostname-bob,10.0.1.2\n");
  write("worker.csv", "hostname-carol,10.0.1.3\nhostname-dan,10.0.1.4\n");
  const auto layout = read_layout(folder_.string(), {});
  ASSERT_TRUE(layout) << layout.error().message;
  ASSERT_EQ(layout->machines.size(), 3U);
  const auto nodes = nodes_of(*layout);
  EXPECT_TRUE(json::bool_at(nodes[0], "spec", "unschedulable"));
  EXPECT_EQ(json::string_at(nodes[1], "metadata", "labels", "pai-worker"), "true");
  const auto config = hived::parse_config(cells_of(*layout));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(hived::check_cells(*config));
  EXPECT_EQ(hived::describe(*config), "2 nodes, 2 devices, 1 chains, 1 virtual clusters");
}

TEST_F(LayoutTest, ALayoutOfLaterVersionsSaysWhatMachinesHave) {
  write("layout.yaml",
        "machine-sku:\n"
        "  big: {mem: 64Gi, cpu: {vcore: 24}, computing-device: {type: nvidia.com/gpu, count: 8}}\n"
        "  small: {mem: 8Gi, cpu: {vcore: 4}, computing-device: {type: nvidia.com/gpu, count: 2}}\n"
        "machine-list:\n"
        "- {hostname: m, hostip: 10.0.0.1, machine-type: small, pai-master: 'true'}\n"
        "- {hostname: a, hostip: 10.0.0.2, machine-type: big, pai-worker: 'true'}\n"
        "- {hostname: b, hostip: 10.0.0.3, machine-type: small, pai-worker: 'true'}\n");
  const auto layout = read_layout(folder_.string(), {});
  ASSERT_TRUE(layout) << layout.error().message;
  const auto config = hived::parse_config(cells_of(*layout));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(hived::describe(*config), "2 nodes, 10 devices, 2 chains, 1 virtual clusters");
}

TEST_F(LayoutTest, WhatIsWrongIsNamed) {
  EXPECT_NE(read_layout(folder_.string(), {}).error().message.find("master.csv is missing"),
            std::string::npos);
  write("master.csv", "bob,10.0.1.2\n");
  write("worker.csv", "Carol 10.0.1.3\n");
  EXPECT_NE(read_layout(folder_.string(), {}).error().message.find("worker.csv: line 1"),
            std::string::npos);
  write("worker.csv", "bob,10.0.1.3\n");
  EXPECT_NE(read_layout(folder_.string(), {}).error().message.find("listed twice"),
            std::string::npos);
  write("worker.csv", "\n");
  EXPECT_NE(read_layout(folder_.string(), {}).error().message.find("no worker"), std::string::npos);
}

}  // namespace
}  // namespace muster::pai
