#include "answers/live/follower.h"

#include <algorithm>

#include "base/log.h"

namespace muster::answers {
namespace {

/// How often those who ask at the same time look whether it is their turn.
constexpr Duration kLook = std::chrono::milliseconds(20);

void mix(std::uint64_t& hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  hash = (hash ^ 0xff) * 1099511628211ULL;
}

Error nothing_decides() {
  Error error;
  error.code = Code::kUnavailable;
  error.message = "the scheduler is still starting; try again in a moment";
  error.retry_after_s = 1;
  return error;
}

}  // namespace

std::uint64_t fingerprint(const engine::Plan& plan) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const engine::Bind& bind : plan.binds) {
    mix(hash, bind.pod);
    mix(hash, bind.node);
    for (const std::int32_t device : bind.devices)
      hash = (hash ^ static_cast<std::uint64_t>(device)) * 1099511628211ULL;
  }
  for (const engine::Evict& evict : plan.evicts) mix(hash, evict.pod);
  for (const engine::PhaseChange& change : plan.phases) mix(hash, change.group);
  for (const engine::Nominate& nominate : plan.nominations) {
    mix(hash, nominate.pod);
    mix(hash, nominate.node);
  }
  return hash;
}

Follower::Follower(Env& env, Options options)
    : env_(env), options_(std::move(options)), free_(env.make_signal()), gate_(env) {}

void Follower::heard(const engine::Event& event) {
  if (engine_) note(event);
}

void Follower::decided(Time now, const engine::Plan& plan) {
  if (engine_) note(Decision{now, fingerprint(plan)});
}

void Follower::took_cells(const engine::cells::Config& config, Time now) {
  if (engine_) note(Cells{config, now});
}

void Follower::note(Step step) {
  steps_.push_back(std::move(step));
  if (steps_.size() >= options_.most) {
    let_go();
  } else if (steps_.size() >= options_.batch && !busy_ && !stopped_) {
    busy_ = true;
    env_.spawn(catch_up());
  }
}

Task<void> Follower::make(const engine::Engine& leader) {
  const Duration begun = env_.monotonic();
  if (options_.copy)
    co_await options_.copy(
        [this, &leader](engine::Engine copy) { take(&leader, std::move(copy)); });
  else
    take(&leader, leader.clone());
  held_most_ = std::max(held_most_, env_.monotonic() - begun);
}

void Follower::take(const engine::Engine* leader, engine::Engine copy) {
  engine_ = std::make_shared<engine::Engine>(std::move(copy));
  leader_ = leader;
  steps_.clear();
  ++made_;
}

/// Where a hundred thousand pods are freed, the loop does not wait for it.
Task<void> Follower::free_beside(std::shared_ptr<engine::Engine> engine) {
  const Gate::Pass pass(gate_);
  co_await env_.run_on_worker([&engine] { engine.reset(); });
}

void Follower::free_later(std::shared_ptr<engine::Engine> copy) {
  if (copy && !stopped_) env_.spawn(free_beside(std::move(copy)));
}

void Follower::let_go() {
  free_later(std::move(engine_));
  free_later(std::move(spare_));
  engine_.reset();
  spare_.reset();
  leader_ = nullptr;
  steps_.clear();
  steps_.shrink_to_fit();
}

bool Follower::follow(engine::Engine& engine, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (const auto* event = std::get_if<engine::Event>(&step)) {
      engine.apply(*event);
    } else if (const auto* decision = std::get_if<Decision>(&step)) {
      if (fingerprint(engine.decide(decision->now)) != decision->plan) return false;
    } else {
      const Cells& cells = std::get<Cells>(step);
      if (!engine.configure_cells(cells.config, cells.now)) return false;
    }
  }
  return true;
}

Task<void> Follower::turn() {
  while (busy_) (void)co_await free_->wait(kLook);
  busy_ = true;
}

/// Its turn has come; ends it.
Task<void> Follower::catch_up() {
  const Gate::Pass pass(gate_);
  const std::shared_ptr<engine::Engine> engine = engine_, spare = spare_;
  const auto steps = std::make_shared<std::vector<Step>>(std::exchange(steps_, {}));
  bool same = true;
  if (engine)
    co_await env_.run_on_worker(
        [&] { same = follow(*engine, *steps) && (!spare || follow(*spare, *steps)); });
  if (!same && engine == engine_) {
    ++differences_;
    log::error(
        "answers",
        "the follower decided otherwise than the engine; it is made again at the next question");
    let_go();
  }
  busy_ = false;
  free_->notify();
}

/// Its turn has come; ends it.
Task<std::shared_ptr<engine::Engine>> Follower::take_copy(std::shared_ptr<engine::Engine> of,
                                                          Again again) {
  std::shared_ptr<engine::Engine> out;
  if (again == Again::kSoon) out = std::exchange(spare_, nullptr);
  if (!out)
    co_await env_.run_on_worker([&] { out = std::make_shared<engine::Engine>(of->clone()); });
  busy_ = false;
  free_->notify();
  if (again == Again::kSoon && !stopped_) env_.spawn(make_spare());
  co_return out;
}

Task<void> Follower::make_spare() {
  const Gate::Pass pass(gate_);
  co_await turn();
  const std::shared_ptr<engine::Engine> engine = engine_;
  if (engine && !spare_ && !stopped_) {
    std::shared_ptr<engine::Engine> made;
    co_await env_.run_on_worker([&] { made = std::make_shared<engine::Engine>(engine->clone()); });
    // What happened meanwhile has been noted, and is caught up by both.
    if (engine == engine_) {
      spare_ = std::move(made);
    } else {
      free_later(std::move(made));
    }
    without_spare_ = env_.after(options_.spare, [this] { free_later(std::exchange(spare_, {})); });
  }
  busy_ = false;
  free_->notify();
}

Task<Result<std::shared_ptr<engine::Engine>>> Follower::copy(Again again) {
  const Gate::Pass pass(gate_);
  // What differs is made again once; twice in a row is more than bad luck.
  for (int tries = 0; tries < 2; ++tries) {
    co_await turn();
    const engine::Engine* leader = options_.engine ? options_.engine() : nullptr;
    if (leader == nullptr || stopped_) {
      busy_ = false;
      free_->notify();
      co_return fail(nothing_decides());
    }
    if (!engine_ || leader_ != leader) {
      let_go();
      co_await make(*leader);
      if (!engine_) {
        busy_ = false;
        free_->notify();
        co_return fail(nothing_decides());
      }
    }
    letting_go_ = env_.after(options_.kept, [this] { let_go(); });
    const std::shared_ptr<engine::Engine> engine = engine_;
    co_await catch_up();
    if (engine != engine_) continue;
    co_await turn();
    if (engine != engine_) {
      busy_ = false;
      free_->notify();
      continue;
    }
    auto out = co_await take_copy(engine, again);
    co_return out;
  }
  Error error = nothing_decides();
  error.message = "the follower of the engine differs from it; try again in a moment";
  co_return fail(std::move(error));
}

Task<void> Follower::stop() {
  stopped_ = true;
  letting_go_.reset();
  without_spare_.reset();
  gate_.close();
  (void)co_await gate_.wait_empty(std::chrono::seconds(10));
  let_go();
}

}  // namespace muster::answers
