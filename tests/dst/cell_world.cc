#include "cell_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "cell_config.h"

namespace muster::dst {

using namespace engine;  // the subject of this program

namespace {

constexpr std::size_t kPodsMost = 40;
constexpr std::int64_t kCpu = 64'000;

Config config_of(const Run& run) {
  Config c;
  c.default_queue = "nobody";
  c.learn = run.seed % 2 == 0;
  c.check_tables = true;
  if (run.seed % 5 == 0) {
    c.policy = PolicyKind::kVolcano;
    c.volcano.tiers = {{{.name = "priority"}, {.name = "gang"}}, {{.name = "predicates"}}};
  }
  return c;
}

}  // namespace

CellWorld::CellWorld(const Run& run)
    : World(run), subject_(run, config_of(run)), checks_(model_, subject_.engine(), run.thorough) {
  Random r(run.seed * 7919 + 3);
  do {
    cells_ = random_config(r, false);
  } while (!subject_.configure_cells(cells_, model_.now));
  checks_.divided(cells_);
  add_nodes();
  add_queues(r);
}

/// Those of the cells that are not there yet.
void CellWorld::add_nodes() {
  for (const auto& [name, place] : checks_.layout().nodes()) {
    if (model_.nodes.contains(name)) continue;
    SimNode n;
    n.gpus = checks_.layout().chains().at(place.chain).node_leaves();
    n.cpu = kCpu;
    n.spec.name = name;
    n.spec.labels = {{"zone", "a"}};
    n.spec.allocatable = {
        {"cpu", n.cpu}, {"memory", 1LL << 38}, {"pods", 30}, {"nvidia.com/gpu", n.gpus}};
    n.room = empty_room(n);
    subject_.tell(NodeUpsert{n.spec});
    model_.nodes[name] = n;
  }
}

void CellWorld::add_queues(Random& r) {
  const auto add = [&](Queue q) {
    q.backfill = std::array{
        BackfillMode::kReservation, BackfillMode::kSkip, BackfillMode::kFifo}[r.below(3)];
    model_.queues.push_back(q);
    subject_.tell(QueueUpsert{q});
  };
  add(Queue{.name = "nobody"});
  for (const auto& vc : cells_.virtual_clusters) {
    Queue top;
    top.name = r.chance(70) ? vc.name : "q-" + vc.name;
    if (top.name != vc.name) top.virtual_cluster = vc.name;
    add(top);
    for (std::uint64_t i = r.below(3); i > 0; --i) {
      Queue below;
      below.name = fmt::format("{}-{}", vc.name, i);
      below.parent = top.name;
      below.weight = static_cast<std::int32_t>(1 + r.below(3));
      if (r.chance(50))
        below.capability = {{"nvidia.com/gpu", static_cast<std::int64_t>(1 + r.below(8))}};
      add(below);
    }
  }
}

std::optional<std::string> CellWorld::step(Random& r) {
  model_.now = model_.now + Duration(static_cast<std::int64_t>(r.below(5'000'000)));
  act(r);
  Plan plan = subject_.decide(model_.now, subject_.forks() ? aftermath() : std::vector<Event>());
  if (subject_.failure()) return subject_.failure();
  plant(run_.fault, model_, plan);
  if (run_.trace) print(plan);
  if (auto wrong = checks_.plan(plan)) return wrong;
  carry_on(r, plan);
  return std::nullopt;
}

/// What becomes of a clone: everybody with a GPU leaves, and a node is lost.
std::vector<Event> CellWorld::aftermath() const {
  std::vector<Event> out;
  for (const auto& [key, p] : model_.pods) {
    if (p.life == Life::kBound && p.gpus > 0) out.emplace_back(PodRemove{key});
  }
  out.emplace_back(NodeRemove{model_.nodes.begin()->first});
  return out;
}

/// Some binds fail on the way, others are seen on their pods; some of those told to go are gone, and
/// some evictions fail.
void CellWorld::carry_on(Random& r, const Plan& plan) {
  for (const auto& b : plan.binds) {
    SimPod& p = model_.pods.at(b.pod);
    if (r.chance(2)) {
      model_.set_life(p, Life::kPending);
      p.spec.node.clear();
      p.spec.device_indexes.clear();
      p.seat.reset();
      checks_.disturb(p);
      subject_.tell(BindResult{b.pod, false});
    } else if (r.chance(50)) {
      subject_.tell(PodUpsert{as_seen(p)});
    }
  }
  for (const auto& e : plan.evicts) {
    const auto it = model_.pods.find(e.pod);
    if (it == model_.pods.end() || it->second.life != Life::kLeaving) continue;
    if (r.chance(3)) {
      model_.set_life(it->second, Life::kBound);
      checks_.spared(it->second);
      subject_.tell(EvictResult{e.pod, false});
    } else if (r.chance(50)) {
      replace(e.pod);
    }
  }
}

void CellWorld::act(Random& r) {
  const auto what = r.below(100);
  const bool room = model_.pods.size() < kPodsMost;
  if (what < 14 && room) return add_gang(r);
  if (what < 24 && room) return add_annotated(r);
  if (what < 36 && room) return add_single(r);
  if (what < 38 && room) return add_plain(r);
  if (what < 56) return end_one(r);
  if (what < 60) {
    SimPod* p = random_pod(r, Life::kBound);
    if (p != nullptr) replace(std::string(p->spec.key));
    return;
  }
  if (what < 68) return toggle_node(r);
  if (what < 71) return lose_node(r);
  if (what < 75) return change_queue(r);
  if (what < 78) return toggle_gate(r);
  if (what < 80) return toggle_hold(r);
  if (what < 84) return divide_anew(r);
  if (what < 86) return restart(r);
  // The rest: only time passes, and those told to go leave.
  leavers_go();
}

// ------------------------------------------------------------------------------------ who comes

Pod CellWorld::make_pod(const std::string& key, std::int64_t gpus) {
  Pod p;
  p.key = key;
  p.ns = "d";
  p.uid = fmt::format("u{}", ++names_);
  p.created = model_.now;
  p.requests = {{"cpu", 500}, {"memory", 1LL << 30}};
  if (gpus > 0) p.requests.push_back({"nvidia.com/gpu", gpus});
  return p;
}

std::int32_t CellWorld::some_size(Random& r) const {
  // Whole nodes often: that is what they are bought for.
  if (r.chance(40)) {
    const auto& chains = checks_.layout().chains();
    const auto chain =
        std::next(chains.begin(), static_cast<std::ptrdiff_t>(r.below(chains.size())));
    return chain->second.node_leaves();
  }
  return static_cast<std::int32_t>(1 + r.below(r.chance(80) ? 3 : 6));
}

std::int32_t CellWorld::some_priority(Random& r) const {
  return std::array{-1, -1, 0, 0, 1, 5, 1000, 2000}[r.below(8)];
}

std::string CellWorld::some_queue(Random& r) const {
  return model_.queues[r.chance(3) ? 0 : r.below(model_.queues.size())].name;
}

void CellWorld::add_gang(Random& r) {
  Group g;
  g.key = fmt::format("d/g{}", ++names_);
  g.queue = some_queue(r);
  const auto members = static_cast<std::int32_t>(1 + r.below(4));
  g.min_member = r.chance(70) ? members : 1 + static_cast<std::int32_t>(r.below(4)) % members;
  g.priority = some_priority(r);
  g.created = model_.now;
  if (r.chance(30)) g.expected_duration = std::chrono::seconds(10 + r.below(600));
  model_.groups[g.key] = g;
  const bool group_first = r.chance(50);
  if (group_first) subject_.tell(GroupUpsert{g});
  const std::int32_t size = some_size(r);
  const bool alike = r.chance(80);
  const bool typed = r.chance(30);
  const std::string type = r.chance(50) ? "A" : "B";
  for (std::int32_t i = 0; i < members; ++i) {
    SimPod p;
    p.spec = make_pod(fmt::format("{}-{}", g.key, i), alike ? size : some_size(r));
    p.spec.group = g.key;
    p.spec.priority = g.priority;
    if (typed) p.spec.device_models = {type};
    add(std::move(p));
  }
  if (!group_first) subject_.tell(GroupUpsert{g});
}

/// As OpenPAI submits: every pod says what its whole gang asks for.
void CellWorld::add_annotated(Random& r) {
  const auto& vc = cells_.virtual_clusters[r.below(cells_.virtual_clusters.size())];
  cells::PodSpec spec;
  spec.vc = vc.name;
  spec.priority = std::array{-1, -1, 0, 0, 1, 5, 1000}[r.below(7)];
  if (!vc.pinned.empty() && spec.priority >= 0 && r.chance(50)) spec.pinned_cell = vc.pinned[0].id;
  if (r.chance(40)) spec.leaf_type = r.chance(50) ? "A" : "B";
  spec.lazy_preemption = r.chance(40);
  spec.group = fmt::format("d/a{}", ++names_);
  const std::uint64_t parts = 1 + r.below(2);
  for (std::uint64_t m = 0; m < parts; ++m)
    spec.members.push_back({static_cast<std::int32_t>(1 + r.below(3)), some_size(r)});
  std::int32_t k = 0;
  const std::string queue = some_queue(r);
  for (const auto& member : std::vector<cells::GroupMember>(spec.members)) {
    for (std::int32_t i = 0; i < member.pods; ++i) {
      spec.leaves = member.leaves;
      SimPod p;
      p.spec = make_pod(fmt::format("{}-{}", spec.group, k++), member.leaves);
      p.spec.queue = queue;
      cells::PodNote note;
      note.spec = spec;
      p.spec.cells = std::make_shared<cells::PodNote>(std::move(note));
      add(std::move(p));
    }
  }
}

void CellWorld::add_single(Random& r) {
  SimPod p;
  p.spec = make_pod(fmt::format("d/p{}", ++names_), some_size(r));
  p.spec.queue = some_queue(r);
  p.spec.priority = some_priority(r);
  if (r.chance(30)) p.spec.expected_duration = std::chrono::seconds(10 + r.below(600));
  add(std::move(p));
}

/// One that asks for no device: cells do not place it.
void CellWorld::add_plain(Random& r) {
  SimPod p;
  p.spec = make_pod(fmt::format("d/c{}", ++names_), 0);
  p.spec.queue = some_queue(r);
  add(std::move(p));
}

// ------------------------------------------------------------------------------------ what happens

void CellWorld::toggle_node(Random& r) {
  auto it =
      std::next(model_.nodes.begin(), static_cast<std::ptrdiff_t>(r.below(model_.nodes.size())));
  // Most are well, most of the time.
  const bool well = it->second.spec.ready && !it->second.spec.unschedulable;
  const auto bad = std::count_if(model_.nodes.begin(), model_.nodes.end(), [](const auto& n) {
    return !n.second.spec.ready || n.second.spec.unschedulable;
  });
  if (well && bad >= 2) return;
  if (!well) {
    it->second.spec.ready = true;
    it->second.spec.unschedulable = false;
  } else if (r.chance(50)) {
    it->second.spec.ready = false;
  } else {
    it->second.spec.unschedulable = true;
  }
  checks_.disturb_all();
  subject_.tell(NodeUpsert{it->second.spec});
}

/// A node is gone with its pods. It may come back later, with others that cells name.
void CellWorld::lose_node(Random& r) {
  checks_.disturb_all();
  if (model_.nodes.size() < 2 || r.chance(40)) return add_nodes();
  auto it =
      std::next(model_.nodes.begin(), static_cast<std::ptrdiff_t>(r.below(model_.nodes.size())));
  const std::string name = it->first;
  model_.nodes.erase(it);
  subject_.tell(NodeRemove{name});
  std::vector<std::string> lost;
  for (const auto& [key, p] : model_.pods) {
    if (p.spec.node == name) lost.push_back(key);
  }
  for (const auto& key : lost) replace(key);
}

void CellWorld::change_queue(Random& r) {
  checks_.limited();
  Queue& q = model_.queues[r.below(model_.queues.size())];
  const auto what = r.below(10);
  if (what < 7) {
    q.capability.clear();
    if (r.chance(60))
      q.capability = {{"nvidia.com/gpu", static_cast<std::int64_t>(1 + r.below(12))}};
  } else if (what < 9) {
    q.state = q.state == QueueState::kOpen ? QueueState::kClosed : QueueState::kOpen;
  } else if (q.parent.empty()) {
    q.virtual_cluster =
        r.chance(30) ? "" : cells_.virtual_clusters[r.below(cells_.virtual_clusters.size())].name;
  }
  if (run_.fault != Fault::kLimit) subject_.tell(QueueUpsert{q});
}

void CellWorld::toggle_gate(Random& r) {
  SimPod* p = random_pod(r, Life::kPending);
  if (p == nullptr) return;
  p->spec.gated = !p->spec.gated;
  checks_.disturb(*p);
  subject_.tell(PodUpsert{p->spec});
}

void CellWorld::toggle_hold(Random& r) {
  if (model_.groups.empty()) return;
  Group& g =
      std::next(model_.groups.begin(), static_cast<std::ptrdiff_t>(r.below(model_.groups.size())))
          ->second;
  g.hold = !g.hold;
  checks_.disturb_all();
  subject_.tell(GroupUpsert{g});
}

void CellWorld::divide_anew(Random& r) {
  const cells::Config next = r.chance(70) ? changed_config(cells_, r) : cells_;
  checks_.disturb_all();
  if (!subject_.configure_cells(next, model_.now)) return;
  cells_ = next;
  checks_.divided(cells_);
  if (r.chance(70)) add_nodes();
}

/// Another engine, which finds what there is in any order.
void CellWorld::restart(Random& r) {
  subject_.restart(config_of(run_));
  checks_.disturb_all();
  checks_.restarted();
  std::vector<Event> found;
  for (const auto& [name, n] : model_.nodes) found.emplace_back(NodeUpsert{n.spec});
  for (const auto& q : model_.queues) found.emplace_back(QueueUpsert{q});
  for (const auto& [key, g] : model_.groups) found.emplace_back(GroupUpsert{g});
  for (auto& [key, p] : model_.pods) found.emplace_back(PodUpsert{as_seen(p)});
  for (std::size_t i = found.size(); i > 1; --i) std::swap(found[i - 1], found[r.below(i)]);
  const bool cells_first = r.chance(50);
  if (cells_first) (void)subject_.configure_cells(cells_, model_.now);
  for (const Event& event : found) subject_.tell(event);
  if (!cells_first) (void)subject_.configure_cells(cells_, model_.now);
}

void CellWorld::end_one(Random& r) {
  SimPod* p = random_pod(r, r.chance(80) ? Life::kBound : Life::kPending);
  if (p == nullptr) return;
  const std::string unit = checks_.gang_of(*p);
  const std::string group = p->spec.group;
  for (auto it = model_.pods.begin(); it != model_.pods.end();) {
    const bool goes = checks_.gang_of(it->second) == unit;
    it = goes ? drop(it) : std::next(it);
  }
  if (group.empty()) return;
  subject_.tell(GroupRemove{group});
  model_.groups.erase(group);
  model_.bound.erase(group);
}

void CellWorld::leavers_go() {
  std::vector<std::string> keys;
  for (const auto& [key, p] : model_.pods) {
    if (p.life == Life::kLeaving) keys.push_back(key);
  }
  for (const auto& key : keys) replace(key);
}

// ------------------------------------------------------------------------------------ pods

SimPod* CellWorld::random_pod(Random& r, Life life) {
  std::vector<SimPod*> all;
  for (auto& [key, p] : model_.pods) {
    if (p.life == life) all.push_back(&p);
  }
  return all.empty() ? nullptr : all[r.below(all.size())];
}

void CellWorld::add(SimPod p) {
  p.cpu = wanted_of(p.spec, "cpu");
  p.gpus = wanted_of(p.spec, "nvidia.com/gpu");
  checks_.disturb(p);
  subject_.tell(PodUpsert{p.spec});
  model_.pods[p.spec.key] = std::move(p);
}

CellWorld::Pods::iterator CellWorld::drop(Pods::iterator it) {
  checks_.disturb(it->second);
  model_.set_life(it->second, Life::kPending);
  subject_.tell(PodRemove{it->first});
  return model_.pods.erase(it);
}

void CellWorld::replace(const std::string& key) {
  const auto it = model_.pods.find(key);
  SimPod p = it->second;
  drop(it);
  p.life = Life::kPending;
  p.seat.reset();
  p.spec.node.clear();
  p.spec.device_indexes.clear();
  p.spec.started = Time{};
  p.spec.uid = fmt::format("u{}", ++names_);
  add(std::move(p));
}

Pod CellWorld::as_seen(const SimPod& p) const {
  Pod out = p.spec;
  out.terminating = p.life == Life::kLeaving;
  if (!p.seat) return out;
  cells::PodNote note;
  note.spec = p.seat->spec ? p.seat->spec : p.spec.cells->spec;
  note.bind = p.seat->bind;
  out.cells = std::make_shared<cells::PodNote>(std::move(note));
  return out;
}

}  // namespace muster::dst
