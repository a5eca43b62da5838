// Placing one gang: whole or not at all.
#include <algorithm>

#include "engine/fit.h"
#include "engine/match.h"
#include "engine/planner.h"

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
      have += pod.role == role && (pod.phase == PodPhase::kBound || (pod.phase == PodPhase::kFinished && pod.succeeded)) ? 1 : 0;
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
      for (const std::size_t i : {ResourceNames::kDevice, ResourceNames::kCpu, ResourceNames::kMemory}) {
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
    if (std::none_of(t.begin(), t.end(), [&](const auto& x) { return tolerates(x, taint); })) score -= 100;
  }
  const auto pods_in_domain = [&](const PodTerm& term) {
    const std::string* value = find_label(n.spec.labels, term.topology_key);
    if (value == nullptr || !term.selector) return std::int64_t{0};
    std::int64_t count = 0;
    for (std::uint32_t i = 0; i < state_.node_count(); ++i) {
      const NodeState& other = state_.node(NodeId(i));
      const std::string* v = other.live ? find_label(other.spec.labels, term.topology_key) : nullptr;
      if (v == nullptr || *v != *value) continue;
      for (const PodId p : other.pods) {
        const PodState& o = state_.pod(p);
        const bool ns = std::find(term.namespaces.begin(), term.namespaces.end(), o.ns) != term.namespaces.end();
        if (ns && matches(*term.selector, o.labels)) ++count;
      }
    }
    return count;
  };
  for (const auto& term : cls.spec.preferred_pod_affinity) score += 2 * term.weight * pods_in_domain(term);
  for (const auto& term : cls.spec.preferred_pod_anti_affinity) score -= 2 * term.weight * pods_in_domain(term);
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

/// The slow way, for pods whose place depends on other pods, preferences or a domain: every node is looked at.
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
    const std::int64_t left = cls.devices > 0 ? node.devices_whole * 1000 : node.free[ResourceNames::kCpu] / 100;
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
  const bool slow = domain != nullptr || cls.between_pods || !cls.spec.preferred_node_affinity.empty() ||
                    (!state_.anti_affinity_pods().empty() && needs_between(state_, pod));
  if (slow) return scan_node(pod, gang, domain);
  if (state_.config().placement == PlacementRule::kFragmentation) {
    const NodeId n = fragmentation_.pick(state_, state_.pod(pod).cls, index_.checks, picked_device_);
    if (!n.valid() || live_holds_ == 0 || may_use(n, cls, gang)) return n;
    picked_device_ = -1;
  }
  ClassIndex& index = index_.of(state_.pod(pod).cls);
  index.catch_up(state_, index_.checks);
  ClassIndex::Cursor cursor;
  for (NodeId n = index.next(cursor); n.valid(); n = index.next(cursor)) {
    if (live_holds_ == 0 || may_use(n, cls, gang)) return n;
    was_held_ = true;
  }
  return NodeId{};
}

void Planner::undo(std::vector<PodId>& placed) {
  for (auto it = placed.rbegin(); it != placed.rend(); ++it) state_.unbind(*it);
  placed.clear();
}

/// Binds tasks one by one until the need is met (all of them when the need is none or more than the least are
/// wanted); on failure everything is undone.
bool Planner::place_tasks(GangId id, const std::vector<PodId>& tasks, const Need& need, const std::vector<NodeId>* domain,
                          std::vector<PodId>& placed) {
  const std::size_t before = placed.size();
  std::int32_t left = need.total;
  std::vector<std::pair<std::string, std::int32_t>> roles = need.roles;
  ClassId failed;
  std::vector<ClassId> failed_classes;
  for (const PodId p : tasks) {
    const PodState& pod = state_.pod(p);
    if (pod.cls == failed || std::find(failed_classes.begin(), failed_classes.end(), pod.cls) != failed_classes.end()) continue;
    // Places above the roles' minimums must not eat up what the roles still need.
    auto role = std::find_if(roles.begin(), roles.end(), [&](const auto& r) { return r.first == pod.role && r.second > 0; });
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

/// Tries the domains of one level, the tightest that can hold the gang first, and goes on to the next level inside.
bool Planner::place_topology(GangId id, const std::vector<PodId>& tasks, const Need& need, std::size_t level,
                             const std::vector<NodeId>& nodes, std::vector<PodId>& placed) {
  const GangState& gang = state_.gang(id);
  const std::vector<TopologyLevel> levels = levels_of(gang);
  if (level == levels.size()) return place_tasks(id, tasks, need, &nodes, placed);
  std::map<std::string, std::vector<NodeId>> domains;
  for (const NodeId n : nodes) {
    const std::string* value = find_label(state_.node(n).spec.labels, levels[level].key);
    if (value != nullptr) domains[*value].push_back(n);
  }
  // Members (and, for the levels of a family, siblings) already running pin the domain.
  std::set<std::string> pinned;
  std::vector<GangId> kin = {id};
  if (level < levels.size() - gang.spec.topology.size()) {
    const auto family = families_.find(gang.spec.parent);
    if (family != families_.end()) kin.assign(family->second.begin(), family->second.end());
  }
  for (const GangId k : kin) {
    for (const PodId p : state_.gang(k).pods) {
      const PodState& pod = state_.pod(p);
      if (pod.phase != PodPhase::kBound) continue;
      const std::string* value = find_label(state_.node(pod.node).spec.labels, levels[level].key);
      if (value != nullptr) pinned.insert(*value);
    }
  }
  const TaskClass& cls = state_.cls_of(tasks.front());
  const std::int32_t wanted = std::max(need.total, 1);
  struct Option {
    std::int64_t room;
    const std::vector<NodeId>* nodes;
  };
  std::vector<Option> options;
  for (const auto& [value, members] : domains) {
    if (!pinned.empty() && !pinned.contains(value)) continue;
    std::int64_t room = 0;
    for (const NodeId n : members) room += fit_count(state_, cls, state_.node(n), 1 << 20);
    index_.checks += static_cast<std::int64_t>(members.size());
    if (room > 0 && (room >= wanted || state_.pod(tasks.front()).cls != state_.pod(tasks.back()).cls)) options.push_back({room, &members});
  }
  std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.room != b.room ? a.room < b.room : a.nodes->front() < b.nodes->front();
  });
  for (const Option& o : options) {
    if (place_topology(id, tasks, need, level + 1, *o.nodes, placed)) return true;
  }
  if (levels[level].required) return false;
  return place_topology(id, tasks, need, level + 1, nodes, placed);
}

/// A group of groups starts when at least its minimum of child groups can start together.
bool Planner::place_family(GangId id, std::vector<PodId>& placed) {
  const GangId parent = state_.find_gang(state_.gang(id).spec.parent);
  if (!parent.valid()) return false;
  std::int32_t running = 0;
  std::vector<GangId> waiting;
  for (const GangId child : families_[state_.gang(id).spec.parent]) {
    const GangState& gang = state_.gang(child);
    if (!gang.live || gang.spec.parent != state_.gang(parent).key) continue;
    Refusal refusal;
    if (need_of(gang).total == 0 && gang.bound > 0) {
      ++running;
    } else if (gang.pending > 0 && unready(gang, refusal) == Reason::kNone) {
      waiting.push_back(child);
    }
  }
  std::sort(waiting.begin(), waiting.end(), [&](GangId a, GangId b) { return state_.gang(a).seq < state_.gang(b).seq; });
  std::int32_t started = 0;
  for (const GangId child : waiting) {
    const std::vector<PodId> tasks = tasks_of(child);
    std::vector<NodeId> nodes;
    for (std::uint32_t n = 0; n < state_.node_count(); ++n) nodes.push_back(NodeId(n));
    if (!tasks.empty() && place_topology(child, tasks, need_of(state_.gang(child)), 0, nodes, placed)) ++started;
  }
  if (started > 0 && running + started >= std::max(1, state_.gang(parent).spec.min_groups)) return true;
  undo(placed);
  return false;
}

Planner::Outcome Planner::attempt(GangId id, std::vector<PodId>& placed) {
  ++attempts;
  was_held_ = false;
  const GangState& gang = state_.gang(id);
  const Need need = need_of(gang);
  const std::vector<PodId> tasks = tasks_of(id);
  if (tasks.empty()) return Outcome::kNoRoom;
  if (!gang.spec.parent.empty() && need.total > 0) {
    return place_family(id, placed) ? Outcome::kPlaced : was_held_ ? Outcome::kHeld : Outcome::kNoRoom;
  }
  if (!levels_of(gang).empty()) {
    std::vector<NodeId> nodes;
    for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
      if (state_.node(NodeId(n)).live) nodes.push_back(NodeId(n));
    }
    if (place_topology(id, tasks, need, 0, nodes, placed)) return Outcome::kPlaced;
    return was_held_ ? Outcome::kHeld : Outcome::kTopology;
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
