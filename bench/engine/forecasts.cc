// engine_forecasts [--rounds 3] [--seconds 60] [--nodes 10000] [--shapes busy,deep]
//
// What forecasts cost the engine that decides: releases of a backlog as fast as they are decided,
// in rounds by turns, without anybody who asks and with answers::Live, whose follower hears the same
// events and whose courses are played on a worker within their share of a core. A round lasts as long as
// a set of courses takes to be played and to rest once: a shorter one would be all courses. Exit status 1
// if either figure is more than 3 % worse.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "answers/live/live.h"
#include "backlogs.h"
#include "base/strings.h"
#include "net/loop/loop.h"

namespace muster::bench {
namespace {

constexpr double kMost = 3;  // per cent
/// As an open page of the portal asks (portal/cluster/forecasts.h).
constexpr Duration kAskEvery = std::chrono::seconds(5);
/// After so many releases whatever else there is to do on the loop has its turn.
constexpr int kTurn = 20;

struct Settings {
  int rounds = 3, seconds = 60, nodes = 10'000;
  std::string shapes = "busy,deep";
};

std::unique_ptr<Backlog> make(const std::string& shape, int nodes, Time begun) {
  if (shape == "deep") return std::make_unique<Deep>(nodes, nodes * 10, begun);
  if (shape == "busy") return std::make_unique<Busy>(nodes, nodes / 100, nodes * 10, begun);
  fmt::print(stderr, "engine_forecasts: --shapes: wanted busy or deep, got {}\n", shape);
  std::exit(2);
}

struct Round {
  double per_ms = 0, p99_us = 0;
  // Of forecasts.
  int sets = 0, draws = 0;
  double cpu_s = 0, seconds = 0;
  std::int64_t differences = 0;
  bool same = true;  // the follower knows in the end what the engine knows
};

/// Somebody who looks at what waits, until it is over.
struct Asker {
  answers::Live* live = nullptr;
  std::unique_ptr<Signal> over, gone;
  bool ends = false;
  Round* round = nullptr;
};

Task<void> ask(Asker& asker) {
  answers::OutlookPtr last;
  while (!asker.ends) {
    auto outlook = co_await asker.live->outlook();
    if (outlook && *outlook != last) {
      last = *outlook;
      ++asker.round->sets;
      asker.round->draws += last->forecasts.draws;
    }
    if (!asker.ends) (void)co_await asker.over->wait(kAskEvery);
  }
  asker.gone->notify();
}

/// The releases, whoever listens.
Task<void> play(net::Loop& loop, Backlog& backlog, Duration lasts, Round& round) {
  std::vector<double> times;
  const Duration begun = loop.monotonic();
  const double start = thread_seconds();
  for (int i = 0; i % kTurn != 0 || loop.monotonic() - begun < lasts; ++i) {
    const Time now = loop.now();
    times.push_back(backlog.release(now).us);
    backlog.refill(now);
    if (i % kTurn == 0) co_await loop.sleep(Duration::zero());
  }
  round.per_ms = 2 * static_cast<double>(times.size()) / (seconds_since(start) * 1000);
  round.seconds = static_cast<double>((loop.monotonic() - begun).count()) / 1e6;
  std::sort(times.begin(), times.end());
  round.p99_us = times[times.size() * 99 / 100];
}

Task<void> play_asked(net::Loop& loop, Backlog& backlog, Duration lasts, Round& round) {
  answers::Live live(loop, {.engine = [&backlog] { return &backlog.e; }});
  answers::Follower& follower = live.follower();
  backlog.heard = [&follower](const engine::Event& event) { follower.heard(event); };
  backlog.decided = [&follower](Time now, const engine::Plan& plan) {
    follower.decided(now, plan);
  };
  // Made once for all that are asked: bench/answers says what that costs.
  auto first = co_await follower.copy();
  if (first) follower.free_later(std::move(*first));
  Asker asker{&live, loop.make_signal(), loop.make_signal(), false, &round};
  loop.spawn(ask(asker));
  co_await play(loop, backlog, lasts, round);
  asker.ends = true;
  asker.over->notify();
  (void)co_await asker.gone->wait(Duration::zero());
  const auto last = co_await follower.copy();
  round.same = last && (*last)->digest() == backlog.e.digest();
  round.cpu_s = live.cpu_s();
  round.differences = follower.differences();
  co_await live.stop();
}

Round measure(const std::string& shape, const Settings& settings, bool asked) {
  net::Loop loop;
  const auto backlog = make(shape, settings.nodes, loop.now() - std::chrono::minutes(21));
  Round round;
  const Duration lasts = std::chrono::seconds(settings.seconds);
  loop.run_until_done(asked ? play_asked(loop, *backlog, lasts, round)
                            : play(loop, *backlog, lasts, round));
  return round;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Pair {
  Round without, with;
};

/// Prints a figure of both; by how many per cent it is worse, in the median pair.
double compare(const std::string& shape,
               const char* what,
               const std::vector<Pair>& pairs,
               double Round::* figure,
               bool more_is_worse) {
  std::vector<double> without, with, worse;
  for (const Pair& pair : pairs) {
    without.push_back(pair.without.*figure);
    with.push_back(pair.with.*figure);
    const double change = 100 * (with.back() / without.back() - 1);
    worse.push_back(more_is_worse ? change : -change);
  }
  const auto [least, most] = std::minmax_element(worse.begin(), worse.end());
  fmt::print("| {} | {} | {:.1f} | {:.1f} | {:+.1f} ({:+.1f} to {:+.1f}) |\n",
             shape,
             what,
             median(without),
             median(with),
             median(worse),
             *least,
             *most);
  return median(worse);
}

/// False: it costs too much, or nothing was foretold.
bool report(const std::string& shape, const std::vector<Pair>& pairs, std::string& ran) {
  const double rate = compare(shape, "decisions per ms", pairs, &Round::per_ms, false);
  const double slow = compare(shape, "p99 of a release, us", pairs, &Round::p99_us, true);
  int sets = 0, draws = 0;
  double cpu = 0, seconds = 0;
  std::int64_t differences = 0;
  bool same = true, each = true;
  for (const Pair& pair : pairs) {
    sets += pair.with.sets;
    draws += pair.with.draws;
    cpu += pair.with.cpu_s;
    seconds += pair.with.seconds;
    differences += pair.with.differences;
    same = same && pair.with.same;
    each = each && pair.with.draws > 0;
  }
  ran += fmt::format(
      "{}: {} sets of courses, {} courses, {:.1f} s of CPU in {:.1f} s; follower: {} differences, {} in the end\n",
      shape,
      sets,
      draws,
      cpu,
      seconds,
      differences,
      same ? "the engine's own state" : "ANOTHER STATE than the engine's");
  if (!each) ran += fmt::format("{}: in some round NO course was played\n", shape);
  return each && same && differences == 0 && rate <= kMost && slow <= kMost;
}

int run(const Settings& settings) {
  fmt::print(
      "{} nodes, {} s of releases a round, each followed by a submission; CPU time of the deciding thread; {} pairs of rounds by turns\n\n",
      settings.nodes,
      settings.seconds,
      settings.rounds);
  fmt::print(
      "| backlog | | without, median | with forecasts, median | worse by %, median pair (range) |\n|---|---|---|---|---|\n");
  bool good = true;
  std::string ran;
  for (const std::string& shape : split(settings.shapes, ',')) {
    (void)measure(shape, {1, 1, settings.nodes, shape}, false);  // warms up
    std::vector<Pair> pairs;
    for (int i = 0; i < settings.rounds; ++i) {
      Pair pair;
      if (i % 2 == 0) pair.without = measure(shape, settings, false);
      pair.with = measure(shape, settings, true);
      if (i % 2 == 1) pair.without = measure(shape, settings, false);
      pairs.push_back(pair);
    }
    good = report(shape, pairs, ran) && good;
  }
  fmt::print("\n{}", ran);
  fmt::print("{}\n", good ? "within 3 %" : "NOT within 3 %, or not foretold");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::bench::Settings settings;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    int* number = flag == "--rounds"    ? &settings.rounds
                  : flag == "--seconds" ? &settings.seconds
                  : flag == "--nodes"   ? &settings.nodes
                                        : nullptr;
    if (number != nullptr) {
      *number = std::atoi(value);
    } else if (flag == "--shapes") {
      settings.shapes = value;
    } else {
      fmt::print(
          stderr,
          "usage: engine_forecasts [--rounds N] [--seconds N] [--nodes N] [--shapes busy,deep]\n");
      return 2;
    }
  }
  if (settings.rounds < 1 || settings.seconds < 1 || settings.nodes < 100) {
    fmt::print(stderr, "engine_forecasts: wanted a round, a second and 100 nodes at least\n");
    return 2;
  }
  return muster::bench::run(settings);
}
