#include "sim_env.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>

#include "base/result.h"

namespace muster::bottle {
namespace {

namespace asio = boost::asio;

/// More than any part has to do at once; a part that goes on and on has a bug.
constexpr std::uint64_t kInstantMax = 2'000'000;

void abort_on_exception(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    MUSTER_CHECK(false, std::string("a coroutine ended with an exception: ") + e.what());
  }
}

/// The rest of a coroutine, to be gone on with once.
class Rest {
 public:
  virtual ~Rest() = default;
  virtual void go_on(bool value) = 0;
};

template <typename Handler>
class RestOf final : public Rest {
 public:
  explicit RestOf(Handler handler) : handler_(std::move(handler)) {}
  void go_on(bool value) override {
    Handler handler = std::move(handler_);
    std::move(handler)(value);
  }

 private:
  Handler handler_;
};

/// Suspends the coroutine; `keep` is given the rest of it.
Task<bool> suspend(std::function<void(std::shared_ptr<Rest>)> keep) {
  const bool value = co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(bool)>(
      [&keep](auto handler) {
        keep(std::make_shared<RestOf<decltype(handler)>>(std::move(handler)));
      },
      asio::use_awaitable);
  co_return value;
}

class SimTimer final : public Timer {
 public:
  explicit SimTimer(std::function<void()> cancel) : cancel_(std::move(cancel)) {}
  ~SimTimer() override { cancel_(); }

 private:
  std::function<void()> cancel_;
};

class SimSignal final : public Signal {
 public:
  explicit SimSignal(SimEnv& env) : env_(env), state_(std::make_shared<State>()) {}
  ~SimSignal() override { wake(false); }

  void notify() override {
    if (state_->waiters.empty()) {
      state_->pending = true;
      return;
    }
    wake(true);
  }

  Task<bool> wait(Duration timeout) override {
    const auto state = state_;
    if (state->pending) {
      state->pending = false;
      co_return true;
    }
    const auto waiter = std::make_shared<Waiter>();
    const auto place = state->waiters.insert(state->waiters.end(), waiter);
    std::unique_ptr<Timer> timer;
    if (timeout != Duration::zero()) {
      timer = env_.after(timeout, [state, waiter, place] {
        if (waiter->woken) return;
        waiter->woken = true;
        state->waiters.erase(place);
        waiter->rest->go_on(false);
      });
    }
    const bool notified =
        co_await suspend([waiter](std::shared_ptr<Rest> rest) { waiter->rest = std::move(rest); });
    co_return notified;
  }

 private:
  struct Waiter {
    std::shared_ptr<Rest> rest;
    bool woken = false;
  };
  struct State {
    std::list<std::shared_ptr<Waiter>> waiters;
    bool pending = false;  // notified while nobody waited
  };

  void wake(bool notified) {
    const auto waiters = std::exchange(state_->waiters, {});
    for (const auto& waiter : waiters) {
      waiter->woken = true;
      env_.post([waiter, notified] { waiter->rest->go_on(notified); });
    }
  }

  SimEnv& env_;
  std::shared_ptr<State> state_;
};

}  // namespace

SimWorld::SimWorld(std::uint64_t seed) : random_(seed), now_(Time::from_seconds(1'800'000'000)) {}

void SimWorld::mix(std::uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001b3ULL; }

void SimWorld::mix(std::string_view text) {
  for (const char c : text) mix(static_cast<unsigned char>(c));
}

SimWorld::Place SimWorld::add(Duration delay, Event event) {
  const Place place{now_.us + std::max<std::int64_t>(0, delay.count()), next_++};
  heap_.emplace(place, std::move(event));
  return place;
}

void SimWorld::remove(const Place& place) {
  const auto moved = put_off_.find(place.second);
  heap_.erase(moved == put_off_.end() ? place : moved->second);
  if (moved != put_off_.end()) put_off_.erase(moved);
}

bool SimWorld::happen(std::map<Place, Event>::iterator first) {
  const Event event = std::move(first->second);
  const std::uint64_t order = first->first.second;
  heap_.erase(first);
  put_off_.erase(order);
  if (!event.process->alive) return false;
  if (event.process->stopped_until > now_) {
    const Place later{event.process->stopped_until.us, order};
    heap_.emplace(later, event);
    put_off_[order] = later;
    return false;
  }
  ++events_;
  mix(static_cast<std::uint64_t>(now_.us));
  mix(order);
  asio::post(context_, event.fn);
  context_.restart();
  context_.poll();
  return true;
}

bool SimWorld::run_until(Time end, const std::function<bool()>& stop) {
  std::uint64_t at_once = 0;
  while (!heap_.empty() && heap_.begin()->first.first <= end.us) {
    const auto first = heap_.begin();
    at_once = first->first.first == now_.us ? at_once + 1 : 0;
    MUSTER_CHECK(at_once < kInstantMax, "an instant does not end: some part is in a busy loop");
    now_ = Time{first->first.first};
    if (happen(first) && stop && stop()) return false;
  }
  now_ = std::max(now_, end);
  return true;
}

SimEnv::SimEnv(SimWorld& world) : world_(world) {}

void SimEnv::post(std::function<void()> fn) {
  world_.add(Duration::zero(), {process_, std::move(fn)});
}

std::unique_ptr<Timer> SimEnv::after(Duration delay, std::function<void()> fn) {
  const auto place = world_.add(delay, {process_, std::move(fn)});
  return std::make_unique<SimTimer>([this, place] { world_.remove(place); });
}

void SimEnv::offload(std::function<void()> work, std::function<void()> done) {
  const auto later = Duration(static_cast<std::int64_t>(world_.random_.below(300)));
  world_.add(later, {process_, [work = std::move(work), done = std::move(done)] {
                       work();
                       done();
                     }});
}

void SimEnv::spawn(Task<void> task) {
  const auto held = std::make_shared<Task<void>>(std::move(task));
  post([this, held] { asio::co_spawn(world_.context_, std::move(*held), abort_on_exception); });
}

Task<void> SimEnv::sleep(Duration delay) {
  (void)co_await suspend([this, delay](std::shared_ptr<Rest> rest) {
    world_.add(delay, {process_, [rest = std::move(rest)] { rest->go_on(true); }});
  });
}

Task<void> SimEnv::run_on_worker(std::function<void()> work) {
  SimSignal finished(*this);
  offload(std::move(work), [&finished] { finished.notify(); });
  co_await finished.wait(Duration::zero());
}

std::unique_ptr<Signal> SimEnv::make_signal() { return std::make_unique<SimSignal>(*this); }

}  // namespace muster::bottle
