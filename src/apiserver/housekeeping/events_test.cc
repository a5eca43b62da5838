#include "apiserver/housekeeping/events.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/server.h"
#include "client/client.h"
#include "kube/meta.h"
#include "net/loop/loop.h"
#include "store/store.h"

namespace muster::apiserver {
namespace {

const Time kBegin = Time::from_seconds(1'700'000'000);

TEST(HistoryMarks, ForgetsWhatIsOlderThanFiveMinutes) {
  HistoryMarks marks;
  for (int i = 0; i <= 40; ++i)
    marks.note(kBegin + std::chrono::seconds(10 * i), static_cast<Revision>(100 + i), 0);
  EXPECT_EQ(marks.take_forgettable(), 109U);  // 310 s ago
  EXPECT_EQ(marks.take_forgettable(), 0U) << "once";
}

TEST(HistoryMarks, ForgetsWhatIsTooMuchHoweverNew) {
  HistoryMarks many;
  many.note(kBegin, 1, 0);
  many.note(kBegin + std::chrono::seconds(1), 50'000, 0);
  many.note(kBegin + std::chrono::seconds(2), 110'000, 0);
  EXPECT_EQ(many.take_forgettable(), 1U);
  HistoryMarks large;
  large.note(kBegin, 1, 0);
  large.note(kBegin + std::chrono::seconds(1), 2, 30 << 20);
  large.note(kBegin + std::chrono::seconds(2), 3, 90 << 20);
  EXPECT_EQ(large.take_forgettable(), 1U);
}

json::Value event(int number) {
  return json::Object{
      {"metadata", json::Object{{"name", fmt::format("e{:06}", number)}}},
      {"involvedObject", json::Object{{"kind", "Pod"}, {"namespace", "default"}, {"name", "p"}}},
      {"reason", "Tested"},
      {"lastTimestamp", format_time(Time::from_seconds(4'000'000'000 + number))}};
}

/// All at once, as a flood is; the store takes so many in one go.
Task<void> flood(net::Loop& loop, client::Client& client, int count) {
  int left = 0;
  const auto done = loop.make_signal();
  for (int i = 0; i < count; ++i) {
    ++left;
    client::Post post{client::resources::kEvents, "default", "", "", event(i), ""};
    client.submit(std::move(post), [&](const Result<void>& made) {
      EXPECT_TRUE(made) << (made ? "" : made.error().message);
      --left;
      done->notify();
    });
    while (left >= 1000) co_await done->wait(Duration::zero());
  }
  while (left > 0) co_await done->wait(Duration::zero());
  client::ListOptions first;
  first.limit = 1;
  client::List listed;
  for (int looks = 0; looks < 2'000; ++looks) {
    const auto page = co_await client.list(client::resources::kEvents, first);
    EXPECT_TRUE(page);
    if (page) listed = *page;
    if (kube::name_of(listed.items.at(0)) == fmt::format("e{:06}", count - 10'000)) co_return;
    co_await loop.sleep(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "the oldest are still there: " << kube::name_of(listed.items.at(0));
}

TEST(Events, TheNewestTenThousandAreKept) {
  net::Loop loop;
  auto store = store::open(loop, ":memory:");
  ASSERT_TRUE(store);
  Server server(loop, **store, ServerOptions{.ca_pem = "none"});
  loop.run_until_done([](net::Loop& on, Server& with, store::Store& kept) -> Task<void> {
    const auto started = co_await with.start();
    EXPECT_TRUE(started);
    {
      const auto client = with.make_client("system:muster");
      co_await flood(on, *client, 10'150);
    }
    co_await with.stop();
    co_await kept.close();
  }(loop, server, **store));
}

}  // namespace
}  // namespace muster::apiserver
