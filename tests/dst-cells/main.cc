// dst_cells [--seed N] [--events N] [--seconds N] [--large] [--verbose]
//
// Without --seed: worlds of 300 events each from seed 1 on, until --seconds (35) or --events are
// over, whichever comes first. The first failure is minimised (events dropped while it still fails)
// and printed with the command that replays it.

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"
#include "world.h"

namespace muster::dst {
namespace {

constexpr std::uint64_t kEventsPerWorld = 300;
volatile std::uint64_t current_seed = 0;

void on_crash(int signal) {
  char text[64];
  const int n = std::snprintf(
      text, sizeof text, "crashed at --seed %llu\n", static_cast<unsigned long long>(current_seed));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(n)) < 0) std::_Exit(3);
  std::_Exit(128 + signal);
}

/// The number of the failing event and what is wrong.
std::pair<std::size_t, std::string> run(std::uint64_t seed,
                                        bool large,
                                        const std::vector<std::uint64_t>& events,
                                        bool verbose) {
  World world(seed, large);
  world.verbose = verbose;
  if (verbose) fmt::print("{}\n", world.describe());
  for (std::size_t i = 0; i < events.size(); ++i) {
    std::string wrong = world.apply(events[i]);
    if (!wrong.empty()) return {i, std::move(wrong)};
  }
  return {events.size(), ""};
}

int minimise(std::uint64_t seed, bool large, std::vector<std::uint64_t> events) {
  auto [at, wrong] = run(seed, large, events, false);
  events.resize(at + 1);
  for (std::size_t chunk = events.size() / 2; chunk > 0; chunk /= 2) {
    for (std::size_t i = 0; i + chunk <= events.size();) {
      std::vector<std::uint64_t> fewer = events;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i),
                  fewer.begin() + static_cast<std::ptrdiff_t>(i + chunk));
      const auto [where, still] = run(seed, large, fewer, false);
      if (still.empty()) {
        i += chunk;
      } else {
        fewer.resize(where + 1);
        events = std::move(fewer);
      }
    }
  }
  fmt::print("seed {}{}: {}\nminimised to {} events:\n",
             seed,
             large ? " (large)" : "",
             wrong,
             events.size());
  const auto [where, again] = run(seed, large, events, true);
  fmt::print("event {}: {}\nreplay: dst_cells --seed {} --events {}{} --verbose\n",
             where,
             again,
             seed,
             kEventsPerWorld,
             large ? " --large" : "");
  return 1;
}

int main_with(int argc, char** argv) {
  std::uint64_t seed = 0, limit = 0, seconds = 35;
  bool large = false, verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] {
      return i + 1 < argc ? static_cast<std::uint64_t>(parse_int(argv[++i]).value_or(0)) : 0;
    };
    if (flag == "--seed")
      seed = value();
    else if (flag == "--events")
      limit = value();
    else if (flag == "--seconds")
      seconds = value();
    else if (flag == "--large")
      large = true;
    else if (flag == "--verbose")
      verbose = true;
    else {
      fmt::print(stderr,
                 "unknown option {}; want --seed N, --events N, --seconds N, --large, --verbose\n",
                 flag);
      return 2;
    }
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE}) std::signal(signal, on_crash);
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::uint64_t done = 0, worlds = 0;
  for (std::uint64_t s = seed == 0 ? 1 : seed;; ++s) {
    current_seed = s;
    // Every tenth world is large unless one seed is asked for.
    const bool big = seed == 0 ? s % 10 == 0 : large;
    std::vector<std::uint64_t> events;
    for (std::uint64_t i = 0; i < (seed != 0 && limit != 0 ? limit : kEventsPerWorld); ++i)
      events.push_back(i);
    const auto [at, wrong] = run(s, big, events, verbose && seed != 0);
    if (!wrong.empty()) return minimise(s, big, events);
    done += events.size();
    ++worlds;
    if (seed != 0 || (limit != 0 && done >= limit) || elapsed() > static_cast<double>(seconds))
      break;
  }
  fmt::print("{} events in {} worlds, {:.1f} s: all invariants held\n", done, worlds, elapsed());
  return 0;
}

}  // namespace
}  // namespace muster::dst

int main(int argc, char** argv) { return muster::dst::main_with(argc, argv); }
