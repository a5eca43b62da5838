#include "cli/submit/submit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/shell/commands.h"

namespace muster::cli {
namespace {

using json::at;

Result<SubmitPlan> plan(const std::string& type, std::vector<std::string> words) {
  for (const Command& each : submit_commands()) {
    if (each.name != type) continue;
    const auto values = command::parse_flags(each.flags, global_flags(), words);
    if (!values) return fail(values.error());
    SubmitContext context;
    context.type = type;
    context.ns = "default";
    context.user = "tester";
    context.command = values->args.empty() ? "" : values->args[0];
    return plan_submit(context, *values);
  }
  return fail(Code::kNotFound, type);
}

TEST(Submit, ConfigFilesBecomeOneMapPerDirectory) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "muster-submit-test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.yaml") << "a: 1\n";
  std::ofstream(folder / "b.yaml") << "b: 2\n";
  const std::string a = (folder / "a.yaml").string(), b = (folder / "b.yaml").string();
  const auto made = plan("pytorchjob",
                         {"--name=x",
                          "--image=i",
                          "--config-file",
                          a + ":/etc/train/a.yaml",
                          "--config-file",
                          b + ":/etc/train/b.yaml",
                          "--config-file",
                          b + ":/etc/train/b.yaml",
                          "run"});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->before.size(), 1U);
  EXPECT_EQ(json::string_at(made->before[0], "data", "a.yaml"), "a: 1\n");
  EXPECT_EQ(json::string_at(made->before[0], "data", "b.yaml"), "b: 2\n");
  const std::string name = json::text_at(made->before[0], "metadata", "name");
  EXPECT_EQ(name.size(), std::string("x-").size() + 15);
  const std::string spec = json::dump(at(made->job, "spec"));
  EXPECT_NE(spec.find("\"configMap\":{\"name\":\"" + name + "\"}"), std::string::npos);
  EXPECT_NE(spec.find("\"mountPath\":\"/etc/train\""), std::string::npos);
  EXPECT_NE(json::text_at(made->record, "data", "app").find("configmap/" + name), std::string::npos)
      << "delete must find it";

  EXPECT_FALSE(
      plan("pytorchjob", {"--name=x", "--image=i", "--config-file", "/no/such/file:/a/b", "run"}));
  EXPECT_FALSE(plan("pytorchjob",
                    {"--name=x", "--image=i", "--config-file", "/etc/hostname:relative", "run"}));
}

TEST(Submit, WorkersCountTheMasterForPytorchOnly) {
  const auto torch =
      plan("pytorchjob", {"--name=x", "--image=i", "--workers=3", "--gpus=4", "run"});
  ASSERT_TRUE(torch);
  EXPECT_EQ(json::int_at(torch->job, "spec", "pytorchReplicaSpecs", "Worker", "replicas"), 2);
  EXPECT_EQ(json::string_at(torch->job, "metadata", "annotations", "requestGPUsOfJobOwner"), "12");
  const auto alone = plan("pytorchjob", {"--name=x", "--image=i", "run"});
  ASSERT_TRUE(alone);
  EXPECT_TRUE(at(alone->job, "spec", "pytorchReplicaSpecs", "Worker").is_null());
  const auto mpi = plan("mpijob", {"--name=x", "--image=i", "--workers=3", "run"});
  ASSERT_TRUE(mpi);
  EXPECT_EQ(json::int_at(mpi->job, "spec", "replicas"), 3);
}

TEST(Submit, TensorboardReadsTheClaimThatHoldsTheLogs) {
  const auto host = plan("pytorchjob", {"--name=x", "--image=i", "--tensorboard", "run"});
  ASSERT_TRUE(host);
  ASSERT_EQ(host->after.size(), 2U);
  EXPECT_NE(json::dump(host->after[1]).find("hostPath"), std::string::npos);
  const auto claim = plan(
      "pytorchjob",
      {"--name=x", "--image=i", "--tensorboard", "--logdir=/data/logs", "-d", "set:/data", "run"});
  ASSERT_TRUE(claim);
  EXPECT_EQ(json::dump(claim->after[1]).find("hostPath"), std::string::npos);
  EXPECT_NE(json::dump(claim->after[1]).find("\"claimName\":\"set\""), std::string::npos);
}

TEST(Submit, ACommandStaysOneString) {
  const auto made =
      plan("mpijob", {"--name=x", "--image=i", "echo a: b; python -c 'print({\"x\": 1})'"});
  ASSERT_TRUE(made);
  const json::Value& command =
      at(json::array_at(made->job, "spec", "template", "spec", "containers")[0], "command");
  ASSERT_EQ(json::as_array(command).size(), 3U);
  EXPECT_EQ(json::as_string(json::as_array(command)[2]),
            "echo a: b; python -c 'print({\"x\": 1})'");
}

}  // namespace
}  // namespace muster::cli
