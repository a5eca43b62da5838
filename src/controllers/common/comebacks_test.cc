#include "controllers/common/comebacks.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "controllers/common/test_world.h"
#include "controllers/replicaset/plan.h"
#include "controllers/t9k/plan.h"
#include "controllers/vcjob/plan.h"

namespace muster::controllers {
namespace {

using testing::TestWorld;

constexpr std::string_view kNoHostKeys =
    "{phase: Failed, containerStatuses: [{name: worker, state: {terminated: "
    "{exitCode: 255, reason: Error, message: \"a\\nno hostkeys\\n\"}}}]}";

constexpr std::string_view kT9k = R"(
apiVersion: batch.tensorstack.dev/v1beta1
kind: MPIJob
metadata: {name: m}
spec:
  worker:
    replicas: 1
    cmd: [sleep, "1"]
    template: {spec: {containers: [{name: mpi-worker, image: i}]}}
  ssh: {sshdPath: /usr/sbin/sshd}
  mpiHome: /usr/local
)";

constexpr std::string_view kVolcano = R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: m}
spec:
  minAvailable: 1
  policies: [{event: PodFailed, action: RestartTask}]
  tasks:
  - name: worker
    replicas: 1
    template: {spec: {restartPolicy: Never, containers: [{name: worker, image: i}]}}
)";

/// A job whose worker ends as soon as it is made, played for ten minutes.
class CrashLoop : public ::testing::Test {
 protected:
  Comebacks comebacks;
  std::vector<Event> said;
  bool deletions_fail = false;

  /// What was said of a pod that is held back; "": nothing.
  [[nodiscard]] std::string back_off() const {
    const auto found = std::find_if(
        said.begin(), said.end(), [](const Event& event) { return event.reason == "BackOff"; });
    return found == said.end() ? "" : found->message;
  }

  /// How often a pod was made within the time.
  template <typename PlanFunction>
  int play(TestWorld& world, PlanFunction plan_of, Duration span, std::string_view status) {
    int made = 0;
    const Time end = world.now + span;
    for (; world.now < end; world.now = world.now + std::chrono::seconds(1)) {
      for (int pass = 0; pass < 10; ++pass) {
        auto plan = plan_of(world.job, world, world.settings, world.now);
        (void)comebacks.hold_back(plan, world, world.now);
        said.insert(said.end(), plan.events.begin(), plan.events.end());
        if (plan.status) world.job.as_object()["status"] = *plan.status;
        bool changed = false;
        for (auto& action : plan.actions) {
          if (deletions_fail && action.verb == Action::Verb::kDelete) continue;
          changed = world.apply(action) || changed;
          made += action.verb == Action::Verb::kCreate && action.kind == kinds::kPod &&
                  action.name != "m-launcher";
        }
        for (auto& [name, group] : world.objects["PodGroup.scheduling.volcano.sh"])
          json::make_object(group, {"status"})["phase"] = "Inqueue";
        if (!changed) break;
      }
      for (auto& [name, pod] : world.objects["Pod"]) {
        if (name != "m-launcher" && phase_of(pod) == "Pending")
          pod.as_object()["status"] = *json::parse_yaml_one(status);
      }
    }
    return made;
  }
};

TEST_F(CrashLoop, ComesBackEverMoreSlowly) {
  TestWorld world(kT9k);
  const int made = play(world, t9k::plan, std::chrono::minutes(10), kNoHostKeys);
  EXPECT_GE(made, 4);
  EXPECT_LE(made, 9);
  EXPECT_EQ(
      back_off(),
      "Pod m-worker-0 failed again (exit code 255: no hostkeys); it is created again in 10 s");
}

TEST_F(CrashLoop, OfVolcanosRestartTaskAsWell) {
  TestWorld world(kVolcano);
  const int made = play(world, vcjob::plan, std::chrono::minutes(10), kNoHostKeys);
  EXPECT_GE(made, 4);
  EXPECT_LE(made, 9);
  EXPECT_EQ(
      back_off(),
      "Pod m-worker-0 failed again (exit code 255: no hostkeys); it is created again in 10 s");
}

TEST_F(CrashLoop, OfAReplicaSetWhosePodsHaveOtherNames) {
  TestWorld world(R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: m}
spec: {replicas: 2, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
)");
  const int made = play(world, replicaset::plan, std::chrono::minutes(10), kNoHostKeys);
  EXPECT_GE(made, 8);
  EXPECT_LE(made, 24);
  const auto& conditions = json::array_at(world.job, "status", "conditions");
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(json::string_at(conditions[0], "type"), "ReplicaFailure");
  EXPECT_EQ(
      json::string_at(conditions[0], "message"),
      "pods keep failing (exit code 255: no hostkeys); new ones are created at increasing intervals");
}

TEST_F(CrashLoop, APreemptedPodComesBackAtOnce) {
  TestWorld world(kT9k);
  const int made = play(world,
                        t9k::plan,
                        std::chrono::seconds(30),
                        "{phase: Failed, conditions: [{type: DisruptionTarget, status: \"True\", "
                        "reason: PreemptionByScheduler}]}");
  EXPECT_GE(made, 25);
}

TEST_F(CrashLoop, OnANodeWhoseClockIsSlow) {
  TestWorld world(kT9k);
  // It lived for a second, an hour ago by its own clock.
  const auto status = fmt::format(
      "{{phase: Failed, startTime: \"{}\", containerStatuses: [{{name: worker, state: {{terminated: "
      "{{exitCode: 255, finishedAt: \"{}\"}}}}}}]}}",
      format_time(world.now - std::chrono::hours(1)),
      format_time(world.now - std::chrono::hours(1) + std::chrono::seconds(1)));
  EXPECT_LE(play(world, t9k::plan, std::chrono::minutes(10), status), 9);
}

TEST_F(CrashLoop, APodWhoseDeletionIsRefusedFailedOnce) {
  TestWorld world(kT9k);
  deletions_fail = true;
  EXPECT_EQ(play(world, t9k::plan, std::chrono::minutes(1), kNoHostKeys), 1);
  deletions_fail = false;
  EXPECT_EQ(play(world, t9k::plan, std::chrono::seconds(2), kNoHostKeys), 1)
      << "the first failure is made good at once";
}

}  // namespace
}  // namespace muster::controllers
