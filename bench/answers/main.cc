// answers_bench [nodes… | refresh | records]: what questions about a cluster cost, by its size, what a new set of courses
// costs for a thousand nodes with 4,000 jobs that run and 1,000 that wait, and what 200,000 records do; CPU time of this
// thread. What has a budget is compared with it (checks 23, 24 and 30); a budget that is missed makes the exit
// status 1.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "answers/check.h"
#include "answers/durations.h"
#include "answers/forecast.h"
#include "answers/json.h"
#include "answers/live/live.h"
#include "answers/records/archive.h"
#include "answers/records/page.h"
#include "answers/service.h"
#include "answers/whatif.h"
#include "base/random.h"
#include "engine/engine.h"
#include "net/loop/loop.h"
#include "scheduler/lending.h"

namespace muster::answers {
namespace {

int missed = 0;

std::string budget(double ms, double most) {
  missed += ms <= most ? 0 : 1;
  return fmt::format("{} (budget {} ms)", ms <= most ? "ok" : "MISSED", most);
}

/// What this process holds, in MB.
double resident_mb() {
  std::ifstream file("/proc/self/statm");
  long pages = 0, resident = 0;
  file >> pages >> resident;
  return static_cast<double>(resident) * 4096 / 1e6;
}

using engine::Engine;

/// As clusters are: pods of every size and gangs, ten pods a node, three in ten of which run. Half of
/// the jobs say how long they last.
class World {
 public:
  explicit World(int nodes, Time begin = Time::from_seconds(1'000'000)) : World() {
    now_ = begin;
    add(nodes);
    for (int pods = 0; pods < nodes * 10;) pods += submit();
    step();
  }

  /// Full, with so many more jobs that wait: those that run take half a node at most, and what is like
  /// those that say nothing has ended before. Jobs that run: four a node.
  static World full(int nodes, int waiting) {
    World world;
    world.now_ = Time::from_seconds(1'000'000);
    world.add(nodes);
    world.remember();
    for (int i = 0; i < nodes; ++i) {
      for (const std::int64_t gpus : {4, 2, 1, 1}) world.submit_one(1, gpus);
    }
    world.step();
    for (int i = 0; i < waiting; ++i) world.submit();
    world.step();
    return world;
  }

  int submit() {
    const int members = made_ % 10 == 0 ? 4 : 1;
    return submit_one(members, members > 1 ? 8 : 1LL << random_.below(4));
  }

 private:
  World() : engine_(engine::Config{}) {}

  void add(int nodes) {
    for (int i = 0; i < nodes; ++i) {
      engine::Node node;
      node.name = fmt::format("node-{}", i);
      node.allocatable = {
          {"cpu", 96'000}, {"memory", 1LL << 40}, {"nvidia.com/gpu", 8}, {"pods", 110}};
      engine_.apply(engine::NodeUpsert{node});
    }
    for (int q = 0; q < kQueues; ++q)
      engine_.apply(engine::QueueUpsert{{.name = fmt::format("q{}", q)}});
  }

  /// Twenty ends of each queue and size.
  void remember() {
    for (int q = 0; q < kQueues; ++q) {
      for (const std::int64_t gpus : {1, 2, 4, 8, 32}) {
        engine::PastRun run;
        run.origin.team = fmt::format("q{}", q);
        run.device_milli = gpus * 1000;
        for (int i = 0; i < 20; ++i) {
          run.ran = std::chrono::minutes(5 + random_.below(900));
          engine_.apply(run);
        }
      }
    }
  }

  int submit_one(int members, std::int64_t gpus) {
    const int id = made_++;
    const std::string key = fmt::format("bench/g-{}", id);
    if (members > 1) {
      engine::Group group;
      group.key = key;
      group.min_member = members;
      group.queue = fmt::format("q{}", id % kQueues);
      group.created = now_;
      tell(engine::GroupUpsert{group});
    }
    for (int m = 0; m < members; ++m) {
      engine::Pod pod = pod_of(fmt::format("{}-{}", key, m), gpus);
      if (members > 1) pod.group = key;
      pod.queue = fmt::format("q{}", id % kQueues);
      if (id % 2 == 0) pod.expected_duration = std::chrono::minutes(10 + id % 600);
      tell(engine::PodUpsert{pod});
    }
    return members;
  }

 public:
  engine::Pod pod_of(const std::string& key, std::int64_t gpus) const {
    engine::Pod pod;
    pod.key = pod.uid = key;
    pod.ns = "bench";
    pod.requests = {{"cpu", 1000 * gpus}, {"memory", gpus << 30}, {"nvidia.com/gpu", gpus}};
    pod.created = now_;
    return pod;
  }

  void tell(const engine::Event& event) {
    engine_.apply(event);
    if (told_ != nullptr) told_->push_back(event);
  }
  void step() {
    now_ = now_ + std::chrono::seconds(1);
    for (const engine::Bind& bind : engine_.decide(now_).binds) running_.push_back(bind.pod);
  }
  void release() {
    const std::size_t at = random_.below(running_.size());
    tell(engine::PodRemove{std::exchange(running_[at], running_.back())});
    running_.pop_back();
  }

  Engine& engine() { return engine_; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  /// Where what the engine hears is noted, as the loop does for a follower.
  void note_into(std::vector<engine::Event>* told) { told_ = told; }

 private:
  static constexpr int kQueues = 100;
  Engine engine_;
  int made_ = 0;
  Random random_{3};
  Time now_;
  std::vector<std::string> running_;
  std::vector<engine::Event>* told_ = nullptr;
};

template <typename F>
double cost(F&& work) {
  const double begun = thread_cpu_s();
  work();
  return (thread_cpu_s() - begun) * 1000;
}

void row(const char* what, double ms, const std::string& more = "") {
  fmt::print("  {:<44}{:>12.4f} ms  {}\n", what, ms, more);
}

/// The loop ticks every millisecond while a worker copies the engine: its longest pause.
double loop_pause_ms(const Engine& engine) {
  net::Loop loop;
  scheduler::Lending lending(loop, engine);
  Duration last = loop.monotonic(), longest{};
  bool done = false;
  std::unique_ptr<Timer> timer;
  std::function<void()> tick = [&] {
    longest = std::max(longest, loop.monotonic() - last);
    last = loop.monotonic();
    if (!done) timer = loop.after(std::chrono::milliseconds(1), tick);
  };
  loop.run_until_done([&]() -> Task<void> {
    tick();
    std::optional<Engine> copied;
    co_await lending.copy([&](Engine made) { copied.emplace(std::move(made)); },
                          {[](const engine::Event&) {}, [] {}});
    longest = std::max(longest, loop.monotonic() - last);
    done = true;
  }());
  return static_cast<double>(longest.count()) / 1e3;
}

/// What who types waits for before the decision is made: an engine of the question's own, five questions a second
/// apart. The first of them, for which the follower itself is made, is left out. Longest, elapsed.
double copy_wait_ms(const Engine& engine, Follower::Again again) {
  net::Loop loop;
  Follower follower(loop, {.engine = [&] { return &engine; }});
  Duration longest{};
  loop.run_until_done([&]() -> Task<void> {
    for (int i = 0; i < 6; ++i) {
      const Duration asked = loop.monotonic();
      auto copied = co_await follower.copy(again);
      if (i > 0) longest = std::max(longest, loop.monotonic() - asked);
      if (copied) follower.free_later(std::move(*copied));
      co_await loop.sleep(std::chrono::seconds(1));
    }
    co_await follower.stop();
  }());
  return static_cast<double>(longest.count()) / 1e3;
}

/// What the first who asks gets, and what that took: CPU time of the courses that it waits for, and elapsed
/// from the question on, with the follower and its copy. Then what all of the courses took.
struct Answered {
  std::int32_t draws = 0;
  double cpu_ms = 0, waited_ms = 0, whole_ms = 0;
};
Answered fresh_answer(int nodes) {
  net::Loop loop;
  World world(nodes, loop.now() - std::chrono::seconds(1));
  const Engine& engine = world.engine();
  Answered out;
  const auto whole = loop.make_signal();
  bool made = false;
  Live::Options options;
  options.engine = [&] { return &engine; };
  options.made = [&](const OutlookPtr& outlook) {
    made = true;
    out.whole_ms = outlook->cpu_s * 1e3;
    whole->notify();
  };
  Live live(loop, std::move(options));
  loop.run_until_done([&]() -> Task<void> {
    const Duration asked = loop.monotonic();
    const auto first = co_await live.outlook();
    out.waited_ms = static_cast<double>((loop.monotonic() - asked).count()) / 1e3;
    if (first) {
      out.draws = (*first)->forecasts.draws;
      out.cpu_ms = (*first)->cpu_s * 1e3;
      while (!made) (void)co_await whole->wait(std::chrono::milliseconds(50));
    }
    co_await live.stop();
  }());
  return out;
}

/// When one job starts, asked for by its name while the forecasts are kept: CPU time of the loop. The first finds all
/// names; of the hundred others, sorted, the 95th.
struct Named {
  double first = 0, then = 0;
};
Named named_answers(const Engine& engine) {
  net::Loop loop;
  Live::Options options;
  options.engine = [&] { return &engine; };
  options.fresh = std::chrono::hours(1);
  Live live(loop, std::move(options));
  Service service(loop, nullptr, &live);
  Visitor visitor;
  visitor.may = [](std::string_view, std::string_view, std::string_view) { return true; };
  std::vector<double> out;
  loop.run_until_done([&]() -> Task<void> {
    const auto outlook = co_await live.outlook();
    if (!outlook) co_return;
    while (live.cpu_s() == 0) co_await loop.sleep(std::chrono::milliseconds(50));
    const auto whole = co_await live.outlook();
    const std::vector<Forecast>& jobs = (*whole)->forecasts.jobs;
    for (std::size_t i = 0; i <= 100 && !jobs.empty(); ++i) {
      Service::WhenAsk ask;
      ask.ns = "bench";
      ask.name = jobs[(jobs.size() - 1) * i / 100].job.substr(sizeof "bench/" - 1);
      const double begun = thread_cpu_s();
      const auto answer = co_await service.when(visitor, ask);
      const bool found = answer && json::array_at(*answer, "items").size() == 1;
      if (!found) ++missed;
      out.push_back((thread_cpu_s() - begun) * 1e3);
    }
    co_await live.stop();
  }());
  if (out.empty()) return {};
  std::sort(out.begin() + 1, out.end());
  return {out.front(), out[95]};
}

void measure(int nodes) {
  World world(nodes);
  Engine& engine = world.engine();
  const engine::Stats stats = engine.stats();
  fmt::print("{} nodes, {} pods, {} of them bound, {} gangs wait\n",
             stats.nodes,
             stats.pods,
             stats.pods_bound,
             stats.gangs_waiting);
  const double before_mb = resident_mb();
  std::optional<Engine> kept;
  row("a copy of the engine",
      cost([&] { kept.emplace(engine.clone()); }),
      fmt::format("on a worker, at the first question; {:.0f} MB", resident_mb() - before_mb));
  kept.reset();
  const double pause = loop_pause_ms(engine);
  row("longest pause of the loop meanwhile (wall)", pause, budget(pause, 5));
  row("a question's copy, made when it comes (wall)", copy_wait_ms(engine, Follower::Again::kNo));
  row("the same, made beforehand (wall)", copy_wait_ms(engine, Follower::Again::kSoon));
  row("its digest", cost([&] { (void)engine.digest(); }));
  std::vector<engine::Event> told;
  const std::size_t steps = std::min<std::size_t>(1000, world.running() / 4);
  const double plain = cost([&] {
    for (std::size_t i = 0; i < steps; ++i) world.release();
  });
  world.step();
  world.note_into(&told);
  const double noted = cost([&] {
    for (std::size_t i = 0; i < steps; ++i) world.release();
  });
  world.note_into(nullptr);
  world.step();
  row("an event, noted for a follower",
      (noted - plain) / static_cast<double>(steps),
      "on the loop");
  Draft draft{.ns = "bench", .kind = "pod", .name = "new"};
  draft.pods.emplace_back(engine::PodUpsert{world.pod_of("bench/new", 8)});
  CheckAsk quick;
  quick.forecast = quick.alternatives = false;
  std::vector<double> checks;
  for (int i = 0; i < 20; ++i) {
    checks.push_back(cost([&] {
      Engine copy = engine.clone();
      (void)check(copy, world.now(), draft, quick);
    }));
  }
  std::sort(checks.begin(), checks.end());
  row("check: where it would start, 19th of 20",
      checks[18],
      "with its copy, on a worker: " + budget(checks[18], 200));
  if (nodes <= 100) {
    const Answered fresh = fresh_answer(nodes);
    row("a fresh answer",
        fresh.cpu_ms,
        fmt::format(
            "after {} courses, {:.0f} ms after the question (wall); all courses {:.0f} ms: {}",
            fresh.draws,
            fresh.waited_ms,
            fresh.whole_ms,
            budget(fresh.cpu_ms, 200)));
  }
  for (const double most : {2.0, 60.0}) {
    Ask ask;
    Forecasts made;
    const double spent = cost([&] {
      Engine copy = engine.clone();
      copy.history().freshen();
      const SharedDraws lasting(copy, world.now());
      const double until = thread_cpu_s() + most;
      ask.go_on = [until] { return thread_cpu_s() < until; };
      made = forecast_all(copy, world.now(), lasting, ask);
    });
    // All courses of a thousand nodes in 2 s, at least 8 of ten thousand in a minute.
    const bool enough = !made.cut || (nodes > 1000 && made.draws >= 8);
    const double aim = nodes <= 1000 ? 2'000 : 60'000;
    const double counts = made.cut ? spent * 8 / std::max(made.draws, 1) : spent;
    row("forecast of all that wait",
        spent,
        fmt::format("{} of {} courses in {} s of CPU{}",
                    made.draws,
                    ask.draws,
                    most,
                    enough ? ": " + budget(counts, aim) : ""));
    if (!made.jobs.empty()) {
      // The first of them pays for what the process has never run before.
      const Naming naming = [](std::string_view gang) { return std::string(gang); };
      std::vector<double> answers;
      for (int i = 0; i < 100; ++i) {
        const Forecast& of = made.jobs[made.jobs.size() * static_cast<std::size_t>(i) / 100];
        answers.push_back(cost([&] { (void)json::dump(forecast_json(of, naming, world.now())); }));
      }
      const double first = answers.front();
      std::sort(answers.begin(), answers.end());
      const double said = answers[94];
      row("when, from what is kept, 95th of 100 jobs",
          said,
          fmt::format("the first: {:.2f} ms: {}", first, budget(said, 1)));
    }
    if (enough) break;
    if (most > 50) ++missed;
  }
  const Named named = named_answers(engine);
  row("when of one job by its name, 95th of 100",
      named.then,
      fmt::format("the first: {:.2f} ms: {}", named.first, budget(named.then, 1)));
  fmt::print("\n");
}

/// A set of courses of the size that has a budget.
void measure_refresh() {
  World world = World::full(1000, 1000);
  const Engine& engine = world.engine();
  const engine::Stats stats = engine.stats();
  fmt::print(
      "{} nodes, {} pods run, {} gangs wait\n", stats.nodes, stats.pods_bound, stats.gangs_waiting);
  Forecasts made;
  const double spent = cost([&] {
    Engine copy = engine.clone();
    copy.history().freshen();
    made = forecast_all(copy, world.now(), SharedDraws(copy, world.now()), Ask{});
  });
  std::size_t answered = 0;
  for (const Forecast& f : made.jobs) answered += f.start.basis != Basis::kNone ? 1 : 0;
  row("a new forecast of all that wait",
      spent,
      fmt::format("{} courses, {} of {} answered: {}",
                  made.draws,
                  answered,
                  made.jobs.size(),
                  budget(spent, 2000)));
  fmt::print("\n");
}

/// A page of ended jobs as clusters have them.
std::vector<Record> thousand(int page) {
  std::vector<Record> out;
  const Time begin = Time::from_seconds(1'700'000'000) + std::chrono::hours(page);
  for (int i = 0; i < 1000; ++i) {
    Record record;
    record.job = fmt::format("bert-{}", i);
    record.uid =
        fmt::format("7f0c{:04x}-9b1d-4c55-{:04x}-2f6a90b1{:04x}", i * 7919 % 65536, page, i);
    record.ns = fmt::format("team-{}", i % 7);
    record.kind = "pytorchjob";
    record.user = fmt::format("user-{}", i % 17);
    record.queue = fmt::format("q{}", i % 5);
    record.state = i % 5 == 0 ? "FAILED" : "SUCCEEDED";
    record.submitted = begin + std::chrono::seconds(i * 3);
    record.ended = record.submitted + std::chrono::seconds(600 + i % 911);
    Run run;
    run.start = record.submitted + std::chrono::seconds(i % 60);
    run.end = record.ended;
    run.milli = 8000;
    run.nodes = {fmt::format("node-{}", i % 100)};
    run.how = i % 5 == 0 ? "failed" : "succeeded";
    record.runs.push_back(run);
    out.push_back(std::move(record));
  }
  return out;
}

void measure_records() {
  std::vector<Page> pages;
  std::size_t stored = 0;
  for (int number = 1; number <= 200; ++number) {
    pages.push_back(pack_page(number, thousand(number)));
    stored += json::dump(page_object(pages.back())).size();
  }
  fmt::print("200,000 records in 200 pages, {:.1f} MB\n", static_cast<double>(stored) / 1e6);
  missed += stored <= 25'000'000 ? 0 : 1;
  Archive archive;
  const double read = cost([&] {
    for (Page& page : pages) {
      const auto records = unpack_page(page);
      if (!records) std::exit(1);
      archive.add(std::move(page), *records);
    }
  });
  row("all pages read at the start", read, budget(read, 1000));
  for (const char* user : {"user-16", "nobody"}) {
    RecordQuery query;
    query.user = user;
    std::size_t found = 0;
    const double listed = cost([&] {
      newest_first(archive.pages(), [&](const Summary& one) {
        found += query.matches(one) ? 1 : 0;
        return found < query.limit;
      });
    });
    row("a list by user, at most 100",
        listed,
        fmt::format("{} rows: {}", found, budget(listed, 20)));
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace muster::answers

int main(int argc, char** argv) {
  std::vector<int> sizes;
  bool records = argc == 1, refresh = argc == 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "records")
      records = true;
    else if (std::string_view(argv[i]) == "refresh")
      refresh = true;
    else
      sizes.push_back(std::atoi(argv[i]));
  }
  if (sizes.empty() && argc == 1) sizes = {100, 1000, 10'000};
  for (const int nodes : sizes) muster::answers::measure(nodes);
  if (refresh) muster::answers::measure_refresh();
  if (records) muster::answers::measure_records();
  fmt::print("{} budgets are missed\n", muster::answers::missed);
  return muster::answers::missed == 0 ? 0 : 1;
}
