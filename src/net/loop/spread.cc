#include "net/loop/spread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>

#include "net/loop/short_slices.h"

namespace muster::net {
namespace {

constexpr int kHelpersMax = 3;

cpu_set_t allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

}  // namespace

/// Calls are claimed one at a time, so whoever is late finds nothing left and nobody waits for it.
struct Helpers::Batch {
  std::size_t count = 0;
  const std::function<void(std::size_t)>* each = nullptr;  // good as long as a call can be claimed
  std::atomic<std::size_t> next = 0, done = 0;

  void work() {
    while (true) {
      const std::size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) return;
      (*each)(index);
      done.fetch_add(1, std::memory_order_release);
      done.notify_one();
    }
  }
};

Helpers::~Helpers() {
  {
    const std::lock_guard hold(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Helpers::start() {
  started_ = true;
  const cpu_set_t cores = allowed_cores();
  const int count = std::clamp(CPU_COUNT(&cores) - 1, 0, kHelpersMax);
  for (int i = 0; i < count; ++i) threads_.emplace_back([this] { help(); });
}

/// The kernel often wakes a thread where its waker runs, and moves it at the next tick, when this
/// caller has done the work alone.
void Helpers::send_to_other_cores() {
  const int here = ::sched_getcpu();
  if (here < 0 || here == core_) return;
  core_ = here;
  cpu_set_t others = allowed_cores();
  CPU_CLR(here, &others);
  if (CPU_COUNT(&others) == 0) return;
  for (std::thread& thread : threads_)
    ::pthread_setaffinity_np(thread.native_handle(), sizeof others, &others);
}

void Helpers::help() {
  run_soon();
  std::uint64_t seen = 0;
  while (true) {
    std::shared_ptr<Batch> batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || turn_ != seen; });
      if (stop_) return;
      seen = turn_;
      batch = batch_;
    }
    batch->work();
  }
}

void Helpers::spread(std::size_t count, const std::function<void(std::size_t)>& each) {
  if (!started_) start();
  const auto batch = std::make_shared<Batch>();
  batch->count = count;
  batch->each = &each;
  if (!threads_.empty()) {
    send_to_other_cores();
    {
      const std::lock_guard hold(mutex_);
      batch_ = batch;
      ++turn_;
    }
    wake_.notify_all();
  }
  batch->work();
  for (auto done = batch->done.load(std::memory_order_acquire); done < count;
       done = batch->done.load(std::memory_order_acquire)) {
    batch->done.wait(done, std::memory_order_acquire);
  }
}

}  // namespace muster::net
