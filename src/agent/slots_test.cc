#include "agent/slots.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/test_turns.h"
#include "net/loop/loop.h"

namespace muster::agent {
namespace {

class SlotsTest : public testing::Test {
 protected:
  /// Takes a slot, says so, keeps it until told.
  Task<void> visit(int number) {
    auto slot = co_await slots.take();
    came.push_back(number);
    changed->notify();
    while (!leave) co_await may_leave->wait(Duration::zero());
    slot.release();
    ++left;
    changed->notify();
  }
  Task<void> until(std::size_t count) {
    while (came.size() < count) co_await changed->wait(Duration::zero());
  }

  net::Loop loop;
  Slots slots{loop, 2};
  std::unique_ptr<Signal> changed = loop.make_signal();
  std::unique_ptr<Signal> may_leave = loop.make_signal();
  std::vector<int> came;
  int left = 0;
  bool leave = false;
};

TEST_F(SlotsTest, ThoseWhoWaitAreServedInOrder) {
  const auto body = [this]() -> Task<void> {
    auto first = co_await slots.take();
    auto second = co_await slots.take();
    for (int i = 0; i < 3; ++i) loop.spawn(visit(i));
    co_await turns(loop, 10);
    EXPECT_TRUE(came.empty()) << "more at a time than there are slots";
    first.release();
    first.release();  // given back once
    co_await until(1);
    co_await turns(loop, 10);
    EXPECT_EQ(came, std::vector<int>{0});
    second.release();
    leave = true;
    may_leave->notify();
    co_await until(3);
    EXPECT_EQ(came, (std::vector<int>{0, 1, 2}));
  };
  loop.run_until_done(body());
}

TEST_F(SlotsTest, AtTheEndNobodyWaits) {
  const auto body = [this]() -> Task<void> {
    const auto first = co_await slots.take();
    const auto second = co_await slots.take();
    leave = true;
    loop.spawn(visit(0));
    co_await turns(loop, 10);
    EXPECT_TRUE(came.empty());
    slots.close();
    co_await until(1);
    loop.spawn(visit(1));
    co_await until(2);
  };
  loop.run_until_done(body());
}

}  // namespace
}  // namespace muster::agent
