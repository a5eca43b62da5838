#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/strings.h"
#include "net/loop/loop.h"
#include "pai/people/directory.h"
#include "pai/people/hashing.h"
#include "pai/people/hex.h"
#include "pai/people/password.h"
#include "pai/people/records.h"
#include "pai/people/throttle.h"
#include "pai/people/token.h"

namespace muster::pai {
namespace {

using namespace std::chrono_literals;

// Made with Node's crypto.pbkdf2Sync, as OpenPAI's server makes it.
constexpr std::string_view kOpenpaiHash =
    "dd228017d8d261f8e4b76ffa39a0be485cbf2392ee5b92210ebf33fae90119f9"
    "ff1d3228d13ccf85ef61e2d1d0f0a0c0f31a9997569c54713f848cec0277784f";

TEST(Password, IsKnownAgainAndNoOtherIs) {
  const auto hash = hash_password("open-pai-1", "0123456789abcdef");
  ASSERT_TRUE(hash);
  EXPECT_TRUE(hash->starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << *hash;
  EXPECT_TRUE(verify_password(*hash, "alice", "open-pai-1"));
  EXPECT_FALSE(verify_password(*hash, "alice", "open-pai-2"));
  EXPECT_FALSE(verify_password(*hash, "alice", ""));
}

TEST(Password, OfOpenpaiIsKnownAgain) {
  EXPECT_EQ(openpai_hash("alice", "open-pai-1"), kOpenpaiHash);
  EXPECT_TRUE(is_openpai_hash(kOpenpaiHash));
  EXPECT_TRUE(verify_password(kOpenpaiHash, "alice", "open-pai-1"));
  EXPECT_FALSE(verify_password(kOpenpaiHash, "bob", "open-pai-1"));
  EXPECT_FALSE(verify_password(kOpenpaiHash, "alice", "open-pai-2"));
}

TEST(Password, StoredAsAnythingElseIsNeverRight) {
  for (const char* stored : {"",
                             "secret",
                             "$argon2id$",
                             "$argon2id$v=19$m=19456,t=2,p=1$",
                             "$argon2id$v=19$m=4000000000,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2g"})
    EXPECT_FALSE(verify_password(stored, "alice", "secret")) << stored;
}

TEST(Token, OfOpenpaisLibraryIsRead) {
  const std::string token =
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
      "eyJ1c2VybmFtZSI6ImFsaWNlIiwiYXBwbGljYXRpb24iOnRydWUsImlhdCI6MTYwMDAwMDAwMH0."
      "e7XLySWj9P3oOFf6-szf1u7TrRsc329Nhsa6GEjVIWU";
  const auto claims = read_token("0123456789abcdef", token);
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(claims->user, "alice");
  EXPECT_TRUE(claims->application);
  EXPECT_EQ(claims->issued_s, 1600000000);
  EXPECT_EQ(claims->expires_s, 0);
  EXPECT_FALSE(read_token("another key that is wrong", token));
}

TEST(Token, ThatSomebodyChangedIsRefused) {
  const std::string token = make_token("0123456789abcdef", {.user = "alice", .issued_s = 1});
  ASSERT_TRUE(read_token("0123456789abcdef", token));
  const auto parts = split(token, '.');
  const std::string admin = base64url_encode(R"({"username":"admin"})");
  EXPECT_FALSE(read_token("0123456789abcdef", parts[0] + "." + admin + "." + parts[2]));
  const std::string none = base64url_encode(R"({"alg":"none"})");
  for (const std::string& wrong : {std::string(),
                                   std::string("a"),
                                   std::string("a.b"),
                                   std::string(".."),
                                   none + "." + admin + ".",
                                   token + ".x",
                                   parts[0] + "." + parts[1] + "."})
    EXPECT_FALSE(read_token("0123456789abcdef", wrong)) << wrong;
}

TEST(Throttle, AnAccountWaitsAfterFiveFailuresTwiceAsLongEachTime) {
  Throttle throttle;
  Duration now = 1000s;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(throttle.ask("alice", "", now), 0s);
    throttle.failed("alice", "", now);
  }
  EXPECT_EQ(throttle.ask("alice", "", now), 30s);
  EXPECT_EQ(throttle.ask("bob", "", now), 0s);
  now += 30s;
  EXPECT_EQ(throttle.ask("alice", "", now), 0s);
  throttle.failed("alice", "", now);
  EXPECT_EQ(throttle.ask("alice", "", now), 60s);
  for (int i = 0; i < 10; ++i) throttle.failed("alice", "", now);
  EXPECT_EQ(throttle.ask("alice", "", now), 15min);
  throttle.succeeded("alice", "");
  EXPECT_EQ(throttle.ask("alice", "", now), 0s);
}

TEST(Throttle, AStrangerKeepsNobodyOut) {
  Throttle throttle;
  for (int i = 0; i < 10; ++i) throttle.failed("alice", "10.0.0.9", 1000s);
  EXPECT_EQ(throttle.ask("alice", "10.0.0.9", 1000s), 15min);
  EXPECT_EQ(throttle.ask("alice", "10.0.0.1", 1000s), 0s);
  throttle.forget("alice");
  EXPECT_EQ(throttle.ask("alice", "10.0.0.9", 1000s), 0s);
}

TEST(Throttle, ManyStrangersShareOneTryInTenSecondsAndTheOwnerHasTheirs) {
  Throttle throttle;
  throttle.succeeded("alice", "10.0.0.1");
  for (int i = 0; i < 100; ++i) throttle.failed("alice", fmt::format("10.1.0.{}", i), 1000s);
  EXPECT_EQ(throttle.ask("alice", "10.2.0.1", 1000s), 10s);
  EXPECT_EQ(throttle.ask("alice", "10.2.0.1", 1010s), 0s);
  throttle.failed("alice", "10.2.0.1", 1010s);
  EXPECT_EQ(throttle.ask("alice", "10.2.0.2", 1010s), 10s);
  EXPECT_EQ(throttle.ask("alice", "10.0.0.1", 1010s), 0s);
  EXPECT_EQ(throttle.ask("bob", "10.2.0.2", 1010s), 0s);
  EXPECT_EQ(throttle.ask("alice", "10.2.0.2", 1000s + 2h), 0s);
}

TEST(Throttle, AnAddressHasTwentyTriesAMinute) {
  Throttle throttle;
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(throttle.ask(std::to_string(i), "10.0.0.1", 1000s + i * 1s), 0s);
  EXPECT_EQ(throttle.ask("x", "10.0.0.1", 1030s), 30s);
  EXPECT_EQ(throttle.ask("x", "10.0.0.2", 1030s), 0s);
  EXPECT_EQ(throttle.ask("x", "10.0.0.1", 1060s), 0s);
}

TEST(Records, AUserIsASecretInOpenpaisShape) {
  UserRecord user;
  user.name = "alice";
  user.password = "hash";
  user.email = "alice@example.com";
  user.groups = {"default", "vc1"};
  user.extension = {{"sshKeys", json::Array()}};
  json::Value secret;
  write_user(user, secret);
  EXPECT_EQ(json::string_at(secret, "metadata", "name"), "616c696365");
  EXPECT_EQ(json::string_at(secret, "metadata", "namespace"), "pai-user-v2");
  EXPECT_EQ(base64_decode(json::string_at(secret, "data", "grouplist")), R"(["default","vc1"])");
  const auto read = read_user(secret);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->groups, user.groups);
  EXPECT_EQ(read->email, user.email);
  json::make(secret, {"metadata", "name"}) = "626f62";  // bob's place
  EXPECT_FALSE(read_user(secret));
}

TEST(Records, NamesAreThoseOfOpenpai) {
  EXPECT_TRUE(good_user_name("Alice.B-c_1"));
  for (const std::string& wrong : {std::string(),
                                   std::string("a b"),
                                   std::string("a~b"),
                                   std::string("a/b"),
                                   std::string("é"),
                                   std::string(127, 'a')})
    EXPECT_FALSE(good_user_name(wrong)) << wrong;
}

json::Value seen(json::Value secret, const char* uid, int version) {
  json::make(secret, {"metadata", "uid"}) = uid;
  json::make(secret, {"metadata", "resourceVersion"}) = std::to_string(version);
  return secret;
}

TEST(Directory, AnOldEventChangesNothingAndARemovedUserStaysAway) {
  Directory directory;
  UserRecord alice;
  alice.name = "alice";
  alice.email = "new";
  json::Value secret;
  write_user(alice, secret);
  directory.wrote(seen(secret, "u1", 10));
  alice.email = "old";
  json::Value older;
  write_user(alice, older);
  directory.wrote(seen(older, "u1", 9));
  ASSERT_NE(directory.find_user("alice"), nullptr);
  EXPECT_EQ(directory.find_user("alice")->email, "new");
  directory.removed(seen(secret, "u1", 10));
  EXPECT_EQ(directory.find_user("alice"), nullptr);
  directory.wrote(seen(secret, "u1", 11));
  EXPECT_EQ(directory.find_user("alice"), nullptr);
  directory.wrote(seen(secret, "u2", 12));
  EXPECT_NE(directory.find_user("alice"), nullptr);
}

TEST(Directory, RightsComeFromGroups) {
  Directory directory;
  json::Value group;
  write_group(group_of_vc("vc1"), group);
  directory.wrote(seen(group, "g1", 1));
  UserRecord alice;
  alice.name = "alice";
  alice.groups = {"vc1", "no-such-group"};
  EXPECT_EQ(directory.granted_vcs(alice), std::vector<std::string>{"vc1"});
  EXPECT_FALSE(directory.is_admin(alice));
  GroupRecord admins{.name = "ops", .extension = {{"acls", {{"admin", true}}}}};
  json::Value secret;
  write_group(admins, secret);
  directory.wrote(seen(secret, "g2", 2));
  alice.groups.push_back("ops");
  EXPECT_TRUE(directory.is_admin(alice));
}

TEST(Hashing, TwoAtOnceThirtyTwoWaitAndTheNextIsSentAway) {
  net::Loop loop;
  Hashing hashing(loop);
  std::atomic<int> running = 0, most = 0;
  int done = 0, refused = 0;
  for (int i = 0; i < 40; ++i) {
    loop.spawn([](Hashing& queue,
                  std::atomic<int>& now,
                  std::atomic<int>& peak,
                  int& ended,
                  int& sent_away) -> Task<void> {
      const auto ran = co_await queue.run([&] {
        const int count = ++now;
        int before = peak;
        while (before < count && !peak.compare_exchange_weak(before, count)) {
        }
        std::this_thread::yield();
        --now;
      });
      ran ? ++ended : ++sent_away;
      if (!ran) EXPECT_EQ(ran.error().status, 503);
    }(hashing, running, most, done, refused));
  }
  loop.run_until_done([](net::Loop& env, int& ended, int& sent_away) -> Task<void> {
    while (ended + sent_away < 40) co_await env.sleep(1ms);
  }(loop, done, refused));
  EXPECT_EQ(done, 34);
  EXPECT_EQ(refused, 6);
  EXPECT_LE(most, 2);
}

}  // namespace
}  // namespace muster::pai
