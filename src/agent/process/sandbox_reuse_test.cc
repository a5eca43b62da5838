#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <unistd.h>

#include <set>

#include "agent/fd.h"
#include "agent/process/process_runtime_fixture.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

/// Whether a pod starts in the network of the one before, and what it finds there.
class SandboxReuseTest : public ProcessRuntimeTest {
 protected:
  struct Seen {
    std::string address;
    std::string network;
    std::string log;
  };
  static std::string first_line(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
  }
  /// Until supervisors whose pods are gone are ready for others, or have ended.
  Task<void> supervisors_rest() {
    const auto busy = [this] {
      for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        if (first_line(entry.path() / "comm") == "muster-pod" &&
            first_line(entry.path() / "cmdline").find(directory) != std::string::npos)
          return true;
      }
      return false;
    };
    while (busy()) co_await loop.sleep(std::chrono::milliseconds(2));
    co_await loop.sleep(std::chrono::milliseconds(1));  // the loop hears what they said
  }

  /// A pod of one container, from its start to its removal.
  Task<Seen> run_pod(std::string id,
                     std::string script,
                     std::vector<std::string> capabilities = {}) {
    Seen seen;
    const auto made = co_await runtime->run_sandbox(sandbox(id));
    EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
    if (!made) co_return seen;
    seen.address = made->address;
    auto container = shell(id, "readlink /proc/self/ns/net; " + script);
    container.add_capabilities = std::move(capabilities);
    const auto started = co_await runtime->start_container(id, container);
    EXPECT_EQ(started ? started->message : started.error().message, "");
    (void)co_await exit_of(id);
    (void)co_await runtime->remove_sandbox(id);
    co_await supervisors_rest();
    seen.log = log_of(id);
    seen.network = seen.log.substr(0, seen.log.find('\n'));
    co_return seen;
  }
};

TEST_F(SandboxReuseTest, APodFindsTheNetworkOfTheOneBeforeAndNothingElse) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    const std::string look =
        "readlink /proc/self/ns/ipc; hostname; ls /dev/shm; tail -n +2 /proc/sysvipc/shm; "
        "echo files $(ls /proc/self/fd | wc -l); ip -4 -o addr show eth0; ip route";
    const auto first = co_await run_pod(
        "first", "touch /dev/shm/mine; ipcmk -M 100 >&2; nohup sleep 300 & " + look);
    const auto second = co_await run_pod("second", look);
    const auto third = co_await run_pod("third", look);
    EXPECT_EQ(first.network, second.network);
    EXPECT_EQ(first.network, third.network);
    const std::set<std::string> addresses{first.address, second.address, third.address};
    EXPECT_EQ(addresses.size(), 3U) << "an address is used again at once";
    for (const auto* seen : {&second, &third}) {
      const auto& log = seen->log;
      EXPECT_NE(log.find(" " + seen->address + "/16"), std::string::npos) << log;
      EXPECT_NE(log.find("src " + seen->address), std::string::npos) << log;
      EXPECT_NE(log.find("default via"), std::string::npos) << log;
      EXPECT_EQ(log.find(first.address + "/"), std::string::npos) << log;
      EXPECT_EQ(log.find("mine"), std::string::npos) << log;
      EXPECT_EQ(split(log, '\n').size(), 8U) << "ipc objects of another pod: " << log;
    }
    EXPECT_NE(second.log.find("host-second"), std::string::npos) << second.log;
    const auto ipc = [](const Seen& seen) { return split(seen.log, '\n').at(1); };
    EXPECT_NE(ipc(first), ipc(second));
    const auto files = [](const Seen& seen) { return seen.log.substr(seen.log.find("files"), 8); };
    EXPECT_EQ(files(second), files(third)) << "descriptors pile up";
  });
}

TEST_F(SandboxReuseTest, MountsInWhichAPodLeftNothingServeTheNext) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    // The devices of a file system tell one of them from another.
    const std::string look =
        "stat -c 'shm %d' /dev/shm; stat -c 'pts %d' /dev/pts; ls -A /dev/shm; ls -A /dev/pts; "
        "cat /proc/self/uid_map; ";
    const auto rest = [](const Seen& seen) { return seen.log.substr(seen.log.find('\n')); };
    (void)co_await run_pod("made", "true");  // by a supervisor that was not made ahead
    // Whatever anybody mounts on this machine meanwhile is a reason to make them anew.
    const agent::Fd table(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
    const auto changed = [&table] {
      pollfd item{table.get(), POLLPRI, 0};
      return poll(&item, 1, 0) != 0;
    };
    Seen first, second;
    for (int tries = 0; tries < 20; ++tries) {
      (void)changed();
      first = co_await run_pod(fmt::format("first-{}", tries), look);
      second = co_await run_pod(fmt::format("second-{}", tries), look);
      if (!changed()) break;
    }
    EXPECT_EQ(rest(first), rest(second));
    (void)co_await run_pod("leaves", look + "echo mine > /dev/shm/mine");
    const auto third = co_await run_pod("third", look);
    EXPECT_EQ(third.log.find("mine"), std::string::npos) << third.log;
  });
}

TEST_F(SandboxReuseTest, WhatTheMachineMountsMeanwhileIsSeen) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  const auto place = directory + "/mounted";
  std::filesystem::create_directories(place);
  run([this, place]() -> Task<void> {
    (void)co_await run_pod("before", "true");
    EXPECT_EQ(::mount("tmpfs", place.c_str(), "tmpfs", 0, nullptr), 0);
    std::ofstream(place + "/new") << "seen\n";
    (void)co_await runtime->run_sandbox(sandbox("after"));
    auto container = shell("after", "cat /host/new");
    container.mounts.push_back({place, "/host", false, "", "", true, false});
    (void)co_await runtime->start_container("after", container);
    (void)co_await exit_of("after");
    EXPECT_EQ(log_of("after"), "stdout F seen\n");
    (void)co_await runtime->remove_sandbox("after");
    co_await supervisors_rest();
  });
  EXPECT_EQ(::umount2(place.c_str(), 0), 0);
}

TEST_F(SandboxReuseTest, ANetworkThatAPodCouldChangeIsNotUsedAgain) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    const auto first =
        co_await run_pod("first", "ip rule add to 192.0.2.0/24 table 99; ip rule", {"NET_ADMIN"});
    EXPECT_NE(first.log.find("192.0.2.0"), std::string::npos) << first.log;
    const auto second = co_await run_pod("second", "ip rule");
    EXPECT_EQ(second.log.find("192.0.2.0"), std::string::npos) << second.log;
  });
}

TEST_F(SandboxReuseTest, OnlyAPrivilegedContainerSetsWhatTheKernelDoes) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    const auto seen =
        co_await run_pod("first",
                         "echo 9 > /proc/sys/net/ipv4/ip_default_ttl; "
                         "mount -o remount,rw /proc/sys; unshare -Urpf --mount-proc true; "
                         "cat /proc/sys/net/ipv4/ip_default_ttl");
    EXPECT_NE(seen.log.find("Read-only file system"), std::string::npos) << seen.log;
    EXPECT_NE(seen.log.find("stdout F 64\n"), std::string::npos) << seen.log;
  });
}

TEST_F(SandboxReuseTest, APortThatTheKernelStillHoldsIsNoConcernOfTheNextPod) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    const std::string serve =
        "python3 -c 'import socket; s=socket.socket(); s.bind((\"\",7100)); s.listen(); "
        "c=socket.create_connection((\"127.0.0.1\",7100)); a,_=s.accept(); a.close(); c.close(); "
        "print(\"served\")'";
    const auto first = co_await run_pod("first", serve);  // leaves the port in TIME_WAIT
    const auto second = co_await run_pod("second", serve);
    EXPECT_NE(first.log.find("served"), std::string::npos) << first.log;
    EXPECT_NE(second.log.find("served"), std::string::npos) << second.log;
  });
}

TEST_F(SandboxReuseTest, ASocketThatTheAgentHoldsKeepsTheNetworkFromOthers) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    (void)co_await runtime->run_sandbox(sandbox("first"));
    (void)co_await runtime->start_container(
        "first",
        shell("first",
              "readlink /proc/self/ns/net; exec python3 -c 'import socket,time; s=socket.socket(); "
              "s.bind((\"\",7200)); s.listen(); print(\"up\",flush=True); time.sleep(300)'"));
    while (log_of("first").find("up") == std::string::npos)
      co_await loop.sleep(std::chrono::milliseconds(5));
    const auto held = co_await runtime->connect("first", 7200);
    EXPECT_TRUE(held.has_value());
    (void)co_await runtime->remove_sandbox("first");
    const auto second = co_await run_pod("second", "true");
    EXPECT_EQ(log_of("first").find(second.network), std::string::npos) << log_of("first");
  });
}

TEST_F(SandboxReuseTest, AFolderInWhichAPodLeftNothingServesTheNext) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    const std::string look = "stat -c '%i %a %u' /tmp /var/tmp /root /home; ls -A /tmp; ";
    const auto folders = [](const Seen& seen) { return seen.log.substr(seen.log.find('\n')); };
    const auto first =
        co_await run_pod("first", look + "touch /tmp/x /root/y; rm /tmp/x /root/y; chmod 700 /tmp");
    const auto second = co_await run_pod("second", look);
    EXPECT_EQ(folders(first), folders(second)) << "not the same, or not as it was";
    EXPECT_NE(second.log.find(" 1777 0\n"), std::string::npos) << second.log;
  });
}

TEST_F(SandboxReuseTest, AFolderInWhichAPodLeftSomethingGoesWithIt) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    const std::string look = "stat -c '%i' /tmp /home";
    std::set<std::string> seen;
    int number = 0;
    for (const std::string leave :
         {"echo mine > /var/tmp/mine",
          "mkdir /home/mine",
          "python3 -c 'import os; os.setxattr(\"/tmp\", \"user.a\", b\"mine\")'",
          "chattr +d /root"}) {
      const auto pod = co_await run_pod(fmt::format("pod-{}", number++), look + "; " + leave);
      EXPECT_EQ(split(pod.log, '\n').size(), 4U) << pod.log;
      seen.insert(pod.log.substr(pod.log.find('\n')));
      EXPECT_TRUE(std::filesystem::exists(directory + "/pods/" + sandboxes.back() + ".main"))
          << leave;
    }
    EXPECT_EQ(seen.size(), 4U) << "a pod has the folder of another";
  });
}

TEST_F(SandboxReuseTest, AFolderThatAPodCouldHaveHandedOnGoesWithIt) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    const auto shared = directory + "/claims/shared";
    std::filesystem::create_directories(shared);
    (void)co_await runtime->run_sandbox(sandbox("first"));
    auto container = shell("first", "true");
    container.mounts.push_back({shared, "/shared", false, "", "", false, false});
    (void)co_await runtime->start_container("first", container);
    (void)co_await exit_of("first");
    (void)co_await runtime->remove_sandbox("first");
    co_await supervisors_rest();
    EXPECT_TRUE(std::filesystem::exists(directory + "/pods/first.main"));
  });
}

TEST_F(SandboxReuseTest, ARootMadeAheadThatANewAgentClearedAwayIsMadeAgain) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    (void)co_await run_pod("before", "true");
    (void)co_await runtime->run_sandbox(sandbox("a"));
  });
  ASSERT_FALSE(std::filesystem::is_empty(directory + "/ahead"));
  loop.run_until_done(runtime->stop(/*clean=*/false));
  runtime.reset();
  make();
  run([this]() -> Task<void> {
    const auto started =
        co_await runtime->start_container("a", shell("c1", "echo there > /tmp/x; cat /tmp/x"));
    EXPECT_EQ(started ? started->message : started.error().message, "");
    if (!started || !started->message.empty()) co_return;
    const auto end = co_await exit_of("c1");
    EXPECT_EQ(end.exit_code, 0) << end.message;
    EXPECT_EQ(log_of("c1"), "stdout F there\n");
  });
}

}  // namespace
}  // namespace muster::agent::process
