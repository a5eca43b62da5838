#include "answers/live/lateness.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "net/loop/loop.h"

namespace muster::answers {
namespace {

using namespace std::chrono_literals;

TEST(Lateness, AWorkerHearsThatTheLoopIsHeld) {
  net::Loop loop;
  Lateness lateness(loop);
  std::atomic<bool> seen = false;
  const auto begun = std::chrono::steady_clock::now();
  const auto in_time = [begun] { return std::chrono::steady_clock::now() - begun < 10s; };
  loop.offload(
      [&] {
        while (!seen && in_time()) {
          if (lateness.late()) seen = true;
          std::this_thread::sleep_for(1ms);
        }
      },
      [&] { loop.stop(); });
  loop.post([&] {  // keeps everything else waiting
    while (!seen && in_time()) std::this_thread::sleep_for(1ms);
  });
  loop.run();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(lateness.late()) << "it has caught up";
}

}  // namespace
}  // namespace muster::answers
