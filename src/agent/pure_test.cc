/// The parts of the agent that only compute: environment, volumes' files, status, logs, names.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/hollow/hollow_pods.h"
#include "agent/image/image_file.h"
#include "agent/network/dns.h"
#include "agent/pod/names.h"
#include "agent/pod/pod_env.h"
#include "agent/pod/pod_status.h"
#include "agent/pod/pod_workers.h"
#include "agent/pod/volume_files.h"
#include "agent/pod/volumes.h"
#include "agent/process/address_pool.h"
#include "agent/process/log_writer.h"
#include "agent/process/mask.h"
#include "agent/process/nat.h"
#include "agent/streams/log_reader.h"
#include "agent/streams/remote_command.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

json::Value parse(std::string_view text) {
  auto value = json::parse_yaml_one(text);
  EXPECT_TRUE(value.has_value()) << (value ? "" : value.error().message);
  return value ? *value : json::Value();
}

struct TemporaryDirectory {
  TemporaryDirectory() {
    char name[] = "/tmp/muster-agent-XXXXXX";
    path = mkdtemp(name);
  }
  ~TemporaryDirectory() { fs::remove_all(path); }
  std::string path;
};

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Expand, FollowsKubernetesRules) {
  const std::map<std::string, std::string> values{{"A", "1"}, {"EMPTY", ""}};
  const std::pair<const char*, const char*> cases[] = {
      {"$(A)", "1"},
      {"$$(A)", "$(A)"},
      {"$(B)", "$(B)"},
      {"x$(A)y$(A)", "x1y1"},
      {"$(EMPTY)", ""},
      {"$", "$"},
      {"$(A", "$(A"},
      {"$A", "$A"},
      {"$$", "$"},
  };
  for (const auto& [input, wanted] : cases) EXPECT_EQ(expand(input, values), wanted) << input;
}

TEST(Env, LaterNamesSeeEarlierOnesAndMissingObjectsAreNamed) {
  const auto pod = parse(
      R"J({"metadata":{"name":"p","namespace":"n","labels":{"a":"b"}},"spec":{"nodeName":"node","containers":[
    {"name":"c","env":[{"name":"X","value":"1"},{"name":"Y","value":"$(X)$(X)"},{"name":"L","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a']"}}},
     {"name":"O","valueFrom":{"secretKeyRef":{"name":"none","key":"k","optional":true}}}]
}]
}
})J");
  const auto& container = json::array_at(pod, "spec", "containers")[0];
  const auto env = container_env(pod, container, {}, {}, {{"X", "0"}});
  ASSERT_TRUE(env.has_value());
  EXPECT_EQ(*env, (EnvList{{"X", "1"}, {"Y", "11"}, {"L", "b"}}));
  const auto bad =
      parse(R"J({"env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"cm","key":"k"}}}]})J");
  const auto missing = container_env(pod, bad, {}, {}, {});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, "configmap \"cm\" not found");
}

TEST(Volumes, FilesChangeAtOnceAndOnlyWhenTheyDiffer) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(
      write_files(directory.path, {{"a", "one", 0644}, {"sub/b", "two", 0400}}).has_value());
  EXPECT_EQ(content(directory.path + "/a"), "one");
  EXPECT_EQ(content(directory.path + "/sub/b"), "two");
  const auto generation = fs::read_symlink(directory.path + "/..data");
  ASSERT_TRUE(
      write_files(directory.path, {{"a", "one", 0644}, {"sub/b", "two", 0400}}).has_value());
  EXPECT_EQ(fs::read_symlink(directory.path + "/..data"), generation);
  ASSERT_TRUE(write_files(directory.path, {{"a", "three", 0644}}).has_value());
  EXPECT_EQ(content(directory.path + "/a"), "three");
  EXPECT_FALSE(fs::exists(directory.path + "/sub"));
  EXPECT_FALSE(fs::exists(fs::path(directory.path) / generation));
}

TEST(Volumes, PathsMayNotLeaveTheVolume) {
  const auto volume = parse(
      R"J({"name":"v","configMap":{"name":"cm","items":[{"key":"k","path":"../../etc/passwd"}]}})J");
  VolumeInputs inputs;
  inputs.objects[{"configmaps", "cm"}] = parse(R"J({"data":{"k":"v"}})J");
  EXPECT_FALSE(volume_files(volume, inputs).has_value());
  PreparedVolumes prepared;
  prepared.by_name["v"] = {"/tmp", false, ""};
  EXPECT_FALSE(container_mounts(
                   parse(R"J({"volumeMounts":[{"name":"v","mountPath":"/x","subPath":"../y"}]})J"),
                   prepared,
                   {})
                   .has_value());
}

ContainerRecord ended(int code) {
  ContainerRecord record;
  record.name = "main";
  record.current = ContainerStatus{"id",
                                   "main",
                                   0,
                                   ContainerState::kExited,
                                   {},
                                   Time::from_seconds(1),
                                   Time::from_seconds(2),
                                   code,
                                   code == 0 ? "Completed" : "Error",
                                   ""};
  return record;
}

TEST(Phase, FollowsRestartPolicy) {
  struct Case {
    const char* policy;
    int code;
    const char* phase;
  };
  for (const auto& one : {Case{"Never", 0, "Succeeded"},
                          {"Never", 1, "Failed"},
                          {"OnFailure", 0, "Succeeded"},
                          {"OnFailure", 1, "Running"},
                          {"Always", 0, "Running"},
                          {"Always", 1, "Running"}}) {
    json::Value pod = json::Object{{"spec", json::Object{{"restartPolicy", one.policy}}}};
    PodState state;
    state.containers.push_back(ended(one.code));
    EXPECT_EQ(phase_of(pod, state), one.phase) << one.policy << " " << one.code;
  }
}

TEST(Status, KeepsTransitionTimesAndPatchesOnlyWhatChanged) {
  const auto pod = parse(
      R"J({"metadata":{"name":"p","namespace":"n","uid":"u","generation":2},"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"i"}]}})J");
  PodState state;
  state.sandbox_ready = true;
  state.containers.push_back(ended(0));
  state.containers[0].current->state = ContainerState::kRunning;
  state.containers[0].ready = state.containers[0].started = true;
  const auto first = pod_status(pod, state, {}, "process", Time::from_seconds(10));
  EXPECT_EQ(json::text_at(first, "phase"), "Running");
  EXPECT_EQ(json::int_at(first, "observedGeneration"), 2);
  const auto second = pod_status(pod, state, first, "process", Time::from_seconds(20));
  EXPECT_TRUE(status_patch(pod, first, second).is_null());
  state.containers[0].ready = false;
  const auto third = pod_status(pod, state, first, "process", Time::from_seconds(30));
  const auto patch = status_patch(pod, first, third);
  EXPECT_TRUE(json::at(patch, "status", "phase").is_null());
  EXPECT_FALSE(json::at(patch, "status", "conditions").is_null());
}

TEST(Logs, WriterAndReaderAgreeByteForByte) {
  const TemporaryDirectory directory;
  const auto path = directory.path + "/log";
  std::string text;
  for (int i = 0; i < 300; ++i)
    text +=
        std::string(static_cast<std::size_t>(i * 211 % 40000), static_cast<char>('a' + i % 26)) +
        "\n";
  text += "no newline at the end";
  {
    process::LogWriter writer(path);
    for (std::size_t i = 0; i < text.size(); i += 7777)
      writer.write(process::LogWriter::kStdout, std::string_view(text).substr(i, 7777));
    writer.finish();
  }
  EXPECT_EQ(read_log(path, {}), text);
  for (const int lines : {1, 2, 5, 50}) {
    LogOptions options;
    options.tail_lines = lines;
    std::size_t from = text.size();
    for (int i = 0; i < lines; ++i) from = text.rfind('\n', from - 1);
    EXPECT_EQ(read_log(path, options), text.substr(from + 1)) << lines;
  }
  LogOptions none;
  none.tail_lines = 0;
  EXPECT_EQ(read_log(path, none), "");
  LogOptions limited;
  limited.limit_bytes = 10;
  EXPECT_EQ(read_log(path, limited), text.substr(0, 10));
}

std::string query(const std::string& name, char type) {
  std::string out("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  std::stringstream parts(name);
  for (std::string part; std::getline(parts, part, '.');)
    out += static_cast<char>(part.size()) + part;
  return out + std::string("\0\0", 2) + type + std::string("\0\1", 2);
}

TEST(Dns, AnswersKnownNamesAndRefusesForeignOnes) {
  const ResolveName resolve =
      [](const std::string& name) -> std::optional<std::vector<std::string>> {
    if (name == "svc.ns.svc") return std::vector<std::string>{"10.244.0.5", "10.244.0.6"};
    return std::nullopt;
  };
  const auto found = answer_query(query("svc.ns.svc.cluster.local", 1), resolve);
  EXPECT_EQ(found[3] & 15, 0);
  EXPECT_EQ(found[7], 2);
  EXPECT_EQ(found.substr(found.size() - 4), std::string("\x0a\xf4\x00\x06", 4));
  // AAAA: exists, no address.
  EXPECT_EQ(answer_query(query("svc.ns.svc.cluster.local", 28), resolve)[7], 0);
  EXPECT_EQ(answer_query(query("no.ns.svc.cluster.local", 1), resolve)[3] & 15, 3);
  EXPECT_EQ(answer_query(query("example.com", 1), resolve)[3] & 15, 5);
  EXPECT_EQ(answer_query("short", resolve), "");
  const auto whole = query("svc.ns.svc.cluster.local", 1);
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    (void)answer_query(whole.substr(0, cut), resolve);  // must not read beyond
}

TEST(Names, HostnameIsShortEnoughAndHostsListsAliases) {
  json::Value pod = parse(
      R"J({"metadata":{"name":"p","namespace":"n"},"spec":{"subdomain":"s","hostAliases":[{"ip":"1.2.3.4","hostnames":["a","b"]}]}})J");
  EXPECT_NE(hosts_file(pod, "10.0.0.1").find("10.0.0.1\tp.s.n.svc.cluster.local\tp\n"),
            std::string::npos);
  EXPECT_NE(hosts_file(pod, "10.0.0.1").find("1.2.3.4\ta\tb\n"), std::string::npos);
  json::make(pod, {"metadata", "name"}) = std::string(62, 'x') + "-abc";
  EXPECT_EQ(pod_hostname(pod), std::string(62, 'x'));
}

TEST(AddressPool, GivesEachAddressOnceAndOldOnesLast) {
  process::AddressPool pool(10, 12);
  EXPECT_EQ(pool.take(), 10U);
  EXPECT_EQ(pool.take(), 11U);
  pool.give_back(10);
  EXPECT_EQ(pool.take(), 12U);
  EXPECT_EQ(pool.take(), 10U);
  EXPECT_EQ(pool.take(), std::nullopt);
}

TEST(Nat, FindsRulesWhoseBridgeIsGone) {
  const std::string rules =
      "-P PREROUTING ACCEPT\n-N MUSTER-SVC-0000aaaa\n-N MUSTER-OUT-0000aaaa\n-N MUSTER-SVC-0000bbbb\n"
      "-N DOCKER\n-A PREROUTING -i mstr0000aaaa -j MUSTER-SVC-0000aaaa\n-N MUSTER-FWD-0000cccc\n";
  const auto exists = [](const std::string& bridge) { return bridge == "mstr0000bbbb"; };
  EXPECT_EQ(process::bridges_gone(rules, exists),
            (std::vector<std::string>{"mstr0000aaaa", "mstr0000cccc"}));
}

TEST(Mask, ShowsTheEnvironmentThatMusterWasStartedIn) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(process::shown_by_environment(
                {"/root/venv", "/root/venv/bin:/usr/bin:/root/.pyenv/shims:/home/a/conda/bin"}),
            (Paths{"/root/venv", "/root/.pyenv", "/home/a/conda"}));
  EXPECT_EQ(process::shown_by_environment({"/usr/bin:/rooted/x:/root/:/home/a"}), Paths());
  // Once, whichever way round PATH has it.
  EXPECT_EQ(process::shown_by_environment({"/root/.pyenv/versions/3/bin:/root/go/bin:"
                                           "/root/.pyenv/plugins/x/shims:/root/.pyenv/bin"}),
            (Paths{"/root/go", "/root/.pyenv"}));
  // Nobody's home becomes everybody's because programs of theirs are in it.
  EXPECT_EQ(process::shown_by_environment({"/root/bin:/home/a/bin:/home/a/.local/bin"}),
            (Paths{"/root/bin", "/home/a/bin", "/home/a/.local"}));
}

TEST(HostImage, ShowsThisProgramWhereverItWasBuilt) {
  EXPECT_EQ(process::shown_for_program("/root/muster/build/muster"), "/root/muster/build/muster");
  EXPECT_EQ(process::shown_for_program("/home/a/b/muster"), "/home/a/b/muster");
  EXPECT_EQ(process::shown_for_program("/tmp/clone/build/muster"), "/tmp/clone/build/muster");
  EXPECT_EQ(process::shown_for_program("/var/tmp/x/muster"), "/var/tmp/x/muster");
  EXPECT_EQ(process::shown_for_program("/usr/bin/muster"), "");
  EXPECT_EQ(process::shown_for_program("/srv/tmp/muster"), "");
}

TEST(ExitStatus, CarriesTheCode) {
  EXPECT_EQ(exit_status(Result<int>(0)), R"J({"metadata":{},"status":"Success"})J");
  const auto failed = json::parse(exit_status(Result<int>(3)));
  EXPECT_EQ(json::text_at(json::array_at(*failed, "details", "causes")[0], "message"), "3");
}

TEST(Adopted, WhatEndsBeforeTheApiSaysWhoseItIsHasEnded) {
  SandboxStatus found{"pod", "10.0.0.1", true, {}};
  for (const char* id : {"a", "b", "c"}) {
    ContainerStatus container;
    container.id = container.name = id;
    container.state = ContainerState::kRunning;
    found.containers.push_back(container);
  }
  RuntimeEvent ended{"pod", "a", found.containers[0]};
  ended.status.state = ContainerState::kExited;
  ended.status.exit_code = 3;
  const Time now = Time::from_seconds(1'700'000'000);
  apply(ended, now, found);
  EXPECT_EQ(found.containers[0].state, ContainerState::kExited);
  EXPECT_EQ(found.containers[0].exit_code, 3);
  EXPECT_EQ(found.containers[1].state, ContainerState::kRunning);
  // All of it is lost.
  apply({"pod", "", {}}, now, found);
  EXPECT_FALSE(found.alive);
  EXPECT_EQ(found.containers[0].exit_code, 3);
  EXPECT_EQ(found.containers[1].state, ContainerState::kExited);
  EXPECT_EQ(found.containers[1].exit_code, 137);
  EXPECT_EQ(found.containers[2].finished, now);
}

TEST(Hollow, EndsWithItsExitCode) {
  const auto pod = parse(
      R"J({"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"i"}]}})J");
  const auto running =
      hollow_status(pod, "100.64.0.1", "1.1.1.1", Time::from_seconds(5), {}, false, 0);
  EXPECT_EQ(json::text_at(running, "phase"), "Running");
  const auto done = hollow_status(
      pod, "100.64.0.1", "1.1.1.1", Time::from_seconds(5), Time::from_seconds(9), true, 4);
  EXPECT_EQ(json::text_at(done, "phase"), "Failed");
}

}  // namespace
}  // namespace muster::agent
