#include "controllers/common/conditions.h"

#include <gtest/gtest.h>

namespace muster::controllers {
namespace {

std::string text(const json::Value& status) {
  std::string result;
  for (const auto& c : json::array_at(status, "conditions"))
    result += json::text_at(c, "type") + "=" + json::text_at(c, "status") + " ";
  return result;
}

TEST(Conditions, RestartingAndRunningReplaceEachOther) {
  json::Value status = json::Object{};
  Conditions conditions(status, true, Time::from_seconds(1));
  conditions.set("Created", true, "A", "");
  conditions.set("Running", true, "A", "");
  conditions.set("Restarting", true, "A", "");
  EXPECT_EQ(text(status), "Created=True Restarting=True ");
  conditions.set("Running", true, "A", "");
  EXPECT_EQ(text(status), "Created=True Running=True ");
}

TEST(Conditions, AnEndTurnsRunningOffWhereItStands) {
  json::Value status = json::Object{};
  Conditions conditions(status, true, Time::from_seconds(1));
  conditions.set("Running", true, "A", "");
  conditions.set("Succeeded", true, "A", "");
  EXPECT_EQ(text(status), "Running=False Succeeded=True ");
}

TEST(Conditions, FailedIsFinalOnlyWhereTheOperatorHasItSo) {
  for (const bool final : {true, false}) {
    json::Value status = json::Object{};
    Conditions conditions(status, final, Time::from_seconds(1));
    conditions.set("Failed", true, "Evicted", "");
    conditions.set("Succeeded", true, "A", "");
    EXPECT_EQ(text(status), final ? "Failed=True " : "Failed=False Succeeded=True ");
  }
}

TEST(Conditions, TheSameAgainChangesNothingAndAnotherReasonKeepsTheTransitionTime) {
  json::Value status = json::Object{};
  EXPECT_TRUE(Conditions(status, true, Time::from_seconds(1)).set("Suspended", true, "A", "first"));
  EXPECT_FALSE(
      Conditions(status, true, Time::from_seconds(2)).set("Suspended", true, "A", "second"));
  EXPECT_TRUE(Conditions(status, true, Time::from_seconds(3)).set("Suspended", true, "B", "third"));
  const auto& entry = json::array_at(status, "conditions")[0];
  EXPECT_EQ(json::string_at(entry, "message"), "third");
  EXPECT_EQ(json::string_at(entry, "lastTransitionTime"), "1970-01-01T00:00:01Z");
}

}  // namespace
}  // namespace muster::controllers
