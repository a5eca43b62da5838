#include "kube/pod_end.h"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

TEST(HowPodsEnded, SaysCodeSignalReasonAndLastLine) {
  const auto said = [](std::string_view status) {
    return how_pod_ended(*json::parse("{\"status\":" + std::string(status) + "}"));
  };
  const auto ended = [&](std::string_view end) {
    return said(R"({"containerStatuses":[{"state":{"terminated":)" + std::string(end) + "}}]}");
  };
  EXPECT_EQ(ended(R"({"exitCode":3,"reason":"Error"})"), "exit code 3");
  EXPECT_EQ(ended(R"({"exitCode":137,"reason":"OOMKilled"})"), "killed by signal 9 (OOMKilled)");
  EXPECT_EQ(ended(R"({"exitCode":1,"message":"one\ntwo\n"})"), "exit code 1: two");
  EXPECT_EQ(ended(R"({"exitCode":0,"reason":"Completed"})"), "");
  EXPECT_EQ(said(R"({"reason":"Evicted","message":"memory"})"), "Evicted: memory");
  EXPECT_EQ(said(R"({"containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}},
                     "lastState":{"terminated":{"exitCode":2}}}]})"),
            "exit code 2");
}

}  // namespace
}  // namespace muster::kube
