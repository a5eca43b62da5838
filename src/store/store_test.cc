#include "store/store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "net/loop/loop.h"

namespace muster::store {
namespace {

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-store-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/store.db";
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }

  void open(const std::string& path) {
    auto made = store::open(loop_, path);
    ASSERT_TRUE(made) << made.error().message;
    store_ = std::move(*made);
  }
  void close() {
    loop_.run_until_done([](Store& s) -> Task<void> { co_await s.close(); }(*store_));
    store_.reset();
  }
  Result<void> put(const std::string& key, const std::string& value, bool deleted = false) {
    std::optional<Result<void>> result;
    store_->write(key, std::make_shared<const std::string>(value), deleted, [&](Result<void> r) {
      result = std::move(r);
      changed_->notify();
    });
    wait([&] { return result.has_value(); });
    return *result;
  }
  void wait(std::function<bool()> done) {
    loop_.run_until_done([](Signal& changed, std::function<bool()> d) -> Task<void> {
      bool heard = true;
      while (heard && !d()) heard = co_await changed.wait(std::chrono::seconds(10));
      EXPECT_TRUE(d());
    }(*changed_, std::move(done)));
  }
  std::string dump() {
    std::string text;
    const auto loaded = store_->load([&](Record record) {
      text += record.key + "=" + *record.value + "@" + std::to_string(record.revision) + " ";
    });
    EXPECT_TRUE(loaded);
    return text;
  }
  std::string changes(Revision after, std::size_t limit = 1000) {
    const auto all = store_->changes_after(after, limit);
    if (!all) return "error " + all.error().message;
    std::string text;
    for (const auto& c : *all)
      text += std::to_string(c.revision) + (c.deleted ? "-" : "+") + c.key + "=" + *c.value + " ";
    return text;
  }

  net::Loop loop_;
  std::unique_ptr<Signal> changed_ = loop_.make_signal();
  std::string folder_, path_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, KeepsRecordsAndHistory) {
  for (const auto& path : {path_, std::string(":memory:")}) {
    open(path);
    EXPECT_EQ(store_->revision(), 0u);
    EXPECT_EQ(store_->next_revision(), 1u);
    EXPECT_TRUE(put("/b", "1"));
    EXPECT_TRUE(put("/a", "2"));
    EXPECT_TRUE(put("/b", "3"));
    EXPECT_TRUE(put("/a", "4", /*deleted=*/true));
    EXPECT_TRUE(put("/c", ""));
    EXPECT_EQ(store_->revision(), 5u);
    EXPECT_EQ(dump(), "/b=3@3 /c=@5 ");
    EXPECT_EQ(changes(0), "1+/b=1 2+/a=2 3+/b=3 4-/a=4 5+/c= ");
    EXPECT_EQ(changes(3), "4-/a=4 5+/c= ");
    EXPECT_EQ(changes(1, 2), "2+/a=2 3+/b=3 ");
    EXPECT_EQ(changes(5), "");
    close();
  }
}

TEST_F(StoreTest, RemembersAcrossReopen) {
  open(path_);
  EXPECT_TRUE(put("/a", "1"));
  EXPECT_TRUE(put("/b", "2"));
  EXPECT_TRUE(put("/b", "3", /*deleted=*/true));
  close();
  open(path_);
  EXPECT_EQ(store_->revision(), 3u);
  EXPECT_EQ(store_->next_revision(), 4u);
  EXPECT_EQ(dump(), "/a=1@1 ");
  EXPECT_EQ(changes(1), "2+/b=2 3-/b=3 ");
  close();
}

TEST_F(StoreTest, CountsOnAfterCompactionOfTheNewestRevision) {
  open(path_);
  EXPECT_TRUE(put("/a", "1"));
  EXPECT_TRUE(put("/a", "2", /*deleted=*/true));
  store_->compact(2);
  close();
  open(path_);
  EXPECT_EQ(store_->next_revision(), 3u);
  EXPECT_EQ(dump(), "");
  close();
}

TEST_F(StoreTest, CompactionForgetsHistoryButNoLiveRecord) {
  open(path_);
  EXPECT_TRUE(put("/a", "1"));
  EXPECT_TRUE(put("/b", "2"));
  EXPECT_TRUE(put("/b", "3"));
  EXPECT_TRUE(put("/c", "4"));
  EXPECT_TRUE(put("/c", "5", /*deleted=*/true));
  store_->compact(4);
  EXPECT_EQ(store_->compacted(), 4u);
  EXPECT_EQ(changes(3), "error too old resource version: 3 (4)");
  EXPECT_EQ(changes(4), "5-/c=5 ");
  EXPECT_TRUE(put("/a", "6"));  // supersedes a row that compaction had kept
  EXPECT_EQ(dump(), "/a=6@6 /b=3@3 ");
  close();
  open(path_);
  EXPECT_EQ(store_->compacted(), 4u);
  EXPECT_EQ(dump(), "/a=6@6 /b=3@3 ");
  EXPECT_EQ(changes(4), "5-/c=5 6+/a=6 ");
  store_->compact(1000);  // no further than what is durable
  EXPECT_EQ(store_->compacted(), 6u);
  EXPECT_EQ(dump(), "/a=6@6 /b=3@3 ");
  close();
}

TEST_F(StoreTest, AnswersInRevisionOrderAndSharesCommits) {
  open(path_);
  constexpr int kCount = 20'000;
  std::vector<Revision> answered;
  const auto value = std::make_shared<const std::string>(500, 'x');
  const auto begun = loop_.monotonic();
  for (int i = 0; i < kCount; ++i) {
    const auto want = store_->next_revision();
    const auto got = store_->write(
        "/k/" + std::to_string(i % 1000), value, false, [this, &answered, want](Result<void> r) {
          EXPECT_TRUE(r);
          answered.push_back(want);
          changed_->notify();
        });
    EXPECT_EQ(got, want);
  }
  wait([&] { return answered.size() == kCount; });
  const auto took = loop_.monotonic() - begun;
  RecordProperty("writes_per_s",
                 static_cast<int>(kCount * 1'000'000LL / std::max<std::int64_t>(1, took.count())));
  EXPECT_TRUE(std::is_sorted(answered.begin(), answered.end()));
  EXPECT_EQ(store_->revision(), static_cast<Revision>(kCount));
  close();
}

TEST_F(StoreTest, CloseWaitsForQueuedWrites) {
  open(path_);
  int answered = 0;
  for (int i = 0; i < 100; ++i) {
    store_->write("/k" + std::to_string(i),
                  std::make_shared<const std::string>("v"),
                  false,
                  [&](Result<void> r) { answered += r ? 1 : 0; });
  }
  close();
  EXPECT_EQ(answered, 100);
  open(path_);
  EXPECT_EQ(store_->revision(), 100u);
  close();
}

TEST_F(StoreTest, RefusesASecondHolderAndBadPaths) {
  open(path_);
  const auto second = store::open(loop_, path_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("held by another process"), std::string::npos)
      << second.error().message;
  const auto nowhere = store::open(loop_, folder_ + "/no/such/folder/x.db");
  EXPECT_FALSE(nowhere);
  close();
  std::ofstream(folder_ + "/junk.db") << std::string(5000, 'j');
  const auto junk = store::open(loop_, folder_ + "/junk.db");
  EXPECT_FALSE(junk);
}

/// Files of this process cannot grow past a limit: writes fail as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(StoreTest, AfterAFullDiskEveryWriteFailsUntilReopened) {
  open(path_);
  EXPECT_TRUE(put("/a", "1"));
  Revision kept = 0;
  {
    const FullDisk full(200'000);
    Result<void> result;
    int tries = 0;
    while (result && ++tries < 1000) {
      kept = store_->revision();
      result = put("/big", std::string(20'000, 'x'));
    }
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kUnavailable);
    EXPECT_EQ(store_->revision(), kept);
  }
  EXPECT_FALSE(put("/c", "3"))
      << "there is room again, but the store must not pretend that nothing happened";
  close();
  open(path_);
  EXPECT_EQ(dump().substr(0, 7), "/a=1@1 ");
  EXPECT_GT(store_->next_revision(), kept + 2);
  EXPECT_TRUE(put("/c", "4"));
  close();
}

}  // namespace
}  // namespace muster::store
