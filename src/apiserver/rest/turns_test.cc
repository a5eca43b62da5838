#include "apiserver/rest/turns.h"

#include <gtest/gtest.h>

#include <optional>

#include "net/loop/loop.h"

namespace muster::apiserver {
namespace {

struct Waiters {
  explicit Waiters(Duration patience = std::chrono::hours(1)) : turns(loop, patience) {}
  net::Loop loop;
  Turns turns;
  int gone = 0;

  static Task<void> one(Waiters& all) {
    co_await all.turns.wait();
    ++all.gone;
  }
  /// Spawns some and lets them come to their wait.
  static Task<void> spawn(Waiters& all, int count) {
    for (int i = 0; i < count; ++i) all.loop.spawn(one(all));
    co_await all.settle();
  }
  Task<void> settle() {
    const auto turn = loop.make_signal();
    for (int i = 0; i < 4; ++i) {
      loop.post([&turn] { turn->notify(); });
      co_await turn->wait(Duration::zero());
    }
  }
};

TEST(Turns, NobodyWaitsWhileNobodyElseWrites) {
  Waiters all;
  all.loop.run_until_done([](Waiters& it) -> Task<void> {
    co_await Waiters::spawn(it, 3);
    EXPECT_EQ(it.gone, 3);
  }(all));
}

TEST(Turns, AllGoWhenTheLastOtherWriteEnds) {
  Waiters all;
  all.loop.run_until_done([](Waiters& it) -> Task<void> {
    std::optional<Turns::First> a(std::in_place, it.turns), b(std::in_place, it.turns);
    co_await Waiters::spawn(it, 3);
    EXPECT_EQ(it.gone, 0);
    a.reset();
    co_await it.settle();
    EXPECT_EQ(it.gone, 0);
    b.reset();
    co_await it.settle();
    EXPECT_EQ(it.gone, 3);
  }(all));
}

TEST(Turns, UnderUnendingWritesOneInSixtyFourGoes) {
  Waiters all;
  all.loop.run_until_done([](Waiters& it) -> Task<void> {
    const Turns::First unending(it.turns);
    co_await Waiters::spawn(it, 3);
    for (int i = 0; i < 128; ++i) const Turns::First other(it.turns);
    co_await it.settle();
    EXPECT_EQ(it.gone, 2);
  }(all));
}

TEST(Turns, WhoHasWaitedLongGoesAfterEachOther) {
  Waiters all(Duration::zero());
  all.loop.run_until_done([](Waiters& it) -> Task<void> {
    const Turns::First unending(it.turns);
    co_await Waiters::spawn(it, 3);
    EXPECT_EQ(it.gone, 0);
    for (int i = 0; i < 2; ++i) const Turns::First other(it.turns);
    co_await it.settle();
    EXPECT_EQ(it.gone, 2);
  }(all));
}

}  // namespace
}  // namespace muster::apiserver
