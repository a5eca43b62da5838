// How many decisions a second, one large gang, a deep backlog, evictions.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "backlogs.h"

namespace muster::bench {

using namespace engine;  // the subject of this file

namespace {

/// The floor: a table of free amounts, every node looked at, best fit by GPUs left.
double plain_scan(std::size_t nodes, std::size_t requests) {
  struct Columns {
    std::vector<std::int64_t> cpu, memory, gpu, pods;
  } t;
  t.cpu.assign(nodes, 96'000);
  t.memory.assign(nodes, 1024LL << 30);
  t.gpu.assign(nodes, 8);
  t.pods.assign(nodes, 110);
  Random r(1);
  const auto start = thread_seconds();
  std::deque<std::pair<std::size_t, std::int64_t>> placed;
  for (std::size_t i = 0; i < requests; ++i) {
    const std::int64_t gpus = 1LL << r.below(4);
    std::size_t best = nodes;
    for (std::size_t n = 0; n < nodes; ++n) {
      if (t.gpu[n] < gpus || t.cpu[n] < 4000 || t.memory[n] < (16LL << 30) || t.pods[n] < 1)
        continue;
      if (best == nodes || t.gpu[n] < t.gpu[best]) best = n;
    }
    if (best < nodes) {
      t.gpu[best] -= gpus;
      t.cpu[best] -= 4000;
      placed.emplace_back(best, gpus);
    }
    if (placed.size() > nodes) {
      const auto [n, g] = placed.front();
      placed.pop_front();
      t.gpu[n] += g;
      t.cpu[n] += 4000;
    }
  }
  return static_cast<double>(requests) / seconds_since(start);
}

/// Pods arrive and leave in a steady state; every arrival is an event and a decision of its own.
double engine_rate(std::size_t nodes, std::size_t requests) {
  Engine e(plain());
  for (std::size_t i = 0; i < nodes; ++i)
    e.apply(NodeUpsert{gpu_node(fmt::format("node-{}", i), 8)});
  (void)e.decide(Time::from_seconds(1));
  Random r(1);
  std::deque<std::string> running;
  std::size_t bound = 0;
  std::vector<Event> arrivals;
  for (std::size_t i = 0; i < requests; ++i) {
    Pod p = gpu_pod(fmt::format("bench/p-{}", i),
                    1LL << r.below(4),
                    2000 + 1000 * static_cast<std::int64_t>(r.below(4)));
    arrivals.emplace_back(PodUpsert{p});
  }
  const auto start = thread_seconds();
  for (std::size_t i = 0; i < requests; ++i) {
    e.apply(arrivals[i]);
    const Plan plan = e.decide(Time{1'000'000 + static_cast<std::int64_t>(i)});
    for (const auto& b : plan.binds) running.push_back(b.pod);
    bound += plan.binds.size();
    if (running.size() > nodes) {
      e.apply(PodRemove{running.front()});
      running.pop_front();
    }
  }
  const double rate = static_cast<double>(requests) / seconds_since(start);
  if (bound * 10 < requests * 9) fmt::print("  (only {} of {} bound)\n", bound, requests);
  return rate;
}

}  // namespace

void decisions() {
  fmt::print("decisions: single pods of 1-8 GPUs, one event and one decision each, steady state\n");
  fmt::print("{:>8} {:>16} {:>20}\n", "nodes", "engine /s", "plain scan /s");
  for (const std::size_t nodes : {1000, 5000, 15000}) {
    (void)engine_rate(nodes, 20'000);
    fmt::print("{:>8} {:>16.0f} {:>20.0f}\n",
               nodes,
               engine_rate(nodes, 100'000),
               plain_scan(nodes, 20'000));
  }
  fmt::print(
      "peers (whole process): kube-scheduler 680-790 pods/s at 5,000 nodes; HiveD about 2,000 calls/s at 352 nodes\n\n");
}

namespace {

/// The best of three decisions on one gang of one-GPU pods, in ms.
double gang_ms(std::size_t nodes, int size, Duration declared) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    Engine e(plain());
    for (std::size_t i = 0; i < nodes; ++i)
      e.apply(NodeUpsert{gpu_node(fmt::format("node-{}", i), 16)});
    Group g;
    g.key = "bench/g";
    g.min_member = size;
    e.apply(GroupUpsert{g});
    for (int i = 0; i < size; ++i) {
      Pod p = gpu_pod(fmt::format("bench/g-{}", i), 1, 1000, 4);
      p.group = "bench/g";
      p.expected_duration = declared;
      e.apply(PodUpsert{p});
    }
    const auto start = thread_seconds();
    const Plan plan = e.decide(Time::from_seconds(1));
    best = std::min(best, seconds_since(start));
    if (plan.binds.size() != static_cast<std::size_t>(size))
      fmt::print("  only {} bound\n", plan.binds.size());
  }
  return best * 1e3;
}

}  // namespace

void gang() {
  fmt::print("gang: one gang of 10,000 one-GPU pods, time of the decision\n");
  for (const std::size_t nodes : {1000, 10000})
    fmt::print("  {:>6} nodes: {:.1f} ms; durations declared: {:.1f} ms\n",
               nodes,
               gang_ms(nodes, 10'000, {}),
               gang_ms(nodes, 10'000, std::chrono::hours(1)));
  fmt::print("peers: kube-scheduler 1.37 none bound in 180 s; Volcano first bind after 37 s\n\n");
}

namespace {
void busy_backlog();
}

void deep_backlog() {
  fmt::print(
      "deep-backlog: 10,000 nodes full, N pending in 1,000 queues; one release to the decision it enables\n");
  double small = 0;
  for (const int pending : {1000, 100'000}) {
    Deep deep(10'000, pending, Time{});
    const Engine& e = deep.e;
    std::vector<double> times;
    for (int i = 0; i < 1000; ++i) {
      const Time now{3'000'000 + i};
      const auto [us, binds] = deep.release(now);
      times.push_back(us);
      deep.refill(now);  // the backlog stays as deep as it was
      if (binds != 1) fmt::print("  release {} enabled {} binds\n", i, binds);
    }
    std::sort(times.begin(), times.end());
    const double p50 = times[times.size() / 2];
    fmt::print("  {:>7} pending: p50 {:.0f} us, p99 {:.0f} us\n",
               pending,
               p50,
               times[times.size() * 99 / 100]);
    const auto asked = thread_seconds();
    std::int64_t waiting = 0;
    for (int q = 0; q < 1000; ++q) waiting += e.queue(fmt::format("q{}", q))->gangs_waiting;
    fmt::print("  {:>7} pending: the figures of all queues ({} gangs wait) in {:.0f} us\n",
               pending,
               waiting,
               seconds_since(asked) * 1e6);
    if (pending == 1000) small = p50;
    if (pending != 1000) fmt::print("  ratio 100k : 1k = {:.2f}\n", p50 / small);
  }
  fmt::print(
      "peers: Kueue 9.6 admissions a minute from one deep queue (p50 wait 64 min at depth 536)\n\n");
  busy_backlog();
}

namespace {

/// One release, decided alone.
void busy_backlog() {
  fmt::print(
      "busy-backlog: 10,000 nodes, 100 queues, 30,000 pods run and 70,000 wait, durations unknown, 8 reservations\n");
  Busy busy(10'000, 100, 100'000, Time::from_seconds(1000));
  std::vector<double> times;
  std::size_t bound = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto [us, binds] = busy.release(busy.now + std::chrono::seconds(1));
    times.push_back(us);
    bound += binds;
    if (i % 3 == 0) busy.refill(busy.now);
  }
  double mean = 0;
  for (const double t : times) mean += t / static_cast<double>(times.size());
  std::sort(times.begin(), times.end());
  fmt::print(
      "  one release: p50 {:.0f} us, mean {:.0f} us, p99 {:.0f} us, slowest {:.0f} us; {} run, {} pods wait, {} started\n\n",
      times[times.size() / 2],
      mean,
      times[times.size() * 99 / 100],
      times.back(),
      busy.running(),
      busy.e.stats().pods - static_cast<std::int64_t>(busy.running()),
      bound);
}

double resident_mb() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    (void)std::fclose(file);
  }
  return static_cast<double>(resident) * 4096 / 1e6;
}

}  // namespace

void copies() {
  fmt::print("copies: the engine of a busy cluster, copied; CPU time, best of five\n");
  for (const auto& [nodes, queues, pods] : {std::tuple(100, 10, 1'000),
                                            std::tuple(1'000, 20, 10'000),
                                            std::tuple(10'000, 100, 100'000)}) {
    Busy busy(nodes, queues, pods, Time::from_seconds(1000));
    double clone = 1e9, rehearsal = 1e9;
    const double before = resident_mb();
    std::vector<Engine> kept;
    for (int i = 0; i < 5; ++i) {
      double start = thread_seconds();
      kept.push_back(busy.e.clone());
      clone = std::min(clone, seconds_since(start));
      start = thread_seconds();
      const Engine played = busy.e.rehearsal();
      rehearsal = std::min(rehearsal, seconds_since(start));
    }
    fmt::print(
        "  {:>6} nodes, {:>7} pods: clone {:.2f} ms, rehearsal {:.2f} ms, {:.1f} MB a copy\n",
        nodes,
        pods,
        clone * 1e3,
        rehearsal * 1e3,
        (resident_mb() - before) / 5);
  }
  fmt::print("\n");
}

void preempt_min() {
  fmt::print(
      "preempt-min: 5,000 nodes full of low-priority pods; high-priority pods of 1-8 GPUs arrive one by one\n");
  Config c = plain();
  c.preempt = true;
  Engine e(c);
  Random r(7);
  const int nodes = 5000;
  std::vector<std::vector<std::int64_t>> sizes(nodes);
  for (int i = 0; i < nodes; ++i) e.apply(NodeUpsert{gpu_node(fmt::format("node-{}", i), 8)});
  int made = 0;
  std::map<std::string, std::int64_t> size_of;
  for (int i = 0; i < nodes; ++i) {
    std::int64_t left = 8;
    while (left > 0) {
      const std::int64_t g = std::min<std::int64_t>(left, 1LL << r.below(4));
      Pod p = gpu_pod(fmt::format("bench/low-{}", made++), g, 1000, 4);
      p.node = fmt::format("node-{}", i);
      p.created = Time{made};
      e.apply(PodUpsert{p});
      sizes[static_cast<std::size_t>(i)].push_back(g);
      size_of[p.key] = g;
      left -= g;
    }
  }
  (void)e.decide(Time::from_seconds(1));
  std::int64_t evicted = 0;
  std::int64_t least = 0;
  std::int64_t bound = 0;
  std::set<std::string> victims;
  std::int64_t repeats = 0;
  const int preemptors = 3000;
  double in_engine = 0;
  for (int i = 0; i < preemptors; ++i) {
    const std::int64_t g = 1LL << r.below(4);
    Pod p = gpu_pod(fmt::format("bench/high-{}", i), g, 1000, 4);
    p.priority = 100;
    // The least possible for one pod: over all nodes, the fewest pods whose sizes add up to the
    // request.
    std::int64_t fewest = 1000;
    for (const auto& node : sizes) {
      std::int64_t sum = 0;
      std::int64_t n = 0;
      std::vector<std::int64_t> sorted = node;
      std::sort(sorted.rbegin(), sorted.rend());
      for (const auto s : sorted) {
        if (sum >= g) break;
        sum += s;
        ++n;
      }
      if (sum >= g) fewest = std::min(fewest, n);
    }
    const auto start = thread_seconds();
    e.apply(PodUpsert{p});
    const Plan plan = e.decide(Time{2'000'000 + 2 * i});
    for (const auto& v : plan.evicts) e.apply(PodRemove{v.pod});
    const Plan after = e.decide(Time{2'000'001 + 2 * i});
    in_engine += seconds_since(start);
    for (const auto& v : plan.evicts) {
      if (!victims.insert(v.pod).second) ++repeats;
      const int n = std::stoi(v.node.substr(5));
      auto& list = sizes[static_cast<std::size_t>(n)];
      list.erase(std::find(list.begin(), list.end(), size_of[v.pod]));
    }
    evicted += static_cast<std::int64_t>(plan.evicts.size());
    least += plan.evicts.empty() ? 0 : fewest;
    bound += static_cast<std::int64_t>(plan.binds.size() + after.binds.size());
  }
  fmt::print(
      "  {:.0f} preemptions/s (event, victims, their removal, bind); {} of {} bound; {} evicted, least possible {} ({:.3f}x); {} evicted twice\n",
      preemptors / in_engine,
      bound,
      preemptors,
      evicted,
      least,
      least > 0 ? static_cast<double>(evicted) / static_cast<double>(least) : 0.0,
      repeats);
  fmt::print("peers: kube-scheduler 570 pods/s (PreemptionAsync, 5,000 nodes)\n\n");
}

}  // namespace muster::bench
