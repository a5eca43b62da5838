#include "agent/process/process_runtime.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/process/netlink.h"
#include "agent/process/process_runtime_fixture.h"
#include "agent/process/shim.h"
#include "base/strings.h"
#include "net/loop/loop.h"

namespace muster::agent::process {
namespace {

namespace fs = std::filesystem;

/// The test program is its own shim binary: started as `agent_test agent-shim DIR` it never reaches
/// gtest's main.
[[gnu::constructor]] void act_as_shim(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "agent-shim") == 0) _exit(shim_main(argc, argv));
}

TEST_F(ProcessRuntimeTest, RunsACommandAndKeepsItsOutputAndExitCode) {
  run([this]() -> Task<void> {
    const auto made = co_await runtime->run_sandbox(sandbox("a"));
    EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
    if (!made) co_return;
    const auto started = co_await runtime->start_container(
        "a", shell("c1", "echo $GREETING; echo oops >&2; printf rest; exit 3"));
    EXPECT_TRUE(started.has_value()) << (started ? "" : started.error().message);
    const auto end = co_await exit_of("c1");
    EXPECT_EQ(end.exit_code, 3);
    EXPECT_EQ(end.reason, "Error");
    const auto log = log_of("c1");
    EXPECT_NE(log.find("stdout F hello\n"), std::string::npos) << log;
    EXPECT_NE(log.find("stderr F oops\n"), std::string::npos) << log;
    EXPECT_NE(log.find("stdout P rest\n"), std::string::npos) << log;
  });
}

TEST_F(ProcessRuntimeTest, ALogIsMadeWithItsFirstLine) {
  run([this]() -> Task<void> {
    (void)co_await runtime->run_sandbox(sandbox("a"));
    auto silent = shell("silent", "true");
    silent.log_path = directory + "/logs/silent.log";
    (void)co_await runtime->start_container("a", silent);
    (void)co_await exit_of("silent");
    EXPECT_FALSE(fs::exists(directory + "/logs"));
    auto loud = shell("loud", "echo up");
    loud.log_path = directory + "/logs/loud.log";
    (void)co_await runtime->start_container("a", loud);
    (void)co_await exit_of("loud");
    EXPECT_GT(fs::file_size(loud.log_path), 0U);
  });
}

TEST_F(ProcessRuntimeTest, ACommandThatIsNotThereIsAStartError) {
  run([this]() -> Task<void> {
    const auto made = co_await runtime->run_sandbox(sandbox("a"));
    EXPECT_TRUE(made.has_value());
    auto config = shell("c1", "");
    config.args = {"no-such-program"};
    const auto started = co_await runtime->start_container("a", config);
    EXPECT_TRUE(started.has_value());
    if (!started) co_return;
    EXPECT_EQ(started->reason, "StartError");
    EXPECT_EQ(started->exit_code, 128);
    EXPECT_EQ(started->message, "exec: \"no-such-program\": executable file not found in $PATH");
  });
}

TEST_F(ProcessRuntimeTest, StopSendsTermThenKills) {
  run([this]() -> Task<void> {
    (void)co_await runtime->run_sandbox(sandbox("a"));
    (void)co_await runtime->start_container(
        "a", shell("polite", "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done"));
    auto stubborn = shell("stubborn", "trap '' TERM; while :; do sleep 0.05; done");
    stubborn.name = "other";
    (void)co_await runtime->start_container("a", stubborn);
    while (log_of("polite").empty()) co_await loop.sleep(std::chrono::milliseconds(5));
    (void)co_await runtime->stop_container("a", "polite", std::chrono::seconds(20));
    const auto end = co_await exit_of("polite");
    EXPECT_EQ(end.exit_code, 7);
    (void)co_await runtime->stop_container("a", "stubborn", std::chrono::milliseconds(100));
    const auto killed = co_await exit_of("stubborn");
    EXPECT_EQ(killed.exit_code, 137);
  });
}

TEST_F(ProcessRuntimeTest, ExecHasItsOwnStreamsAndExitCode) {
  run([this]() -> Task<void> {
    (void)co_await runtime->run_sandbox(sandbox("a"));
    (void)co_await runtime->start_container("a", shell("c1", "sleep 60"));
    ExecConfig config;
    config.command = {"sh", "-c", "cat; echo err >&2; exit 5"};
    config.stdin_open = true;
    auto session = co_await runtime->exec("a", "c1", config);
    EXPECT_TRUE(session.has_value()) << (session ? "" : session.error().message);
    if (!session) co_return;
    (void)co_await (*session)->stdin_stream()->write("in and out");
    (*session)->close_stdin();
    const auto out = co_await read_all((*session)->stdout_stream());
    const auto err = co_await read_all((*session)->stderr_stream());
    const auto code = co_await (*session)->wait();
    EXPECT_EQ(out, "in and out");
    EXPECT_EQ(err, "err\n");
    EXPECT_EQ(*code, 5);
  });
}

/// Check 19 of docs/security.md: until an exec has become its command, it runs our program.
TEST_F(ProcessRuntimeTest, AThousandExecsNeverShowOurProgram) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    (void)co_await runtime->run_sandbox(sandbox("a"));
    auto attacker = shell("c1", "");
    attacker.args = {"python3",
                     "-c",
                     "import os\n"
                     "looked = 0\n"
                     "while not os.path.exists('/tmp/stop'):\n"
                     "  for p in filter(str.isdigit, os.listdir('/proc')):\n"
                     "    try:\n"
                     "      looked += 1\n"
                     "      e = os.readlink('/proc/%s/exe' % p)\n"
                     "      if 'agent_test' in e or 'muster' in e: print('saw', e)\n"
                     "    except OSError: pass\n"
                     "print('looked' if looked > 1000 else 'late')"};
    (void)co_await runtime->start_container("a", attacker);
    ExecConfig config;
    config.command = {"true"};
    for (int i = 0; i <= 1000; ++i) {
      if (i == 1000) config.command = {"touch", "/tmp/stop"};
      auto session = co_await runtime->exec("a", "c1", config);
      EXPECT_TRUE(session.has_value()) << (session ? "" : session.error().message);
      if (!session) co_return;
      const auto code = co_await (*session)->wait();
      EXPECT_EQ(code.value_or(-1), 0);
    }
    (void)co_await exit_of("c1");
    EXPECT_EQ(log_of("c1"), "stdout F looked\n");
  });
}

TEST_F(ProcessRuntimeTest, ATerminalCanBeResized) {
  run([this]() -> Task<void> {
    (void)co_await runtime->run_sandbox(sandbox("a"));
    (void)co_await runtime->start_container("a", shell("c1", "sleep 60"));
    ExecConfig config;
    config.command = {"sh", "-c", "read line; stty size; test -t 1 && echo tty"};
    config.stdin_open = true;
    config.tty = true;
    auto session = co_await runtime->exec("a", "c1", config);
    EXPECT_TRUE(session.has_value()) << (session ? "" : session.error().message);
    if (!session) co_return;
    (*session)->resize(77, 33);
    (void)co_await (*session)->stdin_stream()->write("\n");
    const auto out = co_await read_all((*session)->stdout_stream());
    EXPECT_NE(out.find("33 77"), std::string::npos) << out;
    EXPECT_NE(out.find("tty"), std::string::npos) << out;
  });
}

TEST_F(ProcessRuntimeTest, NamespacesHideTheMachineAndPodsReachEachOther) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    const auto a = co_await runtime->run_sandbox(sandbox("a"));
    const auto b = co_await runtime->run_sandbox(sandbox("b"));
    EXPECT_TRUE(a && b);
    if (!a || !b) co_return;
    (void)co_await runtime->start_container(
        "a",
        shell("server",
              "hostname; cat /proc/self/status | grep NSpid; python3 -c 'import socket; "
              "s=socket.socket();"
              "s.bind((\"\",7000)); s.listen(); print(\"up\",flush=True); c,_=s.accept(); "
              "c.sendall(b\"from a\"); c.close()'"));
    while (log_of("server").find("up") == std::string::npos)
      co_await loop.sleep(std::chrono::milliseconds(5));
    EXPECT_NE(log_of("server").find("host-a"), std::string::npos);
    const auto script = fmt::format(
        "python3 -c 'import socket; s=socket.create_connection((\"{}\",7000)); "
        "print(s.recv(100).decode())'",
        a->address);
    (void)co_await runtime->start_container("b", shell("client", script));
    const auto end = co_await exit_of("client");
    EXPECT_EQ(end.exit_code, 0) << log_of("client");
    EXPECT_NE(log_of("client").find("from a"), std::string::npos);
  });
}

TEST_F(ProcessRuntimeTest, VolumesAreMountedAndMemoryVolumesAreBounded) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    auto config = sandbox("a");
    fs::create_directories(config.directory + "/data");
    fs::create_directories(config.directory + "/mem");
    std::ofstream(config.directory + "/data/file") << "content\n";
    config.memory_volumes.push_back({config.directory + "/mem", 1024 * 1024});
    const auto base = config.directory;
    const auto made = co_await runtime->run_sandbox(config);
    EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
    auto container = shell("c1",
                           "cat /muster-test-mount/deep/file; df -k /dev/shm | tail -1; touch "
                           "/muster-test-mount/deep/x || echo read-only");
    container.mounts = {{base + "/data", "/muster-test-mount/deep", true},
                        {base + "/mem", "/dev/shm", false}};
    const auto started = co_await runtime->start_container("a", container);
    EXPECT_EQ(started ? started->message : started.error().message, "");
    if (!started) co_return;
    (void)co_await exit_of("c1");
    const auto log = log_of("c1");
    EXPECT_NE(log.find("content"), std::string::npos) << log;
    EXPECT_NE(log.find(" 1024 "), std::string::npos) << log;
    EXPECT_NE(log.find("read-only"), std::string::npos) << log;
    EXPECT_FALSE(fs::exists("/muster-test-mount")) << "a place for a mount was made on the machine";
  });
}

TEST_F(ProcessRuntimeTest, TooMuchMemoryIsOOMKilled) {
  if (!runtime->shortcomings().empty()) GTEST_SKIP() << runtime->shortcomings().front();
  run([this]() -> Task<void> {
    (void)co_await runtime->run_sandbox(sandbox("a"));
    auto container = shell("c1", "exec python3 -c 'x = bytearray(200*1024*1024)'");
    container.limits.memory_bytes = 64 * 1024 * 1024;
    (void)co_await runtime->start_container("a", container);
    const auto end = co_await exit_of("c1");
    EXPECT_EQ(end.reason, "OOMKilled");
    EXPECT_EQ(end.exit_code, 137);
  });
}

TEST_F(ProcessRuntimeTest, WithoutRootPodsRunInTheMachinesNetwork) {
  loop.run_until_done(runtime->stop(/*clean=*/true));
  make(/*isolate=*/false);
  EXPECT_FALSE(runtime->shortcomings().empty());
  run([this]() -> Task<void> {
    const auto made = co_await runtime->run_sandbox(sandbox("a"));
    EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
    EXPECT_EQ(made ? made->address : "", "");
    (void)co_await runtime->start_container("a",
                                            shell("c1", "echo $GREETING; sleep 60 & sleep 60"));
    while (log_of("c1").empty()) co_await loop.sleep(std::chrono::milliseconds(5));
    (void)co_await runtime->stop_container("a", "c1", std::chrono::milliseconds(50));
    const auto end = co_await exit_of("c1");
    EXPECT_NE(end.exit_code, 0);
    EXPECT_EQ(log_of("c1"), "stdout F hello\n");
  });
}

TEST_F(ProcessRuntimeTest, ANewAgentFindsWhatTheOldOneLeftRunning) {
  run([this]() -> Task<void> {
    (void)co_await runtime->run_sandbox(sandbox("a"));
    fs::create_directories(directory + "/door");
    auto container = shell(
        "c1", "echo before; while [ ! -e /door/go ]; do sleep 0.02; done; echo after; exit 4");
    container.mounts = {{directory + "/door", "/door", true}};
    (void)co_await runtime->start_container("a", container);
  });
  loop.run_until_done(runtime->stop(/*clean=*/false));
  runtime.reset();
  make();
  ASSERT_EQ(adopted.size(), 1U);
  ASSERT_EQ(adopted[0].containers.size(), 1U);
  EXPECT_EQ(adopted[0].containers[0].state, ContainerState::kRunning);
  std::ofstream(directory + "/door/go") << "x";
  run([this]() -> Task<void> {
    const auto end = co_await exit_of("c1");
    EXPECT_EQ(end.exit_code, 4);
    EXPECT_EQ(log_of("c1"), "stdout F before\nstdout F after\n");
  });
}

}  // namespace
}  // namespace muster::agent::process
