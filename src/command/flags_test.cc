#include "command/flags.h"

#include <gtest/gtest.h>

namespace muster::command {
namespace {

std::vector<Flag> sample() {
  return {
      {.name = "name", .help = "the name"},
      {.name = "gpus", .type = FlagType::kInt, .value = "0", .help = "GPUs"},
      {.name = "env", .shorthand = 'e', .type = FlagType::kList, .help = "environment"},
      {.name = "rdma", .shorthand = 'r', .type = FlagType::kBool, .value = "false", .help = "rdma"},
      {.name = "working-dir", .value = "/root", .help = "directory", .deprecated = {"workingDir"}},
      {.name = "wait", .help = "wait", .bare = "finished"},
      {.name = "since",
       .shorthand = 's',
       .type = FlagType::kDuration,
       .value = "0s",
       .help = "age"}};
}

TEST(Flags, ReadsAsPflagDoes) {
  const auto values = parse_flags(sample(),
                                  {},
                                  {"--name=a",
                                   "--gpus",
                                   "2",
                                   "-ea=b",
                                   "-e",
                                   "c=d,e",
                                   "cmd",
                                   "-r",
                                   "--wait",
                                   "--",
                                   "--not-a-flag"});
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(values->text("name"), "a");
  EXPECT_EQ(values->number("gpus"), 2);
  EXPECT_EQ(values->list("env"), (std::vector<std::string>{"a=b", "c=d,e"}));
  EXPECT_TRUE(values->yes("rdma"));
  EXPECT_EQ(values->text("wait"), "finished");
  EXPECT_EQ(values->text("working-dir"), "/root");
  EXPECT_FALSE(values->given("working-dir"));
  EXPECT_EQ(values->args, (std::vector<std::string>{"cmd", "--not-a-flag"}));
}

TEST(Flags, BooleansTakeNoSeparateValue) {
  const auto values = parse_flags(sample(), {}, {"--rdma", "true"});
  ASSERT_TRUE(values);
  EXPECT_EQ(values->args, (std::vector<std::string>{"true"}));
}

TEST(Flags, DeprecatedSpellingWorksAndSaysSo) {
  const auto values = parse_flags(sample(), {}, {"--workingDir=/w"});
  ASSERT_TRUE(values);
  EXPECT_EQ(values->text("working-dir"), "/w");
  EXPECT_EQ(values->warnings,
            (std::vector<std::string>{
                "Flag --workingDir has been deprecated, please use --working-dir instead"}));
}

TEST(Flags, ErrorsHavePflagsTexts) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--zzzzzz"}, "unknown flag: --zzzzzz"},
      {{"--gpu=1"}, "unknown flag: --gpu, did you mean --gpus?"},
      {{"--name"}, "flag needs an argument: --name"},
      {{"-e"}, "flag needs an argument: 'e' in -e"},
      {{"-x"}, "unknown shorthand flag: 'x' in -x"},
      {{"--gpus=1.5"},
       "invalid argument \"1.5\" for \"--gpus\" flag: strconv.ParseInt: parsing \"1.5\": invalid syntax"},
      {{"--rdma=maybe"},
       "invalid argument \"maybe\" for \"--rdma\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax"},
      {{"-s", "5"},
       "invalid argument \"5\" for \"-s, --since\" flag: duration \"5\": wanted a number and a unit, such as 90s, 5m or 1h30m"},
  };
  for (const auto& [words, want] : cases) {
    const auto values = parse_flags(sample(), {}, words);
    ASSERT_FALSE(values) << want;
    EXPECT_EQ(values.error().message, want);
  }
  std::vector<Flag> flags = sample();
  flags[0].required = true;
  EXPECT_EQ(parse_flags(flags, {}, {}).error().message, "required flag(s) \"name\" not set");
  EXPECT_TRUE(parse_flags(flags, {}, {"--help"})->help);
}

TEST(Flags, UsagesAlignAsPflagDoes) {
  EXPECT_EQ(flag_usages(sample()),
            "  -e, --env stringArray      environment\n"
            "      --gpus int             GPUs\n"
            "      --name string          the name\n"
            "  -r, --rdma                 rdma\n"
            "  -s, --since duration       age\n"
            "      --wait[=string]        wait\n"
            "      --working-dir string   directory (default \"/root\")\n");
}

TEST(Flags, AValueMayHaveANameInsteadOfAType) {
  EXPECT_EQ(flag_usages({{.name = "data", .help = "where it is kept", .value_name = "FOLDER"}}),
            "      --data FOLDER   where it is kept\n");
}

}  // namespace
}  // namespace muster::command
