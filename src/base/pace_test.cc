#include "base/pace.h"

#include <gtest/gtest.h>

#include <string>

#include "net/loop/loop.h"

namespace muster {
namespace {

Task<void> work(Slices& slices, char name, int count, std::string& done) {
  for (int i = 0; i < count; ++i) {
    co_await slices.turn();
    done += name;
  }
}

TEST(Slices, ThoseWhoWorkTakeTurns) {
  net::Loop loop;
  Slices slices(loop);
  std::string done;
  loop.spawn(work(slices, 'a', 3, done));
  loop.spawn(work(slices, 'b', 3, done));
  loop.run_until_done(work(slices, 'c', 3, done));
  EXPECT_EQ(done, "abcabcabc");
}

/// However much work there is, whoever comes in between waits for a slice or two, not for one of each.
TEST(Slices, OneIsDoneInATurnOfTheLoop) {
  net::Loop loop;
  Slices slices(loop);
  std::string done;
  for (int i = 0; i < 64; ++i) loop.spawn(work(slices, 'w', 4, done));
  loop.run_until_done([](net::Loop& on, std::string& all) -> Task<void> {
    const auto turn = on.make_signal();
    std::size_t most = 0;
    for (std::size_t before = 0; all.size() < 256; before = all.size()) {
      on.post([&turn] { turn->notify(); });
      co_await turn->wait(Duration::zero());
      most = std::max(most, all.size() - before);
    }
    EXPECT_LE(most, 3U);
  }(loop, done));
}

}  // namespace
}  // namespace muster
