// Far above any cluster: whether something grows faster than the cluster does.
#include <chrono>
#include <ctime>
#include <fstream>
#include <vector>

#include "bench.h"

namespace muster::bench {

using namespace engine;  // the subject of this file

namespace {

constexpr std::size_t kNodes = 100'000, kPods = 1'000'000, kGang = 100'000;
constexpr std::size_t kBatch = 1000;  // a look at the clock costs as much as a small decision

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::int64_t resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib / 1024;
  }
  return 0;
}

}  // namespace

void scale() {
  fmt::print(
      "scale: {} nodes of 16 GPUs, {} pods of one GPU, then a gang of {}\n", kNodes, kPods, kGang);
  Config config;
  config.reservations = 0;
  config.preempt = config.reclaim = false;
  Engine e(config);
  const auto begun = thread_seconds();
  for (std::size_t i = 0; i < kNodes; ++i)
    e.apply(NodeUpsert{gpu_node(fmt::format("node-{}", i), 16)});
  (void)e.decide(Time::from_seconds(1));
  fmt::print("  nodes: {:.2f} s, {} MiB\n", thread_seconds() - begun, resident_mib());
  double spent = 0, slowest = 0;
  std::size_t bound = 0, slowest_at = 0;
  for (std::size_t i = 0; i < kPods; i += kBatch) {
    std::vector<Event> arrivals;
    for (std::size_t k = i; k < i + kBatch; ++k)
      arrivals.emplace_back(PodUpsert{gpu_pod(fmt::format("bench/p-{}", k), 1, 1000, 4)});
    const auto start = thread_seconds();
    for (std::size_t k = 0; k < kBatch; ++k) {
      e.apply(arrivals[k]);
      bound += e.decide(Time{2'000'000 + static_cast<std::int64_t>(i + k)}).binds.size();
    }
    const double took = thread_seconds() - start;
    spent += took;
    if (took > slowest) slowest_at = i;
    slowest = std::max(slowest, took);
  }
  fmt::print(
      "  pods: {} bound, {:.0f} decisions/s, slowest thousand {:.1f} ms (from pod {}), {} MiB\n",
      bound,
      static_cast<double>(kPods) / spent,
      slowest * 1e3,
      slowest_at,
      resident_mib());
  Group group;
  group.key = "bench/g";
  group.min_member = kGang;
  e.apply(GroupUpsert{group});
  for (std::size_t i = 0; i < kGang; ++i) {
    Pod pod = gpu_pod(fmt::format("bench/g-{}", i), 1, 1000, 4);
    pod.group = group.key;
    e.apply(PodUpsert{pod});
  }
  const auto start = thread_seconds();
  const Plan plan = e.decide(Time::from_seconds(10));
  fmt::print("  gang: {} bound in {:.0f} ms, {} MiB\n\n",
             plan.binds.size(),
             (thread_seconds() - start) * 1e3,
             resident_mib());
}

}  // namespace muster::bench
