#include "agent/process/mounts.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace muster::agent::process {
namespace {

/// In a child, which ends with 0 if `holds`.
template <typename Holds>
int exit_status(Holds holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(Mounts, StayApartOrSayWhatAPlainChrootLacks) {
  if (geteuid() != 0) GTEST_SKIP() << "mount namespaces need root";
  EXPECT_EQ(exit_status([] { return unshare(CLONE_NEWNS) == 0 && keep_mounts_apart(); }), 0);
  std::string folder = "/tmp/mounts-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(exit_status([&] {
              if (unshare(CLONE_NEWNS) != 0 || chroot(folder.c_str()) != 0) return false;
              const auto apart = keep_mounts_apart();
              return !apart && apart.error().message.find("plain chroot") != std::string::npos;
            }),
            0);
  rmdir(folder.c_str());
}

}  // namespace
}  // namespace muster::agent::process
