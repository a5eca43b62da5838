#include "engine/muster/seating.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "engine/state/fit.h"

namespace muster::engine {

namespace {

auto counts(const VictimCost& c) { return std::tuple(c.budgets_broken, c.pods); }

bool inside(const Wish& wish, NodeId node) {
  return wish.domain == nullptr ||
         std::binary_search(wish.domain->begin(), wish.domain->end(), node);
}

}  // namespace

std::optional<EvictionPlan> with_victims(const Asking& asking,
                                         const EvictionPlan& base,
                                         const std::vector<PodId>& seeds) {
  EvictionPlan plan = base;
  for (const PodId v : seeds) {
    if (!plan.victims.contains(v) && !plan.add(asking, v)) return std::nullopt;
  }
  return plan;
}

// ------------------------------------------------------------------ questions about one node

/// Nobody ahead would be delayed. What a queue takes back is its due, whoever waits for it.
bool Seating::may_take(Wish& wish, PodId task, NodeId node, const EvictionPlan& plan) {
  const bool takes_back = wish.asking.who.reclaim && !plan.victims.empty();
  if (takes_back) return true;
  const bool allowed = reservations_->allow({.node = node,
                                             .cls = state_->cls_of(task),
                                             .gang = state_->pod(task).gang,
                                             .evictions = &plan});
  wish.held |= !allowed;
  return allowed;
}

/// Terms between pods: members may repel each other, so one a node is always safe.
bool Seating::tolerates_others(PodId task, NodeId node, const EvictionPlan& plan) const {
  if (!needs_between(state_, task)) return true;
  const auto on = plan.nodes.find(node);
  return (on == plan.nodes.end() || on->second.guests.empty()) &&
         fit_between(state_, task, node, &plan.victims).ok();
}

/// How many members like this one the plan's nodes take, beside those planned already.
std::int32_t Seating::lets_in(const Letting& letting, const EvictionPlan& plan) const {
  const TaskClass& cls = state_->cls_of(letting.task);
  std::int32_t n = 0;
  for (const auto& [node, on] : plan.nodes) {
    if (n >= letting.left) break;
    if (on.victims.empty() || !inside(letting.wish, node)) continue;
    if (fit_static(state_, cls, state_->node(node)).ok())
      n += Room(state_, node, plan).count(cls, letting.left - n);
  }
  return n;
}

// ------------------------------------------------------------------ nodes to look at

NodeId Seating::free_place(Wish& wish, PodId task, const EvictionPlan& plan) {
  const TaskClass& cls = state_->cls_of(task);
  const auto fits = [&](NodeId n) {
    return fits_after(state_, cls, n, plan) && tolerates_others(task, n, plan) &&
           may_take(wish, task, n, plan);
  };
  for (const auto& [node, on] : plan.nodes) {
    if (inside(wish, node) && fits(node)) return node;
  }
  if (wish.domain != nullptr) {
    const auto it = std::find_if(wish.domain->begin(), wish.domain->end(), fits);
    return it == wish.domain->end() ? NodeId{} : *it;
  }
  ClassIndex& index = desk_->index.of(state_->pod(task).cls);
  index.catch_up(state_, desk_->index.checks, wish.undone);
  ClassIndex::Cursor cursor;
  for (NodeId n = index.next(cursor); n.valid(); n = index.next(cursor)) {
    if (fits(n)) return n;
  }
  return NodeId{};
}

std::vector<NodeId> Seating::candidates(const Wish& wish, const EvictionPlan& plan) {
  if (wish.domain != nullptr) return *wish.domain;
  victims_.catch_up(wish.asking);
  std::vector<NodeId> out;
  for (const auto& [node, on] : plan.nodes) out.push_back(node);
  VictimIndex::Cursor cursor;
  for (NodeId n = victims_.next(wish.asking.who, cursor); n.valid();
       n = victims_.next(wish.asking.who, cursor)) {
    if (!plan.nodes.contains(n)) out.push_back(n);
  }
  return out;
}

std::vector<NodeId> Seating::nodes_to_try(const Letting& letting) {
  if (letting.wish.domain != nullptr || !needs_between(state_, letting.task))
    return candidates(letting.wish, letting.plan);
  // Where room is not what it lacks, the index of victims has no say.
  std::vector<NodeId> nodes;
  for (std::uint32_t n = 0; n < state_->node_count(); ++n) nodes.emplace_back(n);
  return nodes;
}

// ------------------------------------------------------------------ one member more

/// Costs less for each member that it lets in; between equals the one whose first victim goes
/// before the other's.
bool Seating::beats(const Offer& a, const Offer& b) const {
  const auto mine = std::tuple(a.cost.budgets_broken * b.members, a.cost.pods * b.members);
  const auto theirs = std::tuple(b.cost.budgets_broken * a.members, b.cost.pods * a.members);
  if (mine != theirs) return mine < theirs;
  const auto rest = [](const VictimCost& c) { return std::tuple(c.top_priority, c.work_lost_s); };
  if (rest(a.cost) != rest(b.cost)) return rest(a.cost) < rest(b.cost);
  return a.first.valid() && b.first.valid() && goes_before(state_, a.first, b.first);
}

void Seating::offer(Letting& letting, NodeId node, EvictionPlan trial, PodId first) {
  if (!may_take(letting.wish, letting.task, node, trial)) return;
  Offer made;
  made.node = node;
  made.cost = trial.cost;
  made.cost.budgets_broken -= letting.plan.cost.budgets_broken;
  made.cost.pods -= letting.plan.cost.pods;
  made.members = letting.each ? std::max(1, lets_in(letting, trial)) : 1;
  made.first = first;
  if (letting.best && !beats(made, *letting.best)) return;
  made.plan = std::move(trial);
  letting.best = std::move(made);
}

/// Those that keep the pod away must go, before anybody who is only in the way.
void Seating::offer_apart(Letting& letting, NodeId node) {
  const Asking& asking = letting.wish.asking;
  auto apart = with_victims(asking, letting.plan, repelled(state_, letting.task, node));
  if (!apart || !tolerates_others(letting.task, node, *apart)) return;
  const VictimChoice rest = choose_on_node(asking, node, *apart);
  if (!rest.possible) return;
  if (auto trial = with_victims(asking, *apart, rest.victims)) {
    const PodId first = rest.first.valid() ? rest.first : *trial->victims.begin();
    offer(letting, node, std::move(*trial), first);
  }
}

/// A gang as a whole may open several nodes at once.
void Seating::offer_whole_gangs(Letting& letting, NodeId node, PodId first) {
  const Asking& asking = letting.wish.asking;
  std::set<GangId> gangs;
  for (const PodId p : state_->node(node).pods) {
    if (state_->gang(state_->pod(p).gang).has_group && !letting.plan.victims.contains(p) &&
        eligible(asking, state_->pod(p)))
      gangs.insert(state_->pod(p).gang);
  }
  for (const GangId g : gangs) {
    EvictionPlan trial = letting.plan;
    if (!trial.add_whole(asking, g)) continue;
    const VictimChoice rest = choose_on_node(asking, node, trial);
    if (!rest.possible) continue;
    if (auto whole = with_victims(asking, trial, rest.victims)) {
      const PodId goes_first = first.valid() ? first : *whole->victims.begin();
      offer(letting, node, std::move(*whole), goes_first);
    }
  }
}

/// The cheapest way to let one more member in; with `each`, the least for each of the members it
/// lets in.
bool Seating::let_in(Wish& wish, PodId task, std::int32_t left, bool each, EvictionPlan& plan) {
  wish.asking.who.cls = state_->pod(task).cls;
  const TaskClass& cls = state_->cls_of(task);
  Letting letting{wish, plan, task, left, each, std::nullopt};
  std::size_t tried = 0;
  for (const NodeId n : nodes_to_try(letting)) {
    if (wish.domain == nullptr && tried++ >= kCandidates + plan.nodes.size() && letting.best) break;
    if (!fit_static(state_, cls, state_->node(n)).ok()) continue;
    if (!tolerates_others(task, n, plan)) {
      offer_apart(letting, n);
      continue;
    }
    const VictimChoice choice = choose_on_node(wish.asking, n, plan);
    if (!choice.possible) continue;
    if (!each && letting.best && counts(choice.cost) > counts(letting.best->cost)) continue;
    if (auto trial = with_victims(wish.asking, plan, choice.victims))
      offer(letting, n, std::move(*trial), choice.first);
    if (each) offer_whole_gangs(letting, n, choice.first);
  }
  if (!letting.best) return false;
  plan = std::move(letting.best->plan);
  plan.seat(state_, letting.best->node, task);
  return true;
}

// ------------------------------------------------------------------ all of them

/// Members in the order they get places, those that the roles need first.
std::vector<PodId> Seating::in_order(const Members& members) const {
  std::vector<PodId> out;
  auto roles = members.need.roles;
  for (const PodId p : members.tasks) {
    const auto role = std::find_if(roles.begin(), roles.end(), [&](const auto& r) {
      return r.first == state_->pod(p).role && r.second > 0;
    });
    if (role == roles.end()) continue;
    --role->second;
    out.push_back(p);
  }
  for (const PodId p : members.tasks) {
    if (std::find(out.begin(), out.end(), p) == out.end()) out.push_back(p);
  }
  return out;
}

bool Seating::seat_members(Wish& wish, bool each, EvictionPlan& plan) {
  std::int32_t left = std::max(wish.members.need.total, 1);
  auto roles = wish.members.need.roles;
  for (const PodId task : in_order(wish.members)) {
    if (left == 0) break;
    const auto role = std::find_if(roles.begin(), roles.end(), [&](const auto& r) {
      return r.first == state_->pod(task).role && r.second > 0;
    });
    std::int32_t reserved = 0;
    for (const auto& r : roles) reserved += r.second;
    if (role == roles.end() && left <= reserved) continue;
    const NodeId node = free_place(wish, task, plan);
    if (node.valid()) {
      plan.seat(state_, node, task);
    } else if (!let_in(wish, task, left, each, plan)) {
      continue;
    }
    if (role != roles.end()) --role->second;
    --left;
  }
  return left == 0;
}

bool Seating::reseat(Wish& wish,
                     const EvictionPlan& old,
                     const EvictionPlan& base,
                     EvictionPlan& plan) {
  std::vector<std::pair<PodId, NodeId>> unseated;
  for (const auto& [node, on] : old.nodes) {
    const auto before = base.nodes.find(node);
    auto guests = on.guests;
    // Groups of a family were seated one after the other; the largest first they may share fewer
    // devices.
    if (wish.settled) {
      const auto size = [&](const auto& g) {
        return state_->cls_of(g.pod).request[ResourceNames::kDevice];
      };
      std::stable_sort(guests.begin(), guests.end(), [&](const auto& a, const auto& b) {
        return size(a) > size(b);
      });
    }
    for (const auto& [g, devices] : guests) {
      if (before != base.nodes.end() && before->second.hosts(g)) continue;
      if (fits_after(state_, state_->cls_of(g), node, plan) && may_take(wish, g, node, plan) &&
          (!needs_between(state_, g) || fit_between(state_, g, node, &plan.victims).ok())) {
        plan.seat(state_, node, g);
      } else {
        unseated.emplace_back(g, node);
      }
    }
  }
  if (wish.settled && !unseated.empty()) return false;
  for (const auto& [g, node] : unseated) {
    const NodeId to = free_place(wish, g, plan);
    if (!to.valid()) return false;
    plan.seat(state_, to, g);
  }
  return true;
}

}  // namespace muster::engine
