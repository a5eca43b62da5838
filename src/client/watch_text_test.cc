#include "client/watch_text.h"

#include <gtest/gtest.h>

namespace muster::client {
namespace {

TEST(WatchText, ManagedFieldsAreLeftOut) {
  struct Case {
    std::string_view name, line, object;
  };
  const Case cases[] = {
      {"none",
       R"({"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a"}}})",
       R"({"kind":"Pod","metadata":{"name":"a"}})"},
      {"in the middle",
       R"({"type":"MODIFIED","object":{"metadata":{"name":"a","managedFields":[{"f":{".":{}}}],"uid":"u"},"spec":{}}})",
       R"({"metadata":{"name":"a","uid":"u"},"spec":{}})"},
      {"last",
       R"({"type":"MODIFIED","object":{"metadata":{"name":"a","managedFields":[{"x":"]}\"["}]},"spec":{}}})",
       R"({"metadata":{"name":"a"},"spec":{}})"},
      {"alone",
       R"({"type":"MODIFIED","object":{"metadata":{"managedFields":[]},"spec":1}})",
       R"({"metadata":{},"spec":1})"},
      {"not the object's own",
       R"({"type":"ADDED","object":{"spec":{"metadata":{"managedFields":[1]}},"metadata":{"labels":{"managedFields":"x"}}}})",
       R"({"spec":{"metadata":{"managedFields":[1]}},"metadata":{"labels":{"managedFields":"x"}}})"},
      {"more behind the object",
       R"({"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[]}},"more":{"a":[1]}})",
       R"({"metadata":{"name":"a"}})"},
      {"spaces and another order",
       R"( { "object" : { "metadata" : { "managedFields" : [ { } ] , "name" : "a\"}" } } , "type" : "ADDED" } )",
       R"({"metadata":{"name":"a\"}"}})"},
  };
  for (const Case& one : cases) {
    const auto event = parse_watch_line(one.line, "watch", false);
    ASSERT_TRUE(event) << one.name << ": " << event.error().message;
    EXPECT_EQ(json::dump(*event->object), one.object) << one.name;
  }
  const auto whole = parse_watch_line(cases[1].line, "watch", true);
  EXPECT_FALSE(json::at(*whole->object, "metadata", "managedFields").is_null());
}

TEST(WatchText, WhatIsNoEventIsAnError) {
  for (const std::string_view line : {"",
                                      "{}",
                                      "x",
                                      "{\"type\":\"ADDED\"}",
                                      "{\"type\":\"ADDED\",\"object\":{\"a\":}}",
                                      "{\"object\":{\"metadata\":{\"managedFields\":["}) {
    EXPECT_FALSE(parse_watch_line(line, "watch", false)) << line;
  }
  const auto expired = parse_watch_line(
      R"({"type":"ERROR","object":{"kind":"Status","reason":"Expired","message":"too old","code":410}})",
      "watch",
      false);
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code, Code::kExpired);
}

}  // namespace
}  // namespace muster::client
