// dst --seed N [--events STEPS] [--trace 1] | --seeds N | --seconds S: random clusters, queues, gangs, priorities, node failures, queue resizes and
// eviction storms, all from a seed. After every event the plan is held against a world model that knows none of the
// engine's tables: nothing overcommitted, no device given twice, no gang started in part, no limit broken, no
// eviction that is not allowed, nobody waiting who could start, the same input the same plan.
//
// dst --break: plants mistakes of each kind and fails if one of them is not found.
//
// Every step draws from its own generator (seed, step), so steps can be left out and the rest stays what it was:
// that is how a failing run is made small before it is printed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "base/strings.h"
#include "engine/engine.h"

namespace muster::dst {
namespace {

using namespace muster::engine;  // the subject of this file

enum class Life { kPending, kBound, kLeaving };

/// What a node has left, counted by the model.
struct Room {
  std::int64_t cpu = 0;
  std::int64_t pods = 0;
  std::vector<std::int32_t> devices;

  bool operator==(const Room&) const = default;
};

struct SimPod {
  Pod spec;
  Life life = Life::kPending;
  std::int64_t cpu = 0;
  std::int64_t gpus = 0;
};

struct SimNode {
  Node spec;
  std::int64_t cpu = 0;
  std::int64_t gpus = 0;
  std::vector<const SimPod*> pods;  ///< Bound or leaving.
  Room room;  ///< Kept with every bind and leave; counted anew now and then to see that it is right.
};

/// A mistake put into the plan, or between the world and the engine, on purpose: the checks must find it.
enum class Fault { kNone, kDevice, kGang, kNode, kLimit, kEvict, kReserve, kLost, kTwin };

struct NamedFault {
  Fault fault;
  const char* name;
  std::vector<const char*> found_as;  ///< Any of these in the failure.
};

const std::vector<NamedFault> kFaults = {
    {Fault::kDevice, "device", {"a device given twice"}},
    {Fault::kGang, "gang", {"started with"}},
    {Fault::kNode, "node", {"bind to an unusable node"}},
    {Fault::kLimit, "limit", {"queue beyond its capability"}},
    {Fault::kEvict, "evict", {"without need"}},
    {Fault::kReserve, "reserve", {"was delayed by lower ranks"}},
    {Fault::kLost, "lost", {"waits although it fits", "the engine counts"}},
    {Fault::kTwin, "twin", {"the same events gave another plan"}},
};

struct Failure {
  std::int64_t step = 0;
  std::string text;
};

bool g_trace = false;  ///< --trace 1: every event and what the plan says.

std::string text_of(const Event& event) {
  return std::visit(
      [](const auto& e) -> std::string {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, PodUpsert>) {
          std::string requests;
          for (const auto& a : e.pod.requests) requests += fmt::format(" {}={}", a.name, a.value);
          return fmt::format("pod {} of \"{}\" queue {} priority {} gated {} share {} lasts {}{}", e.pod.key, e.pod.group, e.pod.queue, e.pod.priority, e.pod.gated, e.pod.device_share_milli,
                             e.pod.expected_duration.count(), requests);
        } else if constexpr (std::is_same_v<T, PodRemove>) {
          return "pod gone " + e.key;
        } else if constexpr (std::is_same_v<T, GroupUpsert>) {
          return fmt::format("group {} queue {} priority {} min {} parent \"{}\"", e.group.key, e.group.queue, e.group.priority, e.group.min_member, e.group.parent);
        } else if constexpr (std::is_same_v<T, GroupRemove>) {
          return "group gone " + e.key;
        } else if constexpr (std::is_same_v<T, NodeUpsert>) {
          return fmt::format("node {} ready {} cordoned {}", e.node.name, e.node.ready, e.node.unschedulable);
        } else if constexpr (std::is_same_v<T, NodeRemove>) {
          return "node gone " + e.name;
        } else if constexpr (std::is_same_v<T, QueueUpsert>) {
          return fmt::format("queue {} capability {}", e.queue.name, e.queue.capability.empty() ? -1 : e.queue.capability[0].value);
        } else if constexpr (std::is_same_v<T, BindResult>) {
          return "bind failed " + e.pod;
        } else {
          return "another event";
        }
      },
      event);
}

void print(const Plan& plan) {
  for (const auto& b : plan.binds) fmt::print("    bind {} to {} devices {}\n", b.pod, b.node, fmt::join(b.devices, ","));
  for (const auto& e : plan.evicts) fmt::print("    evict {} for {}\n", e.pod, e.for_whom);
  for (const auto& n : plan.nominations) fmt::print("    nominate {} to \"{}\"\n", n.pod, n.node);
  if (plan.reservations_changed) fmt::print("    {} reservations\n", plan.reservations.size());
  for (const auto& r : plan.reservations) fmt::print("    reserve for {} at {} on {}\n", r.holder, r.start.us, fmt::join(r.nodes, ","));
}

class World {
 public:
  World(std::uint64_t seed, const std::set<std::int64_t>& skipped, Fault fault) : seed_(seed), skipped_(skipped), fault_(fault), engine_(config(seed)), twin_(config(seed)) {
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

  /// Events the engine was told.
  [[nodiscard]] std::int64_t sent() const { return sent_; }

  /// What went wrong, or nothing.
  std::optional<Failure> run(std::int64_t events) {
    for (std::int64_t step = 0; step < events; ++step) {
      if (skipped_.contains(step)) continue;
      Random r(seed_ * 1'000'003 + static_cast<std::uint64_t>(step) * 17 + 5);
      now_ = now_ + Duration(static_cast<std::int64_t>(r.below(5'000'000)));
      if (g_trace) fmt::print("step {} at {}\n", step, now_.us);
      act(r);
      decide(r);
      if (failure_) return Failure{step, *failure_};
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
    ++sent_;
    if (fault_ == Fault::kLost && std::holds_alternative<PodRemove>(e) && sent_ % 16 == 0) return;
    if (g_trace) fmt::print("  {}\n", text_of(e));
    engine_.apply(e);
    if (compare_ && !(fault_ == Fault::kTwin && std::holds_alternative<PodRemove>(e) && sent_ % 16 == 0)) twin_.apply(e);
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
    n.room = empty_room(n);
    send(NodeUpsert{n.spec});
    nodes_[n.spec.name] = n;
  }

  static Room empty_room(const SimNode& n) { return {n.cpu, 30, std::vector<std::int32_t>(static_cast<std::size_t>(n.gpus), 1000)}; }

  static void adjust(Room& room, const SimPod& p, std::int32_t sign) {
    room.cpu -= sign * p.cpu;
    room.pods -= sign;
    for (const auto d : p.spec.device_indexes) {
      room.devices[static_cast<std::size_t>(d)] -= sign * (p.spec.device_share_milli > 0 ? p.spec.device_share_milli : 1000);
    }
  }

  /// The pod takes its place on its node, in its queue and in its gang; or gives them back.
  void seat(SimPod& p, std::int32_t sign) {
    const auto n = nodes_.find(p.spec.node);
    if (n == nodes_.end()) return;
    adjust(n->second.room, p, sign);
    if (sign > 0) {
      n->second.pods.push_back(&p);
    } else {
      std::erase(n->second.pods, &p);
    }
  }
  void count(const SimPod& p, std::int32_t sign) {
    used_[queue_of(p.spec)] += sign * want_milli(p.spec);
    if (!p.spec.group.empty()) bound_[p.spec.group] += sign;
  }
  void set_life(SimPod& p, Life life) {
    if (p.life == life) return;
    if (p.life == Life::kBound) count(p, -1);
    if (life == Life::kBound) count(p, +1);
    if (p.life != Life::kPending && life == Life::kPending) seat(p, -1);
    if (p.life == Life::kPending && life != Life::kPending) seat(p, +1);
    if (p.life == Life::kLeaving) --leaving_;
    if (life == Life::kLeaving) ++leaving_;
    p.life = life;
  }
  void add(SimPod p) {
    p.cpu = want(p.spec, "cpu");
    p.gpus = want(p.spec, "nvidia.com/gpu");
    send(PodUpsert{p.spec});
    pods_[p.spec.key] = std::move(p);
  }
  std::map<std::string, SimPod>::iterator drop(std::map<std::string, SimPod>::iterator it) {
    set_life(it->second, Life::kPending);
    nominated_.erase(it->first);
    send(PodRemove{it->first});
    return pods_.erase(it);
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
      add(std::move(p));
    }
    if (!group_first) send(GroupUpsert{g});
  }

  /// A group of groups: it starts with enough of its gangs or not at all.
  void add_family(Random& r) {
    Group top;
    top.key = fmt::format("d/f{}", ++names_);
    top.is_parent = true;
    top.created = now_;
    const auto children = 2 + r.below(2);
    top.min_groups = static_cast<std::int32_t>(1 + r.below(children));
    const std::string queue = queues_[r.below(queues_.size())].name;
    const auto priority = static_cast<std::int32_t>(std::array{0, 10, 100}[r.below(3)]);
    families_[top.key] = top;
    const bool top_first = r.chance(50);
    if (top_first) send(GroupUpsert{top});
    for (std::uint64_t c = 0; c < children; ++c) {
      Group g;
      g.key = fmt::format("{}c{}", top.key, c);
      g.queue = queue;
      g.priority = priority;
      g.parent = top.key;
      g.created = now_;
      const auto members = 1 + r.below(2);
      g.min_member = static_cast<std::int32_t>(members);
      groups_[g.key] = g;
      send(GroupUpsert{g});
      const Pod like = make_pod(r, "");
      for (std::uint64_t i = 0; i < members; ++i) {
        SimPod p;
        p.spec = like;
        p.spec.key = fmt::format("{}-{}", g.key, i);
        p.spec.uid = fmt::format("u{}", ++names_);
        p.spec.group = g.key;
        p.spec.priority = priority;
        add(std::move(p));
      }
    }
    if (!top_first) send(GroupUpsert{top});
  }

  void add_single(Random& r) {
    SimPod p;
    p.spec = make_pod(r, fmt::format("d/p{}", ++names_));
    p.spec.queue = queues_[r.below(queues_.size())].name;
    p.spec.priority = static_cast<std::int32_t>(std::array{0, 0, 10, 100}[r.below(4)]);
    add(std::move(p));
  }

  SimPod* random_pod(Random& r, Life life) {
    std::vector<SimPod*> all;
    for (auto& [key, p] : pods_) {
      if (p.life == life) all.push_back(&p);
    }
    return all.empty() ? nullptr : all[r.below(all.size())];
  }

  void remove_group(const std::string& key) {
    const std::string parent = groups_.at(key).parent;
    for (auto it = pods_.lower_bound(key + "-"); it != pods_.end() && it->second.spec.group == key;) it = drop(it);
    send(GroupRemove{key});
    groups_.erase(key);
    bound_.erase(key);
    if (parent.empty() || std::any_of(groups_.begin(), groups_.end(), [&](const auto& g) { return g.second.parent == parent; })) return;
    send(GroupRemove{parent});
    families_.erase(parent);
  }

  /// A pod is gone; its owner makes another of the same name, unless it was alone.
  void replace(const std::string& key) {
    const auto it = pods_.find(key);
    SimPod p = it->second;
    drop(it);
    if (p.spec.group.empty()) return;
    p.life = Life::kPending;
    p.spec.node.clear();
    p.spec.device_indexes.clear();
    p.spec.terminating = false;
    p.spec.started = Time{};
    p.spec.uid = fmt::format("u{}", ++names_);
    add(std::move(p));
  }

  void leavers_go() {
    std::vector<std::string> keys;
    for (const auto& [key, p] : pods_) {
      if (p.life == Life::kLeaving) keys.push_back(key);
    }
    for (const auto& key : keys) replace(key);
  }

  void act(Random& r) {
    const auto what = r.below(100);
    if (what < 3 && pods_.size() < 60) return add_family(r);
    if (what < 22 && pods_.size() < 60) return add_gang(r);
    if (what < 45 && pods_.size() < 60) return add_single(r);
    if (what < 70) {
      SimPod* p = random_pod(r, Life::kBound);
      if (p == nullptr) return;
      if (!p->spec.group.empty()) return remove_group(std::string(p->spec.group));
      drop(pods_.find(p->spec.key));
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
    leavers_go();
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

  /// The same as SimNode::room, counted from nothing.
  Room counted_room(const SimNode& n) const {
    Room room = empty_room(n);
    for (const auto& [key, p] : pods_) {
      if (p.life != Life::kPending && p.spec.node == n.spec.name) adjust(room, p, +1);
    }
    return room;
  }

  /// Counts everything from nothing: the model's own sums, and what the engine believes of every node.
  void check_counts() {
    std::map<std::string, std::int64_t> used;
    for (const auto& [key, p] : pods_) {
      if (p.life == Life::kBound) used[queue_of(p.spec)] += want_milli(p.spec);
    }
    for (const auto& q : queues_) {
      if (used[q.name] != used_[q.name]) fail("the model lost count of queue " + q.name);
    }
    for (const auto& [name, n] : nodes_) {
      const Room room = counted_room(n);
      if (room != n.room) fail("the model lost count of node " + name);
      const auto view = engine_.node(name);
      if (!view) {
        fail("the engine does not know node " + name);
        continue;
      }
      std::int64_t cpu = 0;
      for (const auto& amount : view->used) cpu = amount.name == "cpu" ? amount.value : cpu;
      const auto whole = static_cast<std::size_t>(std::count(room.devices.begin(), room.devices.end(), 1000));
      if (cpu != n.cpu - room.cpu || view->free_devices.size() != whole) {
        fail(fmt::format("node {}: the engine counts {} cpu used, {} devices free; it is {} and {}", name, cpu, view->free_devices.size(), n.cpu - room.cpu, whole));
      }
    }
  }

  void decide(Random& r) {
    Plan plan = engine_.decide(now_);
    if (fault_ != Fault::kNone) plant(plan);
    if (compare_) {
      const Plan other = twin_.decide(now_);
      if (plan.binds != other.binds || plan.evicts != other.evicts || plan.nominations != other.nominations) {
        fail("the same events gave another plan");
      }
    }
    if (g_trace) print(plan);
    // Room that was held for a nomination is no gap beside a reservation.
    const bool awaited = std::any_of(plan.binds.begin(), plan.binds.end(), [&](const Bind& b) { return nominated_.contains(b.pod); });
    for (const auto& n : plan.nominations) {
      if (n.node.empty()) {
        nominated_.erase(n.pod);
      } else {
        nominated_[n.pod] = n.node;
      }
    }
    if (plan.reservations_changed) reservations_ = plan.reservations;
    const auto kept = reservations_hold();
    std::set<std::string> touched;
    for (const auto& b : plan.binds) check_bind(b, touched);
    if (!awaited) check_reservations(kept, plan);
    check_need(plan);
    for (const auto& e : plan.evicts) check_evict(e);
    check_gangs(touched);
    check_limits(plan);
    if (++decisions_ % 64 == 0) check_counts();
    if (failure_) return;
    check_nobody_left_behind(plan);
    // Some binds fail on the way; the engine is told.
    for (const auto& b : plan.binds) {
      if (!r.chance(2)) continue;
      SimPod& p = pods_.at(b.pod);
      set_life(p, Life::kPending);
      p.spec.node.clear();
      p.spec.device_indexes.clear();
      send(BindResult{b.pod, false});
    }
    // And some of those told to go have gone.
    for (const auto& e : plan.evicts) {
      const auto it = pods_.find(e.pod);
      if (it != pods_.end() && it->second.life == Life::kLeaving && r.chance(50)) replace(e.pod);
    }
  }

  void add_bind(Plan& plan, const SimPod& p, const SimNode& n) {
    Bind b{p.spec.key, p.spec.uid, n.spec.name, {}, p.spec.device_share_milli};
    const auto wanted = p.spec.device_share_milli > 0 ? 1 : p.gpus;
    const auto least = p.spec.device_share_milli > 0 ? p.spec.device_share_milli : 1000;
    for (std::size_t d = 0; d < n.room.devices.size() && static_cast<std::int64_t>(b.devices.size()) < wanted; ++d) {
      if (n.room.devices[d] >= least) b.devices.push_back(static_cast<std::int32_t>(d));
    }
    plan.binds.push_back(std::move(b));
  }

  /// Makes the mistake as soon as the plan gives occasion to.
  void plant(Plan& plan) {
    if (fault_ == Fault::kDevice) {
      for (Bind& b : plan.binds) {
        const auto n = nodes_.find(b.node);
        if (n == nodes_.end() || b.devices.empty()) continue;
        for (std::size_t d = 0; d < n->second.room.devices.size(); ++d) {
          if (n->second.room.devices[d] == 0) b.devices[0] = static_cast<std::int32_t>(d);
        }
      }
    }
    if (fault_ == Fault::kGang) {
      std::map<std::string, std::int32_t> more;
      for (const Bind& b : plan.binds) ++more[pods_.at(b.pod).spec.group];
      std::erase_if(plan.binds, [&](const Bind& b) {
        const auto g = groups_.find(pods_.at(b.pod).spec.group);
        return g != groups_.end() && more[g->first] > 1 && bound_[g->first] + more[g->first]-- == g->second.min_member;
      });
    }
    for (const auto& [name, n] : nodes_) {
      if (fault_ == Fault::kNode && !n.spec.ready && !plan.binds.empty()) plan.binds[0].node = name;
    }
    if (fault_ == Fault::kLimit && plan.binds.empty()) {
      for (const auto& [key, p] : pods_) {
        if (p.life != Life::kPending || p.spec.gated || !p.spec.group.empty() || queue_takes(p, 1)) continue;
        for (const auto& [name, n] : nodes_) {
          if (usable(n, p) && takes(n.room, p)) return add_bind(plan, p, n);
        }
      }
    }
    if (fault_ == Fault::kEvict && !plan.evicts.empty()) {
      const std::string node = plan.evicts[0].node;
      for (const auto& [key, p] : pods_) {
        const bool listed = std::any_of(plan.evicts.begin(), plan.evicts.end(), [&](const Evict& e) { return e.pod == key; });
        if (listed || p.life != Life::kBound || p.spec.node != node || !p.spec.group.empty()) continue;
        Evict more = plan.evicts[0];
        more.pod = key;
        return plan.evicts.push_back(more);
      }
    }
    if (fault_ == Fault::kReserve && plan.binds.empty()) {
      const auto& reserved = plan.reservations_changed ? plan.reservations : reservations_;
      for (const Reservation& res : reserved) {
        for (std::size_t k = 0; k < res.nodes.size(); ++k) {
          if (!promise_holds(res, k)) continue;
          for (const auto& [key, p] : pods_) {
            SimNode& n = nodes_.at(res.nodes[k]);
            if (p.life != Life::kPending || p.spec.gated || !p.spec.group.empty() || p.gpus == 0 || p.spec.expected_duration.count() > 0) continue;
            if (usable(n, p) && takes(n.room, p) && queue_takes(p, 1)) return add_bind(plan, p, n);
          }
        }
      }
    }
  }

  static bool takes(const Room& room, const SimPod& p) {
    if (room.cpu < p.cpu || room.pods < 1) return false;
    if (p.spec.device_share_milli > 0) {
      return std::any_of(room.devices.begin(), room.devices.end(), [&](auto d) { return d >= p.spec.device_share_milli; });
    }
    return std::count(room.devices.begin(), room.devices.end(), 1000) >= p.gpus;
  }

  /// How many like this one fit beside each other.
  static std::int64_t takes_count(Room room, const SimPod& p, std::int64_t limit) {
    std::int64_t n = 0;
    while (n < limit && takes(room, p)) {
      room.cpu -= p.cpu;
      room.pods -= 1;
      if (p.spec.device_share_milli > 0) {
        // The fullest that takes it, as the engine would; any other leaves no more.
        std::int32_t* best = nullptr;
        for (auto& d : room.devices) {
          if (d >= p.spec.device_share_milli && (best == nullptr || d < *best)) best = &d;
        }
        *best -= p.spec.device_share_milli;
      }
      std::int64_t left = p.gpus;
      for (auto& d : room.devices) {
        if (left > 0 && d == 1000) {
          d = 0;
          --left;
        }
      }
      ++n;
    }
    return n;
  }

  bool usable(const SimNode& n, const SimPod& p) const {
    if (!n.spec.ready || n.spec.unschedulable) return false;
    return std::all_of(p.spec.node_selector.begin(), p.spec.node_selector.end(), [&](const auto& s) { return n.spec.labels[0].second == s.second; });
  }

  /// With everybody gone who is expected to be, which nodes of each reservation still take their members?
  std::vector<std::vector<char>> reservations_hold() const {
    std::vector<std::vector<char>> out;
    for (const Reservation& res : reservations_) {
      auto& kept = out.emplace_back(res.nodes.size());
      for (std::size_t k = 0; k < res.nodes.size(); ++k) kept[k] = promise_holds(res, k) ? 1 : 0;
    }
    return out;
  }
  bool promise_holds(const Reservation& res, std::size_t k) const {
    if (!res.start || k >= res.members.size()) return false;
    // In a family the members counted may be another gang's; such promises are not looked into.
    const auto group = groups_.find(res.holder);
    if (group != groups_.end() && !group->second.parent.empty()) return false;
    const auto member = pods_.find(group == groups_.end() ? res.holder : res.holder + "-0");
    const auto n = nodes_.find(res.nodes[k]);
    if (member == pods_.end() || n == nodes_.end() || !usable(n->second, member->second)) return false;
    Room room = n->second.room;
    for (const SimPod* p : n->second.pods) {
      const bool gone = p->life == Life::kBound && p->spec.expected_duration.count() > 0 && p->spec.started + p->spec.expected_duration <= res.start;
      if (gone) adjust(room, *p, -1);
    }
    return takes_count(room, member->second, res.members[k]) >= res.members[k];
  }
  /// Nobody of lower rank, started now, may be the reason that a reservation holds no more.
  void check_reservations(const std::vector<std::vector<char>>& kept, const Plan& plan) {
    if (plan.binds.empty() || !nominated_.empty() || leaving_ > 0) return;
    for (std::size_t i = 0; i < reservations_.size(); ++i) {
      const Reservation& res = reservations_[i];
      bool broken = false;
      for (std::size_t k = 0; k < res.nodes.size(); ++k) broken |= kept[i][k] != 0 && !promise_holds(res, k);
      if (!broken) continue;
      const auto group = groups_.find(res.holder);
      const auto single = pods_.find(res.holder);
      if (group == groups_.end() && single == pods_.end()) continue;
      const auto priority = group != groups_.end() ? group->second.priority : single->second.spec.priority;
      const Time created = group != groups_.end() ? group->second.created : single->second.spec.created;
      bool outranked = false;
      for (const auto& b : plan.binds) {
        const Pod& p = pods_.at(b.pod).spec;
        const Time since = p.group.empty() ? p.created : groups_.at(p.group).created;
        outranked |= p.group == res.holder || b.pod == res.holder || priority_of(p) > priority || (priority_of(p) == priority && since <= created);
      }
      if (!outranked) fail(fmt::format("the reservation of {} for {} was delayed by lower ranks", res.holder, res.start.us));
    }
  }

  /// No eviction without need: a lone pod's node had no room, has room without all victims, and none of them could stay.
  void check_need(const Plan& plan) {
    if (plan.evicts.empty() || leaving_ > 0) return;
    const std::string& winner = plan.evicts.front().for_whom;
    const auto single = pods_.find(winner);
    if (single == pods_.end() || !nominated_.contains(winner) || nominated_.size() != 1) return;
    const auto n = nodes_.find(nominated_[winner]);
    if (n == nodes_.end()) return fail("nominated to a node that is gone: " + winner);
    Room without_all = n->second.room;
    std::vector<const SimPod*> alone;
    for (const auto& e : plan.evicts) {
      const auto victim = pods_.find(e.pod);
      if (e.for_whom != winner || victim == pods_.end() || victim->second.spec.node != n->first) continue;
      adjust(without_all, victim->second, -1);
      if (victim->second.spec.group.empty()) alone.push_back(&victim->second);
    }
    const bool limited = std::any_of(queues_.begin(), queues_.end(), [&](const Queue& q) { return q.name == queue_of(single->second.spec) && !q.capability.empty(); });
    if (!takes(without_all, single->second)) fail("the victims of " + winner + " make too little room");
    if (limited) return;  // Its queue may have been what was full.
    for (const SimPod* victim : alone) {
      Room room = without_all;
      adjust(room, *victim, +1);
      if (takes(room, single->second)) fail(fmt::format("{} was evicted for {} without need", victim->spec.key, winner));
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
    nominated_.erase(b.pod);
    p.spec.node = b.node;
    p.spec.device_indexes = b.devices;
    p.spec.started = now_;
    set_life(p, Life::kBound);
    const Room& room = n->second.room;
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
    set_life(p, Life::kLeaving);
    const auto winner = groups_.find(e.for_whom);
    const auto single = pods_.find(e.for_whom);
    if (winner == groups_.end() && single == pods_.end()) return fail("eviction for nobody: " + e.for_whom);
    const auto priority = winner != groups_.end() ? winner->second.priority : single->second.spec.priority;
    if (e.kind == EvictKind::kPreempt && priority_of(p.spec) >= priority) fail("eviction of an equal or higher priority: " + e.pod);
    const auto queue = winner != groups_.end() ? winner->second.queue : single->second.spec.queue;
    if (e.kind == EvictKind::kReclaim && queue == queue_of(p.spec)) fail("reclaim inside a queue: " + e.pod);
  }

  void check_gangs(const std::set<std::string>& touched) {
    for (const auto& key : touched) {
      if (key.empty()) continue;
      const auto group = groups_.find(key);
      if (group == groups_.end()) {
        fail("members started without their group: " + key);
        continue;
      }
      const Group& g = group->second;
      if (bound_[key] < g.min_member) fail(fmt::format("gang {} started with {} of {}", key, bound_[key], g.min_member));
      if (!g.parent.empty()) check_family(g.parent);
      if (g.topology.empty() || !g.topology[0].required) continue;
      std::set<std::string> zones;
      for (auto it = pods_.lower_bound(key + "-"); it != pods_.end() && it->second.spec.group == key; ++it) {
        const auto n = nodes_.find(it->second.spec.node);
        if (it->second.life == Life::kBound && n != nodes_.end()) zones.insert(n->second.spec.labels[0].second);
      }
      if (zones.size() > 1) fail("gang spans two domains: " + key);
    }
  }

  void check_family(const std::string& key) {
    const auto family = families_.find(key);
    if (family == families_.end()) return fail("a gang started without the group above it: " + key);
    std::int32_t running = 0;
    for (const auto& [name, g] : groups_) running += g.parent == key && bound_[name] >= g.min_member ? 1 : 0;
    if (running < family->second.min_groups) fail(fmt::format("family {} started with {} of {} gangs", key, running, family->second.min_groups));
  }

  void check_limits(const Plan& plan) {
    std::set<std::string> grew;
    for (const auto& b : plan.binds) {
      const Pod& p = pods_.at(b.pod).spec;
      if (want_milli(p) > 0) grew.insert(queue_of(p));
    }
    for (const auto& q : queues_) {
      if (q.capability.empty() || !grew.contains(q.name)) continue;
      if (used_[q.name] > q.capability[0].value * 1000) fail("queue beyond its capability: " + q.name);
    }
  }

  bool queue_takes(const SimPod& p, std::int64_t members) {
    if (want_milli(p.spec) == 0) return true;
    for (const auto& q : queues_) {
      if (q.name != queue_of(p.spec) || q.capability.empty()) continue;
      if (used_[q.name] + members * want_milli(p.spec) > q.capability[0].value * 1000) return false;
    }
    return true;
  }

  /// The engine's indexes against a scan of everything: with no reservations in play, a pod or a gang whose queue has room and
  /// which fits must not wait.
  void check_nobody_left_behind(const Plan& plan) {
    if (config(seed_).reservations > 0 || !plan.evicts.empty() || leaving_ > 0 || !nominated_.empty()) return;
    const SimPod* seen = nullptr;
    for (const auto& [key, p] : pods_) {
      if (p.life != Life::kPending) continue;
      std::int64_t wanted = 1;
      if (!p.spec.group.empty()) {
        // Members are alike: one speaks for all.
        if (seen != nullptr && seen->spec.group == p.spec.group) continue;
        seen = &p;
        const auto group = groups_.find(p.spec.group);
        if (group == groups_.end() || !group->second.topology.empty() || !group->second.parent.empty()) continue;
        std::int64_t ready = 0;
        bool gated = false;
        for (auto it = pods_.lower_bound(p.spec.group + "-"); it != pods_.end() && it->second.spec.group == p.spec.group; ++it) {
          gated |= it->second.life == Life::kPending && it->second.spec.gated;
          ready += it->second.life == Life::kPending ? 1 : 0;
        }
        wanted = std::max<std::int64_t>(1, group->second.min_member - bound_[p.spec.group]);
        if (gated || ready < wanted) continue;
      } else if (p.spec.gated) {
        continue;
      }
      if (!queue_takes(p, wanted)) continue;
      std::int64_t left = wanted;
      for (const auto& [name, n] : nodes_) {
        if (left > 0 && usable(n, p)) left -= takes_count(n.room, p, left);
      }
      if (left > 0) continue;
      const auto why = engine_.why(p.spec.group.empty() ? key : p.spec.group);
      return fail(fmt::format("{} waits although it fits: {}", key, why ? describe(why->refusal) : "it does not know why"));
    }
  }

  std::uint64_t seed_;
  const std::set<std::int64_t>& skipped_;
  Fault fault_;
  Engine engine_;
  Engine twin_;
  bool compare_ = false;
  Time now_ = Time::from_seconds(1'000'000);
  std::map<std::string, SimNode> nodes_;
  std::map<std::string, SimPod> pods_;
  std::map<std::string, Group> groups_;
  std::vector<Queue> queues_;
  std::map<std::string, Group> families_;
  std::map<std::string, std::int64_t> used_;          ///< Device milli of each queue's running pods.
  std::map<std::string, std::int32_t> bound_;         ///< Running members of each gang.
  std::map<std::string, std::string> nominated_;      ///< Pod -> node held for it.
  std::vector<Reservation> reservations_;
  std::int64_t leaving_ = 0;
  std::int64_t decisions_ = 0;
  std::int64_t sent_ = 0;
  std::int64_t names_ = 0;
  std::optional<std::string> failure_;
};

std::optional<Failure> run(std::uint64_t seed, std::int64_t steps, const std::set<std::int64_t>& skipped, std::int64_t* sent = nullptr, Fault fault = Fault::kNone) {
  World world(seed, skipped, fault);
  auto failure = world.run(steps);
  if (sent != nullptr) *sent += world.sent();
  return failure;
}

/// What a failure is about: its words without names and numbers.
std::string rule_of(const std::string& failure) {
  std::string rule;
  for (const auto& word : split_nonempty(failure.substr(0, failure.find(':')), ' ')) {
    if (std::none_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; })) rule += word + " ";
  }
  return rule;
}

/// Leaves out as many steps as possible while it still fails in the same way.
void minimise(std::uint64_t seed, const Failure& failure) {
  const std::int64_t events = failure.step + 1;
  const std::string rule = rule_of(failure.text);
  const auto fails = [&](const std::set<std::int64_t>& skipped) {
    const auto other = run(seed, events, skipped);
    return other && rule_of(other->text) == rule;
  };
  std::set<std::int64_t> skipped;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::int64_t chunk = std::max<std::int64_t>(events / 2, 1); chunk >= 1; chunk /= 2) {
      for (std::int64_t from = 0; from + chunk <= events; from += chunk) {
        std::set<std::int64_t> trial = skipped;
        for (std::int64_t i = from; i < from + chunk; ++i) trial.insert(i);
        if (trial.size() == skipped.size() || !fails(trial)) continue;
        skipped = std::move(trial);
        smaller = true;
      }
    }
  }
  std::string kept;
  for (std::int64_t i = 0; i < events; ++i) {
    if (!skipped.contains(i)) kept += fmt::format("{}{}", kept.empty() ? "" : ",", i);
  }
  const auto why = run(seed, events, skipped);
  fmt::print("smallest: --seed {} --only {}: {}\n", seed, kept, why ? why->text : "(passes)");
}

/// Every kind of mistake must be found, and found as what it is, within so many seeds.
int find_faults(std::int64_t events) {
  constexpr std::uint64_t kSeeds = 400;
  const std::set<std::int64_t> none;
  int missed = 0;
  for (const NamedFault& f : kFaults) {
    std::uint64_t seed = 1;
    std::optional<Failure> found;
    for (; seed <= kSeeds && !found; ++seed) {
      found = run(seed, events, none, nullptr, f.fault);
      if (found && std::none_of(f.found_as.begin(), f.found_as.end(), [&](const char* text) { return found->text.find(text) != std::string::npos; })) found.reset();
    }
    if (!found) ++missed;
    fmt::print("{:8} {}\n", f.name, found ? fmt::format("found with seed {}, step {}: {}", seed - 1, found->step, found->text) : "NOT FOUND");
  }
  return missed == 0 ? 0 : 1;
}

int main_of(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--break") == 0) return find_faults(400);
  std::int64_t seed = -1;
  std::int64_t events = 400;
  std::int64_t seconds = 20;
  std::int64_t seeds = 0;
  std::set<std::int64_t> only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0) {
      for (const auto& step : split_nonempty(argv[i + 1], ',')) only.insert(parse_int(step).value_or(-1));
      continue;
    }
    const auto value = parse_int(argv[i + 1]);
    if (!value) continue;
    if (std::strcmp(argv[i], "--trace") == 0) g_trace = *value != 0;
    if (std::strcmp(argv[i], "--seed") == 0) seed = *value;
    if (std::strcmp(argv[i], "--events") == 0) events = *value;
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = *value;
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = *value;
  }
  std::set<std::int64_t> skipped;
  if (!only.empty()) {
    events = *only.rbegin() + 1;
    for (std::int64_t i = 0; i < events; ++i) {
      if (!only.contains(i)) skipped.insert(i);
    }
  }
  std::atomic<std::int64_t> sent = 0, steps = 0;
  std::atomic<std::uint64_t> next = 1;
  std::atomic<bool> failed = false;
  std::mutex printing;
  const auto check = [&](std::uint64_t s) {
    std::int64_t events_sent = 0;
    const auto why = run(s, events, skipped, &events_sent);
    sent += events_sent;
    steps += events;
    if (!why) return true;
    const std::lock_guard lock(printing);
    failed = true;
    fmt::print("seed {} fails: step {}: {}\n", s, why->step, why->text);
    std::fflush(stdout);
    if (only.empty()) minimise(s, *why);
    return false;
  };
  if (seed >= 0) return check(static_cast<std::uint64_t>(seed)) ? 0 : 1;
  // Worlds share nothing, so each core takes the next seed.
  const auto start = std::chrono::steady_clock::now();
  const auto more = [&](std::uint64_t s) {
    if (failed) return false;
    return seeds > 0 ? s <= static_cast<std::uint64_t>(seeds) : std::chrono::steady_clock::now() - start < std::chrono::seconds(seconds);
  };
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    workers.emplace_back([&] {
      for (std::uint64_t s = next++; more(s); s = next++) {
        if (!check(s)) return;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (failed) return 1;
  fmt::print("{} events in {} steps, each followed by a decision: no violation\n", sent.load(), steps.load());
  return 0;
}

}  // namespace
}  // namespace muster::dst

int main(int argc, char** argv) { return muster::dst::main_of(argc, argv); }
