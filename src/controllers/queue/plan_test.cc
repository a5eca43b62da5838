#include "controllers/queue/plan.h"

#include <gtest/gtest.h>

namespace muster::controllers::queue {
namespace {

json::Value make(const std::string& name,
                 const std::string& parent,
                 const std::string& state,
                 bool marked = false) {
  json::Value queue = json::Object{};
  json::make(queue, {"metadata", "name"}) = name;
  if (marked)
    json::make(queue, {"metadata", "annotations", "volcano.sh/closed-by-parent"}) = "true";
  if (!parent.empty()) json::make(queue, {"spec", "parent"}) = parent;
  if (!state.empty()) json::make(queue, {"status", "state"}) = state;
  return queue;
}

Counts groups(int running) {
  Counts counts;
  counts.add("Running", running);
  return counts;
}

TEST(Queue, OpensAndCloses) {
  const auto root = make("root", "", "Open");
  struct Case {
    const char* state;
    const char* action;
    int groups;
    const char* wanted;
  };
  for (const Case& c : {Case{"", "", 0, "Open"},
                        Case{"Open", "CloseQueue", 0, "Closed"},
                        Case{"Open", "CloseQueue", 2, "Closing"},
                        Case{"", "CloseQueue", 1, "Closing"},
                        Case{"Closing", "", 1, "Closing"},
                        Case{"Closing", "", 0, "Closed"},
                        Case{"Closed", "OpenQueue", 0, "Open"},
                        Case{"Closing", "OpenQueue", 3, "Open"},
                        Case{"Unknown", "OpenQueue", 0, "Open"},
                        Case{"Closed", "", 0, "Closed"}}) {
    const auto queue = make("q", "root", c.state);
    EXPECT_EQ(decide(queue, {&root, &queue}, groups(c.groups), c.action).state, c.wanted)
        << c.state << " " << c.action;
  }
}

TEST(Queue, TheRootStaysOpen) {
  const auto root = make("root", "", "Open");
  const Decision decision = decide(root, {&root}, groups(0), "CloseQueue");
  EXPECT_EQ(decision.state, "Open");
  EXPECT_EQ(decision.refused, "the root queue cannot be closed");
}

TEST(Queue, ChildrenFollowTheirParent) {
  const auto team = make("team", "root", "Open");
  const auto open = make("open", "team", "Open"), shut = make("shut", "team", "Closed"),
             other = make("other", "root", "Open");
  EXPECT_EQ(decide(team, {&team, &open, &shut, &other}, groups(0), "CloseQueue").close,
            std::vector<std::string>{"open"});

  const auto closed = make("team", "root", "Closed");
  const auto marked = make("open", "team", "Closed", true);
  EXPECT_EQ(decide(closed, {&closed, &marked, &shut}, groups(0), "OpenQueue").open,
            std::vector<std::string>{"open"});
  const Decision refused = decide(marked, {&closed, &marked}, groups(0), "OpenQueue");
  EXPECT_EQ(refused.state, "Closed");
  EXPECT_EQ(refused.refused, "its parent team is Closed");
}

}  // namespace
}  // namespace muster::controllers::queue
