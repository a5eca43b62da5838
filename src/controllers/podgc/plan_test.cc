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

TEST(PodGc, OnlyPodsOfTheNodeGoWithIt) {
  const auto on_it = parse("{spec: {nodeName: n1}, status: {phase: Running}}");
  EXPECT_TRUE(goes_with(on_it, "n1", false));
  EXPECT_FALSE(goes_with(on_it, "n1", true)) << "the node is back";
  const auto successor = parse("{spec: {}, status: {phase: Pending}}");
  EXPECT_FALSE(goes_with(successor, "n1", false)) << "one of the same name that waits for a node";
  EXPECT_FALSE(goes_with(parse("{spec: {nodeName: n2}}"), "n1", false));
  const auto lost = parse(
      "{spec: {nodeName: n1}, status: {conditions: [{type: DisruptionTarget, reason: DeletionByPodGC}]}}");
  EXPECT_TRUE(goes_with(lost, "n1", true)) << "what was begun is finished";
}

}  // namespace
}  // namespace muster::controllers::podgc
