#include "client/work_queue.h"

#include <deque>
#include <map>
#include <set>

#include "base/log.h"

namespace muster::client {
namespace {

/// Lives as long as any key is worked on. A key is in at most one of `waiting` (queued) and
/// `working`; one that is added while it is worked on is remembered in `again`.
struct State {
  State(Env& e, std::function<Task<Result<void>>(std::string)> w, WorkQueueOptions o)
      : env(e), work(std::move(w)), options(o), ended(env.make_signal()) {}

  Env& env;
  std::function<Task<Result<void>>(std::string)> work;
  WorkQueueOptions options;
  std::deque<std::string> order;
  std::set<std::string> waiting, working, again;
  std::map<std::string, int> failures;
  struct Delayed {
    Duration at;
    std::unique_ptr<Timer> timer;
  };
  std::map<std::string, Delayed> delayed;                     // by add_after
  std::map<std::string, std::unique_ptr<Timer>> backing_off;  // by failure
  bool started = false;
  bool stopped = false;
  std::unique_ptr<Signal> ended;  // a key has been worked on
};

Task<void> work_on(std::shared_ptr<State> state, std::string key);

void pump(const std::shared_ptr<State>& state) {
  while (state->started && !state->stopped && !state->order.empty() &&
         state->working.size() < static_cast<std::size_t>(std::max(1, state->options.workers))) {
    auto key = std::move(state->order.front());
    state->order.pop_front();
    state->waiting.erase(key);
    state->working.insert(key);
    state->env.spawn(work_on(state, std::move(key)));
  }
}

void enqueue(const std::shared_ptr<State>& state, const std::string& key) {
  if (state->stopped) return;
  if (state->working.contains(key)) {
    state->again.insert(key);
    return;
  }
  if (!state->waiting.insert(key).second) return;
  state->order.push_back(key);
  pump(state);
}

void back_off(const std::shared_ptr<State>& state, const std::string& key) {
  const int failures = state->failures[key]++;
  constexpr int kDoublingsMax = 24;
  const auto delay = std::min<Duration>(
      state->options.backoff_first * (std::int64_t{1} << std::min(failures, kDoublingsMax)),
      state->options.backoff_max);
  state->backing_off[key] = state->env.after(delay, [weak = std::weak_ptr(state), key] {
    const auto alive = weak.lock();
    if (!alive) return;
    // Taken out first: the timer must not be destroyed by what follows while it runs.
    const auto timer = alive->backing_off.extract(key);
    enqueue(alive, key);
  });
}

Task<void> work_on(std::shared_ptr<State> state, std::string key) {
  const auto done = co_await state->work(key);
  state->working.erase(key);
  const bool again = state->again.erase(key) > 0;
  if (!state->stopped) {
    if (done) {
      state->failures.erase(key);
      if (again) enqueue(state, key);
    } else {
      log::debug("client", "work failed key={} error=\"{}\"", key, done.error().message);
      back_off(state, key);
    }
  }
  pump(state);
  state->ended->notify();
}

class LoopWorkQueue final : public WorkQueue {
 public:
  explicit LoopWorkQueue(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~LoopWorkQueue() override { end(); }

  void add(const std::string& key) override { enqueue(state_, key); }
  void add_after(const std::string& key, Duration delay) override {
    if (state_->stopped) return;
    if (delay <= Duration::zero()) {
      add(key);
      return;
    }
    const auto at = state_->env.monotonic() + delay;
    const auto known = state_->delayed.find(key);
    if (known != state_->delayed.end() && known->second.at <= at) return;  // it comes sooner anyway
    auto timer = state_->env.after(delay, [weak = std::weak_ptr(state_), key] {
      const auto alive = weak.lock();
      if (!alive) return;
      const auto entry = alive->delayed.extract(key);
      enqueue(alive, key);
    });
    state_->delayed[key] = {at, std::move(timer)};
  }
  void start() override {
    state_->started = true;
    pump(state_);
  }
  Task<void> stop() override {
    const auto state = state_;
    end();
    while (!state->working.empty()) co_await state->ended->wait(Duration::zero());
  }
  [[nodiscard]] bool idle() const override {
    return state_->order.empty() && state_->working.empty() && state_->backing_off.empty();
  }

 private:
  void end() {
    state_->stopped = true;
    state_->order.clear();
    state_->waiting.clear();
    state_->delayed.clear();
    state_->backing_off.clear();
  }
  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<WorkQueue> make_work_queue(Env& env,
                                           std::function<Task<Result<void>>(std::string key)> work,
                                           WorkQueueOptions options) {
  return std::make_unique<LoopWorkQueue>(std::make_shared<State>(env, std::move(work), options));
}

}  // namespace muster::client
