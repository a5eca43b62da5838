#include "agent/streams/former_logs.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class FormerLogsTest : public ::testing::Test {
 protected:
  FormerLogsTest() {
    char name[] = "/tmp/former-logs-test-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~FormerLogsTest() override { fs::remove_all(folder_); }

  /// A pod's folder with the log of one container, which is then kept.
  void keep(const FormerLogs& logs, const std::string& uid, std::string_view line) {
    const fs::path pod = folder_ / "pods" / uid;
    fs::create_directories(pod / "volumes");
    if (!line.empty())
      std::ofstream(pod / "app_0.log") << fmt::format("2026-01-01T00:00:00.0Z stdout F {}\n", line);
    logs.keep(pod.string(), uid);
    const fs::path kept = folder_ / "former" / uid;
    if (fs::exists(kept))
      fs::last_write_time(kept,
                          fs::file_time_type::clock::now() - std::chrono::seconds(100 - ++age_));
  }

  fs::path folder_;
  int age_ = 0;
};

TEST_F(FormerLogsTest, WhatAPodWroteOutlivesIt) {
  const FormerLogs logs((folder_ / "former").string());
  keep(logs, "u-1", "hello");
  keep(logs, "u-2", "");
  fs::remove_all(folder_ / "pods");
  EXPECT_EQ(logs.read("u-1", "app", 100), "hello\n");
  EXPECT_EQ(logs.read("u-1", "app", 3), "lo\n");
  EXPECT_EQ(logs.read("u-2", "app", 100), "");
  EXPECT_EQ(logs.read("u-3", "app", 100), std::nullopt);
  EXPECT_EQ(logs.read("../pods/u-1", "app", 100), std::nullopt);
}

TEST_F(FormerLogsTest, TheOldestMakeRoom) {
  const FormerLogs few((folder_ / "former").string(), {.pods_max = 2, .checked_every = 1});
  for (const std::string uid : {"a", "b", "c"}) keep(few, uid, uid);
  EXPECT_EQ(few.read("a", "app", 100), std::nullopt);
  EXPECT_EQ(few.read("b", "app", 100), "b\n");
  EXPECT_EQ(few.read("c", "app", 100), "c\n");
  const FormerLogs small((folder_ / "former").string(), {.bytes_max = 100, .checked_every = 1});
  keep(small, "d", std::string(60, 'x'));
  EXPECT_EQ(small.read("c", "app", 100), std::nullopt);
  EXPECT_TRUE(small.read("d", "app", 100));
}

}  // namespace
}  // namespace muster::agent
