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
  return make_row({.facts = facts, .object = &object, .group = &group, .tasks = by_name}, words);
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

TEST(Rows, WhatHasNoPodsYetIsAsUrgentAsItsClassSays) {
  JobFacts facts;
  facts.kind = JobKind::kJob;
  facts.name = facts.id = "x";
  facts.prio_class = "urgent";
  facts.suspended = true;
  const json::Value object = json::Object{};
  Words words;
  std::map<std::string, TaskFacts> tasks;
  const auto number = [&] {
    return make_row({.facts = facts, .object = &object, .tasks = tasks, .class_number = 1000},
                    words)
        .keys.prio;
  };
  EXPECT_EQ(number(), 1000);
  tasks["x-0"] = task("main", TaskState::kWaiting, "");
  tasks["x-0"].prio = 500;  // as it was when the pod was made
  EXPECT_EQ(number(), 500);
}

TEST(Rows, APlaceInLineIsToldBeforeTheReasonIs) {
  Table table;
  Texts texts;
  texts.id = texts.name = "x";
  const Slot slot = table.add({.state = State::kWaiting}, texts);
  std::string known, unknown;
  append_row(known, table, slot, {.place = 3, .start = 7});
  append_row(unknown, table, slot, {});
  EXPECT_NE(known.find(R"("place":3,"ahead":2,"start":7)"), std::string::npos) << known;
  EXPECT_NE(unknown.find(R"("wait":null)"), std::string::npos) << unknown;
}

TEST(Rows, WithoutANodeTheGroupSaysWhy) {
  EXPECT_EQ(row_of({task("main", TaskState::kWaiting, "")}).texts.wait.text, "full");
}

}  // namespace
}  // namespace muster::portal
