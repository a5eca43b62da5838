#include "engine/muster/placer.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "engine/state/fit.h"
#include "engine/state/match.h"

namespace muster::engine {

// ------------------------------------------------------------------ one pod

/// Pods that the term selects, on nodes that share the node's value of its topology key.
std::int64_t Placer::pods_in_domain(const PodTerm& term, const NodeState& node) const {
  const std::string* value = find_label(node.spec->labels, term.topology_key);
  if (value == nullptr || !term.selector) return 0;
  std::int64_t count = 0;
  for (std::uint32_t i = 0; i < state_->node_count(); ++i) {
    const NodeState& other = state_->node(NodeId(i));
    const std::string* v = other.live ? find_label(other.spec->labels, term.topology_key) : nullptr;
    if (v == nullptr || *v != *value) continue;
    for (const PodId p : other.pods) {
      const PodState& o = state_->pod(p);
      const bool ns =
          std::find(term.namespaces.begin(), term.namespaces.end(), o.ns) != term.namespaces.end();
      if (ns && matches(*term.selector, o.labels)) ++count;
    }
  }
  return count;
}

/// What the pod would rather have, and rather not, on this node.
std::int64_t Placer::preference(PodId pod, NodeId node) const {
  const TaskClass& cls = state_->cls_of(pod);
  const NodeState& n = state_->node(node);
  std::int64_t score = 0;
  for (const auto& p : cls.spec.preferred_node_affinity) {
    if (matches(p.term, n.spec->labels, n.spec->name)) score += 2 * p.weight;
  }
  for (const auto& taint : n.spec->taints) {
    if (taint.effect != TaintEffect::kPreferNoSchedule) continue;
    const auto& t = cls.spec.tolerations;
    if (std::none_of(t.begin(), t.end(), [&](const auto& x) { return tolerates(x, taint); }))
      score -= 100;
  }
  for (const auto& term : cls.spec.preferred_pod_affinity)
    score += 2 * term.weight * pods_in_domain(term, n);
  for (const auto& term : cls.spec.preferred_pod_anti_affinity)
    score -= 2 * term.weight * pods_in_domain(term, n);
  for (const auto& rule : cls.spec.topology_spread) {
    if (rule.required || !rule.selector) continue;
    PodTerm term;
    term.selector = rule.selector;
    term.namespaces = {state_->pod(pod).ns};
    term.topology_key = rule.topology_key;
    score -= 200 * pods_in_domain(term, n);
  }
  return score;
}

/// The slow way, for pods whose place depends on other pods, preferences or a domain: every node is
/// looked at. Preferences first, then the node with least left over.
Place Placer::scan(PodId pod, GangId gang, Domain domain) {
  const TaskClass& cls = state_->cls_of(pod);
  Place best;
  std::int64_t best_score = 0;
  const auto consider = [&](NodeId n) {
    ++desk_->index.checks;
    if (!fit(state_, pod, n).ok()) return;
    if (!reservations_->allow({.node = n, .cls = cls, .gang = gang})) {
      best.held = true;
      return;
    }
    const NodeState& node = state_->node(n);
    const std::int64_t left =
        cls.devices > 0 ? node.devices_whole * 1000 : node.free[ResourceNames::kCpu] / 100;
    const std::int64_t score = preference(pod, n) * 1'000'000 - left;
    if (!best.node.valid() || score > best_score) {
      best.node = n;
      best_score = score;
    }
  };
  if (domain != nullptr) {
    for (const NodeId n : *domain) consider(n);
  } else {
    for (std::uint32_t n = 0; n < state_->node_count(); ++n) consider(NodeId(n));
  }
  return best;
}

Time Placer::end_of(GangId gang) const {
  if (state_->config().placement != PlacementRule::kPack) return kNever;
  const std::int64_t us = expected_us(state_, desk_->now, gang);
  return us == History::kUnknown ? kNever : desk_->now + Duration(us);
}

Place Placer::pick_node(PodId pod, GangId gang) {
  return pick_node(pod, gang, end_of(gang), nullptr);
}

Place Placer::pick_node(PodId pod, GangId gang, Time end, Domain domain) {
  const TaskClass& cls = state_->cls_of(pod);
  const bool slow = domain != nullptr || cls.between_pods ||
                    !cls.spec.preferred_node_affinity.empty() ||
                    (!state_->anti_affinity_pods().empty() && needs_between(state_, pod));
  if (slow) return scan(pod, gang, domain);
  if (state_->config().placement == PlacementRule::kFragmentation) {
    Place least;
    least.node =
        fragmentation_.pick(state_, state_->pod(pod).cls, desk_->index.checks, least.device);
    const bool allowed =
        !least.node.valid() || reservations_->allow({least.node, cls, gang, least.device});
    if (allowed) return least;
  }
  ClassIndex& index = desk_->index.of(state_->pod(pod).cls);
  index.catch_up(state_, desk_->index.checks);
  if (cls.devices > 0 && end != kNever) return pick_by_end(index, cls, gang, end);
  Place place;
  ClassIndex::Cursor cursor;
  for (NodeId n = index.next(cursor); n.valid(); n = index.next(cursor)) {
    if (reservations_->allow({.node = n, .cls = cls, .gang = gang})) {
      place.node = n;
      return place;
    }
    place.held = true;
  }
  return place;
}

/// Where the end is known: beside work that ends no earlier, or little earlier, so that nodes fall
/// empty as a whole and large gangs find them sooner. An idle node is taken last; between equals
/// the fuller one.
Place Placer::pick_by_end(const ClassIndex& index,
                          const TaskClass& cls,
                          GangId gang,
                          Time end) const {
  constexpr int kLookedAt = 128;
  Place best;
  std::int64_t best_longer = 0;
  ClassIndex::Cursor cursor;
  int seen = 0;
  for (NodeId n = index.next(cursor); n.valid() && seen < kLookedAt; n = index.next(cursor)) {
    const Time busy_until = state_->node(n).busy_until;
    const bool idle = !busy_until;
    if (idle && best.node.valid()) break;
    if (!reservations_->allow({.node = n, .cls = cls, .gang = gang})) {
      best.held = true;
      continue;
    }
    ++seen;
    const std::int64_t longer = idle ? 0 : std::max<std::int64_t>(end.us - busy_until.us, 0);
    if (best.node.valid() && longer >= best_longer) continue;
    best.node = n;
    best_longer = longer;
    if (idle || longer == 0) break;
  }
  return best;
}

// ------------------------------------------------------------------ the members of one gang

void Placer::undo(std::size_t before, Outcome& outcome) {
  while (outcome.pods.size() > before) {
    state_->unbind(outcome.pods.back());
    outcome.pods.pop_back();
  }
}

/// Binds tasks one by one until the need is met; one of them when the minimum runs already. On
/// failure everything is undone.
bool Placer::place_members(const Members& members, Domain domain, Outcome& outcome) {
  const Need& need = members.need;
  const std::size_t before = outcome.pods.size();
  std::int32_t left = need.total;
  auto roles = need.roles;
  std::vector<ClassId> failed;
  const Time end = end_of(members.gang);
  for (const PodId p : members.tasks) {
    const PodState& pod = state_->pod(p);
    if (std::find(failed.begin(), failed.end(), pod.cls) != failed.end()) continue;
    // Places above the roles' minimums must not eat up what the roles still need.
    const auto role = std::find_if(roles.begin(), roles.end(), [&](const auto& r) {
      return r.first == pod.role && r.second > 0;
    });
    std::int32_t reserved = 0;
    for (const auto& r : roles) reserved += r.second;
    if (need.total > 0 && role == roles.end() && left <= reserved) continue;
    const Place place = pick_node(p, members.gang, end, domain);
    outcome.held |= place.held;
    if (!place.node.valid()) {
      failed.push_back(pod.cls);
      continue;
    }
    state_->bind(p, place.node, desk_->now, place.device);
    outcome.pods.push_back(p);
    if (role != roles.end()) --role->second;
    if (--left == 0 || need.total == 0) break;
  }
  if (need.total == 0) return outcome.pods.size() > before;
  if (left <= 0) return true;
  undo(before, outcome);
  return false;
}

/// Members above the minimum, after the first of them has its place.
void Placer::place_surplus(const Members& members, Outcome& outcome) {
  const TenantId tenant = state_->gang(members.gang).tenant;
  const Time end = end_of(members.gang);
  for (std::size_t i = 1; i < members.tasks.size(); ++i) {
    const PodId p = members.tasks[i];
    if (state_->pod(p).phase != PodPhase::kPending) continue;
    if (desk_->tenants.excess(state_, tenant, state_->cls_of(p).request)) break;
    const Place place = pick_node(p, members.gang, end, nullptr);
    if (!place.node.valid()) break;
    state_->bind(p, place.node, desk_->now, place.device);
    outcome.pods.push_back(p);
  }
}

// ------------------------------------------------------------------ domains and families

/// The waiting members of the first gang below the group that has any.
std::vector<PodId> Placer::first_tasks_below(GangId group) const {
  for (const GangId leaf : state_->leaves_of(group)) {
    std::vector<PodId> tasks = tasks_of(state_, leaf);
    if (!tasks.empty()) return tasks;
  }
  return {};
}

/// The domains of one level that may hold the group, the tightest first.
std::vector<std::vector<NodeId>> Placer::domains_of(GangId id,
                                                    std::size_t level,
                                                    const std::vector<NodeId>& nodes,
                                                    const std::vector<PodId>& tasks) {
  const GangState& gang = state_->gang(id);
  const TopologyLevel& rule = gang.spec->topology[level];
  std::map<std::string, std::vector<NodeId>> domains;
  for (const NodeId n : nodes) {
    const std::string* value = find_label(state_->node(n).spec->labels, rule.key);
    if (value != nullptr) domains[*value].push_back(n);
  }
  // A gang of pods alike needs room for all; for others the room of one kind only says which domain
  // is tighter.
  const bool alike =
      !gang.spec->is_parent && state_->pod(tasks.front()).cls == state_->pod(tasks.back()).cls;
  const std::int32_t wanted = alike ? std::max(need_of(state_, gang).total, 1) : 1;
  const TaskClass& cls = state_->cls_of(tasks.front());
  const std::set<std::string> pinned = pinned_values(state_, id, rule.key);
  std::vector<std::pair<std::int64_t, std::vector<NodeId>>> options;
  for (auto& [value, members] : domains) {
    if (!pinned.empty() && !pinned.contains(value)) continue;
    std::int64_t room = 0;
    for (const NodeId n : members) room += fit_count(state_, cls, state_->node(n), 1 << 20);
    desk_->index.checks += static_cast<std::int64_t>(members.size());
    if (room >= wanted) options.emplace_back(room, std::move(members));
  }
  std::sort(options.begin(), options.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.front() < b.second.front();
  });
  std::vector<std::vector<NodeId>> out;
  for (auto& [room, members] : options) out.push_back(std::move(members));
  return out;
}

/// Tries the domains of one level and goes on to the next level inside.
bool Placer::place_level(GangId id,
                         std::size_t level,
                         const std::vector<NodeId>& nodes,
                         Outcome& outcome) {
  const auto& levels = state_->gang(id).spec->topology;
  if (level == levels.size()) return place_inside(id, nodes, outcome);
  const std::vector<PodId> tasks = first_tasks_below(id);
  if (tasks.empty()) return false;
  for (const auto& domain : domains_of(id, level, nodes, tasks)) {
    if (place_level(id, level + 1, domain, outcome)) return true;
  }
  if (levels[level].required) return false;
  return place_level(id, level + 1, nodes, outcome);
}

/// The gang itself, or as many of the groups below as possible.
bool Placer::place_inside(GangId id, const std::vector<NodeId>& nodes, Outcome& outcome) {
  const GangState& gang = state_->gang(id);
  if (gang.spec->is_parent) return place_children(id, nodes, outcome);
  const Members members = members_of(state_, id);
  if (members.tasks.empty() || unready(state_, gang).reason != Reason::kNone) return false;
  if (desk_->tenants.excess(state_, gang.tenant, request_of(state_, members))) return false;
  return place_members(members, &nodes, outcome);
}

/// A group of groups starts when at least its minimum of them runs or can start together.
bool Placer::place_children(GangId id, const std::vector<NodeId>& nodes, Outcome& outcome) {
  const GangState& gang = state_->gang(id);
  const std::size_t before = outcome.pods.size();
  std::vector<GangId> children = state_->children_of(gang.key);
  std::sort(children.begin(), children.end(), [&](GangId a, GangId b) {
    return state_->gang(a).seq < state_->gang(b).seq;
  });
  std::int32_t running = 0;
  for (const GangId child : children) {
    // It starts where its victims leave; a trial elsewhere would lose that room.
    if (waiting_->is_nominated(child)) continue;
    const bool runs = group_runs(state_, child);
    const bool starts =
        (!runs || state_->gang(child).spec->is_parent) && place_level(child, 0, nodes, outcome);
    running += runs || starts ? 1 : 0;
  }
  if (running >= std::max(1, gang.spec->min_groups)) return true;
  undo(before, outcome);
  return false;
}

Outcome Placer::place(const Members& members) {
  Outcome outcome;
  if (members.tasks.empty()) return outcome;
  const GangId id = members.gang;
  const std::int32_t need = members.need.total;
  if (state_->parent_of(id).valid() || !state_->gang(id).spec->topology.empty()) {
    // A family starts from its root; a member above the minimum goes where its family is.
    const GangId from = need > 0 ? state_->root_of(id) : id;
    outcome.placed =
        place_level(from, 0, nodes_left_to(state_, from), outcome) && !outcome.pods.empty();
    return outcome;
  }
  outcome.placed = place_members(members, nullptr, outcome);
  // Members above the minimum start all at once when nobody else competes, else one a turn.
  if (outcome.placed && need == 0 && waiting_->active_tenants() <= 1)
    place_surplus(members, outcome);
  return outcome;
}

}  // namespace muster::engine
