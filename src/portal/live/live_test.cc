#include <gtest/gtest.h>

#include <map>

#include "json/json.h"
#include "portal/live/protocol.h"
#include "portal/live/source.h"

namespace muster::portal {
namespace {

/// Rows by name; the version is theirs.
class Names final : public Source {
 public:
  std::uint64_t version() override { return 1; }
  [[nodiscard]] bool windowed() const override { return true; }
  ShownPage page(Window window) override {
    ShownPage shown;
    shown.total = rows.size();
    shown.window = window;
    for (const auto& [name, row_version] : rows) shown.rows.push_back({row_version, name, 0});
    return shown;
  }
  void append(std::string& out, const ShownRow& row) override { out += "\"" + row.id + "!\""; }
  std::vector<std::pair<std::string, std::uint64_t>> rows;
};

/// What a browser does with a difference.
std::vector<std::string> apply(const std::vector<std::string>& before, const json::Value& news) {
  if (json::at(news, "order").is_null()) return before;
  std::vector<std::string> after;
  for (const json::Value& one : json::array_at(news, "order")) {
    if (one.is_string()) {
      after.push_back(json::text(one));
      continue;
    }
    const json::Array& run = json::as_array(one);
    after.insert(
        after.end(), before.begin() + json::as_int(run[0]), before.begin() + json::as_int(run[1]));
  }
  return after;
}

json::Value difference(Names& source,
                       std::vector<std::pair<std::string, std::uint64_t>> before,
                       std::vector<std::pair<std::string, std::uint64_t>> after) {
  source.rows = std::move(before);
  const ShownPage old_page = source.page({});
  source.rows = std::move(after);
  const std::string text = difference_text(source, old_page, source.page({}), 5);
  return text.empty() ? json::Value(nullptr) : *json::parse("{\"sub\":7," + text);
}

TEST(Difference, NothingIsSaidWhenNothingChanged) {
  Names source;
  EXPECT_TRUE(difference(source, {{"a", 1}, {"b", 1}}, {{"a", 1}, {"b", 1}}).is_null());
}

TEST(Difference, AChangedRowIsSetAndTheOrderIsNotRepeated) {
  Names source;
  const json::Value news = difference(source, {{"a", 1}, {"b", 1}}, {{"a", 1}, {"b", 2}});
  EXPECT_EQ(json::dump(json::at(news, "set")), R"({"b":"b!"})");
  EXPECT_TRUE(json::at(news, "order").is_null());
  EXPECT_TRUE(json::at(news, "del").is_null());
}

TEST(Difference, RowsThatComeGoAndMove) {
  Names source;
  const json::Value news =
      difference(source, {{"a", 1}, {"b", 1}, {"c", 1}}, {{"c", 1}, {"d", 4}, {"a", 2}});
  EXPECT_EQ(json::dump(json::at(news, "set")), R"({"d":"d!","a":"a!"})");
  EXPECT_EQ(json::dump(json::at(news, "del")), R"(["b"])");
  EXPECT_EQ(apply({"a", "b", "c"}, news), (std::vector<std::string>{"c", "d", "a"}));
  EXPECT_EQ(json::int_at(news, "sub"), 7);
}

TEST(Difference, RowsThatStayBesideEachOtherAreOneRun) {
  Names source;
  const json::Value news = difference(
      source, {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}, {{"x", 1}, {"a", 1}, {"b", 1}, {"d", 1}});
  EXPECT_EQ(json::dump(json::at(news, "order")), R"(["x",[0,2],[3,4]])");
  EXPECT_EQ(apply({"a", "b", "c", "d"}, news), (std::vector<std::string>{"x", "a", "b", "d"}));
}

TEST(Turns, AnotherCounterAtTheSameNumberIsAChange) {
  Turns turns;
  const std::uint64_t waits = turns.version(true, 8);
  EXPECT_EQ(turns.version(true, 8), waits);
  const std::uint64_t runs = turns.version(false, 8);
  EXPECT_GT(runs, waits);
  EXPECT_GT(turns.version(false, 9), runs);
  EXPECT_GT(turns.version(true, 8), runs);
}

TEST(Said, MessagesOfATab) {
  std::int64_t sub = 0;
  const auto said = parse_said(R"({"sub":7,"topic":"jobs","window":[5,9]})", &sub);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->what, Said::What::kSubscribe);
  EXPECT_EQ(said->window.first, 5U);
  EXPECT_TRUE(parse_said(R"({"unsub":7})", &sub));
  for (const char* wrong : {"",
                            "7",
                            "{}",
                            R"({"sub":1})",
                            R"({"sub":1,"win":2,"topic":"jobs"})",
                            R"({"sub":"1","topic":"jobs"})",
                            R"({"win":1,"window":[0,900]})"})
    EXPECT_FALSE(parse_said(wrong, &sub)) << wrong;
  EXPECT_FALSE(parse_said(R"({"sub":3,"topic":"jobs","window":7})", &sub));
  EXPECT_EQ(sub, 3);
}

}  // namespace
}  // namespace muster::portal
