// What is said to a container runtime, and how its answers are read. The runtime itself is tried by
// tests/agent/cri.py.
#include <gtest/gtest.h>

#include "agent/cri/messages.h"
#include "agent/cri/network.h"
#include "agent/cri/pause_image.h"
#include "agent/cri/streaming.h"
#include "agent/image/protobuf.h"
#include "agent/process/user_range.h"
#include "json/json.h"

namespace muster::agent::cri {
namespace {

using image::MessageField;
using image::MessageWriter;

/// The bytes of a field of a message, by a path of field numbers.
std::string field_at(std::string message, std::initializer_list<int> path) {
  for (const int number : path) {
    std::string inner;
    EXPECT_TRUE(image::read_message(message, [&](const MessageField& field) {
      if (field.number == number && field.is_bytes) inner = std::string(field.bytes);
    }));
    message = inner;
  }
  return message;
}

TEST(CriMessages, ASandboxSaysWhoseItIs) {
  SandboxWish wish;
  wish.config.id = "uid-1";
  wish.config.pod_name = "p";
  wish.config.pod_namespace = "ns";
  wish.config.hostname = "host";
  wish.owner = "/data/agent";
  const auto message = run_sandbox_request(sandbox_message(wish), "runc");
  EXPECT_EQ(field_at(message, {1, 1, 2}), "uid-1");
  EXPECT_EQ(field_at(message, {1, 2}), "host");
  EXPECT_EQ(field_at(message, {1, 6, 2}), "/data/agent");  // the last label
  EXPECT_EQ(field_at(message, {2}), "runc");
  wish.config.host_network = true;
  EXPECT_EQ(field_at(run_sandbox_request(sandbox_message(wish), ""), {1, 2}), "");
}

TEST(CriMessages, ASandboxOfItsOwnUsersIsKnownAgain) {
  UserRanges ranges("/data/agent");
  SandboxWish wish;
  wish.config.own_users = true;
  wish.users = ranges.take();
  ASSERT_TRUE(wish.users);
  const auto read = read_namespaces(sandbox_message(wish));
  ASSERT_TRUE(read.users);
  EXPECT_EQ(*read.users, *wish.users);
  EXPECT_FALSE(read.host_network || read.host_pid || read.host_ipc || read.share_process_namespace);
  ContainerWish container;
  container.users = wish.users;
  container.config.mounts.push_back({"/a", "/b", false, "", "", false, false});
  EXPECT_EQ(field_at(create_container_request(container), {2, 7, 6}),
            id_mapping(*wish.users).bytes());
  wish.users.reset();
  wish.config.share_process_namespace = wish.config.host_ipc = wish.config.host_network = true;
  const auto shared = read_namespaces(sandbox_message(wish));
  EXPECT_FALSE(shared.users);
  EXPECT_TRUE(shared.host_network && shared.host_ipc && shared.share_process_namespace);
}

TEST(CriUsers, ARangeIsAnothersOnceNobodyHoldsIt) {
  UserRanges ranges("/data/agent");
  auto one = ranges.take(), two = ranges.take();
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
  EXPECT_GE(*one, process::kRangesFrom + process::kRangeSize * process::kRanges);
  UserRanges after("/data/agent");  // the next agent
  const auto held = after.hold(*one);
  std::vector<UserRange> all;
  while (auto next = after.take()) {
    EXPECT_NE(*next, *held);
    all.push_back(std::move(next));
  }
  const auto given = *all.front();
  all.front().reset();
  EXPECT_EQ(*after.take(), given);
}

TEST(CriUsers, ARuntimeSaysWhetherItCan) {
  const auto handler = [](const char* name, bool can) {
    MessageWriter features, out;
    features.number(2, can ? 1 : 0);
    out.text(1, name).message(2, features);
    return out;
  };
  MessageWriter answer;
  answer.element(1, "").message(3, handler("", true)).message(3, handler("gvisor", false));
  EXPECT_TRUE(*read_maps_users(answer.bytes(), ""));
  EXPECT_FALSE(*read_maps_users(answer.bytes(), "gvisor"));
  EXPECT_FALSE(*read_maps_users(answer.bytes(), "unknown"));
  EXPECT_FALSE(*read_maps_users("", ""));  // an older one says nothing of its handlers
  EXPECT_FALSE(read_maps_users("\xff", ""));
}

TEST(CriMessages, AContainerKeepsItsEmptyWordsAndItsMasks) {
  ContainerWish wish;
  wish.config.args = {"sh", "-c", ""};
  wish.config.log_path = "/pods/uid/main_0.log";
  const auto request = create_container_request(wish);
  int words = 0, masked = 0;
  EXPECT_TRUE(image::read_message(field_at(request, {2}), [&](const MessageField& field) {
    words += field.number == 3 ? 1 : 0;
  }));
  EXPECT_TRUE(image::read_message(field_at(request, {2, 15, 2}), [&](const MessageField& field) {
    masked += field.number == 13 ? 1 : 0;
  }));
  EXPECT_EQ(words, 3);
  EXPECT_GT(masked, 5);
  EXPECT_EQ(field_at(request, {2, 11}), "main_0.log");
}

TEST(CriMessages, StatusesAreRead) {
  MessageWriter named, status, answer;
  named.text(1, "main").number(2, 3);
  status.text(1, "id").message(2, named).number(3, 2).number(6, 5'000'000'000).number(7, 137);
  status.text(10, "OOMKilled");
  const auto read = read_container_status(answer.message(1, status).bytes());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status.name, "main");
  EXPECT_EQ(read->status.attempt, 3);
  EXPECT_EQ(read->status.state, ContainerState::kExited);
  EXPECT_EQ(read->status.exit_code, 137);
  EXPECT_EQ(read->status.finished.seconds(), 5);
  EXPECT_FALSE(read_container_status("\xff"));
}

TEST(CriStreaming, UrlsAndEnds) {
  const auto url = parse_stream_url("http://127.0.0.1:41234/exec/a-b");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->port, 41234);
  EXPECT_EQ(url->target, "/exec/a-b");
  for (const auto* bad :
       {"", "https://x:1/a", "http://127.0.0.1/a", "http://a:99999/b", "http://a:1/ b"})
    EXPECT_FALSE(parse_stream_url(bad)) << bad;
  EXPECT_EQ(*exit_code_of(R"({"status":"Success"})"), 0);
  EXPECT_EQ(
      *exit_code_of(
          R"({"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"7"}]}})"),
      7);
  EXPECT_FALSE(exit_code_of(""));
  EXPECT_EQ(exit_code_of(R"({"status":"Failure","message":"no"})").error().message, "no");
}

TEST(CriNetwork, PodsTakeTheUpperQuarter) {
  const auto list = json::parse(network_list({"mstr1", 10U << 24 | 244U << 16}, "/a"));
  ASSERT_TRUE(list);
  const auto& plugin = json::array_at(*list, "plugins").at(0);
  EXPECT_EQ(json::string_at(plugin, "bridge"), "mstr1");
  const auto& range = json::array_at(plugin, "ipam", "ranges").at(0).as_array().at(0);
  EXPECT_EQ(json::string_at(range, "rangeStart"), "10.244.192.2");
  EXPECT_EQ(json::string_at(range, "gateway"), "10.244.0.1");
}

TEST(CriPause, TheArchiveIsWhole) {
  const auto archive = pause_archive();
  EXPECT_EQ(archive.size() % 512, 0U);
  EXPECT_NE(archive.find(kPauseImage), std::string::npos);
  EXPECT_NE(archive.find("\x7f"
                         "ELF"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::agent::cri
