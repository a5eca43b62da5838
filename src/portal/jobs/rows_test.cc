#include "portal/jobs/rows.h"

#include <gtest/gtest.h>

namespace muster::portal {
namespace {

TaskFacts task(const std::string& role, TaskState state, const std::string& reason) {
  TaskFacts facts;
  facts.pod = role + "-0";
  facts.role = role;
  facts.state = state;
  facts.reason = reason;
  facts.node = state == TaskState::kWaiting ? "" : "n1";
  return facts;
}

RowParts row_of(const std::vector<TaskFacts>& tasks) {
  JobFacts facts;
  facts.kind = JobKind::kJob;
  facts.name = facts.id = "x";
  std::map<std::string, TaskFacts> by_name;
  for (const TaskFacts& one : tasks) by_name[one.pod] = one;
  Words words;
  const json::Value object = json::Object{};
  // Of an earlier time, when it had no nodes.
  const json::Value group = *json::parse(
      R"({"status":{"conditions":[{"type":"Unschedulable","status":"True","reason":"NoNodeFits","message":"full"}]}})");
  return make_row(facts, &object, &group, by_name, words);
}

TEST(Rows, WhatKeepsATaskWithANodeFromRunningIsSaid) {
  const RowParts parts =
      row_of({task("main", TaskState::kStarting, "Failed to create pod sandbox: no address")});
  EXPECT_EQ(parts.keys.phase, Phase::kStarting);
  EXPECT_EQ(parts.texts.wait.reason, "Starting");
  EXPECT_EQ(parts.texts.wait.text, "Failed to create pod sandbox: no address");
}

TEST(Rows, OfSeveralItIsSaidWhichOne) {
  const RowParts parts = row_of({task("main", TaskState::kStarting, ""),
                                 task("worker", TaskState::kStarting, "ErrImagePull: no such")});
  EXPECT_EQ(parts.texts.wait.text, "worker-0: ErrImagePull: no such");
}

TEST(Rows, WhatStartsWithoutTroubleSaysNothing) {
  EXPECT_EQ(row_of({task("main", TaskState::kStarting, "")}).texts.wait.text, "");
}

TEST(Rows, WithoutANodeTheGroupSaysWhy) {
  EXPECT_EQ(row_of({task("main", TaskState::kWaiting, "")}).texts.wait.text, "full");
}

}  // namespace
}  // namespace muster::portal
