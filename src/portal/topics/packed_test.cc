#include "portal/topics/packed.h"

#include <gtest/gtest.h>

#include "json/json.h"

namespace muster::portal {
namespace {

/// What a browser makes of names: web/src/pages/topology/unpack.ts.
std::vector<std::string> read_names(const std::string& text) {
  const json::Value value = *json::parse(text);
  std::vector<std::string> names;
  std::size_t next = 0;
  std::int64_t number = 0;
  for (const json::Value& one : json::array_at(value, "stem")) {
    const auto stem = static_cast<std::size_t>(json::as_int(one));
    std::string name = json::text(json::array_at(value, "stems")[stem]);
    const auto width = json::as_int(json::array_at(value, "widths")[stem]);
    if (width != 0) {
      number += json::as_int(json::array_at(value, "number")[next++]);
      const std::string digits = std::to_string(number);
      name += std::string(static_cast<std::size_t>(width) - digits.size(), '0') + digits;
    }
    names.push_back(std::move(name));
  }
  return names;
}

std::string packed(const std::vector<std::string_view>& names) {
  std::string out;
  append_names(out, names);
  return out;
}

TEST(Packed, NamesThatCountAreAStemAndSteps) {
  EXPECT_EQ(packed({"r00-n00", "r00-n01", "head"}),
            R"({"stems":["r00-n","head"],"widths":[2,0],"stem":[0,0,1],"number":[0,1]})");
  EXPECT_EQ(packed({}), R"({"stems":[],"widths":[],"stem":[],"number":[]})");
}

TEST(Packed, AnyNameComesBackAsItWas) {
  const std::vector<std::string_view> names = {"",
                                               "7",
                                               "007",
                                               "alice~job-9",
                                               "alice~job-10",
                                               "alice~job-09",
                                               "x-12345678901234567890",
                                               "a\"b\\c",
                                               "名-3",
                                               "default/pod/bert-000123"};
  EXPECT_EQ(read_names(packed(names)), std::vector<std::string>(names.begin(), names.end()));
}

TEST(Packed, RunsOfEqualValuesAreSaidOnce) {
  std::string out;
  append_runs(out, {0, 0, 0, 2, 2, 0});
  append_runs(out, {});
  EXPECT_EQ(out, "[0,3,2,2,0,1][]");
}

TEST(Packed, OwnersAreToldFromTheNewestJob) {
  std::string out;
  // Free, the first job, the second, the first again, held for the third, on the third.
  append_owners(out, {0, 1, 1, 2, 1, -3, 3});
  EXPECT_EQ(out, R"({"who":[0,1,1,3,-1,2],"count":[1,2,1,1,1,1]})");
}

}  // namespace
}  // namespace muster::portal
