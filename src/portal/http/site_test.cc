#include "portal/http/site.h"

#include <gtest/gtest.h>

#include "portal/api/mask.h"
#include "portal/files/files.h"

namespace muster::portal {
namespace {

net::Request request(std::string method, std::vector<std::pair<std::string, std::string>> headers) {
  net::Request made;
  made.method = std::move(method);
  for (auto& [name, value] : headers) made.headers.add(name, value);
  return made;
}

TEST(Site, AnotherSitesPageChangesNothing) {
  Site site;
  const auto changes = [&](std::vector<std::pair<std::string, std::string>> headers) {
    headers.emplace_back("Host", "localhost:8080");
    return check_origin(site, request("POST", headers)).has_value();
  };
  EXPECT_TRUE(changes({{"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_FALSE(changes({{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://localhost:8080"}}));
  EXPECT_FALSE(changes({{"Sec-Fetch-Site", "none"}}));
  EXPECT_TRUE(changes({{"Origin", "http://localhost:8080"}}));
  EXPECT_FALSE(changes({{"Origin", "https://localhost:8080"}}));
  EXPECT_FALSE(changes({{"Origin", "http://localhost:8081"}}));
  EXPECT_FALSE(changes({{"Origin", "null"}}));
  EXPECT_FALSE(changes({}));
  EXPECT_TRUE(check_origin(site, request("GET", {{"Host", "x"}})));
}

TEST(Site, NamesAndPorts) {
  EXPECT_EQ(host_name("LocalHost:8080"), "localhost");
  EXPECT_EQ(host_name("[::1]:8080"), "[::1]");
  EXPECT_EQ(host_name(""), "");
}

TEST(Site, OnlyPathsOfItsOwnAreGoneOnTo) {
  EXPECT_EQ(safe_next("/jobs?x=1"), "/jobs?x=1");
  for (const char* evil : {"//evil", "https://evil", "/\\evil", "", "jobs", "/a\nb"})
    EXPECT_EQ(safe_next(evil), "/") << evil;
}

TEST(Site, TheCookieAmongOthers) {
  EXPECT_EQ(cookie_of(request("GET", {{"Cookie", "a=1; muster=abc; b=2"}}), "muster"), "abc");
  EXPECT_EQ(cookie_of(request("GET", {{"Cookie", "xmuster=abc"}}), "muster"), "");
}

TEST(Files, EncodingsAsTheBrowserSays) {
  EXPECT_EQ(choose_encoding("gzip, br", true, true), Encoding::kBrotli);
  EXPECT_EQ(choose_encoding("gzip, br;q=0", true, true), Encoding::kGzip);
  EXPECT_EQ(choose_encoding("gzip;q=0.5", true, true), Encoding::kGzip);
  EXPECT_EQ(choose_encoding("", true, true), Encoding::kIdentity);
  EXPECT_EQ(choose_encoding("br", true, false), Encoding::kIdentity);
}

TEST(Mask, SecretsInAJobAreNotShown) {
  const auto object = json::parse(
      R"({"kind":"Job","metadata":{"name":"a","managedFields":[1]},"spec":{"env":[{"name":"DB_PASSWORD","value":"x1"},{"name":"LEVEL","value":"x2"}],"secretName":"s","token":"x3"}})");
  const std::string shown = json::dump(masked(*object, Environment::kShown));
  EXPECT_EQ(shown.find("x1"), std::string::npos);
  EXPECT_NE(shown.find("x2"), std::string::npos);
  EXPECT_EQ(shown.find("x3"), std::string::npos);
  EXPECT_NE(shown.find("\"secretName\":\"s\""), std::string::npos);
  EXPECT_EQ(shown.find("managedFields"), std::string::npos);
}

TEST(Mask, NoValueOfAnEnvironmentIsShownToWhoSeesSummariesAlone) {
  const auto object = json::parse(
      R"({"metadata":{"name":"a","annotations":{"k":"x1"}},"spec":{"template":{"metadata":{"annotations":{"k":"x1"}},"containers":[{"name":"c","env":[{"name":"LEVEL","value":"x1"},{"name":"B","valueFrom":{"fieldRef":{}}}]}]}}})");
  const std::string shown = json::dump(masked(*object, Environment::kHidden));
  EXPECT_EQ(shown.find("x1"), std::string::npos) << shown;
  EXPECT_NE(shown.find("LEVEL"), std::string::npos) << shown;
  EXPECT_NE(json::dump(masked(*object, Environment::kShown)).find("x1"), std::string::npos);
}

}  // namespace
}  // namespace muster::portal
