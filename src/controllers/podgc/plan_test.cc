#include "controllers/podgc/plan.h"

#include <gtest/gtest.h>

namespace muster::controllers::podgc {
namespace {

json::Value parse(std::string_view yaml) { return *json::parse_yaml_one(yaml); }
const Time kNow = Time::from_seconds(1'700'000'000);

// conforms: Node | a deleted node | its pods fail with DisruptionTarget and are deleted by force | same, after 10 s instead of 40 s
TEST(PodGc, ALostPodFailsAndSaysWhy) {
  const auto patch = lost_status(
      parse("{status: {phase: Running, conditions: [{type: Ready, status: \"True\"}]}}"), kNow);
  EXPECT_EQ(json::string_at(patch, "status", "phase"), "Failed");
  const auto& conditions = json::array_at(patch, "status", "conditions");
  ASSERT_EQ(conditions.size(), 2U);
  EXPECT_EQ(json::string_at(conditions[0], "status"), "False");
  EXPECT_EQ(json::string_at(conditions[1], "reason"), "DeletionByPodGC");
  EXPECT_TRUE(is_lost(patch));
  EXPECT_FALSE(is_lost(
      parse("{status: {conditions: [{type: DisruptionTarget, reason: PreemptionByScheduler}]}}")));
  const auto ended = lost_status(parse("{status: {phase: Succeeded}}"), kNow);
  EXPECT_TRUE(json::at(ended, "status", "phase").is_null()) << "what it was stays";
}

}  // namespace
}  // namespace muster::controllers::podgc
