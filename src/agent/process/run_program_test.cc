#include "agent/process/run_program.h"

#include <gtest/gtest.h>

#include <chrono>

namespace muster::agent::process {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RunProgram, PrintsWhatItWasGiven) {
  const std::string much(300'000, 'x');  // more than a pipe holds
  const auto printed = run_program({"cat"}, much, seconds(30));
  ASSERT_TRUE(printed) << printed.error().message;
  EXPECT_EQ(*printed, much);
}

TEST(RunProgram, SaysWhatItSaidWhenItFails) {
  const auto printed = run_program({"sh", "-c", "echo no >&2; exit 3"}, "", seconds(30));
  ASSERT_FALSE(printed);
  EXPECT_EQ(printed.error().message, "sh: no");
  EXPECT_FALSE(run_program({"no-such-program-here"}, "", seconds(30)));
}

TEST(RunProgram, OneThatHangsIsKilledWithWhatItStarted) {
  const auto begun = std::chrono::steady_clock::now();
  // The input is larger than a pipe, and nobody reads it.
  const auto printed = run_program(
      {"sh", "-c", "sleep 100 & sleep 100"}, std::string(300'000, 'x'), milliseconds(200));
  ASSERT_FALSE(printed);
  EXPECT_EQ(printed.error().code, Code::kTimeout);
  EXPECT_EQ(printed.error().message, "sh did not end within 0.2 s and was killed");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(50));
}

}  // namespace
}  // namespace muster::agent::process
