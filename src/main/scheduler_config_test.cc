#include "main/scheduler_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace muster {
namespace {

/// A file in a folder of its own, gone with the test.
class TheFile {
 public:
  TheFile() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "muster-config-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~TheFile() { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ + "/scheduler.yaml"; }
  /// As a whole, as a ConfigMap's volume does it.
  void write(const std::string& text) const {
    std::ofstream(path() + ".new") << text;
    std::filesystem::rename(path() + ".new", path());
  }

 private:
  std::string folder_;
};

const std::string kTiers = "tiers:\n- plugins:\n  - name: priority\n  - name: gang\n";

TEST(SchedulerConfigFile, SaysWhatIsNewAndNothingTwice) {
  const TheFile on_disk;
  on_disk.write("actions: \"enqueue, allocate\"\n" + kTiers);
  scheduler::ConfigFile file(on_disk.path(), parse_scheduler_config, /*optional=*/false);
  const auto first = file.look();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->engine.volcano.actions, (std::vector<std::string>{"enqueue", "allocate"}));
  EXPECT_FALSE(file.look());

  on_disk.write("actions: \"enqueue, allocate, backfill\"\n" + kTiers);
  const auto second = file.look();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->engine.volcano.actions.size(), 3U);
  EXPECT_FALSE(file.look());
}

TEST(SchedulerConfigFile, SaysOnceWhatIsWrongAndThenTakesTheNextGoodOne) {
  const TheFile on_disk;
  const std::string good = "actions: \"enqueue, allocate\"\n" + kTiers;
  on_disk.write(good);
  scheduler::ConfigFile file(on_disk.path(), parse_scheduler_config, /*optional=*/false);
  (void)file.look();

  on_disk.write("actions: \"enqueue, conquer\"\n" + kTiers);
  const auto wrong = file.look();
  ASSERT_TRUE(wrong);
  ASSERT_FALSE(*wrong);
  EXPECT_NE(wrong->error().message.find("conquer"), std::string::npos) << wrong->error().message;
  EXPECT_FALSE(file.look());

  std::filesystem::remove(on_disk.path());
  const auto gone = file.look();
  ASSERT_TRUE(gone);
  EXPECT_FALSE(*gone);
  EXPECT_FALSE(file.look());

  on_disk.write(good);
  const auto again = file.look();
  ASSERT_TRUE(again);
  EXPECT_TRUE(*again);
}

TEST(SchedulerConfig, IsVolcanosOrAPolicyOfOurOwn) {
  const auto volcano = parse_scheduler_config("actions: allocate\n" + kTiers);
  ASSERT_TRUE(volcano) << volcano.error().message;
  EXPECT_EQ(volcano->engine.policy, engine::PolicyKind::kVolcano);
  const auto own = parse_scheduler_config(
      "placement: spread\nbackfill: fifo\nreservations: 3\npatience: 1m\ndrf: true\npreemptAcrossQueues: false\n");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->engine.policy, engine::PolicyKind::kMuster);
  EXPECT_EQ(own->engine.placement, engine::PlacementRule::kSpread);
  EXPECT_EQ(own->backfill, engine::BackfillMode::kFifo);
  EXPECT_EQ(own->engine.reservations, 3);
  EXPECT_EQ(own->engine.patience, std::chrono::minutes(1));
  EXPECT_TRUE(own->engine.drf);
  EXPECT_FALSE(own->engine.preempt_across_queues);
  const auto one_of_a_list =
      parse_scheduler_config("policies:\n- name: spread-out\n  placement: spread\n");
  ASSERT_TRUE(one_of_a_list) << one_of_a_list.error().message;
  EXPECT_EQ(one_of_a_list->engine.placement, engine::PlacementRule::kSpread);
}

TEST(SchedulerConfig, SaysWhatACallerCanDoAboutIt) {
  const auto message = [](const std::string& text) {
    const auto parsed = parse_scheduler_config(text);
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_EQ(message("plcement: spread\n"),
            "policy: unknown key \"plcement\" (did you mean \"placement\"?)");
  EXPECT_EQ(message("placement: random\n"),
            "policy.placement: wanted one of pack, spread, fragmentation, found \"random\"");
  EXPECT_EQ(message("placement: pack\nresume: true\n"),
            "policy.resume: is for `muster sim` only; remove it");
  EXPECT_EQ(
      message("queues: [{name: a}]\n"),
      "policy.queues: the queues of a cluster are its Queue objects; remove it and `kubectl apply` those");
  EXPECT_EQ(message("policies: [{name: a}, {name: b}]\n"),
            "policies: a cluster has one policy, found 2; keep the one to run");
  EXPECT_EQ(
      message("just words\n"),
      "wanted Volcano's \"actions\" and \"tiers\", or keys of Muster's own policy such as \"placement: spread\"");
  EXPECT_EQ(
      message(""),
      "wanted Volcano's \"actions\" and \"tiers\", or keys of Muster's own policy such as \"placement: spread\"");
}

}  // namespace
}  // namespace muster
