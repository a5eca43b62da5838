#include "json/yaml_nodes.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "json/erase.h"
#include "json/json.h"
#include "json/yaml.h"

namespace muster::json {
namespace {

TEST(YamlNodes, NestingEndsWhereItIsTooDeep) {
  EXPECT_TRUE(parse_yaml(std::string(100, '[') + std::string(100, ']')));
  for (const std::string& text : {std::string(101, '[') + std::string(101, ']'),
                                  std::string(3'000'000, '['),
                                  std::string(3'000'000, '{')}) {
    const auto read = parse_yaml(text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message, "yaml: line 1, column 101: nested too deeply");
  }
  std::string stairs;
  for (std::size_t i = 0; i < 300; ++i) stairs += std::string(i, ' ') + "a:\n";
  EXPECT_EQ(parse_yaml(stairs).error().message, "yaml: line 201, column 201: nested too deeply");
}

TEST(YamlNodes, AliasesRepeatOnlySoMuch) {
  std::string text = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c)
    text += fmt::format(
        "{0}: &{0} [*{1},*{1},*{1},*{1},*{1},*{1},*{1},*{1},*{1}]\n", c, static_cast<char>(c - 1));
  EXPECT_EQ(
      parse_yaml(text).error().message,
      "yaml: line 5, column 8: aliases repeat too much: wanted at most 10000 nodes and 1048576 bytes");
  EXPECT_EQ(parse_yaml("a: &a [1, *a]").error().message,
            "yaml: line 1, column 11: anchor 'a' value contains itself");
  EXPECT_EQ(parse_yaml("a: *b").error().message,
            "yaml: line 1, column 4: unknown anchor 'b' referenced");
  EXPECT_EQ(dump(*parse_yaml_one("a: &x {b: &y [1]}\nc: *x\nd: *y\n")),
            R"({"a":{"b":[1]},"c":{"b":[1]},"d":[1]})");
}

TEST(YamlNodes, TooManyValuesAreRefusedWhileTheyAreRead) {
  EXPECT_TRUE(parse_yaml_one("[1, 2, 3]", 10));
  const auto read = parse_yaml_one("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", 10);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kTooLarge);
}

TEST(EraseMembers, KeepsTheOrderOfTheOthers) {
  for (const int count : {3, 40}) {
    Object object;
    for (int i = 0; i < count; ++i) object[fmt::format("k{}", i)] = i;
    erase_members(object,
                  [](std::string_view, const Value& value) { return value.as_int64() % 2 == 1; });
    ASSERT_EQ(object.size(), static_cast<std::size_t>((count + 1) / 2));
    int wanted = 0;
    for (const auto& member : object) {
      EXPECT_EQ(member.value().as_int64(), wanted);
      wanted += 2;
    }
    EXPECT_EQ(object.if_contains("k1"), nullptr);
    EXPECT_NE(object.if_contains("k2"), nullptr);
  }
}

}  // namespace
}  // namespace muster::json
