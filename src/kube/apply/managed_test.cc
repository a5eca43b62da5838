#include "kube/apply/managed.h"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

json::Value with_fields(std::string_view fields) {
  return *json::parse(
      R"({"kind":"Pod","metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Update","fieldsV1":)" +
      std::string(fields) + R"(}]},"spec":{}})");
}

TEST(Managed, TextOfAPackedObjectIsThatOfTheTree) {
  json::Value object = with_fields(R"({"f:spec":{"f:a\"b":{},"k:{\"name\":\"x\"}":{".":{}}}})");
  const std::string text = json::dump(object);
  pack_managers(object);
  EXPECT_TRUE(
      json::at(json::array_at(object, "metadata", "managedFields")[0], "fieldsV1").is_string());
  EXPECT_EQ(object_text(object), text);
  EXPECT_EQ(metadata_text(json::at(object, "metadata")),
            json::dump(json::at(*json::parse(text), "metadata")));
  unpack_managers(object);
  EXPECT_EQ(json::dump(object), text);
}

TEST(Managed, AStringThatIsNoSetCannotBreakTheText) {
  for (const char* bad : {R"("},{\"x\":1")", R"("")", R"("[]")", R"("{}}")", "7", "null"}) {
    json::Value object = with_fields(bad);
    pack_managers(object);
    const auto parsed = json::parse(object_text(object));
    ASSERT_TRUE(parsed) << bad;
    EXPECT_EQ(json::array_at(*parsed, "metadata", "managedFields").size(), 1U) << bad;
  }
}

TEST(Managed, OddObjectsAreWrittenAsTheyAre) {
  for (const char* odd : {"{}",
                          "[]",
                          R"({"metadata":{}})",
                          R"({"metadata":[1]})",
                          R"({"metadata":{"managedFields":[]}})",
                          R"({"metadata":{"managedFields":[{},3]}})"}) {
    EXPECT_EQ(object_text(*json::parse(odd)), odd);
  }
}

TEST(Managed, EqualSetsAreReadOnce) {
  json::Value a = with_fields(R"({"f:spec":{}})"), b = a;
  pack_managers(a);
  pack_managers(b);
  const auto set = [](const json::Value& object) {
    return fields_of(json::at(json::array_at(object, "metadata", "managedFields")[0], "fieldsV1"));
  };
  EXPECT_EQ(set(a), set(b));
  EXPECT_TRUE(set(a)->find("f:spec")->member);
}

}  // namespace
}  // namespace muster::kube
