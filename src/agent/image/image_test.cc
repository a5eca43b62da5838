/// The parts of images that are pure: names, logins, messages, configurations, the image file, and
/// which images go; and how a server that starts is awaited.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <thread>

#include "agent/fd.h"
#include "agent/image/containerd.h"
#include "agent/image/containerd_state.h"
#include "agent/image/credentials.h"
#include "agent/image/cri_messages.h"
#include "agent/image/image_config.h"
#include "agent/image/image_file.h"
#include "agent/image/image_source.h"
#include "agent/image/listening.h"
#include "agent/image/protobuf.h"
#include "agent/image/pulls.h"
#include "agent/image/reference.h"
#include "base/strings.h"

namespace muster::agent::image {
namespace {

using namespace std::chrono_literals;

std::string name_of(std::string_view text) {
  const auto ref = parse_reference(text);
  return ref ? ref->name() : "none";
}

TEST(ImageReference, IsNamedInFull) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  EXPECT_EQ(name_of("busybox"), "docker.io/library/busybox:latest");
  EXPECT_EQ(name_of("busybox:1.36"), "docker.io/library/busybox:1.36");
  EXPECT_EQ(name_of("pytorch/pytorch:2.1-cuda"), "docker.io/pytorch/pytorch:2.1-cuda");
  EXPECT_EQ(name_of("localhost/a"), "localhost/a:latest");
  EXPECT_EQ(name_of("127.0.0.1:5000/a/b:1"), "127.0.0.1:5000/a/b:1");
  EXPECT_EQ(name_of("index.docker.io/library/x"), "docker.io/library/x:latest");
  EXPECT_EQ(name_of("a/b@" + digest), "docker.io/a/b@" + digest);
  EXPECT_EQ(name_of("a/b:1@" + digest), "docker.io/a/b@" + digest);
  EXPECT_EQ(name_of("[::1]:5000/a"), "[::1]:5000/a:latest");
  EXPECT_EQ(name_of("a__b/c-d.e"), "docker.io/a__b/c-d.e:latest");
}

TEST(ImageReference, WhatIsNoNameIsRefused) {
  for (const auto* text : {"",
                           "Bad//name",
                           "a:",
                           "a@",
                           "a@sha256:12",
                           "-a",
                           "a-",
                           "a b",
                           "a:-x",
                           "a..b",
                           "a/",
                           "/a",
                           "host:port/a",
                           "a___b",
                           "ex ample.com/a"})
    EXPECT_EQ(name_of(text), "none") << text;
  EXPECT_EQ(parse_reference("Bad//name").error().message,
            "couldn't parse image name \"Bad//name\": invalid reference format");
  EXPECT_NE(parse_reference("UPPER").error().message.find("must be lowercase"), std::string::npos);
  EXPECT_FALSE(parse_reference(std::string(300, 'a')));
}

TEST(ImageCredentials, KeysMatchHostsPartsAndPaths) {
  EXPECT_TRUE(key_matches("registry.example", "registry.example/a/b"));
  EXPECT_TRUE(key_matches("https://registry.example/v2/", "registry.example/a"));
  EXPECT_TRUE(key_matches("*.example", "registry.example/a"));
  EXPECT_TRUE(key_matches("reg*.example:5000", "registry.example:5000/a"));
  EXPECT_TRUE(key_matches("registry.example/team", "registry.example/team/x"));
  EXPECT_TRUE(key_matches("https://index.docker.io/v1/", "docker.io/library/busybox"));
  EXPECT_FALSE(key_matches("*.example", "a.b.example/x"));  // a star is one part
  EXPECT_FALSE(key_matches("registry.example", "registry.example:5000/a"));
  EXPECT_FALSE(key_matches("registry.example/team", "registry.example/other"));
  EXPECT_FALSE(key_matches("registry.example/team", "registry.example"));
  // A hostile pattern is as quick as any.
  EXPECT_FALSE(key_matches(std::string(200, '*') + "b", std::string(200, 'a') + "/x"));
}

json::Value secret(const char* type, const char* field, const std::string& config) {
  return json::Object{{"type", type}, {"data", json::Object{{field, base64_encode(config)}}}};
}

TEST(ImageCredentials, SecretsOfBothKindsAreReadAndTheLongestKeyGoesFirst) {
  Credentials all;
  EXPECT_EQ(all.add_secret(secret("kubernetes.io/dockercfg",
                                  ".dockercfg",
                                  R"({"registry.example":{"username":"old","password":"p"}})")),
            "");
  const auto both = base64_encode("new:with:colon");
  EXPECT_EQ(
      all.add_secret(secret("kubernetes.io/dockerconfigjson",
                            ".dockerconfigjson",
                            R"({"auths":{"registry.example/team":{"auth":")" + both + R"("}}})")),
      "");
  const auto found = all.matching(*parse_reference("registry.example/team/x"));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].username, "new");
  EXPECT_EQ(found[0].password, "with:colon");
  EXPECT_EQ(found[1].username, "old");
  EXPECT_EQ(all.matching(*parse_reference("registry.example/other")).size(), 1U);
  EXPECT_TRUE(all.matching(*parse_reference("busybox")).empty());
}

TEST(ImageCredentials, WhatCannotBeReadSaysSo) {
  Credentials all;
  EXPECT_NE(all.add_secret(secret("Opaque", "x", "{}")), "");
  EXPECT_NE(all.add_secret(secret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", "{")), "");
  EXPECT_EQ(all.add_secret(secret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", "[]")),
            "");
  EXPECT_TRUE(all.matching(*parse_reference("busybox")).empty());
}

TEST(ImageCredentials, AFingerprintTellsLoginsApart) {
  EXPECT_EQ(fingerprint({}), "");
  EXPECT_EQ(fingerprint({"u", "p", ""}), fingerprint({"u", "p", ""}));
  EXPECT_NE(fingerprint({"u", "p", ""}), fingerprint({"u", "q", ""}));
}

TEST(ImageMessages, AStatusComesBackAsItWasWritten) {
  MessageWriter image, answer;
  image.text(1, "sha256:id").text(2, "a:1").text(2, "a:2").text(3, "a@sha256:d").number(4, 300);
  image.message(5, MessageWriter().number(1, 7)).number(8, 1);
  answer.message(1, image).entry(2, "info", "{}");
  const auto status = read_image_status(answer.bytes());
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->found);
  EXPECT_EQ(status->image.id, "sha256:id");
  EXPECT_EQ(status->image.repo_tags, (std::vector<std::string>{"a:1", "a:2"}));
  EXPECT_EQ(status->image.size_bytes, 300U);
  EXPECT_TRUE(status->image.pinned);
  EXPECT_EQ(status->info.at("info"), "{}");
  EXPECT_FALSE(read_image_status("")->found);
  EXPECT_FALSE(read_image_status("\x0a\x7f"));
}

TEST(ImageMessages, RequestsAreAsProtobufHasThem) {
  EXPECT_EQ(image_status_request("a", true), std::string("\x0a\x03\x0a\x01\x61\x10\x01", 7));
  EXPECT_EQ(pull_image_request("a", {}), std::string("\x0a\x03\x0a\x01\x61", 5));
  EXPECT_EQ(pull_image_request("a", {"u", "p", ""}),
            std::string("\x0a\x03\x0a\x01\x61\x12\x06\x0a\x01\x75\x12\x01\x70", 13));
}

TEST(ImageMessages, LayersAreAnOverlaysLowerOnesOrWhatIsBound) {
  EXPECT_EQ(*layers_of({{"bind", "/s/1/fs", {"ro", "rbind"}}}),
            std::vector<std::string>{"/s/1/fs"});
  EXPECT_EQ(*layers_of({{"overlay", "overlay", {"index=off", "lowerdir=/s/2/fs:/s/1/fs"}}}),
            (std::vector<std::string>{"/s/2/fs", "/s/1/fs"}));
  EXPECT_FALSE(layers_of({}));
  EXPECT_FALSE(layers_of({{"erofs", "x", {}}}));
}

TEST(ImageConfiguration, SaysHowItIsStarted) {
  const auto config = parse_image_info(
      R"({"chainID":"sha256:c","imageSpec":{"config":{"Env":["A=b=c","broken","=x"],"Entrypoint":["/e"],"Cmd":["c"],"User":"u:g","WorkingDir":"/w"}}})");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->chain_id, "sha256:c");
  EXPECT_EQ(config->env, (std::vector<std::pair<std::string, std::string>>{{"A", "b=c"}}));
  EXPECT_EQ(config->entrypoint, std::vector<std::string>{"/e"});
  EXPECT_EQ(config->command, std::vector<std::string>{"c"});
  EXPECT_EQ(config->user, "u:g");
  EXPECT_EQ(config->working_dir, "/w");
  EXPECT_FALSE(parse_image_info("no"));
  EXPECT_TRUE(parse_image_info(R"({"imageSpec":null})"));
}

TEST(ImageFileTest, SaysWhatNamesMean) {
  const auto file = ImageFile::parse(R"(
source: containerd
images:
- {name: muster/host, host: true, env: {A: b}}
- {name: "train:*", root: /usr, entrypoint: [/bin/x]}
- {name: machine, root: /}
host: {show: [/data, "/srv:rw"], hide: [/keys], env: {X: y}}
registries: [{name: "r.example:5000", endpoint: "http://127.0.0.1:1", username: u, password: p}]
collection: {above: 50, until: 40, age: 1s}
)");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->source, "containerd");
  EXPECT_TRUE(file->find("muster/host", /*pulls=*/false)->of_host());
  EXPECT_EQ(file->find("train:1", /*pulls=*/false)->layers, std::vector<std::string>{"/usr"});
  EXPECT_TRUE(file->find("machine", /*pulls=*/false)->of_host());
  EXPECT_FALSE(file->find("other", /*pulls=*/false));
  EXPECT_EQ(file->host.show, (std::vector<std::string>{"/data", "/srv:rw"}));
  EXPECT_EQ(file->host.env.size(), 1U);
  EXPECT_EQ(file->registries.at(0).endpoint, "http://127.0.0.1:1");
  EXPECT_EQ(file->collection.above_percent, 50);
  EXPECT_EQ(ImageFile::parse("{}")->host.env.size(), 2U);  // Open MPI's
}

TEST(ImageFileTest, WhatIsWrongIsSaid) {
  for (const auto* text : {"images: [{root: /usr}]",
                           "images: [{name: a, root: /no/such/place}]",
                           "images: [{name: a, root: /usr, host: true}]",
                           "host: {show: [relative]}",
                           "host: {hide: [/a/../b]}",
                           "registries: [{name: a/b}]",
                           "registries: [{endpoint: x}]",
                           "collection: {above: 10, until: 20}",
                           "collection: {age: soon}"})
    EXPECT_FALSE(ImageFile::parse(text)) << text;
}

TEST(ImagePulls, SpansAreWrittenAsGoDoes) {
  EXPECT_EQ(go_duration(0ms), "0s");
  EXPECT_EQ(go_duration(312ms), "312ms");
  EXPECT_EQ(go_duration(1200ms), "1.2s");
  EXPECT_EQ(go_duration(62500ms), "1m2.5s");
  EXPECT_EQ(go_duration(2h + 3s), "2h0m3s");
}

TEST(ImagePulls, SomeFailuresHaveReasonsOfTheirOwn) {
  const std::string plain = "rpc error: code = NotFound desc = no such";
  EXPECT_EQ(pull_failure("x", plain), std::pair(std::string("ErrImagePull"), plain));
  EXPECT_EQ(pull_failure("x", "rpc error: code = Unknown desc = RegistryUnavailable: down").first,
            "RegistryUnavailable");
  EXPECT_EQ(pull_failure("x", "SignatureValidationFailed: no key").first,
            "SignatureValidationFailed");
}

StoredImage stored(const char* id, std::uint64_t size = 1) {
  StoredImage image;
  image.id = id;
  image.repo_tags = {std::string("t/") + id};
  image.size_bytes = size;
  return image;
}

TEST(ImageCollection, TheLongestUnusedGoFirstAndYoungOnesStay) {
  const Time now{1'000'000'000};
  const auto old = now - Duration(10min), older = now - Duration(20min);
  auto pinned = stored("pinned");
  pinned.pinned = true;
  const auto gone = unused_images({{stored("young"), now},
                                   {stored("old"), old},
                                   {stored("older"), older},
                                   {stored("used"), older},
                                   {stored("named"), older},
                                   {pinned, older}},
                                  {"used", "t/named"},
                                  now,
                                  2min);
  ASSERT_EQ(gone.size(), 2U);
  EXPECT_EQ(gone[0].id, "older");
  EXPECT_EQ(gone[1].id, "old");
}

TEST(ImageCollection, ANodeListsTheLargest) {
  std::vector<StoredImage> images;
  for (int i = 0; i < 60; ++i)
    images.push_back(stored(std::to_string(i).c_str(), static_cast<std::uint64_t>(i)));
  const auto listed = list_for_node(images);
  ASSERT_EQ(listed.size(), 50U);
  EXPECT_EQ(json::int_at(listed[0], "sizeBytes"), 59);
}

TEST(ImageSources, AreNoneContainerdOrASocket) {
  EXPECT_TRUE(check_source("none"));
  EXPECT_TRUE(check_source("containerd"));
  EXPECT_TRUE(check_source("unix:///run/x.sock"));
  EXPECT_FALSE(check_source("docker"));
  EXPECT_FALSE(check_source("unix://relative"));
}

/// Binds, listens and then sets the mode, as a server written in Go does.
Fd serve_at(const std::string& path) {
  Fd server(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(bind(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(server.get(), 1), 0);
  EXPECT_EQ(chmod(path.c_str(), 0600), 0);
  return server;
}

TEST(ServersThatStart, AreAwaitedUntilTheyListen) {
  char folder[] = "/tmp/muster-listening-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const auto path = std::string(folder) + "/a.sock";
  EXPECT_FALSE(await_listening(path, 1ms));
  bool came = false;
  std::thread client([&] { came = await_listening(path, 60s); });
  const auto server = serve_at(path);
  client.join();
  EXPECT_TRUE(came);
  std::filesystem::remove_all(folder);
}

TEST(ContainerdState, EverybodyCanPassAndItGoesWithItsFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "not root";
  char folder[] = "/tmp/muster-state-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const auto state = containerd_state(folder);
  ASSERT_FALSE(state.starts_with(folder)) << state;
  EXPECT_EQ(containerd_state(folder), state);
  const auto place = std::filesystem::path(state).parent_path();
  EXPECT_EQ(std::filesystem::status(place).permissions(), std::filesystem::perms(0711));
  remove_orphaned_states();
  EXPECT_TRUE(std::filesystem::exists(place));
  // Pods of an earlier muster keep theirs.
  const auto task = std::string(folder) + "/state/io.containerd.runtime.v2.task/k8s.io/id";
  std::filesystem::create_directories(task);
  EXPECT_EQ(containerd_state(folder), std::string(folder) + "/state");
  std::filesystem::remove_all(folder);
  remove_orphaned_states();
  EXPECT_FALSE(std::filesystem::exists(place));
}

TEST(ContainerdFiles, QuoteWhatTheyName) {
  EXPECT_NE(containerd_config("/a \"b", {}).find(R"("/a \"b/root")"), std::string::npos);
  EXPECT_EQ(hosts_file({"r", "http://127.0.0.1:5", "", ""}),
            "server = \"http://127.0.0.1:5\"\n[host.\"http://127.0.0.1:5\"]\n  capabilities = "
            "[\"pull\", \"resolve\"]\n");
}

}  // namespace
}  // namespace muster::agent::image
