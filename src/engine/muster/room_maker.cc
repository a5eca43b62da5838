#include "engine/muster/room_maker.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "engine/muster/gang.h"
#include "engine/muster/thrift.h"
#include "engine/state/fit.h"
#include "engine/state/match.h"

namespace muster::engine {

namespace {

/// Topology domains in which a plan is worked out before the best of them is taken.
constexpr std::size_t kDomains = 8;
/// Members up to which costs are counted for each member let in.
constexpr std::int32_t kCountedMembers = 32;
/// Groups of a family up to which the cheapest next one is looked for.
constexpr std::size_t kComparedGroups = 8;

auto counts(const VictimCost& c) { return std::tuple(c.budgets_broken, c.pods); }

/// The node's values of the keys; empty when it lacks one of them.
std::vector<std::string> values_of(const NodeState& node, const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  for (const auto& key : keys) {
    const std::string* v = find_label(node.spec->labels, key);
    if (v == nullptr) return {};
    values.push_back(*v);
  }
  return values;
}

}  // namespace

// ------------------------------------------------------------------ one gang

/// The queue itself is full: lower ranks of the same queue go, until the limits would hold.
bool RoomMaker::make_room_in_queue(const Wish& wish, EvictionPlan& plan) const {
  const TenantId tenant = wish.asking.who.tenant;
  struct Option {
    std::int32_t priority;
    std::int64_t size;
    PodId pod;
  };
  std::vector<Option> options;
  for (std::uint32_t p = 0; p < state_->pod_count(); ++p) {
    const PodState& pod = state_->pod(PodId(p));
    if (!pod.live || pod.phase != PodPhase::kBound || state_->gang(pod.gang).tenant != tenant ||
        plan.victims.contains(PodId(p)))
      continue;
    if (!eligible(wish.asking, pod)) continue;
    options.push_back({state_->rank_priority(pod),
                       state_->cls(pod.cls).request[ResourceNames::kDevice],
                       PodId(p)});
  }
  std::sort(options.begin(), options.end(), [&](const Option& a, const Option& b) {
    if (a.priority != b.priority) return a.priority < b.priority;
    if (a.size != b.size) return a.size > b.size;
    return goes_before(state_, a.pod, b.pod);
  });
  for (const Option& o : options) {
    if (wish.enough(plan)) return true;
    if (plan.victims.contains(o.pod)) continue;
    EvictionPlan trial = plan;
    if (trial.add(wish.asking, o.pod)) plan = std::move(trial);
  }
  return wish.enough(plan);
}

/// The best plan found for one gang, on top of what is planned already.
bool RoomMaker::plan_gang(Wish& wish, EvictionPlan& plan) {
  const EvictionPlan base = plan;
  std::optional<EvictionPlan> best;
  const auto offer = [&](EvictionPlan trial) {
    give_back(state_, seating_, wish, base, trial);
    if (!best || trial.cost < best->cost) best = std::move(trial);
  };
  const std::int32_t wanted = std::max(wish.members.need.total, 1);
  for (const bool each : {false, true}) {
    if (each && (wanted == 1 || wanted > kCountedMembers ||
                 (best && best->cost.pods - base.cost.pods <= 1)))
      continue;
    if (!wish.enough) {
      EvictionPlan trial = base;
      if (seating_.seat_members(wish, each, trial)) offer(std::move(trial));
      continue;
    }
    // Room in the queue and room on nodes: either may come first.
    for (const bool queue_first : {true, false}) {
      EvictionPlan trial = base;
      if (queue_first && !make_room_in_queue(wish, trial)) break;
      if (!seating_.seat_members(wish, each, trial)) continue;
      if (!queue_first && !make_room_in_queue(wish, trial)) continue;
      offer(std::move(trial));
    }
  }
  if (!best) return false;
  if ((wanted > 1 || wish.enough) && wanted <= kCountedMembers &&
      best->cost.pods - base.cost.pods > 1)
    search_cheaper(state_, seating_, wish, base, *best);
  plan = std::move(*best);
  return true;
}

/// Beside the groups of its family that are planned for already. Where the queue is known to be
/// full, plan_gang() sees to it.
bool RoomMaker::queue_takes(const Wish& wish, const EvictionPlan& plan) const {
  if (wish.enough) return true;
  const TenantId tenant = state_->gang(wish.members.gang).tenant;
  ResourceVector wanted = request_of(state_, wish.members);
  for (const auto& [node, on] : plan.nodes) {
    for (const auto& guest : on.guests) {
      if (state_->gang(state_->pod(guest.pod).gang).tenant == tenant)
        wanted += state_->cls_of(guest.pod).request;
    }
  }
  return !desk_->tenants
              .excess_without(
                  state_,
                  tenant,
                  wanted,
                  false,
                  [&](TenantId t) -> const ResourceVector& { return plan.taken_from(t); })
              .has_value();
}

// ------------------------------------------------------------------ domains and families

/// The sets of nodes of which one must take all below the group, those with most room first. Empty:
/// any of `inside` will do.
std::vector<std::vector<NodeId>> RoomMaker::domains_of(GangId group, Inside inside) const {
  std::vector<std::string> keys;
  for (const auto& level : state_->gang(group).spec->topology) {
    if (level.required) keys.push_back(level.key);
  }
  if (keys.empty()) return {};
  std::map<std::vector<std::string>, std::vector<NodeId>> by_value;
  for (std::uint32_t i = 0; i < state_->node_count(); ++i) {
    const NodeId n(i);
    if (!state_->node(n).live) continue;
    if (inside != nullptr && !std::binary_search(inside->begin(), inside->end(), n)) continue;
    auto values = values_of(state_->node(n), keys);
    if (!values.empty()) by_value[std::move(values)].push_back(n);
  }
  // Members that run already, or have room held, say where.
  std::set<std::vector<std::string>> pinned;
  ClassId cls;
  for (const GangId leaf : state_->leaves_of(group)) {
    for (const PodId p : state_->gang(leaf).pods) {
      const PodState& pod = state_->pod(p);
      const NodeId at = pod.phase == PodPhase::kBound ? pod.node : pod.nominated;
      if (at.valid()) pinned.insert(values_of(state_->node(at), keys));
      if (pod.phase == PodPhase::kPending && !cls.valid()) cls = pod.cls;
    }
  }
  std::vector<std::pair<std::int64_t, std::vector<NodeId>>> ranked;
  for (auto& [values, nodes] : by_value) {
    if (!pinned.empty() && !pinned.contains(values)) continue;
    std::int64_t room = 0;
    for (const NodeId n : nodes)
      room += cls.valid() ? fit_count(state_, state_->cls(cls), state_->node(n), 1 << 20) : 0;
    ranked.emplace_back(room, std::move(nodes));
  }
  std::stable_sort(
      ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::vector<NodeId>> out;
  for (auto& [room, nodes] : ranked) out.push_back(std::move(nodes));
  if (out.empty()) out.emplace_back();  // A level that no node has: no place at all.
  return out;
}

/// A gang, or as many groups of a group of groups as must start together, inside one of the domains
/// it may use.
bool RoomMaker::plan_group(GangId group, Wish& wish, Inside inside, EvictionPlan& plan) {
  const std::vector<std::vector<NodeId>> domains = domains_of(group, inside);
  if (domains.empty()) return plan_inside(group, wish, inside, plan);
  std::optional<EvictionPlan> best;
  std::size_t found = 0;
  for (const auto& domain : domains) {
    EvictionPlan trial = plan;
    if (!plan_inside(group, wish, &domain, trial)) continue;
    if (!best || counts(trial.cost) < counts(best->cost)) best = std::move(trial);
    if (++found == kDomains || best->victims.empty()) break;
  }
  if (!best) return false;
  plan = std::move(*best);
  return true;
}

bool RoomMaker::plan_inside(GangId group, Wish& wish, Inside inside, EvictionPlan& plan) {
  const GangState& gang = state_->gang(group);
  if (gang.spec->is_parent) return plan_children(group, wish, inside, plan);
  if (gang.pending == 0 || unready(state_, gang).reason != Reason::kNone) return false;
  wish.members = members_of(state_, group);
  wish.domain = inside;
  wish.asking.who.gang = group;
  if (wish.members.tasks.empty() || !queue_takes(wish, plan)) return false;
  return plan_gang(wish, plan);
}

/// As many of the groups below as are short of the minimum. The cheapest next, while that is quick
/// to find out; older ones first otherwise.
bool RoomMaker::plan_children(GangId group, Wish& wish, Inside inside, EvictionPlan& plan) {
  const GangState& gang = state_->gang(group);
  std::int32_t left = std::max(1, gang.spec->min_groups);
  std::vector<GangId> waiting;
  for (const GangId child : state_->children_of(gang.key)) {
    if (group_runs(state_, child) || waiting_->is_nominated(child)) {
      --left;
    } else {
      waiting.push_back(child);
    }
  }
  std::sort(waiting.begin(), waiting.end(), [&](GangId a, GangId b) {
    return state_->gang(a).seq < state_->gang(b).seq;
  });
  while (left > 0 && !waiting.empty()) {
    std::optional<EvictionPlan> best;
    std::size_t which = 0;
    for (std::size_t i = 0; i < waiting.size() && (!best || waiting.size() <= kComparedGroups);
         ++i) {
      EvictionPlan trial = plan;
      if (!plan_group(waiting[i], wish, inside, trial)) continue;
      if (best && !(counts(trial.cost) < counts(best->cost))) continue;
      best = std::move(trial);
      which = i;
    }
    if (!best) return false;
    plan = std::move(*best);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(which));
    --left;
  }
  return left <= 0;
}

RoomFound RoomMaker::find(const RoomRequest& request) {
  Wish wish{.asking = Asking{state_, desk_->tenants, request.who, desk_->now, false},
            .members = {.gang = request.who.gang},
            .undone = request.undone};
  if (request.over_limit != nullptr) {
    wish.enough = [&](const EvictionPlan& p) {
      return !desk_->tenants
                  .excess_without(
                      state_,
                      request.who.tenant,
                      *request.over_limit,
                      false,
                      [&](TenantId t) -> const ResourceVector& { return p.taken_from(t); })
                  .has_value();
    };
  }
  RoomFound out;
  if (state_->parent_of(request.root).valid()) {
    const std::vector<NodeId> inside = nodes_left_to(state_, request.root);
    out.found = plan_group(request.root, wish, &inside, out.plan);
  } else {
    out.found = plan_group(request.root, wish, nullptr, out.plan);
    if (out.found && state_->gang(request.root).spec->is_parent) {
      // Victims for the first groups may have become needless with those for the last.
      wish.settled = true;
      give_back(state_, seating_, wish, EvictionPlan{}, out.plan);
    }
  }
  out.held = wish.held;
  return out;
}

}  // namespace muster::engine
