#include "cli/view/explain_ends.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

json::Value node(int gpus) {
  return json::Object{
      {"status",
       json::Object{{"allocatable", json::Object{{"nvidia.com/gpu", std::to_string(gpus)}}}}}};
}

Job gang(const json::Value& pod, int members, int gpus) {
  Job job;
  for (int i = 0; i < members; ++i) {
    Instance instance;
    instance.name = "w-" + std::to_string(i);
    instance.gpus = gpus;
    instance.pod = &pod;
    job.instances.push_back(std::move(instance));
  }
  return job;
}

TEST(ExplainEnds, AGangThatCanNeverStartIsToldSo) {
  const json::Value pod = json::Object{}, four = node(4);
  const std::vector<const json::Value*> nodes{&four, &four, &four};
  EXPECT_EQ(
      never_part(fit_on_empty_nodes(gang(pod, 5, 4), 5, nodes)),
      "\nIt can never start here: it needs 20 GPUs for 5 instances at once, and all nodes together "
      "have 12.\n  On empty nodes 3 of the 5 fit: ask for no more than that, or add nodes.\n");
  EXPECT_EQ(never_part(fit_on_empty_nodes(gang(pod, 3, 4), 0, nodes)), "");
  // Three may start without the other two.
  EXPECT_EQ(never_part(fit_on_empty_nodes(gang(pod, 5, 4), 3, nodes)), "");
  EXPECT_EQ(never_part(fit_on_empty_nodes(gang(pod, 1, 8), 1, nodes)),
            "\nIt can never start here: an instance needs 8 GPUs, and the largest node has 4.\n"
            "  Ask for less for each, or add a larger node.\n");
  EXPECT_EQ(never_part(fit_on_empty_nodes(gang(pod, 9, 0), 9, {})), "");
}

TEST(ExplainEnds, ACrashSaysHowAndHowOften) {
  const auto pod = json::parse(
      R"({"status":{"containerStatuses":[{"name":"c","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},
          "lastState":{"terminated":{"exitCode":255,"reason":"Error"}}}]}})");
  const Job job = gang(*pod, 1, 0);
  EXPECT_TRUE(crash_loops(job));
  auto crashes = crashes_of(job, 3);
  ASSERT_EQ(crashes.size(), 1U);
  EXPECT_TRUE(crashes[0].waits);
  crashes[0].lines = {"no hostkeys"};
  EXPECT_EQ(
      crash_part(crashes),
      "\nEnded badly:\n  w-0, container c: exit code 255; started again 3 times\n    no hostkeys\n");
}

}  // namespace
}  // namespace muster::cli
