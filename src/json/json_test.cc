#include "json/json.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace muster::json {
namespace {

Value read(std::string_view text) { return *parse(text); }

TEST(Json, KeepsOrderAndPrintsNumbersPlainly) {
  EXPECT_EQ(dump(read(R"({"b":0.5,"a":[1,2.0,"x\n"],"c":null})")),
            R"({"b":0.5,"a":[1,2,"x\n"],"c":null})");
}

TEST(Json, EscapesAsTheLibraryDoes) {
  for (int byte = 0; byte < 0x80; ++byte) {
    const std::string text = fmt::format("a{}b\"c", static_cast<char>(byte));
    const std::string written = dump(Value(text));
    EXPECT_EQ(written, boost::json::serialize(boost::json::string_view(text))) << byte;
    EXPECT_EQ(as_string(*parse(written)), text) << byte;
  }
}

TEST(Json, RefusesTrailingTextAndDepth) {
  EXPECT_FALSE(parse("{} x"));
  EXPECT_FALSE(parse(""));
  EXPECT_FALSE(parse(std::string(100000, '[')));
}

TEST(Json, NamesDuplicateKeys) {
  std::vector<std::string> found;
  ASSERT_TRUE(parse(R"({"a":{"b":1,"b":2},"l":[{"x":"}","x":1}]})", &found));
  EXPECT_EQ(found, (std::vector<std::string>{"a.b", "l[0].x"}));
  found.clear();
  ASSERT_TRUE(parse(R"([{"a\"b":1,"a\u0022b":{"c":[[{"d":1}],{"d":2,"e":3,"d":4}]}}])", &found));
  EXPECT_EQ(found, (std::vector<std::string>{"[0].a\"b", "[0].a\"b.c[1].d"}));
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += fmt::format("\"k{}\":{{\"x\":1}},", i);
  found.clear();
  ASSERT_TRUE(parse(many + R"("k3":1,"k99":2,"k100":3})", &found));
  EXPECT_EQ(found, (std::vector<std::string>{"k3", "k99"}));
}

TEST(MergePatch, Rfc7386) {
  struct Case {
    const char *target, *patch, *want;
  };
  for (const Case& c : {Case{R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
                        Case{R"({"a":"b"})", R"({"a":null})", "{}"},
                        Case{R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
                        Case{R"({"a":"foo"})", "null", "null"},
                        Case{R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"}}) {
    Value target = read(c.target);
    merge_patch(target, read(c.patch));
    EXPECT_EQ(dump(target), c.want);
  }
}

TEST(JsonPatch, AllOperations) {
  Value target = read(R"({"a":[1,2],"b":{"c":1}})");
  ASSERT_TRUE(json_patch(
      target, read(R"([{"op":"add","path":"/a/1","value":9},{"op":"remove","path":"/b/c"},
    {"op":"add","path":"/a/-","value":3},{"op":"copy","from":"/a","path":"/d"},{"op":"move","from":"/b","path":"/e~1f"},
    {"op":"test","path":"/d/0","value":1},{"op":"replace","path":"/d","value":true}])")));
  EXPECT_EQ(dump(target), R"({"a":[1,9,2,3],"d":true,"e/f":{}})");
}

TEST(JsonPatch, FailureChangesNothing) {
  Value target = read(R"({"a":1})");
  EXPECT_FALSE(json_patch(
      target, read(R"([{"op":"add","path":"/b","value":1},{"op":"test","path":"/a","value":2}])")));
  EXPECT_EQ(dump(target), R"({"a":1})");
}

TEST(Yaml, ReadsAsKubernetesDoes) {
  const auto documents = parse_yaml(
      "a: 1\nb: '1'\nc: yes\nd: 0x10\ne: 010\nf: 1.5\ng: ~\nh: [x, {y: z}]\n---\n---\nlast: on\n");
  ASSERT_TRUE(documents);
  ASSERT_EQ(documents->size(), 2U);
  EXPECT_EQ(dump((*documents)[0]),
            R"({"a":1,"b":"1","c":true,"d":16,"e":8,"f":1.5,"g":null,"h":["x",{"y":"z"}]})");
}

TEST(Yaml, ErrorsNameLineAndColumn) {
  EXPECT_EQ(parse_yaml("a: 1\na: 2\n").error().message,
            "yaml: line 2, column 1: key \"a\" already set in map");
  EXPECT_EQ(parse_yaml("a: [1\nb: 2").error().message,
            "yaml: line 2, column 2: did not find expected ',' or ']'");
  EXPECT_TRUE(parse_yaml("a: b: c").error().message.starts_with("yaml: line 1, column 5: "));
}

TEST(Yaml, MergeKeys) {
  EXPECT_EQ(dump(*parse_yaml_one("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n")),
            R"({"base":{"x":1,"y":2},"use":{"y":3,"x":1}})");
}

TEST(Yaml, WritesWhatItReads) {
  const Value value = read(
      R"({"kind":"Pod","list":[{"name":"a","args":["-c","echo hi: there","5","true",""]},[1,[2]]],"empty":{},"none":[],
    "text":"line1\nline2\n","colon":"http://x:80/","num":1.5,"q":"say \"hi\""})");
  const auto back = parse_yaml_one(to_yaml(value));
  ASSERT_TRUE(back) << back.error().message << to_yaml(value);
  EXPECT_TRUE(equal(value, *back)) << to_yaml(value);
}

}  // namespace
}  // namespace muster::json
