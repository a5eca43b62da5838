#include "cli/lean.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(Lean, KeepsWhatIsNamedAndNothingElse) {
  const std::vector<Keep> keep{{"a"}, {"b", {{"c"}}}, {"list", {{"x"}}}};
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
  for (const auto& [text, want] : cases) EXPECT_EQ(prune_json(text, keep), want) << text;
}

TEST(Lean, TheStarStandsForEveryNameThatIsNotNamed) {
  EXPECT_EQ(prune_json(R"({"torch":{"Master":{"n":1,"t":2}},"named":{"Master":{"n":1}}})", {{"named"}, {"*", {{"*", {{"t"}}}}}}),
            R"({"torch":{"Master":{"t":2}},"named":{"Master":{"n":1}}})");
}

TEST(Lean, TextThatIsCutOffEnds) {
  const std::string text = R"({"a":{"b":[1,"x\"y",{"c":2}]},"items":[{"x":"y"}]})";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    EXPECT_LE(prune_json(text.substr(0, length), {{"items", {{"x"}}}}).size(), text.size() + 8);
  }
}

}  // namespace
}  // namespace muster::cli
