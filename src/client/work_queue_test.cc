#include "client/work_queue.h"

#include "base/test_turns.h"
#include "client/test_client.h"

namespace muster::client {
namespace {

TEST_F(ClientTest, WorkQueueWorksOnEachKeyOnceAndAgainWhenAddedMeanwhile) {
  std::map<std::string, int> done;
  int at_once = 0, most = 0;
  WorkQueue* self = nullptr;
  WorkQueueOptions options;
  options.workers = 2;
  const auto queue = make_work_queue(
      loop_,
      [&](std::string key) -> Task<Result<void>> {
        most = std::max(most, ++at_once);
        if (done[key]++ == 0 && key == "again") self->add(key);
        co_await turns(loop_, 10);
        --at_once;
        co_return Result<void>{};
      },
      options);
  self = queue.get();
  for (const auto* key : {"a", "b", "a", "again", "c", "a"}) queue->add(key);
  queue->start();
  run([&]() -> Task<void> {
    const auto ok = co_await until([&] { return queue->idle(); });
    EXPECT_TRUE(ok);
    co_await queue->stop();
  });
  EXPECT_EQ(done, (std::map<std::string, int>{{"a", 1}, {"again", 2}, {"b", 1}, {"c", 1}}));
  EXPECT_EQ(most, 2);
}

TEST_F(ClientTest, WorkQueueBacksOffAndDelays) {
  std::vector<Duration> at;
  const auto queue = make_work_queue(
      loop_,
      [&](std::string) -> Task<Result<void>> {
        at.push_back(loop_.monotonic());
        if (at.size() < 4) co_return fail(Code::kConflict, "not yet");
        co_return Result<void>{};
      },
      WorkQueueOptions{});
  queue->start();
  queue->add_after("k", 10ms);
  queue->add_after("k", 50ms);
  run([&]() -> Task<void> {
    const auto ok = co_await until([&] { return at.size() == 4 && queue->idle(); });
    EXPECT_TRUE(ok);
    co_await queue->stop();
  });
  ASSERT_EQ(at.size(), 4u);
  EXPECT_GE(at[1] - at[0], 5ms);
  EXPECT_GE(at[2] - at[1], 10ms);
  EXPECT_GE(at[3] - at[2], 20ms);
}

}  // namespace
}  // namespace muster::client
