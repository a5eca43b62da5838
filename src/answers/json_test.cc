#include "answers/json.h"

#include <gtest/gtest.h>

#include "answers/service.h"

namespace muster::answers {
namespace {

Forecast waits() {
  Forecast forecast;
  forecast.job = "volcano:red/mine";
  forecast.state = State::kWaits;
  forecast.refusal.reason = engine::Reason::kNoNodeFits;
  forecast.refusal.ahead = {"volcano:blue/secret"};
  forecast.refusal.ahead_count = 1;
  forecast.start.range.p50 = *parse_time("2026-11-16T11:05:00Z");
  forecast.start.because = engine::describe(forecast.refusal);
  forecast.waits_for.push_back({.job = "volcano:blue/secret", .gpu_milli = 8000});
  return forecast;
}

std::string plain(std::string_view gang) { return std::string(gang.substr(gang.find(':') + 1)); }

TEST(ForecastJson, WhatRestsOnNothingHasNoTimeInIt) {
  const json::Value shown = forecast_json(waits(), plain, *parse_time("2026-11-16T10:00:00Z"));
  EXPECT_EQ(json::string_at(shown, "start", "basis"), "none");
  EXPECT_TRUE(json::at(shown, "start", "p50").is_null());
  EXPECT_TRUE(json::at(json::array_at(shown, "waitsFor")[0], "end").is_null());
}

TEST(ForecastJson, OtherTeamsJobsHaveNoNameAnywhere) {
  const Naming for_red = [](std::string_view gang) {
    return gang.find("red/") != std::string_view::npos ? plain(gang) : std::string(kAnothersJob);
  };
  const std::string seen = json::dump(forecast_json(waits(), for_red, Time{}));
  EXPECT_EQ(seen.find("secret"), std::string::npos) << seen;
  EXPECT_NE(seen.find("1 ahead"), std::string::npos) << seen;
  const std::string all = json::dump(forecast_json(waits(), plain, Time{}));
  EXPECT_NE(all.find("blue/secret"), std::string::npos) << all;
}

}  // namespace
}  // namespace muster::answers
