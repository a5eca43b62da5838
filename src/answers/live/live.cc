#include "answers/live/live.h"

#include <ctime>
#include <optional>
#include <thread>
#include <utility>

#include "answers/durations.h"
#include "answers/forecast.h"
#include "answers/live/lateness.h"

namespace muster::answers {
namespace {

/// How often those who ask at the same time look whether it is there.
constexpr Duration kLook = std::chrono::milliseconds(50);
/// Fewer give no range.
constexpr std::int32_t kFirst = 8;
/// A loop that has more to do than it can gets its processor back, but who asks is answered some day.
constexpr auto kBreath = std::chrono::milliseconds(2);
constexpr int kBreathsMax = 5000;

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

}  // namespace

struct Live::Playing {
  Playing(Live& live, std::shared_ptr<engine::Engine> engine)
      : env(live.env_),
        lateness(env),
        ended(live.ended_),
        copy(std::move(engine)),
        asked(env.now()),
        most_s(seconds(live.options_.cpu_most)),
        range_s(seconds(live.options_.cpu_range)) {}

  /// On a worker.
  void begin(double first_s) {
    const Counted counted(*this);
    lasting.emplace(*copy, asked);
    Ask ask;
    ask.gantt = true;
    ask.go_on = [this] {
      const bool range = courses && courses->played() >= kFirst;
      return !*ended && spent_s + thread_cpu_s() - begun_s < (range ? most_s : range_s);
    };
    ask.breathe = [this] {
      for (; breaths < kBreathsMax && !*ended && lateness.late(); ++breaths)
        std::this_thread::sleep_for(kBreath);
    };
    courses.emplace(*copy, asked, *lasting, ask);
    draws = ask.draws;
    double so_far = 0;
    for (std::int32_t next = 1; next <= kFirst && so_far < most_s; ++next) {
      courses->play(next);
      so_far = thread_cpu_s() - begun_s;
    }
    if (courses->played() >= kFirst && so_far * draws <= first_s * kFirst) courses->play(draws);
    told = courses->told();
  }
  /// The same.
  void go_on() {
    const Counted counted(*this);
    courses->play(draws);
    told = courses->told();
  }

  Env& env;
  Lateness lateness;
  std::shared_ptr<const std::atomic<bool>> ended;
  std::shared_ptr<engine::Engine> copy;
  Time asked;
  double most_s, range_s;
  double spent_s = 0;
  std::optional<SharedDraws> lasting;
  std::optional<Courses> courses;
  Forecasts told;

 private:
  /// CPU time between its beginning and its end counts.
  struct Counted {
    explicit Counted(Playing& by) : playing(by) { playing.begun_s = thread_cpu_s(); }
    ~Counted() { playing.spent_s += thread_cpu_s() - playing.begun_s; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    Playing& playing;
  };
  double begun_s = 0;
  std::int32_t draws = 0;
  int breaths = 0;
};

double thread_cpu_s() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
}

Live::Live(Env& env, Options options)
    : env_(env),
      options_(std::move(options)),
      follower_(env, {.engine = options_.engine, .copy = options_.copy}),
      made_(env.make_signal()),
      gate_(env) {}

Task<void> Live::stop() {
  stopped_ = true;
  *ended_ = true;
  gate_.close();
  (void)co_await gate_.wait_empty(std::chrono::seconds(10));
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
  const bool fresh = env_.monotonic() - last_made_ < std::max(options_.fresh, rests_);
  if (last_ && (fresh || playing_on_)) co_return last_;
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
  auto playing = std::make_shared<Playing>(*this, std::move(*copied));
  co_await env_.run_on_worker(
      [playing, first = seconds(options_.cpu_first)] { playing->begin(first); });
  OutlookPtr before = last_;
  const OutlookPtr fresh = show(*playing);
  making_ = false;
  made_->notify();
  if (playing->courses->over()) {
    finish(fresh);
  } else {
    playing_on_ = true;
    env_.spawn(play_on(std::move(playing)));
  }
  co_await drop(std::move(before), std::move(playing));
  co_return fresh;
}

Task<void> Live::play_on(std::shared_ptr<Playing> playing) {
  const Gate::Pass pass(gate_);
  co_await env_.run_on_worker([playing] { playing->go_on(); });
  OutlookPtr before = last_;
  const OutlookPtr whole = show(*playing);
  playing_on_ = false;
  finish(whole);
  co_await drop(std::move(before), std::move(playing));
}

OutlookPtr Live::show(Playing& playing) {
  auto fresh = std::make_shared<Outlook>();
  fresh->asked = playing.asked;
  fresh->copy = playing.copy;
  fresh->cpu_s = playing.spent_s;
  fresh->forecasts = std::move(playing.told);
  if (options_.adjust) options_.adjust(fresh->forecasts, fresh->asked);
  last_ = fresh;
  last_made_ = env_.monotonic();
  return fresh;
}

void Live::finish(const OutlookPtr& whole) {
  cpu_s_ += whole->cpu_s;
  rests_ = Duration(static_cast<std::int64_t>(whole->cpu_s * 1e6 / options_.cpu_share));
  if (options_.made && !stopped_) options_.made(whole);
}

Task<void> Live::drop(OutlookPtr before, std::shared_ptr<Playing> done) {
  co_await env_.run_on_worker([&before, &done] {
    before.reset();
    done.reset();
  });
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
