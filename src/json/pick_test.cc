#include "json/pick.h"

#include <gtest/gtest.h>

namespace muster::json {
namespace {

TEST(Pick, KeepsWhatIsNamedAndNothingElse) {
  const Picks picks{{"a"}, {"b", {{"c"}}}, {"list", {{"x"}}}};
  const std::pair<std::string, std::string> cases[] = {
      {R"({"a":1,"z":2})", R"({"a":1})"},
      {R"({"z":{"a":[1,"}",{"q":"]\""}]},"a":"x,}\\"})", R"({"a":"x,}\\"})"},
      {R"( { "b" : { "d" : 1 , "c" : [ 1 , 2 ] } } )", R"({"b":{"c":[ 1 , 2 ] }})"},
      {R"({"b":7})", R"({"b":7})"},
      {R"({"list":[{"x":1,"y":2},{"y":3},{}]})", R"({"list":[{"x":1},{},{}]})"},
      {R"({"list":[],"b":{}})", R"({"list":[],"b":{}})"},
      {"{}", "{}"},
      {R"({"z":true,"a":null,"y":-1.5e3})", R"({"a":null})"},
  };
  for (const auto& [text, want] : cases) EXPECT_EQ(pick_from_text(text, picks), want) << text;
}

TEST(Pick, TheStarStandsForEveryNameThatIsNotNamed) {
  EXPECT_EQ(pick_from_text(R"({"torch":{"Master":{"n":1,"t":2}},"named":{"Master":{"n":1}}})",
                           {{"named"}, {"*", {{"*", {{"t"}}}}}}),
            R"({"torch":{"Master":{"t":2}},"named":{"Master":{"n":1}}})");
}

TEST(Pick, AValueIsPickedAsItsTextIs) {
  const std::string text =
      R"({"metadata":{"name":"a\"b","labels":{"app":"x","z":1},"uid":"u"},"list":[{"x":1,"y":2},{"y":3}],"n":null})";
  const auto value = parse(text);
  for (const char* fields : {"metadata(name,labels(app)),list(x)",
                             "list(*(q)),n",
                             "*(name)",
                             "none",
                             "metadata(labels(*))"}) {
    const auto picks = parse_picks(fields);
    ASSERT_TRUE(picks) << fields;
    EXPECT_EQ(picks_text(*picks), fields);
    std::string picked;
    append_picked(*value, *picks, picked);
    EXPECT_EQ(picked, pick_from_text(text, *picks)) << fields;
  }
}

TEST(Pick, RefusesWhatIsNotAList) {
  for (const char* fields : {"", "a,", "a(", "a()", "a(b", "a)", "(a)", "a,,b", "a,b,a", "a(b,b)"})
    EXPECT_FALSE(parse_picks(fields)) << fields;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "a(";
  EXPECT_FALSE(parse_picks(deep + "a" + std::string(100, ')')));
}

TEST(Pick, TextThatIsCutOffEnds) {
  const std::string text = R"({"a":{"b":[1,"x\"y",{"c":2}]},"items":[{"x":"y"}]})";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    EXPECT_LE(pick_from_text(text.substr(0, length), {{"items", {{"x"}}}}).size(), text.size() + 8);
  }
}

}  // namespace
}  // namespace muster::json
