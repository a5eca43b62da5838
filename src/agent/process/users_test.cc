#include "agent/process/users.h"

#include <gtest/gtest.h>

namespace muster::agent::process {
namespace {

constexpr auto kPasswd =
    "root:x:0:0:root:/root:/bin/sh\nbroken\nalice:x:1000:1001:A:/home/alice:/bin/sh\n"
    "nohome:x:5:6:::\n";
constexpr auto kGroup = "root:x:0:\nusers:x:100:bob,alice\nstaff:x:1001:\nbroken:x:y:alice\n";

TEST(ImageUsers, AreFoundByNameAndNumber) {
  const auto root = find_user(kPasswd, kGroup, "");
  EXPECT_EQ(root->id, 0);
  EXPECT_EQ(root->home, "/root");
  for (const auto* wanted : {"alice", "1000", "alice:"}) {
    const auto alice = find_user(kPasswd, kGroup, wanted);
    ASSERT_TRUE(alice) << wanted;
    EXPECT_EQ(alice->id, 1000);
    EXPECT_EQ(alice->group, 1001);
    EXPECT_EQ(alice->groups, std::vector<std::int64_t>{100});
    EXPECT_EQ(alice->home, "/home/alice");
  }
  EXPECT_EQ(find_user(kPasswd, kGroup, "nohome")->home, "/");
}

TEST(ImageUsers, NumbersNeedNotBeListed) {
  const auto user = find_user("", "", "4242:4343");
  EXPECT_EQ(user->id, 4242);
  EXPECT_EQ(user->group, 4343);
  EXPECT_EQ(find_user("", "", "4242")->group, 0);
  EXPECT_EQ(find_user("", "", "")->home, "/root");
}

TEST(ImageUsers, ANamedGroupIsTheOnlyOne) {
  const auto user = find_user(kPasswd, kGroup, "alice:users");
  EXPECT_EQ(user->group, 100);
  EXPECT_TRUE(user->groups.empty());
}

TEST(ImageUsers, UnknownNamesAreErrors) {
  EXPECT_FALSE(find_user(kPasswd, kGroup, "carol"));
  EXPECT_FALSE(find_user(kPasswd, kGroup, "alice:none"));
  EXPECT_FALSE(find_user(kPasswd, kGroup, "99999999999"));
  EXPECT_FALSE(find_user(kPasswd, kGroup, "-1"));
}

}  // namespace
}  // namespace muster::agent::process
