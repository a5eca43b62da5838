#include "main/scheduler_config_live.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace muster {
namespace {

/// A file in a folder of its own, gone with the test.
class TheFile {
 public:
  TheFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-config-XXXXXX").string();
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
  SchedulerConfigFile file(on_disk.path());
  const auto first = file.look();
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->actions, (std::vector<std::string>{"enqueue", "allocate"}));
  EXPECT_FALSE(file.look());

  on_disk.write("actions: \"enqueue, allocate, backfill\"\n" + kTiers);
  const auto second = file.look();
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->actions.size(), 3U);
  EXPECT_FALSE(file.look());
}

TEST(SchedulerConfigFile, SaysOnceWhatIsWrongAndThenTakesTheNextGoodOne) {
  const TheFile on_disk;
  const std::string good = "actions: \"enqueue, allocate\"\n" + kTiers;
  on_disk.write(good);
  SchedulerConfigFile file(on_disk.path());
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

}  // namespace
}  // namespace muster
