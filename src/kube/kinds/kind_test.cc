#include "kube/kinds/kind.h"

#include <gtest/gtest.h>

#include <set>

#include "kube/kinds/families.h"

namespace muster::kube {
namespace {

TEST(Kinds, EveryKindWithRulesIsServed) {
  std::set<std::string> served;
  for (const ResourceInfo& info : Schema::builtin().resources())
    served.insert(info.group + "/" + info.kind);
  for (const families::Family family : families::kAll) {
    for (const KindRules& rules : family()) {
      const std::string name = std::string(rules.group) + "/" + std::string(rules.kind);
      EXPECT_TRUE(served.contains(name)) << name;
    }
  }
}

TEST(Kinds, VersionsOfAKindShareItsRules) {
  for (const ResourceInfo& info : Schema::builtin().resources()) {
    const KindRules* rules = find_rules(info.group, info.kind);
    if (rules == nullptr) continue;
    EXPECT_EQ(kind_of(info.gvk()).rules, rules) << info.kind;
    EXPECT_NE(kind_of(info.gvk()).type, nullptr) << info.kind;
  }
}

TEST(Kinds, ATableHasAsManyCellsAsColumns) {
  for (const ResourceInfo& info : Schema::builtin().resources()) {
    const KindRules* rules = find_rules(info.group, info.kind);
    if (rules == nullptr || rules->cells == nullptr) continue;
    const json::Value object = json::Object{{"metadata", json::Object{{"name", "x"}}}};
    EXPECT_EQ(rules->cells(object, Time{1}).size(), rules->columns.size()) << info.kind;
    EXPECT_EQ(info.columns.size(), rules->columns.size()) << info.kind;
  }
}

// A definition may bring any kind; what writes of custom resources go by is the same for all.
TEST(Kinds, AKindThatIsNotBuiltInIsACustomOne) {
  const Kind& kind = kind_of({"example.org", "v1", "Widget"});
  EXPECT_EQ(kind.type, nullptr);
  EXPECT_TRUE(kind.rules->generation);
  EXPECT_TRUE(kind.rules->needs_version);
  EXPECT_FALSE(kind.rules->creates_on_update);
  EXPECT_EQ(&kind, &kind_of({"example.org", "v2", "Gadget"}));
}

}  // namespace
}  // namespace muster::kube
