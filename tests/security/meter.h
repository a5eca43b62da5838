/// How long a request keeps the loop from everybody else, measured in processor time of the loop's
/// thread, so that a busy machine changes little.
#pragma once

#include <time.h>

#include <chrono>

#include "security/cluster.h"

namespace muster::apiserver {

// What is aimed at is 20 ms on a machine of its own; a busy one shares its caches and takes more.
#if defined(MUSTER_SANITIZE) || __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr auto kHoldMax = std::chrono::milliseconds(2000);
#else
constexpr auto kHoldMax = std::chrono::milliseconds(50);
#endif

inline std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// Takes its turn on the loop again and again; the longest time between two turns is what somebody
/// else's request would have waited.
class Meter {
 public:
  explicit Meter(net::Loop& loop) : loop_(loop), last_(thread_time()) { turn(); }
  ~Meter() { *alive_ = false; }
  Meter(const Meter&) = delete;

  /// With the turn that is under way: what is answered at once never lets the loop turn.
  [[nodiscard]] std::chrono::nanoseconds longest() const {
    return std::max(longest_, thread_time() - last_);
  }

 private:
  void turn() {
    const auto now = thread_time();
    longest_ = std::max(longest_, now - last_);
    last_ = now;
    loop_.post([this, alive = alive_] {
      if (*alive) turn();
    });
  }
  net::Loop& loop_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::chrono::nanoseconds last_, longest_{0};
};

/// Asks, and holds the server to the limit; what comes near it is printed. Gives the answer's status.
inline Task<int> attack(Cluster& cluster, Ask wanted, std::string name) {
  const std::string what = wanted.method + " " + wanted.target + " (" + wanted.type + "): " + name;
  std::chrono::nanoseconds longest{0};
  int status = 0;
  {
    const Meter meter(cluster.loop());
    wanted.answered = [&] { longest = meter.longest(); };
    const Answer answer = co_await cluster.ask(std::move(wanted));
    status = answer.status;
  }
  const auto ms = std::chrono::duration_cast<std::chrono::microseconds>(longest).count();
  if (longest > std::chrono::milliseconds(10))
    fmt::print("{:8.1f} ms {} {}\n", static_cast<double>(ms) / 1000, status, what);
  EXPECT_LE(longest, kHoldMax) << what;
  EXPECT_NE(status, 0) << what;
  co_return status;
}

}  // namespace muster::apiserver
