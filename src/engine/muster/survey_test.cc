// What a waiting gang is told about the nodes, after few of many have changed.
#include <gtest/gtest.h>

#include "engine/test_world.h"

namespace muster::engine {
namespace {

using namespace test;

constexpr int kNodes = 400;

/// All nodes are full, and one pod of the largest size waits.
class Full {
 public:
  Full() {
    for (int i = 0; i < kNodes; ++i) {
      e.apply(NodeUpsert{node(fmt::format("n{}", i), 8)});
      e.apply(PodUpsert{running(pod(fmt::format("d/small-{}", i), 1), fmt::format("n{}", i))});
      e.apply(PodUpsert{running(pod(fmt::format("d/large-{}", i), 7), fmt::format("n{}", i))});
    }
    e.apply(PodUpsert{pod("d/waits", 8)});
    decide();
  }
  void decide() {
    now = now + std::chrono::seconds(2);
    (void)e.decide(now);
  }

  Engine e{Config{}};
  Time now = kNow;
};

TEST(Survey, CostsWhatChangedAndNotWhatIsThere) {
  Full full;
  for (int i = 0; i < 20; ++i) {
    full.e.apply(PodRemove{fmt::format("d/small-{}", i)});
    const std::int64_t before = full.e.stats().node_checks;
    full.decide();
    // Another pod of the same kind asks, so that the story is told anew.
    full.e.apply(PodUpsert{pod(fmt::format("d/more-{}", i), 8)});
    full.decide();
    EXPECT_LT(full.e.stats().node_checks - before, 40) << i;
  }
}

TEST(Survey, SaysWhatTheNodesShow) {
  Full full;
  EXPECT_NE(
      why(full.e, "d/waits").find("0/400 nodes are available: 400 Insufficient nvidia.com/gpu"),
      std::string::npos)
      << why(full.e, "d/waits");
  EXPECT_NE(why(full.e, "d/waits").find("most free on one node 0"), std::string::npos);
  // The largest amount that is free comes, grows and goes again; a cordon is another cause.
  full.e.apply(PodRemove{"d/small-7"});
  full.decide();
  EXPECT_NE(why(full.e, "d/waits").find("most free on one node 1"), std::string::npos);
  full.e.apply(PodRemove{"d/large-9"});
  full.decide();
  EXPECT_NE(why(full.e, "d/waits").find("most free on one node 7"), std::string::npos);
  full.e.apply(PodUpsert{running(pod("d/again", 7), "n9")});
  Node cordoned = node("n7", 8);
  cordoned.unschedulable = true;
  full.e.apply(NodeUpsert{cordoned});
  full.decide();
  const std::string told = why(full.e, "d/waits");
  EXPECT_NE(told.find("most free on one node 0"), std::string::npos) << told;
  EXPECT_NE(told.find("1 node(s) were unschedulable"), std::string::npos) << told;
  EXPECT_NE(told.find("399 Insufficient nvidia.com/gpu"), std::string::npos) << told;
  full.e.apply(NodeRemove{"n7"});
  full.decide();
  EXPECT_NE(why(full.e, "d/waits").find("0/399 nodes are available: 399 Insufficient"),
            std::string::npos)
      << why(full.e, "d/waits");
}

TEST(Survey, ACopySaysTheSame) {
  Full full;
  full.e.apply(PodRemove{"d/large-3"});
  full.decide();
  Engine copy = full.e.clone();
  full.e.apply(PodRemove{"d/large-4"});
  copy.apply(PodRemove{"d/large-4"});
  full.decide();
  (void)copy.decide(full.now);
  EXPECT_EQ(why(copy, "d/waits"), why(full.e, "d/waits"));
  EXPECT_EQ(copy.digest(), full.e.digest());
}

}  // namespace
}  // namespace muster::engine
