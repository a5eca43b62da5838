#include "agent/process/landlock.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace muster::agent::process {
namespace {

namespace fs = std::filesystem;

/// Restrictions stay: each is tried in a process of its own.
bool holds(const std::function<bool()>& what) {
  const auto pid = fork();
  if (pid == 0) _exit(what() ? 0 : 1);
  int status = 1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool readable(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  return static_cast<bool>(std::getline(file, text));
}

bool writable(const std::string& path) { return static_cast<bool>(std::ofstream(path) << "x\n"); }

TEST(Landlock, AClosedFolderIsOutOfReachAndItsNeighboursAreNot) {
  if (const auto why = no_landlock(); !why.empty()) GTEST_SKIP() << why;
  char name[] = "/var/tmp/muster-landlock-XXXXXX";
  const std::string top = mkdtemp(name);
  const auto closed = top + "/home/closed";
  fs::create_directories(closed + "/deep");
  fs::create_directories(top + "/home/beside");
  for (const auto& file : {closed + "/key", closed + "/deep/key", top + "/home/note"})
    ASSERT_TRUE(writable(file));
  EXPECT_TRUE(holds([&] {
    return close_folder(closed) && !readable(closed + "/key") && !readable(closed + "/deep/key") &&
           !writable(closed + "/key") && !writable(closed + "/new") &&
           unlink((closed + "/key").c_str()) != 0 &&
           rename((closed + "/key").c_str(), (top + "/home/beside/key").c_str()) != 0 &&
           link((closed + "/key").c_str(), (top + "/home/beside/key").c_str()) != 0;
  }));
  EXPECT_TRUE(holds([&] {
    return close_folder(closed) && readable(top + "/home/note") && writable(top + "/home/note") &&
           writable(top + "/home/beside/new") &&
           mkdir((top + "/home/beside/d").c_str(), 0755) == 0 && readable("/etc/passwd") &&
           writable("/dev/null") && access(closed.c_str(), F_OK) == 0;
  }));
  EXPECT_TRUE(readable(closed + "/key"));
  // Whoever it starts is bound by it as well.
  EXPECT_TRUE(holds([&] {
    return close_folder(closed) && std::system(("cat " + closed + "/key 2>/dev/null").c_str()) != 0;
  }));
  fs::remove_all(top);
}

}  // namespace
}  // namespace muster::agent::process
