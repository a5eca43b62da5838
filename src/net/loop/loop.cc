#include "net/loop/loop.h"

#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>

#include "base/result.h"
#include "net/loop/spread.h"

namespace muster::net {
namespace {

namespace asio = boost::asio;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr int kWorkers = 3;

void abort_on_exception(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    MUSTER_CHECK(false, std::string("a coroutine ended with an exception: ") + e.what());
  }
}

class LoopTimer final : public Timer {
 public:
  LoopTimer(asio::io_context& context, Duration delay, std::function<void()> fn)
      : state_(std::make_shared<State>(context, std::move(fn))) {
    state_->timer.expires_after(delay);
    state_->timer.async_wait([state = state_](boost::system::error_code) {
      // Cancelling cannot call back a wait that has already expired and is queued, hence the flag.
      if (state->cancelled) return;
      const auto call = std::move(state->fn);
      call();
    });
  }
  ~LoopTimer() override {
    state_->cancelled = true;
    state_->timer.cancel();
  }

 private:
  struct State {
    State(asio::io_context& context, std::function<void()> call)
        : timer(context), fn(std::move(call)) {}
    asio::steady_timer timer;
    std::function<void()> fn;
    bool cancelled = false;
  };
  std::shared_ptr<State> state_;
};

class LoopSignal final : public Signal {
 public:
  explicit LoopSignal(asio::io_context& context)
      : context_(context), state_(std::make_shared<State>()) {}
  ~LoopSignal() override { wake(/*notified=*/false); }

  void notify() override {
    if (state_->waiters.empty()) {
      state_->pending = true;
      return;
    }
    wake(/*notified=*/true);
  }

  Task<bool> wait(Duration timeout) override {
    // The state is held by the coroutine, so a Signal may be destroyed while somebody waits.
    const auto state = state_;
    if (state->pending) {
      state->pending = false;
      co_return true;
    }
    Waiter waiter(context_);
    const auto place = state->waiters.insert(state->waiters.end(), &waiter);
    const Leave leave{*state, waiter, place};
    if (timeout == Duration::zero()) {
      waiter.timer.expires_at(asio::steady_timer::time_point::max());
    } else {
      waiter.timer.expires_after(timeout);
    }
    co_await waiter.timer.async_wait(kAwait);
    co_return waiter.notified;
  }

 private:
  struct Waiter {
    explicit Waiter(asio::io_context& context) : timer(context) {}
    asio::steady_timer timer;
    bool woken = false;  // no longer in the list
    bool notified = false;
  };
  struct State {
    std::list<Waiter*> waiters;
    bool pending = false;  // notified while nobody waited
  };
  /// Also runs when the coroutine is destroyed while it waits, so that no dangling waiter stays
  /// listed.
  struct Leave {
    State& state;
    Waiter& waiter;
    std::list<Waiter*>::iterator place;
    ~Leave() {
      if (!waiter.woken) state.waiters.erase(place);
    }
  };

  void wake(bool notified) {
    auto waiters = std::move(state_->waiters);
    state_->waiters.clear();
    for (auto* waiter : waiters) {
      waiter->woken = true;
      waiter->notified = notified;
      waiter->timer.cancel();
    }
  }

  asio::io_context& context_;
  std::shared_ptr<State> state_;
};

}  // namespace

struct Loop::Impl {
  Impl()
      : context(1),
        stop_event(context, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        workers(kWorkers) {
    watch_stop();
  }

  /// stop() only writes to an eventfd: it may be called from a signal handler and from any thread.
  void watch_stop() {
    stop_event.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this](boost::system::error_code error) {
                            if (error) return;
                            std::uint64_t count = 0;
                            if (::read(stop_event.native_handle(), &count, sizeof count) > 0)
                              context.stop();
                            watch_stop();
                          });
  }

  asio::io_context context;
  asio::posix::stream_descriptor stop_event;
  asio::thread_pool workers;
  Helpers helpers;
  // Numbers are drawn from the kernel a block at a time.
  std::uint64_t random_block[32] = {};
  std::size_t random_left = 0;
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {}

Loop::~Loop() { impl_->workers.join(); }

void Loop::run() {
  impl_->context.restart();
  impl_->context.run();
}

void Loop::run_until_done(Task<void> task) {
  impl_->context.restart();
  bool done = false;
  asio::co_spawn(impl_->context, std::move(task), [&done](const std::exception_ptr& error) {
    abort_on_exception(error);
    done = true;
  });
  while (!done && !impl_->context.stopped()) impl_->context.run_one();
}

void Loop::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      ::write(impl_->stop_event.native_handle(), &one, sizeof one);
}

asio::io_context& Loop::context() { return impl_->context; }

Time Loop::now() {
  return Time{std::chrono::duration_cast<std::chrono::microseconds>(
                  std::chrono::system_clock::now().time_since_epoch())
                  .count()};
}

Duration Loop::monotonic() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

std::uint64_t Loop::random() {
  if (impl_->random_left == 0) {
    const auto got = ::getrandom(impl_->random_block, sizeof impl_->random_block, 0);
    MUSTER_CHECK(got == static_cast<ssize_t>(sizeof impl_->random_block),
                 "getrandom gave too few bytes");
    impl_->random_left = std::size(impl_->random_block);
  }
  return impl_->random_block[--impl_->random_left];
}

void Loop::post(std::function<void()> fn) { asio::post(impl_->context, std::move(fn)); }

std::unique_ptr<Timer> Loop::after(Duration delay, std::function<void()> fn) {
  return std::make_unique<LoopTimer>(impl_->context, delay, std::move(fn));
}

void Loop::offload(std::function<void()> work, std::function<void()> done) {
  asio::post(impl_->workers, [this, work = std::move(work), done = std::move(done)]() mutable {
    work();
    work = nullptr;  // what it captured dies before `done` can be seen
    asio::post(impl_->context, std::move(done));
  });
}

void Loop::spawn(Task<void> task) {
  // Posted: co_spawn alone would run the coroutine's beginning inside the caller, who may be in the
  // middle of changing what the coroutine looks at.
  asio::post(impl_->context, [this, task = std::move(task)]() mutable {
    asio::co_spawn(impl_->context, std::move(task), abort_on_exception);
  });
}

void Loop::spread(std::size_t count, const std::function<void(std::size_t)>& each) {
  impl_->helpers.spread(count, each);
}

Task<void> Loop::sleep(Duration delay) {
  asio::steady_timer timer(impl_->context);
  timer.expires_after(delay);
  co_await timer.async_wait(kAwait);
}

Task<void> Loop::run_on_worker(std::function<void()> work) {
  LoopSignal finished(impl_->context);
  // The worker may outlive this coroutine (loop destroyed); it then touches only what it owns.
  offload(std::move(work), [&finished] { finished.notify(); });
  co_await finished.wait(Duration::zero());
}

std::unique_ptr<Signal> Loop::make_signal() { return std::make_unique<LoopSignal>(impl_->context); }

}  // namespace muster::net
