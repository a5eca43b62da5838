// dst --seed N --events M | --seconds S: random clusters, queues, gangs, priorities, node failures, queue resizes and
// eviction storms, all from a seed. After every event the plan is held against a world model that knows none of the
// engine's tables: nothing overcommitted, no device given twice, no gang started in part, no limit broken, no
// eviction that is not allowed, nobody waiting who could start, the same input the same plan.
//
// Every step draws from its own generator (seed, step), so steps can be left out and the rest stays what it was:
// that is how a failing run is made small before it is printed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "base/strings.h"
#include "engine/engine.h"

namespace muster::dst {
namespace {

using namespace muster::engine;  // the subject of this file

enum class Life { kPending, kBound, kLeaving };

struct SimPod {
  Pod spec;
  Life life = Life::kPending;
};

struct SimNode {
  Node spec;
  std::int64_t cpu = 0;
  std::int64_t gpus = 0;
};

struct Options {
  bool reservations = false;
  bool limits = true;
  bool preempt = true;
};

class World {
 public:
  World(std::uint64_t seed, const std::set<std::int64_t>& skipped) : seed_(seed), skipped_(skipped), engine_(config(seed)), twin_(config(seed)) {
    compare_ = seed % 8 == 0;
    Random r(seed * 7919 + 1);
    const auto nodes = 2 + r.below(7);
    for (std::uint64_t i = 0; i < nodes; ++i) add_node(r);
    const auto queues = 1 + r.below(4);
    for (std::uint64_t i = 0; i < queues; ++i) {
      Queue q;
      q.name = fmt::format("q{}", i);
      q.weight = static_cast<std::int32_t>(1 + r.below(3));
      q.backfill = r.chance(30) ? BackfillMode::kSkip : BackfillMode::kReservation;
      if (r.chance(40)) q.capability = {{"nvidia.com/gpu", static_cast<std::int64_t>(4 + r.below(20))}};
      if (r.chance(30)) q.deserved = {{"nvidia.com/gpu", static_cast<std::int64_t>(2 + r.below(8))}};
      queues_.push_back(q);
      send(QueueUpsert{q});
    }
  }

  /// What went wrong, or nothing.
  std::optional<std::string> run(std::int64_t events) {
    for (std::int64_t step = 0; step < events; ++step) {
      if (skipped_.contains(step)) continue;
      Random r(seed_ * 1'000'003 + static_cast<std::uint64_t>(step) * 17 + 5);
      now_ = now_ + Duration(static_cast<std::int64_t>(r.below(5'000'000)));
      act(r);
      decide(r);
      if (failure_) return fmt::format("step {}: {}", step, *failure_);
    }
    return std::nullopt;
  }

 private:
  static Config config(std::uint64_t seed) {
    Config c;
    c.default_queue = "q0";
    c.reservations = seed % 3 == 0 ? 2 : 0;
    c.preempt = seed % 5 != 0;
    c.patience = std::chrono::seconds(30);
    return c;
  }

  void send(const Event& e) {
    engine_.apply(e);
    if (compare_) twin_.apply(e);
  }

  void fail(std::string text) {
    if (!failure_) failure_ = std::move(text);
  }

  void add_node(Random& r) {
    SimNode n;
    n.gpus = static_cast<std::int64_t>(r.chance(80) ? 4 + 4 * r.below(2) : 0);
    n.cpu = static_cast<std::int64_t>(16'000 + 16'000 * r.below(2));
    n.spec.name = fmt::format("n{}", ++names_);
    n.spec.labels = {{"zone", r.chance(50) ? "a" : "b"}};
    n.spec.allocatable = {{"cpu", n.cpu}, {"memory", 1LL << 38}, {"pods", 30}};
    if (n.gpus > 0) n.spec.allocatable.push_back({"nvidia.com/gpu", n.gpus});
    send(NodeUpsert{n.spec});
    nodes_[n.spec.name] = n;
  }

  Pod make_pod(Random& r, const std::string& key) {
    Pod p;
    p.key = key;
    p.ns = "d";
    p.uid = fmt::format("u{}", ++names_);
    p.created = now_;
    p.requests = {{"cpu", static_cast<std::int64_t>(500 + 500 * r.below(8))}, {"memory", 1LL << 30}};
    const auto kind = r.below(10);
    if (kind < 6) {
      p.requests.push_back({"nvidia.com/gpu", 1LL << r.below(4)});
    } else if (kind < 8) {
      p.device_share_milli = static_cast<std::int32_t>(100 * (1 + r.below(9)));
    }
    if (r.chance(10)) p.node_selector = {{"zone", r.chance(50) ? "a" : "b"}};
    if (r.chance(50)) p.expected_duration = std::chrono::seconds(10 + r.below(300));
    return p;
  }

  void add_gang(Random& r) {
    Group g;
    g.key = fmt::format("d/g{}", ++names_);
    g.queue = queues_[r.below(queues_.size())].name;
    const auto members = static_cast<std::int32_t>(1 + r.below(6));
    g.min_member = static_cast<std::int32_t>(1 + r.below(static_cast<std::uint64_t>(members)));
    g.priority = static_cast<std::int32_t>(std::array{0, 0, 10, 100}[r.below(4)]);
    g.created = now_;
    if (r.chance(10)) g.topology = {{"zone", r.chance(50)}};
    groups_[g.key] = g;
    const bool group_first = r.chance(50);
    if (group_first) send(GroupUpsert{g});
    Pod like = make_pod(r, "");
    for (std::int32_t i = 0; i < members; ++i) {
      SimPod p;
      p.spec = like;
      p.spec.key = fmt::format("{}-{}", g.key, i);
      p.spec.uid = fmt::format("u{}", ++names_);
      p.spec.group = g.key;
      p.spec.priority = g.priority;
      send(PodUpsert{p.spec});
      pods_[p.spec.key] = p;
    }
    if (!group_first) send(GroupUpsert{g});
  }

  void add_single(Random& r) {
    SimPod p;
    p.spec = make_pod(r, fmt::format("d/p{}", ++names_));
    p.spec.queue = queues_[r.below(queues_.size())].name;
    p.spec.priority = static_cast<std::int32_t>(std::array{0, 0, 10, 100}[r.below(4)]);
    send(PodUpsert{p.spec});
    pods_[p.spec.key] = p;
  }

  SimPod* random_pod(Random& r, Life life) {
    std::vector<SimPod*> all;
    for (auto& [key, p] : pods_) {
      if (p.life == life) all.push_back(&p);
    }
    return all.empty() ? nullptr : all[r.below(all.size())];
  }

  void remove_group(const std::string& key) {
    for (auto it = pods_.begin(); it != pods_.end();) {
      if (it->second.spec.group == key) {
        send(PodRemove{it->first});
        it = pods_.erase(it);
      } else {
        ++it;
      }
    }
    send(GroupRemove{key});
    groups_.erase(key);
  }

  /// A pod is gone; its owner makes another of the same name, unless it was alone.
  void replace(const std::string& key) {
    SimPod p = pods_[key];
    send(PodRemove{key});
    if (p.spec.group.empty()) {
      pods_.erase(key);
      return;
    }
    p.life = Life::kPending;
    p.spec.node.clear();
    p.spec.device_indexes.clear();
    p.spec.terminating = false;
    p.spec.started = Time{};
    p.spec.uid = fmt::format("u{}", ++names_);
    send(PodUpsert{p.spec});
    pods_[key] = p;
  }

  void act(Random& r) {
    const auto what = r.below(100);
    if (what < 22 && pods_.size() < 60) return add_gang(r);
    if (what < 45 && pods_.size() < 60) return add_single(r);
    if (what < 70) {
      SimPod* p = random_pod(r, Life::kBound);
      if (p == nullptr) return;
      if (!p->spec.group.empty()) return remove_group(std::string(p->spec.group));
      const std::string key = p->spec.key;
      send(PodRemove{key});
      pods_.erase(key);
      return;
    }
    if (what < 75) {
      SimPod* p = random_pod(r, Life::kBound);
      if (p != nullptr) replace(std::string(p->spec.key));
      return;
    }
    if (what < 80) return toggle_node(r);
    if (what < 83) return lose_node(r);
    if (what < 86 && nodes_.size() < 10) return add_node(r);
    if (what < 90) {
      Queue& q = queues_[r.below(queues_.size())];
      q.capability.clear();
      if (r.chance(60)) q.capability = {{"nvidia.com/gpu", static_cast<std::int64_t>(4 + r.below(24))}};
      return send(QueueUpsert{q});
    }
    if (what < 94) {
      SimPod* p = random_pod(r, Life::kPending);
      if (p == nullptr) return;
      p->spec.gated = !p->spec.gated;
      return send(PodUpsert{p->spec});
    }
    // The rest: only time passes, and those told to go leave.
    for (auto& [key, p] : std::map<std::string, SimPod>(pods_)) {
      if (p.life == Life::kLeaving) replace(key);
    }
  }

  void toggle_node(Random& r) {
    auto it = std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(r.below(nodes_.size())));
    if (r.chance(50)) {
      it->second.spec.ready = !it->second.spec.ready;
    } else {
      it->second.spec.unschedulable = !it->second.spec.unschedulable;
    }
    send(NodeUpsert{it->second.spec});
  }

  void lose_node(Random& r) {
    if (nodes_.size() < 2) return;
    auto it = std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(r.below(nodes_.size())));
    const std::string name = it->first;
    nodes_.erase(it);
    send(NodeRemove{name});
    std::vector<std::string> lost;
    for (const auto& [key, p] : pods_) {
      if (p.spec.node == name) lost.push_back(key);
    }
    for (const auto& key : lost) replace(key);
  }

  static std::int64_t want(const Pod& p, const std::string& name) {
    for (const auto& a : p.requests) {
      if (a.name == name) return a.value;
    }
    return 0;
  }
  static std::int64_t want_milli(const Pod& p) { return want(p, "nvidia.com/gpu") * 1000 + p.device_share_milli; }

  std::int32_t priority_of(const Pod& p) const { return p.group.empty() ? p.priority : groups_.at(p.group).priority; }
  std::string queue_of(const Pod& p) const { return p.group.empty() ? p.queue : groups_.at(p.group).queue; }

  struct Room {
    std::int64_t cpu = 0;
    std::int64_t pods = 0;
    std::vector<std::int32_t> devices;
  };
  Room room_of(const SimNode& n) const {
    Room room{n.cpu, 30, std::vector<std::int32_t>(static_cast<std::size_t>(n.gpus), 1000)};
    for (const auto& [key, p] : pods_) {
      if (p.life == Life::kPending || p.spec.node != n.spec.name) continue;
      room.cpu -= want(p.spec, "cpu");
      room.pods -= 1;
      for (const auto d : p.spec.device_indexes) {
        room.devices[static_cast<std::size_t>(d)] -= p.spec.device_share_milli > 0 ? p.spec.device_share_milli : 1000;
      }
    }
    return room;
  }

  void decide(Random& r) {
    const Plan plan = engine_.decide(now_);
    if (compare_) {
      const Plan other = twin_.decide(now_);
      if (plan.binds != other.binds || plan.evicts != other.evicts || plan.nominations != other.nominations) {
        fail("the same events gave another plan");
      }
    }
    std::set<std::string> touched;
    for (const auto& b : plan.binds) check_bind(b, touched);
    for (const auto& e : plan.evicts) check_evict(e);
    check_gangs(touched);
    check_limits(plan);
    if (failure_) return;
    check_nobody_left_behind(plan);
    // Some binds fail on the way; the engine is told.
    for (const auto& b : plan.binds) {
      if (!r.chance(2)) continue;
      SimPod& p = pods_[b.pod];
      p.life = Life::kPending;
      p.spec.node.clear();
      p.spec.device_indexes.clear();
      send(BindResult{b.pod, false});
    }
    // And some of those told to go have gone.
    for (const auto& e : plan.evicts) {
      if (pods_.contains(e.pod) && pods_[e.pod].life == Life::kLeaving && r.chance(50)) replace(e.pod);
    }
  }

  void check_bind(const Bind& b, std::set<std::string>& touched) {
    const auto it = pods_.find(b.pod);
    if (it == pods_.end()) return fail("bind of unknown pod " + b.pod);
    SimPod& p = it->second;
    if (p.life != Life::kPending) return fail("bind of a pod that does not wait: " + b.pod);
    if (p.spec.uid != b.uid) return fail("bind with a stale uid: " + b.pod);
    if (p.spec.gated) return fail("bind of a gated pod: " + b.pod);
    const auto n = nodes_.find(b.node);
    if (n == nodes_.end()) return fail("bind to a node that is gone: " + b.node);
    if (!n->second.spec.ready || n->second.spec.unschedulable) return fail("bind to an unusable node: " + b.node);
    for (const auto& [k, v] : p.spec.node_selector) {
      if (n->second.spec.labels[0].second != v) return fail("bind against the node selector: " + b.pod);
    }
    const auto wanted = p.spec.device_share_milli > 0 ? 1 : want(p.spec, "nvidia.com/gpu");
    if (static_cast<std::int64_t>(b.devices.size()) != wanted) return fail(fmt::format("{} got {} devices, wanted {}", b.pod, b.devices.size(), wanted));
    p.life = Life::kBound;
    p.spec.node = b.node;
    p.spec.device_indexes = b.devices;
    p.spec.started = now_;
    const Room room = room_of(n->second);
    if (room.cpu < 0) fail("cpu overcommitted on " + b.node);
    if (room.pods < 0) fail("too many pods on " + b.node);
    for (const auto d : room.devices) {
      if (d < 0) fail("a device given twice on " + b.node);
    }
    touched.insert(p.spec.group);
  }

  void check_evict(const Evict& e) {
    const auto it = pods_.find(e.pod);
    if (it == pods_.end()) return fail("eviction of unknown pod " + e.pod);
    SimPod& p = it->second;
    if (p.life != Life::kBound) return fail("eviction of a pod that does not run: " + e.pod);
    p.life = Life::kLeaving;
    const auto winner = groups_.find(e.for_whom);
    const auto single = pods_.find(e.for_whom);
    if (winner == groups_.end() && single == pods_.end()) return fail("eviction for nobody: " + e.for_whom);
    const auto priority = winner != groups_.end() ? winner->second.priority : single->second.spec.priority;
    if (e.kind == EvictKind::kPreempt && priority_of(p.spec) >= priority) fail("eviction of an equal or higher priority: " + e.pod);
    const auto queue = winner != groups_.end() ? winner->second.queue : single->second.spec.queue;
    if (e.kind == EvictKind::kReclaim && queue == queue_of(p.spec)) fail("reclaim inside a queue: " + e.pod);
  }

  void check_gangs(const std::set<std::string>& touched) {
    std::map<std::string, std::int32_t> bound;
    std::map<std::string, std::set<std::string>> zones;
    for (const auto& [key, p] : pods_) {
      if (p.life != Life::kBound || p.spec.group.empty()) continue;
      ++bound[p.spec.group];
      if (nodes_.contains(p.spec.node)) zones[p.spec.group].insert(nodes_[p.spec.node].spec.labels[0].second);
    }
    for (const auto& key : touched) {
      if (key.empty()) continue;
      if (!groups_.contains(key)) {
        fail("members started without their group: " + key);
        continue;
      }
      const Group& g = groups_[key];
      if (bound[key] < g.min_member) fail(fmt::format("gang {} started with {} of {}", key, bound[key], g.min_member));
      if (!g.topology.empty() && g.topology[0].required && zones[key].size() > 1) fail("gang spans two domains: " + key);
    }
  }

  void check_limits(const Plan& plan) {
    std::map<std::string, std::int64_t> used;
    for (const auto& [key, p] : pods_) {
      if (p.life == Life::kBound) used[queue_of(p.spec)] += want_milli(p.spec);
    }
    std::set<std::string> grew;
    for (const auto& b : plan.binds) {
      if (want_milli(pods_[b.pod].spec) > 0) grew.insert(queue_of(pods_[b.pod].spec));
    }
    for (const auto& q : queues_) {
      if (q.capability.empty() || !grew.contains(q.name)) continue;
      if (used[q.name] > q.capability[0].value * 1000) fail("queue beyond its capability: " + q.name);
    }
  }

  /// With no reservations in play, a lone pod whose queue has room and which fits somewhere must not wait.
  void check_nobody_left_behind(const Plan& plan) {
    if (config(seed_).reservations > 0 || !plan.evicts.empty()) return;
    for (const auto& [key, p] : pods_) {
      if (p.life == Life::kLeaving) return;  // room may be held for somebody
    }
    std::map<std::string, std::int64_t> used;
    for (const auto& [key, p] : pods_) {
      if (p.life == Life::kBound) used[queue_of(p.spec)] += want_milli(p.spec);
    }
    for (const auto& [key, p] : pods_) {
      if (p.life != Life::kPending || p.spec.gated || !p.spec.group.empty()) continue;
      bool over = false;
      for (const auto& q : queues_) {
        if (q.name == p.spec.queue && !q.capability.empty() && used[q.name] + want_milli(p.spec) > q.capability[0].value * 1000) over = true;
      }
      if (over && want_milli(p.spec) > 0) continue;
      for (const auto& [name, n] : nodes_) {
        if (!n.spec.ready || n.spec.unschedulable) continue;
        bool selected = true;
        for (const auto& [k, v] : p.spec.node_selector) selected &= n.spec.labels[0].second == v;
        if (!selected) continue;
        const Room room = room_of(n);
        if (room.cpu < want(p.spec, "cpu") || room.pods < 1) continue;
        const auto whole = std::count(room.devices.begin(), room.devices.end(), 1000);
        if (whole < want(p.spec, "nvidia.com/gpu")) continue;
        if (p.spec.device_share_milli > 0 &&
            std::none_of(room.devices.begin(), room.devices.end(), [&](auto d) { return d >= p.spec.device_share_milli; })) {
          continue;
        }
        const auto why = engine_.why(key);
        return fail(fmt::format("{} waits although it fits on {}: {}", key, name, why ? describe(why->refusal) : "it does not know why"));
      }
    }
  }

  std::uint64_t seed_;
  const std::set<std::int64_t>& skipped_;
  Engine engine_;
  Engine twin_;
  bool compare_ = false;
  Time now_ = Time::from_seconds(1'000'000);
  std::map<std::string, SimNode> nodes_;
  std::map<std::string, SimPod> pods_;
  std::map<std::string, Group> groups_;
  std::vector<Queue> queues_;
  std::int64_t names_ = 0;
  std::optional<std::string> failure_;
};

std::optional<std::string> run(std::uint64_t seed, std::int64_t events, const std::set<std::int64_t>& skipped) {
  return World(seed, skipped).run(events);
}

/// Leaves out as many steps as possible while it still fails.
void minimise(std::uint64_t seed, std::int64_t events) {
  const std::set<std::int64_t> none;
  std::int64_t low = 1;
  while (low < events) {
    const std::int64_t middle = (low + events) / 2;
    (run(seed, middle, none) ? events : low) = run(seed, middle, none) ? middle : middle + 1;
  }
  std::set<std::int64_t> skipped;
  for (std::int64_t chunk = events / 2; chunk >= 1; chunk /= 2) {
    for (std::int64_t from = 0; from + chunk <= events; from += chunk) {
      std::set<std::int64_t> trial = skipped;
      for (std::int64_t i = from; i < from + chunk; ++i) trial.insert(i);
      if (run(seed, events, trial)) skipped = std::move(trial);
    }
  }
  std::string kept;
  for (std::int64_t i = 0; i < events; ++i) {
    if (!skipped.contains(i)) kept += fmt::format("{} ", i);
  }
  const auto why = run(seed, events, skipped);
  fmt::print("smallest: --seed {} --events {} with only steps {}: {}\n", seed, events, kept, why.value_or("(passes)"));
}

int main_of(int argc, char** argv) {
  std::int64_t seed = -1;
  std::int64_t events = 400;
  std::int64_t seconds = 20;
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto value = parse_int(argv[i + 1]);
    if (!value) continue;
    if (std::strcmp(argv[i], "--seed") == 0) seed = *value;
    if (std::strcmp(argv[i], "--events") == 0) events = *value;
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = *value;
  }
  const std::set<std::int64_t> none;
  const auto check = [&](std::uint64_t s) {
    const auto why = run(s, events, none);
    if (!why) return true;
    fmt::print("seed {} fails: {}\n", s, *why);
    std::fflush(stdout);
    minimise(s, events);
    return false;
  };
  if (seed >= 0) return check(static_cast<std::uint64_t>(seed)) ? 0 : 1;
  const auto start = std::chrono::steady_clock::now();
  std::int64_t total = 0;
  for (std::uint64_t s = 1; std::chrono::steady_clock::now() - start < std::chrono::seconds(seconds); ++s) {
    if (!check(s)) return 1;
    total += events;
  }
  fmt::print("{} events, no violation\n", total);
  return 0;
}

}  // namespace
}  // namespace muster::dst

int main(int argc, char** argv) { return muster::dst::main_of(argc, argv); }
