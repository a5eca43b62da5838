#include "apiserver/registry/tree.h"

#include <gtest/gtest.h>

#include "kube/apply/managed.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kPod =
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"said":"\"yes\"\n","x":"1"},)"
    R"("managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",)"
    R"("fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:said":{},"f:x":{}}}}}]},)"
    R"("spec":{"containers":[{"name":"main","image":"i","env":[]}],"priority":7,"share":0.5}})";

Tree::Text text() { return std::make_shared<const std::string>(kPod); }

TEST(Tree, TheTextThatWasGivenUpIsMadeAgainByteForByte) {
  const auto packer = std::make_shared<json::Packer>();
  auto object = json::parse(kPod);
  ASSERT_TRUE(object);
  kube::pack_managers(*object);
  Tree tree;
  tree.set(packer->pack(*object), text());
  tree.drop_text();
  EXPECT_EQ(tree.find_text(), nullptr);
  EXPECT_EQ(*tree.text(), kPod);
  EXPECT_EQ(tree.text_size(), kPod.size());
}

TEST(Tree, ATextWithoutATreeIsNotGivenUp) {
  Tree tree;
  tree.set_text(text(), std::make_shared<json::Packer>());
  tree.drop_text();
  ASSERT_NE(tree.find_text(), nullptr);
  EXPECT_EQ(json::string_at(tree, "metadata", "name"), "a");
  EXPECT_NE(tree.find_text(), nullptr);
}

TEST(Tree, WhereOneOfTheTwoIsKeptTheTreeTakesThePlaceOfTheText) {
  Tree tree;
  tree.set_text(text(), std::make_shared<json::Packer>(), Tree::Keep::kOne);
  EXPECT_FALSE(tree.has_tree());
  EXPECT_EQ(*tree.text(), kPod);
  EXPECT_EQ(json::int_at(tree, "spec", "priority"), 7);
  EXPECT_EQ(tree.find_text(), nullptr);
  EXPECT_EQ(*tree.text(), kPod);
}

}  // namespace
}  // namespace muster::apiserver
