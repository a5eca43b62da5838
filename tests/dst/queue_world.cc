#include "queue_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace muster::dst {

using namespace engine;  // the subject of this program

namespace {

constexpr std::size_t kPodsMost = 60;
constexpr std::size_t kNodesMost = 10;

/// As Volcano is configured by default, with or without its evictions, and with either way to share.
VolcanoConfig volcano_of(std::uint64_t seed) {
  VolcanoConfig c;
  c.actions = {"enqueue", "allocate"};
  if (seed % 3 != 0) c.actions.emplace_back("preempt");
  if (seed % 3 == 2) c.actions.emplace_back("reclaim");
  c.actions.emplace_back("backfill");
  c.tiers = {{{.name = "priority"}, {.name = "gang"}, {.name = "conformance"}},
             {{.name = "predicates"},
              {.name = seed % 2 == 0 ? "capacity" : "proportion"},
              {.name = "nodeorder"}}};
  if (seed % 4 != 0) c.tiers[1].push_back({.name = "drf"});
  if (seed % 7 == 0) c.tiers[1].push_back({.name = "binpack"});
  return c;
}

Config config_of(const Run& run) {
  Config c;
  c.default_queue = "q0";
  c.reservations = run.seed % 3 == 0 ? 2 : 0;
  c.preempt = run.seed % 5 != 0;
  c.learn = run.seed % 2 == 0;
  c.patience = std::chrono::seconds(30);
  c.check_tables = true;
  if (run.kind == Kind::kVolcano) {
    c.policy = PolicyKind::kVolcano;
    c.volcano = volcano_of(run.seed);
  }
  return c;
}

}  // namespace

QueueWorld::QueueWorld(const Run& run)
    : World(run),
      subject_(run, config_of(run)),
      checks_(model_, subject_.engine(), config_of(run), run.thorough) {
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
    subject_.tell(QueueUpsert{q});
  }
}

std::optional<std::string> QueueWorld::step(Random& r) {
  model_.now = model_.now + Duration(static_cast<std::int64_t>(r.below(5'000'000)));
  act(r);
  decide(r);
  return failure_;
}

/// What becomes of a clone: everybody with a GPU leaves, and a node is lost.
std::vector<Event> QueueWorld::aftermath() const {
  std::vector<Event> out;
  for (const auto& [key, p] : model_.pods) {
    if (p.life == Life::kBound && p.gpus > 0) out.emplace_back(PodRemove{key});
  }
  if (!model_.nodes.empty()) out.emplace_back(NodeRemove{model_.nodes.begin()->first});
  return out;
}

void QueueWorld::decide(Random& r) {
  Plan plan = subject_.decide(model_.now, subject_.forks() ? aftermath() : std::vector<Event>());
  failure_ = subject_.failure();
  plant(run_.fault, model_, plan);
  if (run_.trace) print(plan);
  if (!failure_) failure_ = checks_.plan(plan);
  if (!failure_) carry_on(r, plan);
}

/// Some binds fail on the way; the engine is told. And some of those told to go have gone.
void QueueWorld::carry_on(Random& r, const Plan& plan) {
  for (const auto& b : plan.binds) {
    if (!r.chance(2)) continue;
    SimPod& p = model_.pods.at(b.pod);
    model_.set_life(p, Life::kPending);
    p.spec.node.clear();
    p.spec.device_indexes.clear();
    disturb(model_.root_of(p.spec));
    subject_.tell(BindResult{b.pod, false});
  }
  for (const auto& e : plan.evicts) {
    const auto it = model_.pods.find(e.pod);
    if (it != model_.pods.end() && it->second.life == Life::kLeaving && r.chance(50))
      replace(e.pod);
  }
}

void QueueWorld::act(Random& r) {
  const auto what = r.below(100);
  const bool room = model_.pods.size() < kPodsMost;
  if (what < 3 && room && run_.kind == Kind::kMuster) return add_family(r);
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

void QueueWorld::add_node(Random& r) {
  SimNode n;
  n.gpus = static_cast<std::int64_t>(r.chance(80) ? 4 + 4 * r.below(2) : 0);
  n.cpu = static_cast<std::int64_t>(16'000 + 16'000 * r.below(2));
  n.spec.name = fmt::format("n{}", ++names_);
  n.spec.labels = {{"zone", r.chance(50) ? "a" : "b"}};
  n.spec.allocatable = {{"cpu", n.cpu}, {"memory", 1LL << 38}, {"pods", 30}};
  if (n.gpus > 0) n.spec.allocatable.push_back({"nvidia.com/gpu", n.gpus});
  n.room = empty_room(n);
  subject_.tell(NodeUpsert{n.spec});
  model_.nodes[n.spec.name] = n;
}

void QueueWorld::toggle_node(Random& r) {
  auto it =
      std::next(model_.nodes.begin(), static_cast<std::ptrdiff_t>(r.below(model_.nodes.size())));
  if (r.chance(50)) {
    it->second.spec.ready = !it->second.spec.ready;
  } else {
    it->second.spec.unschedulable = !it->second.spec.unschedulable;
  }
  disturb_all();
  subject_.tell(NodeUpsert{it->second.spec});
}

void QueueWorld::lose_node(Random& r) {
  if (model_.nodes.size() < 2) return;
  auto it =
      std::next(model_.nodes.begin(), static_cast<std::ptrdiff_t>(r.below(model_.nodes.size())));
  const std::string name = it->first;
  model_.nodes.erase(it);
  std::erase_if(model_.held, [&](const auto& h) { return h.second.node == name; });
  disturb_all();
  subject_.tell(NodeRemove{name});
  std::vector<std::string> lost;
  for (const auto& [key, p] : model_.pods) {
    if (p.spec.node == name) lost.push_back(key);
  }
  for (const auto& key : lost) replace(key);
}

void QueueWorld::resize_queue(Random& r) {
  Queue& q = model_.queues[r.below(model_.queues.size())];
  q.capability.clear();
  if (r.chance(60)) q.capability = {{"nvidia.com/gpu", static_cast<std::int64_t>(4 + r.below(24))}};
  disturb_all();
  subject_.tell(QueueUpsert{q});
}

void QueueWorld::toggle_gate(Random& r) {
  SimPod* p = random_pod(r, Life::kPending);
  if (p == nullptr) return;
  p->spec.gated = !p->spec.gated;
  disturb(model_.root_of(p->spec));
  subject_.tell(PodUpsert{p->spec});
}

/// Where pods go is nothing that an invariant may depend on.
void QueueWorld::change_policy(Random& r) {
  Config config = config_of(run_);
  config.placement = std::array{
      PlacementRule::kPack, PlacementRule::kSpread, PlacementRule::kFragmentation}[r.below(3)];
  disturb_all();
  subject_.tell(ConfigChange{config});
}

Pod QueueWorld::make_pod(Random& r, const std::string& key) {
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

void QueueWorld::add_members(const Group& group, const Pod& like, std::uint64_t members) {
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

void QueueWorld::add_gang(Random& r) {
  Group g;
  g.key = fmt::format("d/g{}", ++names_);
  g.queue = model_.queues[r.below(model_.queues.size())].name;
  const auto members = 1 + r.below(6);
  g.min_member = static_cast<std::int32_t>(1 + r.below(members));
  g.priority = static_cast<std::int32_t>(std::array{0, 0, 10, 100}[r.below(4)]);
  g.created = model_.now;
  if (r.chance(10) && run_.kind == Kind::kMuster) g.topology = {{"zone", r.chance(50)}};
  model_.groups[g.key] = g;
  const bool group_first = r.chance(50);
  if (group_first) subject_.tell(GroupUpsert{g});
  add_members(g, make_pod(r, ""), members);
  if (!group_first) subject_.tell(GroupUpsert{g});
}

/// A group of groups: it starts with enough of its gangs or not at all.
void QueueWorld::add_family(Random& r) {
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
  if (top_first) subject_.tell(GroupUpsert{top});
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
    subject_.tell(GroupUpsert{g});
    add_members(g, make_pod(r, ""), members);
  }
  if (!top_first) subject_.tell(GroupUpsert{top});
}

void QueueWorld::add_single(Random& r) {
  SimPod p;
  p.spec = make_pod(r, fmt::format("d/p{}", ++names_));
  p.spec.queue = model_.queues[r.below(model_.queues.size())].name;
  p.spec.priority = static_cast<std::int32_t>(std::array{0, 0, 10, 100}[r.below(4)]);
  add(std::move(p));
}

SimPod* QueueWorld::random_pod(Random& r, Life life) {
  std::vector<SimPod*> all;
  for (auto& [key, p] : model_.pods) {
    if (p.life == life) all.push_back(&p);
  }
  return all.empty() ? nullptr : all[r.below(all.size())];
}

void QueueWorld::add(SimPod p) {
  p.cpu = wanted_of(p.spec, "cpu");
  p.gpus = wanted_of(p.spec, "nvidia.com/gpu");
  subject_.tell(PodUpsert{p.spec});
  model_.pods[p.spec.key] = std::move(p);
}

QueueWorld::Pods::iterator QueueWorld::drop(Pods::iterator it) {
  disturb(model_.root_of(it->second.spec));
  model_.set_life(it->second, Life::kPending);
  model_.held.erase(it->first);
  subject_.tell(PodRemove{it->first});
  return model_.pods.erase(it);
}

void QueueWorld::remove_group(const std::string& key) {
  const std::string parent = model_.groups.at(key).parent;
  for (auto it = model_.pods.lower_bound(key + "-");
       it != model_.pods.end() && it->second.spec.group == key;)
    it = drop(it);
  subject_.tell(GroupRemove{key});
  model_.groups.erase(key);
  model_.bound.erase(key);
  if (parent.empty() || std::any_of(model_.groups.begin(), model_.groups.end(), [&](const auto& g) {
        return g.second.parent == parent;
      }))
    return;
  subject_.tell(GroupRemove{parent});
  model_.families.erase(parent);
}

/// A pod is gone; its owner makes another of the same name, unless it was alone.
void QueueWorld::replace(const std::string& key) {
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

void QueueWorld::leavers_go() {
  std::vector<std::string> keys;
  for (const auto& [key, p] : model_.pods) {
    if (p.life == Life::kLeaving) keys.push_back(key);
  }
  for (const auto& key : keys) replace(key);
}

void QueueWorld::disturb(const std::string& root) {
  for (auto& [key, h] : model_.held) {
    if (model_.root_of(model_.pods.at(key).spec) == root) h.due = false;
  }
}

void QueueWorld::disturb_all() {
  for (auto& [key, h] : model_.held) h.due = false;
}

}  // namespace muster::dst
