#include "answers/live/live.h"

#include <ctime>
#include <utility>

#include "answers/durations.h"
#include "answers/forecast.h"

namespace muster::answers {
namespace {

/// How often those who ask at the same time look whether it is there.
constexpr Duration kLook = std::chrono::milliseconds(50);

}  // namespace

double thread_cpu_s() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
}

Live::Live(Env& env, Options options)
    : env_(env),
      options_(std::move(options)),
      follower_(env, {.engine = options_.engine, .copy = options_.copy}),
      made_(env.make_signal()) {}

Task<void> Live::stop() {
  stopped_ = true;
  co_await follower_.stop();
}

Task<Result<void>> Live::look(std::function<void(engine::Engine& engine, Time now)> work) {
  auto copied = co_await follower_.copy(Follower::Again::kSoon);
  if (!copied) co_return fail(copied.error());
  std::shared_ptr<engine::Engine> copy = std::move(*copied);
  const Time now = env_.now();
  const auto spent = std::make_shared<double>(0);
  co_await env_.run_on_worker([&copy, now, spent, work = std::move(work)] {
    const double start = thread_cpu_s();
    work(*copy, now);
    *spent = thread_cpu_s() - start;
  });
  cpu_s_ += *spent;
  follower_.free_later(std::move(copy));
  co_return Result<void>();
}

Task<Result<OutlookPtr>> Live::outlook() {
  while (making_ && !stopped_) (void)co_await made_->wait(kLook);
  if (last_ && env_.monotonic() - last_made_ < std::max(options_.fresh, rests_)) co_return last_;
  auto made = co_await make();
  co_return made;
}

Task<Result<OutlookPtr>> Live::make() {
  making_ = true;
  auto copied = co_await follower_.copy();
  if (!copied) {
    making_ = false;
    made_->notify();
    co_return fail(copied.error());
  }
  std::shared_ptr<engine::Engine> copy = std::move(*copied);
  auto fresh = std::make_shared<Outlook>();
  fresh->asked = env_.now();
  fresh->copy = copy;
  const double most = static_cast<double>(options_.cpu_most.count()) / 1e6;
  co_await env_.run_on_worker([fresh, copy, most] {
    const double start = thread_cpu_s();
    const SharedDraws lasting(*copy, fresh->asked);
    Ask ask;
    ask.gantt = true;
    ask.go_on = [start, most] { return thread_cpu_s() - start < most; };
    fresh->forecasts = forecast_all(*copy, fresh->asked, lasting, ask);
    fresh->cpu_s = thread_cpu_s() - start;
  });
  cpu_s_ += fresh->cpu_s;
  if (options_.adjust) options_.adjust(fresh->forecasts, fresh->asked);
  OutlookPtr before = std::exchange(last_, fresh);
  last_made_ = env_.monotonic();
  rests_ = Duration(static_cast<std::int64_t>(fresh->cpu_s * 1e6 / options_.cpu_share));
  making_ = false;
  made_->notify();
  if (options_.made && !stopped_) options_.made(fresh);
  // With it goes a whole engine, unless somebody still looks at it.
  co_await env_.run_on_worker([&before] { before.reset(); });
  co_return fresh;
}

Task<std::vector<Alternative>> Live::alternatives(OutlookPtr outlook, AlternativesAsk ask) {
  while (making_ && !stopped_) (void)co_await made_->wait(kLook);
  making_ = true;  // one worker at a time looks at the copy
  auto found = std::make_shared<std::vector<Alternative>>();
  const double most = static_cast<double>(options_.cpu_most.count()) / 1e6;
  co_await env_.run_on_worker([outlook, ask = std::move(ask), found, most]() mutable {
    const double start = thread_cpu_s();
    ask.go_on = [start, most] { return thread_cpu_s() - start < most; };
    *found = answers::alternatives(*outlook->copy, outlook->asked, ask);
  });
  making_ = false;
  made_->notify();
  co_return std::move(*found);
}

}  // namespace muster::answers
