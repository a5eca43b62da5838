#include "answers/records/past_runs.h"

#include <gtest/gtest.h>

#include "engine/test_world.h"

namespace muster::answers {
namespace {

using engine::Engine;
using engine::test::kNow;
using namespace std::chrono_literals;

Run ran(Time start, Duration lasted, std::string how) {
  Run run;
  run.start = start;
  run.end = start + lasted;
  run.milli = 8000;
  run.how = std::move(how);
  return run;
}

Record of_ann() {
  Record record;
  record.user = "ann";
  record.stem = "train";
  record.queue = "default";
  return record;
}

TEST(PastRuns, AreThoseThatWereOverAndSayHow) {
  Record record = of_ann();
  record.declared = 2h;
  record.model = "H100";  // One that it got, not one that it asked for.
  for (const char* how : {"evicted", "lost", "stopped", "failed", "succeeded"})
    record.runs.push_back(ran(kNow, 1h, how));
  record.runs.push_back(ran(kNow + 1h, 1h, "succeeded"));
  record.runs.emplace_back().start = kNow + 3h;  // It goes on.
  const auto past = past_runs(record, kNow + 2h);
  ASSERT_EQ(past.size(), 5U);
  for (std::size_t i = 0; i < past.size(); ++i) {
    EXPECT_EQ(past[i].ended, i >= 2) << i;
    EXPECT_EQ(past[i].stopped, i == 2) << i;
    EXPECT_EQ(past[i].ran, 1h);
    EXPECT_EQ(past[i].declared, 2h);
    EXPECT_TRUE(past[i].models.empty());
  }
}

/// An engine that saw a run, and one that is told of it from a record, know the same of the next.
TEST(PastRuns, TeachWhatAnEngineThatSawThemKnows) {
  for (const bool asks_model : {false, true}) {
    Engine saw({}), told({});
    engine::Node node = engine::test::node("a", 8);
    for (int d = 0; d < 8; ++d) node.devices.push_back({d, "H100", true});
    saw.apply(engine::NodeUpsert{node});
    engine::Pod pod = engine::test::pod("d/train-1", 8);
    pod.origin = std::make_shared<const engine::Origin>("team", "other", "");
    if (asks_model) pod.device_models = {"A100", "H100"};
    saw.apply(engine::PodUpsert{pod});
    ASSERT_EQ(saw.decide(kNow).binds.size(), 1U);
    pod.finished = true;
    saw.apply(engine::PodUpsert{pod});
    (void)saw.decide(kNow + 40min);

    Record record = of_ann();
    record.pods_user = "team";
    record.pods_stem = "other";
    record.model = asks_model ? "A100,H100" : "H100";
    record.model_asked = asks_model;
    record.runs.push_back(ran(kNow, 40min, "failed"));
    for (const engine::PastRun& run : past_runs(record, kNow + 1h)) told.apply(run);

    pod.key = "d/train-2";
    pod.finished = false;
    saw.apply(engine::PodUpsert{pod});
    const auto seen = saw.history().levels(saw.gang(pod.key)->kind);
    const auto taught = told.history().levels(saw.gang(pod.key)->kind);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      ASSERT_NE(seen[i], engine::History::kNone) << i;
      ASSERT_NE(taught[i], engine::History::kNone) << "level " << i << " got another name";
      EXPECT_EQ(saw.history().ended(seen[i]).size(), 1U);
      EXPECT_EQ(saw.history().ended(seen[i])[0], told.history().ended(taught[i])[0]) << i;
    }
  }
}

}  // namespace
}  // namespace muster::answers
