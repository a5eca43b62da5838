#include "cli/view/starts.h"

#include <gtest/gtest.h>

#include "json/json.h"

namespace muster::cli {
namespace {

json::Value forecast(const char* first_p50) {
  json::Object start{
      {"p10", "2026-11-18T12:10:00Z"},
      {"p50", "2026-11-18T12:20:00Z"},
      {"p90", "2026-11-18T12:40:00Z"},
      {"basis", "learned"},
      {"firstSaid", json::Object{{"at", "2026-11-18T09:02:00Z"}, {"p50", first_p50}}}};
  return json::Object{{"job", "default/job/late"}, {"state", "waits"}, {"start", std::move(start)}};
}

/// What was said first is never repeated as if it were still to come.
TEST(Check13, ALateJobSaysThatItIsOverdueAndANewRange) {
  const Time now = *parse_time("2026-11-18T12:00:00Z");
  const auto local = [&](const char* time) { return moment_text(json::Value(time), now); };
  const std::string said = local("2026-11-18T09:02:00Z");
  const std::string late = starts_part(forecast("2026-11-18T11:30:00Z"), now);
  const std::string overdue = "overdue since " + local("2026-11-18T11:30:00Z");
  EXPECT_NE(late.find(overdue + ", first said at " + said), std::string::npos) << late;
  EXPECT_NE(late.find("Starts about " + local("2026-11-18T12:20:00Z")), std::string::npos) << late;
  EXPECT_NE(late.find("between " + local("2026-11-18T12:10:00Z")), std::string::npos) << late;
  const std::string early = starts_part(forecast("2026-11-18T13:30:00Z"), now);
  const std::string first = "first said " + local("2026-11-18T13:30:00Z") + " at " + said;
  EXPECT_NE(early.find(first), std::string::npos) << early;
  EXPECT_EQ(early.find("overdue"), std::string::npos) << early;
}

}  // namespace
}  // namespace muster::cli
