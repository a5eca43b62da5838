// Placing one gang: whole or not at all.
#include <algorithm>

#include "engine/muster/planner.h"
#include "engine/state/fit.h"
#include "engine/state/match.h"

namespace muster::engine {

Planner::Need Planner::need_of(const GangState& gang) const {
  Need need;
  need.total = std::max(0, gang.spec.min_member - gang.bound - gang.succeeded);
  std::int32_t role_total = 0;
  for (const auto& [role, n] : gang.spec.min_task_member) role_total += n;
  if (gang.spec.min_task_member.empty() || gang.spec.min_member < role_total) return need;
  std::int32_t sum = 0;
  for (const auto& [role, n] : gang.spec.min_task_member) {
    std::int32_t have = 0;
    for (const PodId p : gang.pods) {
      const PodState& pod = state_.pod(p);
      have += pod.role == role && (pod.phase == PodPhase::kBound ||
                                   (pod.phase == PodPhase::kFinished && pod.succeeded))
                  ? 1
                  : 0;
    }
    if (n > have) {
      need.roles.emplace_back(role, n - have);
      sum += n - have;
    }
  }
  need.total = std::max(need.total, sum);
  return need;
}

/// Waiting members, the largest first: small ones fit beside large ones, not the other way round.
std::vector<PodId> Planner::tasks_of(GangId id) const {
  std::vector<PodId> tasks;
  for (const PodId p : state_.gang(id).pods) {
    const PodState& pod = state_.pod(p);
    if (pod.phase == PodPhase::kPending && !pod.gated && pod.ours) tasks.push_back(p);
  }
  std::sort(tasks.begin(), tasks.end(), [&](PodId a, PodId b) {
    const PodState& x = state_.pod(a);
    const PodState& y = state_.pod(b);
    if (x.priority != y.priority) return x.priority > y.priority;
    if (x.cls != y.cls) {
      const ResourceVector& rx = state_.cls(x.cls).request;
      const ResourceVector& ry = state_.cls(y.cls).request;
      for (const std::size_t i :
           {ResourceNames::kDevice, ResourceNames::kCpu, ResourceNames::kMemory}) {
        if (rx[i] != ry[i]) return rx[i] > ry[i];
      }
      return x.cls < y.cls;
    }
    return x.seq < y.seq;
  });
  return tasks;
}

/// What the least that must start together asks for in sum.
ResourceVector Planner::request_of(GangId id, const Need& need) const {
  ResourceVector sum;
  std::int32_t n = std::max(need.total, 1);
  for (const PodId p : tasks_of(id)) {
    if (n-- == 0) break;
    sum += state_.cls_of(p).request;
  }
  return sum;
}

std::int64_t Planner::preference(PodId pod, NodeId node) const {
  const TaskClass& cls = state_.cls_of(pod);
  const NodeState& n = state_.node(node);
  std::int64_t score = 0;
  for (const auto& p : cls.spec.preferred_node_affinity) {
    if (matches(p.term, n.spec.labels, n.spec.name)) score += 2 * p.weight;
  }
  for (const auto& taint : n.spec.taints) {
    if (taint.effect != TaintEffect::kPreferNoSchedule) continue;
    const auto& t = cls.spec.tolerations;
    if (std::none_of(t.begin(), t.end(), [&](const auto& x) { return tolerates(x, taint); }))
      score -= 100;
  }
  const auto pods_in_domain = [&](const PodTerm& term) {
    const std::string* value = find_label(n.spec.labels, term.topology_key);
    if (value == nullptr || !term.selector) return std::int64_t{0};
    std::int64_t count = 0;
    for (std::uint32_t i = 0; i < state_.node_count(); ++i) {
      const NodeState& other = state_.node(NodeId(i));
      const std::string* v =
          other.live ? find_label(other.spec.labels, term.topology_key) : nullptr;
      if (v == nullptr || *v != *value) continue;
      for (const PodId p : other.pods) {
        const PodState& o = state_.pod(p);
        const bool ns = std::find(term.namespaces.begin(), term.namespaces.end(), o.ns) !=
                        term.namespaces.end();
        if (ns && matches(*term.selector, o.labels)) ++count;
      }
    }
    return count;
  };
  for (const auto& term : cls.spec.preferred_pod_affinity)
    score += 2 * term.weight * pods_in_domain(term);
  for (const auto& term : cls.spec.preferred_pod_anti_affinity)
    score -= 2 * term.weight * pods_in_domain(term);
  for (const auto& rule : cls.spec.topology_spread) {
    if (rule.required || !rule.selector) continue;
    PodTerm term;
    term.selector = rule.selector;
    term.namespaces = {state_.pod(pod).ns};
    term.topology_key = rule.topology_key;
    score -= 200 * pods_in_domain(term);
  }
  return score;
}

/// The slow way, for pods whose place depends on other pods, preferences or a domain: every node is
/// looked at.
NodeId Planner::scan_node(PodId pod, GangId gang, const std::vector<NodeId>* domain) {
  const TaskClass& cls = state_.cls_of(pod);
  NodeId best;
  std::int64_t best_score = 0;
  const auto consider = [&](NodeId n) {
    ++index_.checks;
    if (!fit(state_, pod, n).ok()) return;
    if (!may_use(n, cls, gang)) {
      was_held_ = true;
      return;
    }
    // Preferences first, then the node with least left over.
    const NodeState& node = state_.node(n);
    const std::int64_t left =
        cls.devices > 0 ? node.devices_whole * 1000 : node.free[ResourceNames::kCpu] / 100;
    const std::int64_t score = preference(pod, n) * 1'000'000 - left;
    if (!best.valid() || score > best_score) {
      best = n;
      best_score = score;
    }
  };
  if (domain != nullptr) {
    for (const NodeId n : *domain) consider(n);
  } else {
    for (std::uint32_t n = 0; n < state_.node_count(); ++n) consider(NodeId(n));
  }
  return best;
}

NodeId Planner::pick_node(PodId pod, GangId gang, const std::vector<NodeId>* domain) {
  const TaskClass& cls = state_.cls_of(pod);
  picked_device_ = -1;
  const bool slow = domain != nullptr || cls.between_pods ||
                    !cls.spec.preferred_node_affinity.empty() ||
                    (!state_.anti_affinity_pods().empty() && needs_between(state_, pod));
  if (slow) return scan_node(pod, gang, domain);
  if (state_.config().placement == PlacementRule::kFragmentation) {
    const NodeId n =
        fragmentation_.pick(state_, state_.pod(pod).cls, index_.checks, picked_device_);
    if (!n.valid() || live_holds_ == 0 || may_use(n, cls, gang)) return n;
    picked_device_ = -1;
  }
  ClassIndex& index = index_.of(state_.pod(pod).cls);
  index.catch_up(state_, index_.checks);
  if (cls.devices > 0 && state_.config().placement == PlacementRule::kPack) {
    const std::int64_t us = duration_of(gang);
    if (us != Durations::kUnknown) return pick_by_end(index, cls, gang, now_ + Duration(us));
  }
  ClassIndex::Cursor cursor;
  for (NodeId n = index.next(cursor); n.valid(); n = index.next(cursor)) {
    if (live_holds_ == 0 || may_use(n, cls, gang)) return n;
    was_held_ = true;
  }
  return NodeId{};
}

/// Where the end is known: beside work that ends no earlier, or little earlier, so that nodes fall
/// empty as a whole and large gangs find them sooner. An idle node is taken last; between equals
/// the fuller one.
NodeId Planner::pick_by_end(const ClassIndex& index, const TaskClass& cls, GangId gang, Time end) {
  constexpr int kLookedAt = 128;
  NodeId best;
  std::int64_t best_longer = 0;
  ClassIndex::Cursor cursor;
  int seen = 0;
  for (NodeId n = index.next(cursor); n.valid() && seen < kLookedAt; n = index.next(cursor)) {
    const Time busy_until = state_.node(n).busy_until;
    const bool idle = !busy_until;
    if (idle && best.valid()) break;
    if (live_holds_ != 0 && !may_use(n, cls, gang)) {
      was_held_ = true;
      continue;
    }
    ++seen;
    const std::int64_t longer = idle ? 0 : std::max<std::int64_t>(end.us - busy_until.us, 0);
    if (best.valid() && longer >= best_longer) continue;
    best = n;
    best_longer = longer;
    if (idle || longer == 0) break;
  }
  return best;
}

void Planner::undo(std::vector<PodId>& placed) {
  for (auto it = placed.rbegin(); it != placed.rend(); ++it) state_.unbind(*it);
  placed.clear();
}

/// Binds tasks one by one until the need is met (all of them when the need is none or more than the
/// least are wanted); on failure everything is undone.
bool Planner::place_tasks(GangId id,
                          const std::vector<PodId>& tasks,
                          const Need& need,
                          const std::vector<NodeId>* domain,
                          std::vector<PodId>& placed) {
  const std::size_t before = placed.size();
  std::int32_t left = need.total;
  std::vector<std::pair<std::string, std::int32_t>> roles = need.roles;
  ClassId failed;
  std::vector<ClassId> failed_classes;
  for (const PodId p : tasks) {
    const PodState& pod = state_.pod(p);
    if (pod.cls == failed ||
        std::find(failed_classes.begin(), failed_classes.end(), pod.cls) != failed_classes.end())
      continue;
    // Places above the roles' minimums must not eat up what the roles still need.
    auto role = std::find_if(roles.begin(), roles.end(), [&](const auto& r) {
      return r.first == pod.role && r.second > 0;
    });
    std::int32_t reserved = 0;
    for (const auto& r : roles) reserved += r.second;
    if (need.total > 0 && role == roles.end() && left <= reserved) continue;
    const NodeId node = pick_node(p, id, domain);
    if (!node.valid()) {
      failed = pod.cls;
      failed_classes.push_back(pod.cls);
      continue;
    }
    state_.bind(p, node, now_, picked_device_);
    placed.push_back(p);
    if (role != roles.end()) --role->second;
    if (--left == 0) break;
    if (need.total == 0) break;
  }
  if (need.total == 0) return placed.size() > before;
  if (left <= 0) return true;
  std::vector<PodId> mine(placed.begin() + static_cast<std::ptrdiff_t>(before), placed.end());
  placed.resize(before);
  undo(mine);
  return false;
}

std::vector<TopologyLevel> Planner::levels_of(const GangState& gang) const {
  std::vector<TopologyLevel> levels;
  std::string parent = gang.spec.parent;
  for (int depth = 0; !parent.empty() && depth < 8; ++depth) {
    const GangId up = state_.find_gang(parent);
    if (!up.valid()) break;
    const auto& above = state_.gang(up).spec.topology;
    levels.insert(levels.begin(), above.begin(), above.end());
    parent = state_.gang(up).spec.parent;
  }
  levels.insert(levels.end(), gang.spec.topology.begin(), gang.spec.topology.end());
  return levels;
}

/// Enough members run: it needs nobody to start with it.
bool Planner::group_runs(GangId id) const {
  const GangState& gang = state_.gang(id);
  if (!gang.spec.is_parent) return gang.bound > 0 && need_of(gang).total == 0;
  std::int32_t running = 0;
  for (const GangId child : state_.children_of(gang.key)) running += group_runs(child) ? 1 : 0;
  return running >= std::max(1, gang.spec.min_groups);
}

/// The values of the key where members of the group run or have room held: these pin the domain of
/// those that follow.
std::set<std::string> Planner::pinned(GangId group, const std::string& key) const {
  std::set<std::string> values;
  for (const GangId leaf : state_.leaves_of(group)) {
    for (const PodId p : state_.gang(leaf).pods) {
      const PodState& pod = state_.pod(p);
      const NodeId at = pod.phase == PodPhase::kBound ? pod.node : pod.nominated;
      if (!at.valid()) continue;
      const std::string* value = find_label(state_.node(at).spec.labels, key);
      if (value != nullptr) values.insert(*value);
    }
  }
  return values;
}

/// Nodes that the groups above leave to the gang: the domains in which their members run.
std::vector<NodeId> Planner::nodes_for(GangId id) const {
  std::vector<NodeId> nodes;
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    if (state_.node(NodeId(n)).live) nodes.push_back(NodeId(n));
  }
  for (GangId up = state_.parent_of(id); up.valid(); up = state_.parent_of(up)) {
    for (const auto& level : state_.gang(up).spec.topology) {
      const std::set<std::string> values = pinned(up, level.key);
      if (values.empty() || !level.required) continue;
      std::erase_if(nodes, [&](NodeId n) {
        const std::string* value = find_label(state_.node(n).spec.labels, level.key);
        return value == nullptr || !values.contains(*value);
      });
    }
    if (up == state_.root_of(id)) break;
  }
  return nodes;
}

/// Tries the domains of one level, the tightest that can hold the group first, and goes on to the
/// next level inside.
bool Planner::place_level(GangId id,
                          std::size_t level,
                          const std::vector<NodeId>& nodes,
                          std::vector<PodId>& placed) {
  const GangState& gang = state_.gang(id);
  if (level == gang.spec.topology.size()) return place_inside(id, nodes, placed);
  const TopologyLevel rule = gang.spec.topology[level];
  std::map<std::string, std::vector<NodeId>> domains;
  for (const NodeId n : nodes) {
    const std::string* value = find_label(state_.node(n).spec.labels, rule.key);
    if (value != nullptr) domains[*value].push_back(n);
  }
  const std::set<std::string> values = pinned(id, rule.key);
  // A gang of pods alike needs room for all; for others the room of one kind only says which domain
  // is tighter.
  std::int32_t wanted = 1;
  std::vector<PodId> tasks;
  for (const GangId leaf : state_.leaves_of(id)) {
    tasks = tasks_of(leaf);
    if (!tasks.empty()) break;
  }
  if (tasks.empty()) return false;
  if (!gang.spec.is_parent && state_.pod(tasks.front()).cls == state_.pod(tasks.back()).cls)
    wanted = std::max(need_of(gang).total, 1);
  const TaskClass& cls = state_.cls_of(tasks.front());
  struct Option {
    std::int64_t room;
    const std::vector<NodeId>* nodes;
  };
  std::vector<Option> options;
  for (const auto& [value, members] : domains) {
    if (!values.empty() && !values.contains(value)) continue;
    std::int64_t room = 0;
    for (const NodeId n : members) room += fit_count(state_, cls, state_.node(n), 1 << 20);
    index_.checks += static_cast<std::int64_t>(members.size());
    if (room >= wanted) options.push_back({room, &members});
  }
  std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.room != b.room ? a.room < b.room : a.nodes->front() < b.nodes->front();
  });
  for (const Option& o : options) {
    if (place_level(id, level + 1, *o.nodes, placed)) return true;
  }
  if (rule.required) return false;
  return place_level(id, level + 1, nodes, placed);
}

/// The gang itself, or as many of the groups below as possible: a group of groups starts when at
/// least its minimum of them runs or can start together.
bool Planner::place_inside(GangId id,
                           const std::vector<NodeId>& nodes,
                           std::vector<PodId>& placed) {
  const GangState& gang = state_.gang(id);
  if (!gang.spec.is_parent) {
    Refusal refusal;
    const std::vector<PodId> tasks = tasks_of(id);
    if (tasks.empty() || unready(gang, refusal) != Reason::kNone) return false;
    const Need need = need_of(gang);
    if (tenants_.excess(state_, gang.tenant, request_of(id, need))) return false;
    return place_tasks(id, tasks, need, &nodes, placed);
  }
  const std::size_t before = placed.size();
  std::vector<GangId> children = state_.children_of(gang.key);
  std::sort(children.begin(), children.end(), [&](GangId a, GangId b) {
    return state_.gang(a).seq < state_.gang(b).seq;
  });
  std::int32_t running = 0;
  for (const GangId child : children) {
    if (nominated_.contains(child))
      continue;  // It starts where its victims leave; a trial elsewhere would lose that room.
    const bool runs = group_runs(child);
    const bool starts =
        (!runs || state_.gang(child).spec.is_parent) && place_level(child, 0, nodes, placed);
    running += runs || starts ? 1 : 0;
  }
  if (running >= std::max(1, gang.spec.min_groups)) return true;
  std::vector<PodId> mine(placed.begin() + static_cast<std::ptrdiff_t>(before), placed.end());
  placed.resize(before);
  undo(mine);
  return false;
}

Planner::Outcome Planner::attempt(GangId id, std::vector<PodId>& placed) {
  ++state_.attempts;
  was_held_ = false;
  const GangState& gang = state_.gang(id);
  const Need need = need_of(gang);
  const std::vector<PodId> tasks = tasks_of(id);
  if (tasks.empty()) return Outcome::kNoRoom;
  if (state_.parent_of(id).valid() || !gang.spec.topology.empty()) {
    // A family starts from its root; a member above the minimum goes where its family is.
    const GangId from = need.total > 0 ? state_.root_of(id) : id;
    if (place_level(from, 0, nodes_for(from), placed) && !placed.empty()) return Outcome::kPlaced;
    return was_held_                    ? Outcome::kHeld
           : gang.spec.topology.empty() ? Outcome::kNoRoom
                                        : Outcome::kTopology;
  }
  if (place_tasks(id, tasks, need, nullptr, placed)) {
    // Members above the minimum: all at once when nobody else competes, else one a turn.
    if (need.total == 0 && active_.size() <= 1) {
      std::vector<PodId> rest(tasks.begin() + 1, tasks.end());
      for (const PodId p : rest) {
        if (state_.pod(p).phase != PodPhase::kPending) continue;
        if (tenants_.excess(state_, gang.tenant, state_.cls_of(p).request)) break;
        const NodeId node = pick_node(p, id, nullptr);
        if (!node.valid()) break;
        state_.bind(p, node, now_, picked_device_);
        placed.push_back(p);
      }
    }
    return Outcome::kPlaced;
  }
  return was_held_ ? Outcome::kHeld : Outcome::kNoRoom;
}

void Planner::emit(GangId id, const std::vector<PodId>& placed) {
  (void)id;
  for (const PodId p : placed) {
    const PodState& pod = state_.pod(p);
    const NodeState& node = state_.node(pod.node);
    Bind b;
    b.pod = pod.key;
    b.uid = pod.uid;
    b.node = node.spec.name;
    b.devices.reserve(pod.devices.size());
    for (const auto i : pod.devices) b.devices.push_back(node.devices[i].index);
    b.device_share_milli = state_.cls(pod.cls).share_milli;
    plan_.binds.push_back(std::move(b));
  }
}

}  // namespace muster::engine
