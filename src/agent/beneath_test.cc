#include "agent/beneath.h"

#include <gtest/gtest.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

class BeneathTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/muster-beneath-XXXXXX";
    path = mkdtemp(name);
    top.reset(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { fs::remove_all(path); }
  std::string path;
  Fd top;
};

TEST_F(BeneathTest, OpensWhatLiesInsideAndNothingElse) {
  fs::create_directories(path + "/a/b");
  fs::create_directory_symlink("a/b", path + "/inside");
  fs::create_directory_symlink("/", path + "/root");
  fs::create_directory_symlink("../..", path + "/up");
  fs::create_directory_symlink("/proc/self/root", path + "/magic");
  for (const auto* good : {"a", "a/b", "inside", "a/../a"})
    EXPECT_TRUE(open_beneath(top.get(), good).has_value()) << good;
  for (const auto* bad : {"root", "root/etc", "up", "magic", "..", "/etc", "a/../.."}) {
    const auto opened = open_beneath(top.get(), bad);
    ASSERT_FALSE(opened.has_value()) << bad;
    EXPECT_EQ(opened.error().code, Code::kForbidden) << bad;
  }
  EXPECT_EQ(open_beneath(top.get(), "absent").error().code, Code::kNotFound);
}

TEST_F(BeneathTest, MakesDirectoriesInsideOnly) {
  fs::create_directory_symlink("/tmp", path + "/out");
  ASSERT_TRUE(make_directories_beneath(top.get(), "x/y/z", 02770).has_value());
  struct stat info{};
  ASSERT_EQ(stat((path + "/x/y/z").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 02770U);
  const auto name = "muster-escape-" + std::to_string(getpid());
  EXPECT_FALSE(make_directories_beneath(top.get(), "out/" + name, 0755).has_value());
  EXPECT_FALSE(make_directories_beneath(top.get(), "../" + name, 0755).has_value());
  EXPECT_FALSE(fs::exists("/tmp/" + name));
}

TEST_F(BeneathTest, WritesNewFilesOnly) {
  fs::create_symlink("/tmp/muster-escape", path + "/link");
  EXPECT_FALSE(write_beneath(top.get(), "link", "x", 0644).has_value());
  EXPECT_FALSE(fs::exists("/tmp/muster-escape"));
  EXPECT_TRUE(write_beneath(top.get(), "file", "x", 0400).has_value());
  EXPECT_FALSE(write_beneath(top.get(), "file", "y", 0400).has_value());
}

TEST_F(BeneathTest, ALinkSwappedInAThousandTimesLeadsNowhere) {
  fs::create_directory(path + "/d");
  fs::create_directory_symlink("/", path + "/l");
  struct stat wanted{};
  ASSERT_EQ(stat((path + "/d").c_str(), &wanted), 0);
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    while (!done)
      (void)renameat2(
          AT_FDCWD, (path + "/d").c_str(), AT_FDCWD, (path + "/l").c_str(), RENAME_EXCHANGE);
  });
  int opened = 0, refused = 0;
  for (int i = 0; i < 1000 || ((opened == 0 || refused == 0) && i < 1'000'000); ++i) {
    const auto one = open_beneath(top.get(), "d");
    struct stat info{};
    if (one && fstat(one->get(), &info) == 0) {
      ++opened;
      ASSERT_EQ(info.st_ino, wanted.st_ino);
    } else {
      ++refused;
    }
  }
  done = true;
  swapper.join();
  EXPECT_GT(opened, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace muster::agent
