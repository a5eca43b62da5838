#include "base/gate.h"

#include <gtest/gtest.h>

#include "base/test_turns.h"
#include "net/loop/loop.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Task<void> work_until_closed(Gate& gate, Signal& wake, int& ended) {
  const Gate::Pass pass(gate);
  const Gate::Sleeper sleeper(gate, wake);
  while (!gate.closed()) co_await wake.wait(Duration::zero());
  ++ended;
}

TEST(Gate, ClosingWakesWhatSleepsAndWaitsForItsEnd) {
  net::Loop loop;
  int ended = 0;
  bool empty = false;
  loop.run_until_done([](net::Loop& l, int& e, bool& is_empty) -> Task<void> {
    Gate gate(l);
    const auto first = l.make_signal();
    const auto second = l.make_signal();
    l.spawn(work_until_closed(gate, *first, e));
    l.spawn(work_until_closed(gate, *second, e));
    co_await turns(l, 1);  // both have begun: they were posted before
    EXPECT_EQ(gate.inside(), 2U);
    gate.close();
    is_empty = co_await gate.wait_empty(Duration::zero());
  }(loop, ended, empty));
  EXPECT_TRUE(empty);
  EXPECT_EQ(ended, 2);
}

TEST(Gate, WhoComesLateToAClosedGateIsWokenAtOnce) {
  net::Loop loop;
  int ended = 0;
  loop.run_until_done([](net::Loop& l, int& e) -> Task<void> {
    Gate gate(l);
    gate.close();
    const auto wake = l.make_signal();
    const Gate::Sleeper sleeper(gate, *wake);
    const bool woken = co_await wake->wait(seconds(10));
    EXPECT_TRUE(woken);
    const auto late = l.make_signal();
    co_await work_until_closed(gate, *late, e);
  }(loop, ended));
  EXPECT_EQ(ended, 1);
}

TEST(Gate, WhoDoesNotLeaveIsWaitedForOnlySoLong) {
  net::Loop loop;
  loop.run_until_done([](net::Loop& l) -> Task<void> {
    Gate gate(l);
    gate.enter();
    gate.close();
    const bool empty = co_await gate.wait_empty(milliseconds(5));
    EXPECT_FALSE(empty);
    EXPECT_EQ(gate.inside(), 1U);
    const auto leaves = l.after(milliseconds(1), [&gate] { gate.leave(); });
    const bool later = co_await gate.wait_empty(Duration::zero());
    EXPECT_TRUE(later);
  }(loop));
}

}  // namespace
}  // namespace muster
