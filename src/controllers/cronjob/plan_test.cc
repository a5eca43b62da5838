#include "controllers/cronjob/plan.h"

#include <gtest/gtest.h>

#include "controllers/common/test_world.h"
#include "controllers/cronjob/schedule.h"

namespace muster::controllers::cronjob {
namespace {

using testing::TestWorld;

std::string next(std::string_view schedule, std::string_view after) {
  const auto parsed = Schedule::parse(schedule);
  if (!parsed) return parsed.error().message;
  const auto at = parsed->next(*parse_time(after));
  return at ? format_time(*at) : "never";
}

TEST(CronSchedule, FindsTheNextTime) {
  EXPECT_EQ(next("* * * * *", "2026-11-15T12:34:56Z"), "2026-11-15T12:35:00Z");
  EXPECT_EQ(next("*/15 * * * *", "2026-11-15T12:45:00Z"), "2026-11-15T13:00:00Z");
  EXPECT_EQ(next("0 3 * * *", "2026-11-15T03:00:00Z"), "2026-11-16T03:00:00Z");
  EXPECT_EQ(next("30 8 * * mon-fri", "2026-11-13T09:00:00Z"), "2026-11-16T08:30:00Z")
      << "a Friday, then a Monday";
  EXPECT_EQ(next("0 0 29 2 *", "2026-01-01T00:00:00Z"), "2028-02-29T00:00:00Z");
  EXPECT_EQ(next("0 0 30 2 *", "2026-01-01T00:00:00Z"), "never");
  EXPECT_EQ(next("0 0 13 * 5", "2026-11-01T00:00:00Z"), "2026-11-06T00:00:00Z")
      << "the 13th or a Friday";
  EXPECT_EQ(next("5,10-12/2 1 1 JAN ?", "2026-01-01T01:05:00Z"), "2026-01-01T01:10:00Z");
  EXPECT_EQ(next("@hourly", "2026-11-15T23:59:00Z"), "2026-11-16T00:00:00Z");
  EXPECT_EQ(next("@every 90s", "2026-11-15T00:00:00Z"), "2026-11-15T00:01:30Z");
  EXPECT_EQ(next("61 * * * *", "2026-11-15T00:00:00Z"), "\"61\" is not a minute");
  EXPECT_EQ(next("* * *", "2026-11-15T00:00:00Z"), "expected exactly 5 fields, found 3: * * *");
}

std::string next_in(std::string_view zone, std::string_view schedule, std::string_view after) {
  const auto found = TimeZone::find(zone);
  if (!found) return found.error().message;
  const auto at = Schedule::parse(schedule, *found)->next(*parse_time(after));
  return at ? format_time(*at) : "never";
}

TEST(CronSchedule, IsToldInTheTimeOfItsZone) {
  EXPECT_EQ(next_in("Europe/Berlin", "0 3 * * *", "2026-01-15T00:00:00Z"), "2026-01-15T02:00:00Z")
      << "winter";
  EXPECT_EQ(next_in("Europe/Berlin", "0 3 * * *", "2026-07-15T00:00:00Z"), "2026-07-15T01:00:00Z")
      << "summer";
  EXPECT_EQ(next_in("Asia/Kolkata", "15 9 * * *", "2026-07-15T00:00:00Z"), "2026-07-15T03:45:00Z")
      << "half an hour off";
  EXPECT_EQ(next_in("America/New_York", "0 20 31 12 *", "2026-12-31T23:00:00Z"),
            "2027-01-01T01:00:00Z")
      << "another day than in UTC";
  EXPECT_EQ(next_in("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00Z"), "2026-03-30T00:30:00Z")
      << "on the 29th the clock goes from two to three";
  EXPECT_EQ(next_in("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z"), "2026-10-25T00:30:00Z")
      << "on the 25th it shows half past two twice";
  EXPECT_EQ(next_in("Europe/Berlin", "30 2 * * *", "2026-10-25T00:30:00Z"), "2026-10-25T01:30:00Z");
  EXPECT_EQ(next_in("America/Havana", "30 0 8 3 *", "2026-03-01T00:00:00Z"), "2027-03-08T05:30:00Z")
      << "half past midnight is left out there on that day in 2026";
  EXPECT_EQ(next_in("Europe/Berlin", "0 3 * * *", "2051-07-15T00:00:00Z"), "2051-07-15T01:00:00Z")
      << "behind the table, by the rule";
  EXPECT_EQ(next_in("Nope/Nope", "* * * * *", "2026-01-01T00:00:00Z"),
            "unknown time zone Nope/Nope");
}

// conforms: CronJob | timeZone | the schedule is in the time of that zone; an unknown one: UnknownTimeZone, and refused by the API server | same, zones are the system's
TEST(CronJob, KeepsToTheTimeOfItsZone) {
  TestWorld world(
      "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: '0 9 * * *', timeZone: Asia/Tokyo, jobTemplate: {spec: {completions: 1}}}}");
  world.now = *parse_time("2026-11-15T23:00:00Z");
  json::make(world.job, {"metadata", "creationTimestamp"}) = format_time(world.now);
  world.settle(plan);
  EXPECT_EQ(world.names("Job"), "");
  world.now = *parse_time("2026-11-16T00:00:00Z");
  world.settle(plan);
  EXPECT_EQ(world.all("Job").size(), 1U) << "nine o'clock in Tokyo";
  json::make(world.job, {"spec", "timeZone"}) = "Nope/Nope";
  world.settle(plan);
  EXPECT_TRUE(world.recorded("UnknownTimeZone"));
}

TestWorld every_minute(std::string_view rest) {
  TestWorld world(
      "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: '* * * * *', jobTemplate: {metadata: {labels: {a: b}}, spec: {completions: 1}}}}");
  const auto more = json::parse_yaml_one(rest);
  for (const auto& [key, value] : json::as_object(*more))
    world.job.at("spec").as_object()[key] = value;
  return world;
}

void minute_passes(TestWorld& world, int minutes = 1) {
  world.now = world.now + std::chrono::minutes(minutes);
}

void end(TestWorld& world, const std::string& job, std::string_view how) {
  auto& status = json::make_object(world.objects["Job"].at(job), {"status"});
  status["conditions"] = json::Array{json::Object{{"type", how}, {"status", "True"}}};
  status["completionTime"] = format_time(world.now);
  status["startTime"] = format_time(world.now);
}

// conforms: CronJob | schedule, jobTemplate | a Job NAME-MINUTES at each time, with the scheduled time as an annotation; status.active, lastScheduleTime, lastSuccessfulTime | same
TEST(CronJob, MakesAJobAtEachTime) {
  TestWorld world = every_minute("{}");
  world.settle(plan);
  EXPECT_EQ(world.names("Job"), "");
  ASSERT_TRUE(world.last.requeue_after);
  minute_passes(world);
  world.settle(plan);
  ASSERT_EQ(world.all("Job").size(), 1U);
  const auto job = *world.all("Job")[0];
  EXPECT_EQ(name_of(job), "c-" + std::to_string(world.now.seconds() / 60));
  EXPECT_EQ(label_of(job, "a"), "b");
  EXPECT_EQ(json::array_at(world.job, "status", "active").size(), 1U);
  end(world, name_of(job), "Complete");
  world.settle(plan);
  EXPECT_TRUE(world.recorded("SawCompletedJob"));
  EXPECT_TRUE(json::at(world.job, "status", "active").is_null());
  EXPECT_FALSE(json::at(world.job, "status", "lastSuccessfulTime").is_null());
}

// conforms: CronJob | concurrencyPolicy | Allow: beside each other; Forbid: JobAlreadyActive; Replace: the old one is deleted | same
TEST(CronJob, ConcurrencyPolicies) {
  const auto after_two_minutes = [](std::string_view rest) {
    TestWorld world = every_minute(rest);
    for (int i = 0; i < 2; ++i) {
      minute_passes(world);
      world.settle(plan);
    }
    return world;
  };
  EXPECT_EQ(after_two_minutes("{}").all("Job").size(), 2U);
  const auto forbid = after_two_minutes("{concurrencyPolicy: Forbid}");
  EXPECT_EQ(forbid.all("Job").size(), 1U);
  EXPECT_TRUE(forbid.recorded("JobAlreadyActive"));
  const auto replace = after_two_minutes("{concurrencyPolicy: Replace}");
  ASSERT_EQ(replace.all("Job").size(), 1U);
  EXPECT_EQ(name_of(*replace.all("Job")[0]), "c-" + std::to_string(replace.now.seconds() / 60));
}

// conforms: CronJob | suspend, startingDeadlineSeconds | nothing while suspended; of the missed times only the last is made up for, and none that is later than the deadline | same
TEST(CronJob, MakesUpForTheLastMissedTimeOnly) {
  TestWorld world = every_minute("{suspend: true}");
  minute_passes(world, 200);
  world.settle(plan);
  EXPECT_EQ(world.names("Job"), "");
  json::make(world.job, {"spec", "suspend"}) = false;
  world.settle(plan);
  EXPECT_EQ(world.names("Job"), "c-" + std::to_string(world.now.seconds() / 60));
  EXPECT_TRUE(world.recorded("TooManyMissedTimes"));
  TestWorld late = every_minute("{startingDeadlineSeconds: 10, schedule: '0 0 1 1 *'}");
  minute_passes(late, 60 * 24 * 366);
  late.settle(plan);
  EXPECT_EQ(late.names("Job"), "");
}

// conforms: CronJob | successfulJobsHistoryLimit, failedJobsHistoryLimit | the oldest beyond 3 and 1 are deleted | same
TEST(CronJob, KeepsAFewOldJobs) {
  TestWorld world = every_minute("{}");
  for (int i = 0; i < 6; ++i) {
    minute_passes(world);
    world.settle(plan);
    end(world, "c-" + std::to_string(world.now.seconds() / 60), i < 4 ? "Complete" : "Failed");
  }
  world.settle(plan);
  EXPECT_EQ(world.all("Job").size(), 4U);
}

}  // namespace
}  // namespace muster::controllers::cronjob
