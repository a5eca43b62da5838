/// Durable writes per second of the store, by how many wait for their acknowledgement at once, and
/// the time to load what was written.
///
///   store_bench [folder for the database]
#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "net/loop/loop.h"
#include "store/store.h"

namespace {

using namespace muster;

constexpr int kKeys = 5'000;
constexpr int kSeconds = 3;

struct Run {
  Run(net::Loop& l, store::Store& s) : loop(l), store(s) {}
  net::Loop& loop;
  store::Store& store;
  std::uint64_t done = 0;
  int running = 0;
  bool stop = false;
  std::vector<Duration> waits;
};

/// One writer: the next write starts when the last is durable.
void write_next(Run& run, int writer) {
  if (run.stop) {
    --run.running;
    return;
  }
  static const auto value = std::make_shared<const std::string>(2048, 'v');
  const auto begun = run.loop.monotonic();
  const auto key = fmt::format("/registry/pods/default/pod-{}",
                               (run.done * 7919 + static_cast<std::uint64_t>(writer)) % kKeys);
  run.store.write(key, value, false, [&run, writer, begun](Result<void> result) {
    if (!result) {
      fmt::print(stderr, "store_bench: {}\n", result.error().message);
      std::exit(1);
    }
    ++run.done;
    run.waits.push_back(run.loop.monotonic() - begun);
    write_next(run, writer);
  });
}

void measure(net::Loop& loop, store::Store& store, int writers) {
  Run run(loop, store);
  const auto begun = loop.monotonic();
  loop.run_until_done([](Run& r, int count) -> Task<void> {
    for (int i = 0; i < count; ++i) {
      ++r.running;
      write_next(r, i);
    }
    co_await r.loop.sleep(std::chrono::seconds(kSeconds));
    r.stop = true;
    while (r.running > 0) co_await r.loop.sleep(std::chrono::milliseconds(1));
  }(run, writers));
  const auto took = static_cast<double>((loop.monotonic() - begun).count()) / 1e6;
  std::sort(run.waits.begin(), run.waits.end());
  fmt::print("{:>5} writers  {:>8.0f} writes/s   p50 {:>7} us   p99 {:>7} us\n",
             writers,
             static_cast<double>(run.done) / took,
             run.waits[run.waits.size() / 2].count(),
             run.waits[run.waits.size() * 99 / 100].count());
}

}  // namespace

int main(int argc, char** argv) {
  const auto base =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  std::string pattern = (base / "muster-store-bench-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  net::Loop loop;
  auto opened = store::open(loop, folder + "/store.db");
  if (!opened) return 1;
  for (const int writers : {1, 8, 64, 512}) measure(loop, **opened, writers);
  const auto begun = loop.monotonic();
  std::size_t count = 0;
  const auto loaded = (*opened)->load([&](store::Record) { ++count; });
  fmt::print("load of {} records: {} ms\n", count, (loop.monotonic() - begun).count() / 1000);
  loop.run_until_done([](store::Store& s) -> Task<void> { co_await s.close(); }(**opened));
  std::filesystem::remove_all(folder);
  return loaded ? 0 : 1;
}
