#include "pai/runtime/script.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/strings.h"
#include "pai/job/ports.h"

namespace muster::pai {
namespace {

TEST(PaiPorts, FollowFromThePodsUid) {
  // md5("[u][http][0]"), its digits added as OpenPAI's runtime does.
  EXPECT_EQ(ports_of("u", "http", 2).size(), 2U);
  EXPECT_EQ(ports_text("u", "http", 1), "16982");
  for (const int port : ports_of("b5c2", "grpc", 100)) {
    EXPECT_GE(port, 15000);
    EXPECT_LT(port, 39999);
  }
}

Inputs inputs(std::string_view spec) {
  Inputs in;
  in.spec = *json::parse_yaml_one(spec);
  in.tasks = {{"worker", 0, "10.0.0.1", "uid-0"}, {"worker", 1, "10.0.0.2", "uid-1"}};
  in.self = {"worker", 1, "10.0.0.2", "uid-1"};
  return in;
}

TEST(PaiPorts, OfATaskAreThoseOfItsRoleAndPod) {
  const Inputs in =
      inputs("{roles: [{pods: other, ports: {x: 1}}, {pods: worker, ports: {a: 2}}]}");
  EXPECT_EQ(own_ports(in), ports_of("uid-1", "a", 2));
}

struct Ended {
  int code = 0;
  std::string out;
};

/// Runs what a container would run, with the folder in another place.
Ended run(const Inputs& in) {
  char name[] = "/tmp/pai-runtime-test-XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  for (const auto& [file, text] : make_files(in)) {
    std::filesystem::create_directories((folder / file).parent_path());
    std::ofstream(folder / file) << replace_all(
        replace_all(text, "/usr/local/pai", folder.string()),
        "/tmp/pai-termination-log",
        (folder / "message").string());
  }
  const std::string output = (folder / "out").string();
  const int status =
      std::system(("bash " + (folder / "runtime").string() + " > " + output + " 2>&1").c_str());
  Ended ended{WEXITSTATUS(status), read_file(output).value_or("")};
  std::filesystem::remove_all(folder);
  return ended;
}

constexpr std::string_view kPlain = R"(
gang: true
roles:
- {name: Worker, pods: worker, ports: {ssh: 1, http: 1}, commands: [COMMANDS], starts: [], succeeds: []}
plugins: []
)";

Ended run_commands(const std::string& commands, const std::string& plugins = "[]") {
  return run(inputs(replace_all(
      replace_all(kPlain, "COMMANDS", commands), "plugins: []", "plugins: " + plugins)));
}

TEST(PaiRuntime, CommandsSeeWhereEverybodyIs) {
  const Ended ended = run_commands(
      "'echo $PAI_HOST_IP_Worker_0 $PAI_CURRENT_CONTAINER_IP $PAI_TASK_ROLE_INSTANCES',"
      "'echo $PAI_PORT_LIST_Worker_0_http $PAI_Worker_0_http_PORT $PAI_CONTAINER_SSH_PORT',"
      "'echo $PAI_TASK_ROLE_Worker_HOST_LIST'");
  EXPECT_EQ(ended.code, 0);
  const std::string http0 = ports_text("uid-0", "http", 1), http1 = ports_text("uid-1", "http", 1);
  EXPECT_EQ(ended.out,
            "10.0.0.1 10.0.0.2 Worker:0,Worker:1\n" + http0 + " " + http0 + " " +
                ports_text("uid-1", "ssh", 1) + "\n10.0.0.1:" + http0 + ",10.0.0.2:" + http1 +
                "\n");
}

TEST(PaiRuntime, TheFirstCommandThatFailsEndsTheTask) {
  EXPECT_EQ(run_commands("'echo a', 'exit 7', 'echo b'").code, 7);
  EXPECT_EQ(run_commands("'echo a', 'false', 'echo b'").out, "a\n");
  EXPECT_EQ(run_commands("'echo $NOT_SET_AT_ALL'").code, 1) << "nounset";
  EXPECT_EQ(run_commands("'false | true'").code, 1) << "pipefail";
}

TEST(PaiRuntime, ACommandThatIsNotThereIs220AndASignalKeepsItsNumber) {
  EXPECT_EQ(run_commands("'no-such-program-anywhere'").code, 220);
  EXPECT_EQ(run_commands("'kill -KILL $$'").code, 137);
  EXPECT_EQ(run_commands("'kill -SEGV $$'").code, 139);
}

TEST(PaiRuntime, SecretsAreFilledInHere) {
  Inputs in = inputs(replace_all(kPlain, "COMMANDS", "\"echo '<% $secrets.a.b %> <% $other %>'\""));
  in.secrets = *json::parse(R"({"a": {"b": "hush"}})");
  EXPECT_EQ(run(in).out, "hush <% $other %>\n");
}

TEST(PaiRuntime, PluginsRunBeforeAndAfter) {
  const Ended ended = run_commands(
      "'echo user'",
      "[{plugin: cmd, parameters: {preCommands: [echo pre], postCommands: [echo post]}}]");
  EXPECT_EQ(ended.out, "pre\nuser\npost\n");
  EXPECT_EQ(
      run_commands("'echo user'", "[{plugin: cmd, parameters: {preCommands: [exit 3]}}]").code, 3);
  EXPECT_EQ(
      run_commands("'echo user'",
                   "[{plugin: cmd, failurePolicy: ignore, parameters: {preCommands: [exit 3]}}]")
          .code,
      0);
  EXPECT_EQ(run_commands("'echo user'",
                         "[{plugin: cmd, taskRoles: [Other], parameters: {preCommands: [exit 3]}}]")
                .out,
            "user\n");
}

TEST(PaiRuntime, HooksOfPrerequisitesRunAroundTheCommands) {
  const std::string spec = replace_all(
      replace_all(kPlain, "COMMANDS", "'echo user'"),
      "starts: [], succeeds: []",
      "starts: [{commands: [echo a], mayFail: false}], succeeds: [{commands: [echo z], mayFail: false}]");
  EXPECT_EQ(run(inputs(spec)).out, "a\nuser\nz\n");
  EXPECT_EQ(run(inputs(replace_all(spec, "echo user", "exit 4"))).out, "a\n");
}

TEST(PaiRuntime, GitClonesWhatItIsToldWithoutTheShellsHelp) {
  Inputs in = inputs(replace_all(
      replace_all(kPlain, "COMMANDS", "'true'"),
      "plugins: []",
      "plugins: [{plugin: git, parameters: {repo: \"https://x/$(touch p)'.git\", options: [--depth=1], clone_dir: /code}}]"));
  EXPECT_NE(make_files(in).at("runtime").find(
                R"(git clone '--depth=1' -- 'https://x/$(touch p)'\''.git' '/code')"),
            std::string::npos);
}

TEST(PaiRuntime, SshHasAKeyAConfigurationAndABarrier) {
  Inputs in = inputs(replace_all(
      replace_all(kPlain, "COMMANDS", "'true'"),
      "plugins: []",
      "plugins: [{plugin: ssh, parameters: {jobssh: true, sshbarrier: true, sshbarrierTimeout: 2, userssh: {type: custom, value: ssh-rsa USER}}}]"));
  in.private_key = "PRIVATE\n";
  in.public_key = "ecdsa JOB";
  const auto files = make_files(in);
  EXPECT_EQ(files.at("ssh/authorized_keys"), "ecdsa JOB\nssh-rsa USER\n");
  EXPECT_NE(
      files.at("ssh/config")
          .find("Host Worker-0\n  HostName 10.0.0.1\n  Port " + ports_text("uid-0", "ssh", 1)),
      std::string::npos);
  EXPECT_NE(
      files.at("runtime").find("until ssh -o BatchMode=yes -o ConnectTimeout=5 Worker-0 true"),
      std::string::npos);
  EXPECT_NE(files.at("runtime").find("SECONDS + 120"), std::string::npos);
}

TEST(PaiRuntime, TensorboardRunsBesideTheFirstTaskOnly) {
  const std::string spec = replace_all(
      replace_all(kPlain, "COMMANDS", "'true'"),
      "plugins: []",
      "plugins: [{plugin: tensorboard, parameters: {port: 16006, logdir: {train: /logs}}}]");
  Inputs in = inputs(spec);
  EXPECT_EQ(make_files(in).at("runtime").find("tensorboard"), std::string::npos);
  in.self.index = 0;
  EXPECT_NE(
      make_files(in).at("runtime").find("--logdir_spec=train:/logs' --host=0.0.0.0 --port='16006'"),
      std::string::npos);
}

TEST(PaiRuntime, OnlyTasksOfThisAttemptCountAsPlaced) {
  const auto framework = *json::parse_yaml_one(R"(
spec: {taskRoles: [{name: worker, taskNumber: 2}]}
status:
  attemptStatus:
    id: 1
    taskRoleStatuses:
    - name: worker
      taskStatuses:
      - {index: 0, attemptStatus: {podIP: 10.0.0.1, podUID: a}}
      - {index: 1, attemptStatus: {podIP: null, podUID: b}}
)");
  bool all = true;
  EXPECT_EQ(placed_tasks(framework, 1, all).size(), 1U);
  EXPECT_FALSE(all);
  EXPECT_EQ(placed_tasks(framework, 0, all).size(), 0U);
}

}  // namespace
}  // namespace muster::pai
