#include "controllers/common/comebacks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "controllers/common/test_world.h"
#include "controllers/t9k/plan.h"

namespace muster::controllers {
namespace {

using testing::TestWorld;

/// A T9k MPIJob whose worker ends as soon as it is made, played for ten minutes.
class CrashLoop : public ::testing::Test {
 protected:
  TestWorld world{R"(
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
)"};
  Comebacks comebacks;
  std::vector<Event> said;

  /// How often a pod was made within the time.
  int play(Duration span, std::string_view status) {
    int made = 0;
    const Time end = world.now + span;
    for (; world.now < end; world.now = world.now + std::chrono::seconds(1)) {
      for (int pass = 0; pass < 10; ++pass) {
        auto plan = t9k::plan(world.job, world, world.settings, world.now);
        (void)comebacks.hold_back(plan, world, world.now);
        said.insert(said.end(), plan.events.begin(), plan.events.end());
        if (plan.status) world.job.as_object()["status"] = *plan.status;
        bool changed = false;
        for (auto& action : plan.actions) {
          changed = world.apply(action) || changed;
          made += action.verb == Action::Verb::kCreate && action.name == "m-worker-0";
        }
        if (!changed) break;
      }
      auto& pods = world.objects["Pod"];
      if (const auto worker = pods.find("m-worker-0"); worker != pods.end())
        worker->second.as_object()["status"] = *json::parse_yaml_one(status);
    }
    return made;
  }
};

TEST_F(CrashLoop, ComesBackEverMoreSlowly) {
  const int made = play(std::chrono::minutes(10),
                        "{phase: Failed, containerStatuses: [{name: worker, state: {terminated: "
                        "{exitCode: 255, reason: Error, message: \"a\\nno hostkeys\\n\"}}}]}");
  EXPECT_GE(made, 4);
  EXPECT_LE(made, 9);
  ASSERT_FALSE(said.empty());
  const auto found = std::find_if(
      said.begin(), said.end(), [](const Event& event) { return event.reason == "BackOff"; });
  ASSERT_NE(found, said.end());
  EXPECT_EQ(found->message,
            "Pod m-worker-0 failed again (exit code 255: no hostkeys); it is made again in 10 s");
}

TEST_F(CrashLoop, APreemptedPodComesBackAtOnce) {
  const int made = play(std::chrono::seconds(30),
                        "{phase: Failed, conditions: [{type: DisruptionTarget, status: \"True\", "
                        "reason: PreemptionByScheduler}]}");
  EXPECT_GE(made, 25);
}

}  // namespace
}  // namespace muster::controllers
