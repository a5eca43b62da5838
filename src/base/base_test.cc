#include <gtest/gtest.h>

#include <fstream>

#include "base/quantity.h"
#include "base/strings.h"
#include "base/time.h"
#include "base/time_zone.h"

namespace muster {
namespace {

TEST(Quantity, CanonicalText) {
  struct Case {
    const char *in, *out;
  };
  for (const Case& c : {Case{"0.5", "500m"},
                        Case{"1.5Gi", "1536Mi"},
                        Case{"2", "2"},
                        Case{"1000m", "1"},
                        Case{"1024Mi", "1Gi"},
                        Case{"1000", "1k"},
                        Case{"1e3", "1e3"},
                        Case{"100Mi", "100Mi"},
                        Case{"0", "0"},
                        Case{"-5", "-5"},
                        Case{"1.5", "1500m"},
                        Case{"1n", "1m"},
                        Case{"12e6", "12e6"},
                        Case{"1Ki", "1Ki"},
                        Case{"1023", "1023"},
                        Case{"9999.9999999999999Gi", "10000Gi"},
                        Case{"9999999999999999999", "9223372036854775807"}}) {
    const auto q = parse_quantity(c.in);
    ASSERT_TRUE(q) << c.in;
    EXPECT_EQ(q->text(), c.out) << c.in;
  }
  for (const char* bad : {"", "x", "1x", "1.2.3", "1 Gi", "e3", "1e", "--1", "0x10"})
    EXPECT_FALSE(parse_quantity(bad)) << bad;
}

TEST(Time, ReadsAndWritesRfc3339) {
  EXPECT_EQ(format_time(*parse_time("2026-11-15T05:40:00Z")), "2026-11-15T05:40:00Z");
  EXPECT_EQ(format_micro_time(*parse_time("2026-11-15T05:40:00.1234567+02:00")),
            "2026-11-15T03:40:00.123456Z");
  EXPECT_FALSE(parse_time("2026-11-15"));
  EXPECT_FALSE(parse_time("2026-13-15T05:40:00Z"));
}

TEST(Time, HumanDurations) {
  struct Case {
    std::int64_t s;
    const char* want;
  };
  for (const Case& c : {Case{58, "58s"},
                        Case{119, "119s"},
                        Case{152, "2m32s"},
                        Case{180, "3m"},
                        Case{600, "10m"},
                        Case{10799, "179m"},
                        Case{11100, "3h5m"},
                        Case{28800, "8h"},
                        Case{172799, "47h"},
                        Case{176400, "2d1h"},
                        Case{691200, "8d"}}) {
    EXPECT_EQ(human_duration(std::chrono::seconds(c.s)), c.want);
  }
}

TEST(Strings, Base64AndPercent) {
  EXPECT_EQ(base64_encode("hello"), "aGVsbG8=");
  EXPECT_EQ(*base64_decode("aGVsbG8="), "hello");
  EXPECT_EQ(*percent_decode("a%2Fb+c", true), "a/b c");
  EXPECT_FALSE(percent_decode("%zz", false));
  EXPECT_EQ(*nearest("sumbit", {"submit", "list"}), "submit");
}

// -------------------------------------------------------------------------------------- Time zones

TEST(TimeZone, KnowsItsOffsets) {
  struct Case {
    std::string_view zone, at;
    std::int64_t offset_s;
  };
  const Case cases[] = {{"UTC", "2026-07-01T00:00:00Z", 0},
                        {"Europe/Berlin", "2026-01-01T00:00:00Z", 3600},
                        {"Europe/Berlin", "2026-07-01T00:00:00Z", 7200},
                        {"Europe/Berlin", "2026-03-29T00:59:59Z", 3600},
                        {"Europe/Berlin", "2026-03-29T01:00:00Z", 7200},
                        {"Europe/Berlin", "2060-10-31T00:59:59Z", 7200},
                        {"Europe/Berlin", "2060-10-31T01:00:00Z", 3600},
                        {"America/New_York", "2026-07-01T00:00:00Z", -4 * 3600},
                        {"Australia/Sydney", "2060-01-01T00:00:00Z", 11 * 3600},
                        {"Australia/Sydney", "2060-07-01T00:00:00Z", 10 * 3600},
                        {"Asia/Tehran", "2060-07-01T00:00:00Z", 12600},
                        {"Asia/Tokyo", "1900-01-01T00:00:00Z", 9 * 3600}};
  for (const Case& one : cases) {
    const auto zone = TimeZone::find(one.zone);
    ASSERT_TRUE(zone) << one.zone;
    EXPECT_EQ((*zone)->offset_s(*parse_time(one.at)), one.offset_s) << one.zone << " " << one.at;
  }
}

TEST(TimeZone, RefusesWhatIsNone) {
  for (const std::string_view name : {"",
                                      "Nope/Nope",
                                      "../../../etc/passwd",
                                      "/etc/passwd",
                                      "Europe",
                                      "Europe/Berlin ",
                                      "zone.tab"}) {
    const auto zone = TimeZone::find(name);
    ASSERT_FALSE(zone) << name;
    EXPECT_EQ(zone.error().message, "unknown time zone " + std::string(name));
  }
  std::ifstream file("/usr/share/zoneinfo/Europe/Berlin", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(TimeZone::parse(whole));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(TimeZone::parse(whole.substr(0, size))) << size;
}

}  // namespace
}  // namespace muster
