#include "world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "answers/alternatives.h"
#include "answers/durations.h"
#include "answers/forecast.h"

namespace muster::dst {

using namespace engine;  // the subject of this program

namespace {

constexpr std::size_t kPodsMost = 60;
constexpr std::size_t kNodesMost = 10;

Config config_of(std::uint64_t seed) {
  Config c;
  c.default_queue = "q0";
  c.reservations = seed % 3 == 0 ? 2 : 0;
  c.preempt = seed % 5 != 0;
  c.learn = seed % 2 == 0;
  c.patience = std::chrono::seconds(30);
  c.check_tables = true;
  return c;
}

std::string text_of(const Event& event) {
  return std::visit(
      [](const auto& e) -> std::string {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, PodUpsert>) {
          std::string requests;
          for (const auto& a : e.pod.requests) requests += fmt::format(" {}={}", a.name, a.value);
          return fmt::format("pod {} of \"{}\" queue {} priority {} gated {} share {} lasts {}{}",
                             e.pod.key,
                             e.pod.group,
                             e.pod.queue,
                             e.pod.priority,
                             e.pod.gated,
                             e.pod.device_share_milli,
                             e.pod.expected_duration.count(),
                             requests);
        } else if constexpr (std::is_same_v<T, PodRemove>) {
          return "pod gone " + e.key;
        } else if constexpr (std::is_same_v<T, GroupUpsert>) {
          return fmt::format("group {} queue {} priority {} min {} parent \"{}\"",
                             e.group.key,
                             e.group.queue,
                             e.group.priority,
                             e.group.min_member,
                             e.group.parent);
        } else if constexpr (std::is_same_v<T, GroupRemove>) {
          return "group gone " + e.key;
        } else if constexpr (std::is_same_v<T, NodeUpsert>) {
          return fmt::format(
              "node {} ready {} cordoned {}", e.node.name, e.node.ready, e.node.unschedulable);
        } else if constexpr (std::is_same_v<T, NodeRemove>) {
          return "node gone " + e.name;
        } else if constexpr (std::is_same_v<T, QueueUpsert>) {
          return fmt::format("queue {} capability {}",
                             e.queue.name,
                             e.queue.capability.empty() ? -1 : e.queue.capability[0].value);
        } else if constexpr (std::is_same_v<T, ConfigChange>) {
          return fmt::format("policy placement {}", static_cast<int>(e.config.placement));
        } else if constexpr (std::is_same_v<T, BindResult>) {
          return "bind failed " + e.pod;
        } else {
          return "another event";
        }
      },
      event);
}

void print(const Plan& plan) {
  for (const auto& b : plan.binds)
    fmt::print("    bind {} to {} devices {}\n", b.pod, b.node, fmt::join(b.devices, ","));
  for (const auto& e : plan.evicts)
    fmt::print("    evict {} for {}{}\n",
               e.pod,
               e.for_whom,
               e.kind == EvictKind::kReclaim ? ", reclaimed" : "");
  for (const auto& n : plan.nominations)
    fmt::print("    nominate {} to \"{}\" devices {}\n", n.pod, n.node, fmt::join(n.devices, ","));
  if (plan.reservations_changed) fmt::print("    {} reservations\n", plan.reservations.size());
  for (const auto& r : plan.reservations) {
    fmt::print("    reserve for {} at {} on {}, {} like {}\n",
               r.holder,
               r.start.us,
               fmt::join(r.nodes, ","),
               fmt::join(r.members, ","),
               r.member);
  }
}

/// All of it: two plans that spell the same are the same.
std::string spell(const Plan& plan) {
  std::string out;
  const auto add = [&out](auto&&... parts) {
    ((out += fmt::format("{}|", std::forward<decltype(parts)>(parts))), ...);
  };
  for (const auto& b : plan.binds)
    add("bind", b.pod, b.uid, b.node, fmt::join(b.devices, ","), b.device_share_milli);
  for (const auto& e : plan.evicts)
    add("evict",
        e.pod,
        e.uid,
        e.node,
        static_cast<int>(e.kind),
        e.for_whom,
        e.for_whom_pod,
        e.message);
  for (const auto& n : plan.nominations) add("nominate", n.pod, n.node, fmt::join(n.devices, ","));
  for (const auto& w : plan.waits)
    add("wait", w.group, w.pod, static_cast<int>(w.refusal.reason), describe(w.refusal));
  for (const auto& p : plan.phases) add("phase", p.group, phase_name(p.phase));
  add("reservations", plan.reservations_changed);
  for (const auto& r : plan.reservations)
    add(r.holder, r.start.us, r.member, fmt::join(r.nodes, ","), fmt::join(r.members, ","));
  add("wake", plan.wake ? plan.wake->us : 0);
  return out;
}

}  // namespace

World::World(const Run& run)
    : run_(run),
      engine_(config_of(run.seed)),
      twin_(config_of(run.seed)),
      asked_(run.seed % 8 == 4),
      compare_(run.seed % 8 == 0 || asked_),
      checks_(model_, engine_, config_of(run.seed)) {
  Random r(run.seed * 7919 + 1);
  const auto nodes = 2 + r.below(7);
  for (std::uint64_t i = 0; i < nodes; ++i) add_node(r);
  const auto queues = 1 + r.below(4);
  for (std::uint64_t i = 0; i < queues; ++i) {
    Queue q;
    q.name = fmt::format("q{}", i);
    q.weight = static_cast<std::int32_t>(1 + r.below(3));
    q.backfill = r.chance(30) ? BackfillMode::kSkip : BackfillMode::kReservation;
    if (r.chance(40))
      q.capability = {{"nvidia.com/gpu", static_cast<std::int64_t>(4 + r.below(20))}};
    if (r.chance(30)) q.deserved = {{"nvidia.com/gpu", static_cast<std::int64_t>(2 + r.below(8))}};
    model_.queues.push_back(q);
    send(QueueUpsert{q});
  }
}

std::optional<Failure> World::go() {
  for (std::int64_t step = 0; step < run_.steps; ++step) {
    if (run_.skipped.contains(step)) continue;
    Random r(run_.seed * 1'000'003 + static_cast<std::uint64_t>(step) * 17 + 5);
    model_.now = model_.now + Duration(static_cast<std::int64_t>(r.below(5'000'000)));
    if (run_.trace) fmt::print("step {} at {}\n", step, model_.now.us);
    act(r);
    decide(r);
    if (failure_) return Failure{step, *failure_};
  }
  return std::nullopt;
}

void World::send(const Event& e) {
  ++sent_;
  const bool swallowed = std::holds_alternative<PodRemove>(e) && sent_ % 16 == 0;
  if (run_.fault == Fault::kLost && swallowed) return;
  if (run_.trace) fmt::print("  {}\n", text_of(e));
  engine_.apply(e);
  if (compare_ && !(run_.fault == Fault::kTwin && swallowed)) twin_.apply(e);
}

/// A clone decides, and then lives on as the original will not: what it would plan now, and what is
/// wrong if the original noticed any of it.
std::optional<std::string> World::clone_plan(std::string& plan) {
  const std::uint64_t before = engine_.digest();
  Engine clone = engine_.clone();
  if (clone.digest() != before) return "a clone has another digest than what it was made from";
  plan = spell(clone.decide(model_.now));
  for (const auto& [key, p] : model_.pods) {
    if (p.life == Life::kBound && p.gpus > 0) clone.apply(PodRemove{key});
  }
  if (!model_.nodes.empty()) clone.apply(NodeRemove{model_.nodes.begin()->first});
  (void)clone.decide(model_.now + std::chrono::hours(1));
  for (const auto& q : model_.queues) (void)engine_.waiting(q.name, 3);
  if (engine_.digest() != before) return "what became of a clone changed what it was made from";
  return std::nullopt;
}

/// When everything that waits starts, and what would start the first of it now. The twin is never
/// asked: from here on both must still say the same.
void World::ask() {
  if (run_.fault == Fault::kAsk) engine_.apply(NodeRemove{model_.nodes.begin()->first});
  answers::Ask ask;
  ask.draws = 2;
  ask.horizon = std::chrono::minutes(30);
  ask.gantt = true;
  const answers::SharedDraws lasting(engine_, model_.now);
  const answers::Forecasts found = answers::forecast_all(engine_, model_.now, lasting, ask);
  if (found.jobs.empty()) return;
  answers::AlternativesAsk change;
  change.job = found.jobs.front().job;
  (void)answers::alternatives(engine_, model_.now, change);
}

void World::decide(Random& r) {
  if (asked_ && Random(run_.seed * 977 + static_cast<std::uint64_t>(sent_)).chance(2)) ask();
  std::string foretold;
  const bool forked = Random(run_.seed * 131 + static_cast<std::uint64_t>(sent_)).chance(4);
  if (forked) failure_ = clone_plan(foretold);
  if (forked && run_.fault == Fault::kClone) (void)engine_.decide(model_.now);
  Plan plan = engine_.decide(model_.now);
  if (forked && !failure_ && spell(plan) != foretold)
    failure_ = "a clone gave another plan than what it was made from";
  if (compare_) {
    if (spell(plan) != spell(twin_.decide(model_.now)))
      failure_ = "the same events gave another plan";
    else if (engine_.digest() != twin_.digest())
      failure_ = "the same events gave another digest";
    if (forked && run_.fault == Fault::kNone && !asked_) twin_ = engine_.clone();
  }
  plant(run_.fault, model_, plan);
  if (run_.trace) print(plan);
  if (!failure_) failure_ = checks_.plan(plan);
  if (!failure_) carry_on(r, plan);
}

/// Some binds fail on the way; the engine is told. And some of those told to go have gone.
void World::carry_on(Random& r, const Plan& plan) {
  for (const auto& b : plan.binds) {
    if (!r.chance(2)) continue;
    SimPod& p = model_.pods.at(b.pod);
    model_.set_life(p, Life::kPending);
    p.spec.node.clear();
    p.spec.device_indexes.clear();
    disturb(model_.root_of(p.spec));
    send(BindResult{b.pod, false});
  }
  for (const auto& e : plan.evicts) {
    const auto it = model_.pods.find(e.pod);
    if (it != model_.pods.end() && it->second.life == Life::kLeaving && r.chance(50))
      replace(e.pod);
  }
}

void World::act(Random& r) {
  const auto what = r.below(100);
  const bool room = model_.pods.size() < kPodsMost;
  if (what < 3 && room) return add_family(r);
  if (what < 22 && room) return add_gang(r);
  if (what < 45 && room) return add_single(r);
  if (what < 70) {
    SimPod* p = random_pod(r, Life::kBound);
    if (p == nullptr) return;
    if (!p->spec.group.empty()) return remove_group(std::string(p->spec.group));
    drop(model_.pods.find(p->spec.key));
    return;
  }
  if (what < 75) {
    SimPod* p = random_pod(r, Life::kBound);
    if (p != nullptr) replace(std::string(p->spec.key));
    return;
  }
  if (what < 80) return toggle_node(r);
  if (what < 83) return lose_node(r);
  if (what < 86 && model_.nodes.size() < kNodesMost) return add_node(r);
  if (what < 90) return resize_queue(r);
  if (what < 94) return toggle_gate(r);
  if (what < 95) return change_policy(r);
  // The rest: only time passes, and those told to go leave.
  leavers_go();
}

void World::add_node(Random& r) {
  SimNode n;
  n.gpus = static_cast<std::int64_t>(r.chance(80) ? 4 + 4 * r.below(2) : 0);
  n.cpu = static_cast<std::int64_t>(16'000 + 16'000 * r.below(2));
  n.spec.name = fmt::format("n{}", ++names_);
  n.spec.labels = {{"zone", r.chance(50) ? "a" : "b"}};
  n.spec.allocatable = {{"cpu", n.cpu}, {"memory", 1LL << 38}, {"pods", 30}};
  if (n.gpus > 0) n.spec.allocatable.push_back({"nvidia.com/gpu", n.gpus});
  n.room = empty_room(n);
  send(NodeUpsert{n.spec});
  model_.nodes[n.spec.name] = n;
}

void World::toggle_node(Random& r) {
  auto it =
      std::next(model_.nodes.begin(), static_cast<std::ptrdiff_t>(r.below(model_.nodes.size())));
  if (r.chance(50)) {
    it->second.spec.ready = !it->second.spec.ready;
  } else {
    it->second.spec.unschedulable = !it->second.spec.unschedulable;
  }
  disturb_all();
  send(NodeUpsert{it->second.spec});
}

void World::lose_node(Random& r) {
  if (model_.nodes.size() < 2) return;
  auto it =
      std::next(model_.nodes.begin(), static_cast<std::ptrdiff_t>(r.below(model_.nodes.size())));
  const std::string name = it->first;
  model_.nodes.erase(it);
  std::erase_if(model_.held, [&](const auto& h) { return h.second.node == name; });
  disturb_all();
  send(NodeRemove{name});
  std::vector<std::string> lost;
  for (const auto& [key, p] : model_.pods) {
    if (p.spec.node == name) lost.push_back(key);
  }
  for (const auto& key : lost) replace(key);
}

void World::resize_queue(Random& r) {
  Queue& q = model_.queues[r.below(model_.queues.size())];
  q.capability.clear();
  if (r.chance(60)) q.capability = {{"nvidia.com/gpu", static_cast<std::int64_t>(4 + r.below(24))}};
  disturb_all();
  send(QueueUpsert{q});
}

void World::toggle_gate(Random& r) {
  SimPod* p = random_pod(r, Life::kPending);
  if (p == nullptr) return;
  p->spec.gated = !p->spec.gated;
  disturb(model_.root_of(p->spec));
  send(PodUpsert{p->spec});
}

/// Where pods go is nothing that an invariant may depend on.
void World::change_policy(Random& r) {
  Config config = config_of(run_.seed);
  config.placement = std::array{
      PlacementRule::kPack, PlacementRule::kSpread, PlacementRule::kFragmentation}[r.below(3)];
  disturb_all();
  send(ConfigChange{config});
}

Pod World::make_pod(Random& r, const std::string& key) {
  Pod p;
  p.key = key;
  p.ns = "d";
  p.uid = fmt::format("u{}", ++names_);
  p.created = model_.now;
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

void World::add_members(const Group& group, const Pod& like, std::uint64_t members) {
  for (std::uint64_t i = 0; i < members; ++i) {
    SimPod p;
    p.spec = like;
    p.spec.key = fmt::format("{}-{}", group.key, i);
    p.spec.uid = fmt::format("u{}", ++names_);
    p.spec.group = group.key;
    p.spec.priority = group.priority;
    add(std::move(p));
  }
}

void World::add_gang(Random& r) {
  Group g;
  g.key = fmt::format("d/g{}", ++names_);
  g.queue = model_.queues[r.below(model_.queues.size())].name;
  const auto members = 1 + r.below(6);
  g.min_member = static_cast<std::int32_t>(1 + r.below(members));
  g.priority = static_cast<std::int32_t>(std::array{0, 0, 10, 100}[r.below(4)]);
  g.created = model_.now;
  if (r.chance(10)) g.topology = {{"zone", r.chance(50)}};
  model_.groups[g.key] = g;
  const bool group_first = r.chance(50);
  if (group_first) send(GroupUpsert{g});
  add_members(g, make_pod(r, ""), members);
  if (!group_first) send(GroupUpsert{g});
}

/// A group of groups: it starts with enough of its gangs or not at all.
void World::add_family(Random& r) {
  Group top;
  top.key = fmt::format("d/f{}", ++names_);
  top.is_parent = true;
  top.created = model_.now;
  const auto children = 2 + r.below(2);
  top.min_groups = static_cast<std::int32_t>(1 + r.below(children));
  const std::string queue = model_.queues[r.below(model_.queues.size())].name;
  const auto priority = static_cast<std::int32_t>(std::array{0, 10, 100}[r.below(3)]);
  model_.families[top.key] = top;
  const bool top_first = r.chance(50);
  if (top_first) send(GroupUpsert{top});
  for (std::uint64_t c = 0; c < children; ++c) {
    Group g;
    g.key = fmt::format("{}c{}", top.key, c);
    g.queue = queue;
    g.priority = priority;
    g.parent = top.key;
    g.created = model_.now;
    const auto members = 1 + r.below(2);
    g.min_member = static_cast<std::int32_t>(members);
    model_.groups[g.key] = g;
    send(GroupUpsert{g});
    add_members(g, make_pod(r, ""), members);
  }
  if (!top_first) send(GroupUpsert{top});
}

void World::add_single(Random& r) {
  SimPod p;
  p.spec = make_pod(r, fmt::format("d/p{}", ++names_));
  p.spec.queue = model_.queues[r.below(model_.queues.size())].name;
  p.spec.priority = static_cast<std::int32_t>(std::array{0, 0, 10, 100}[r.below(4)]);
  add(std::move(p));
}

SimPod* World::random_pod(Random& r, Life life) {
  std::vector<SimPod*> all;
  for (auto& [key, p] : model_.pods) {
    if (p.life == life) all.push_back(&p);
  }
  return all.empty() ? nullptr : all[r.below(all.size())];
}

void World::add(SimPod p) {
  p.cpu = wanted_of(p.spec, "cpu");
  p.gpus = wanted_of(p.spec, "nvidia.com/gpu");
  send(PodUpsert{p.spec});
  model_.pods[p.spec.key] = std::move(p);
}

World::Pods::iterator World::drop(Pods::iterator it) {
  disturb(model_.root_of(it->second.spec));
  model_.set_life(it->second, Life::kPending);
  model_.held.erase(it->first);
  send(PodRemove{it->first});
  return model_.pods.erase(it);
}

void World::remove_group(const std::string& key) {
  const std::string parent = model_.groups.at(key).parent;
  for (auto it = model_.pods.lower_bound(key + "-");
       it != model_.pods.end() && it->second.spec.group == key;)
    it = drop(it);
  send(GroupRemove{key});
  model_.groups.erase(key);
  model_.bound.erase(key);
  if (parent.empty() || std::any_of(model_.groups.begin(), model_.groups.end(), [&](const auto& g) {
        return g.second.parent == parent;
      }))
    return;
  send(GroupRemove{parent});
  model_.families.erase(parent);
}

/// A pod is gone; its owner makes another of the same name, unless it was alone.
void World::replace(const std::string& key) {
  const auto it = model_.pods.find(key);
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

void World::leavers_go() {
  std::vector<std::string> keys;
  for (const auto& [key, p] : model_.pods) {
    if (p.life == Life::kLeaving) keys.push_back(key);
  }
  for (const auto& key : keys) replace(key);
}

void World::disturb(const std::string& root) {
  for (auto& [key, h] : model_.held) {
    if (model_.root_of(model_.pods.at(key).spec) == root) h.due = false;
  }
}

void World::disturb_all() {
  for (auto& [key, h] : model_.held) h.due = false;
}

}  // namespace muster::dst
