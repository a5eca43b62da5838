// dst [--world WORLD] --seed N [--steps STEPS] [--only STEP,…] [--trace 1] |
//     [--world WORLD] [--from N] [--all 1] --seeds N | --seconds S
//
// Random worlds from a seed: clusters, queues, gangs, priorities, node failures, resizes, eviction
// storms under Muster's policy (muster) and Volcano's (volcano); HiveD's virtual clusters, gangs and
// reconfigurations through the engine (cells) and through the cell allocator alone, whose tables are
// counted anew after every event (allocator). After every event what was decided is held against a
// model that knows none of the engine's tables. Without --world each seed makes one of every kind. The
// first seed that fails is made smaller and printed; with --all every one of them is printed as it is.
//
// dst --break: plants mistakes of each kind and fails if one of them is not found.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "minimise.h"
#include "world.h"

namespace muster::dst {
namespace {

/// Every kind of mistake must be found, and found as what it is, within so many seeds.
int find_faults() {
  constexpr std::uint64_t kSeeds = 400;
  int missed = 0;
  for (const NamedFault& f : faults()) {
    std::string found;
    for (std::uint64_t seed = 1; seed <= kSeeds && found.empty(); ++seed) {
      const Run run{.kind = f.kind, .seed = seed, .skipped = {}, .fault = f.fault};
      const auto failure = make_world(run)->go();
      if (!failure) continue;
      for (const char* text : f.found_as) {
        if (failure->text.find(text) != std::string::npos)
          found =
              fmt::format("found with seed {}, step {}: {}", seed, failure->step, failure->text);
      }
    }
    if (found.empty()) ++missed;
    fmt::print("{:9} {:8} {}\n", name_of(f.kind), f.name, found.empty() ? "NOT FOUND" : found);
  }
  return missed == 0 ? 0 : 1;
}

struct Options {
  /// Empty: all of them.
  std::string world;
  std::int64_t seed = -1;
  std::int64_t from = 1;
  std::int64_t seeds = 0;
  std::int64_t seconds = 20;
  Run run;
  bool only = false;
  /// Goes on after a seed that fails.
  bool all = false;
};

Options read_options(int argc, char** argv) {
  Options o;
  std::set<std::int64_t> only;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--only") {
      for (const auto& step : split_nonempty(argv[i + 1], ','))
        only.insert(parse_int(step).value_or(-1));
      continue;
    }
    if (name == "--world") {
      o.world = argv[i + 1];
      continue;
    }
    const auto value = parse_int(argv[i + 1]);
    if (!value) continue;
    if (name == "--all") o.all = *value != 0;
    if (name == "--trace") o.run.trace = *value != 0;
    if (name == "--seed") o.seed = *value;
    if (name == "--steps") o.run.steps = *value;
    if (name == "--from") o.from = *value;
    if (name == "--seeds") o.seeds = *value;
    if (name == "--seconds") o.seconds = *value;
  }
  if (only.empty()) return o;
  o.only = true;
  o.run.thorough = true;
  o.run.steps = *only.rbegin() + 1;
  for (std::int64_t i = 0; i < o.run.steps; ++i) {
    if (!only.contains(i)) o.run.skipped.insert(i);
  }
  return o;
}

int main_of(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--break") == 0) return find_faults();
  const Options o = read_options(argc, argv);
  std::vector<Kind> chosen;
  for (const NamedKind& kind : kinds()) {
    if (o.world.empty() || o.world == kind.name) chosen.push_back(kind.kind);
  }
  if (chosen.empty()) {
    fmt::print(stderr, "no world \"{}\"; wanted muster, volcano, cells or allocator\n", o.world);
    return 2;
  }
  std::atomic<std::int64_t> sent = 0, steps = 0;
  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex printing;
  const auto check = [&](Kind kind, std::uint64_t seed) {
    Run run = o.run;
    run.kind = kind;
    run.seed = seed;
    const auto world = make_world(run);
    const auto failure = world->go();
    sent += world->sent();
    steps += run.steps;
    if (!failure) return true;
    const std::lock_guard lock(printing);
    failed = true;
    fmt::print(
        "{} seed {} fails: step {}: {}\n", name_of(kind), seed, failure->step, failure->text);
    std::fflush(stdout);
    if (!o.only && !o.all) minimise(run, *failure);
    return o.all;
  };
  if (o.seed >= 0) {
    bool good = true;
    for (const Kind kind : chosen) good = check(kind, static_cast<std::uint64_t>(o.seed)) && good;
    return good && !failed ? 0 : 1;
  }
  // Worlds share nothing, so each core takes the next one.
  const auto start = std::chrono::steady_clock::now();
  const auto more = [&](std::uint64_t i) {
    if (failed && !o.all) return false;
    return o.seeds > 0 ? i < static_cast<std::uint64_t>(o.seeds) * chosen.size()
                       : std::chrono::steady_clock::now() - start < std::chrono::seconds(o.seconds);
  };
  std::vector<std::thread> workers;
  for (unsigned w = 0; w < std::max(1U, std::thread::hardware_concurrency()); ++w) {
    workers.emplace_back([&] {
      for (std::uint64_t i = next++; more(i); i = next++) {
        const std::uint64_t seed = static_cast<std::uint64_t>(o.from) + i / chosen.size();
        if (!check(chosen[i % chosen.size()], seed)) return;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (failed) return 1;
  fmt::print("{} events in {} steps, each followed by a decision: no violation\n",
             sent.load(),
             steps.load());
  return 0;
}

}  // namespace
}  // namespace muster::dst

int main(int argc, char** argv) { return muster::dst::main_of(argc, argv); }
