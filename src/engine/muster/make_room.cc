// Which victims: the cheapest set with which the whole gang, or enough groups of a group of groups,
// fits.
//
// Members get their places one by one, each where it costs least on top of what is planned already.
// That is blind to gangs: two pods on each of four nodes look cheaper than one gang of four over
// these nodes, four times in a row. So a second round counts what each choice costs for each member
// that it lets in, a third gives back what turned out not to be needed, and where few pods are in
// question a bounded search looks for less than all that.
#include <algorithm>

#include "engine/muster/planner.h"
#include "engine/state/fit.h"
#include "engine/state/match.h"

namespace muster::engine {

namespace {

/// Nodes tried exactly for each pod; the index has put the cheapest first.
constexpr std::size_t kCandidates = 24;
/// Topology domains in which a plan is worked out before the best of them is taken.
constexpr std::size_t kDomains = 8;
/// Members up to which costs are counted for each member let in.
constexpr std::int32_t kCountedMembers = 32;
/// Pods among which, and sets through which, the search looks for a cheaper plan.
constexpr std::size_t kSearchPods = 40;
constexpr int kSearchSteps = 1500;
constexpr int kSearchStepsForBudgets = 6000;

auto counts(const VictimCost& c) { return std::tuple(c.budgets_broken, c.pods); }

/// The plan without the guests named, with the victims of `base` and of `seeds` and who must go
/// with them.
std::optional<EvictionPlan> again(const Asking& asking,
                                  const EvictionPlan& base,
                                  const std::vector<PodId>& seeds) {
  EvictionPlan plan = base;
  for (const PodId v : seeds) {
    if (!plan.victims.contains(v) && !plan.add(asking, v)) return std::nullopt;
  }
  return plan;
}

}  // namespace

/// Everything about one gang's wish for room.
struct Planner::Wish {
  Asking asking;
  GangId gang;
  Need need;
  std::vector<PodId> tasks;  ///< The waiting members, the largest first.
  const std::vector<NodeId>* domain =
      nullptr;          ///< Only these nodes, in order of their ids; all when absent.
  bool undone = false;  ///< What the indexes have yet to read cancels out.
  std::function<bool(const EvictionPlan&)>
      enough;            ///< The queue's limits would hold; absent: they hold.
  bool settled = false;  ///< All have their nodes and keep them.
};

/// Members in the order they get places, those that the roles need first.
std::vector<PodId> Planner::needed(const Wish& wish) const {
  std::vector<PodId> out;
  auto roles = wish.need.roles;
  for (const PodId p : wish.tasks) {
    const auto role = std::find_if(roles.begin(), roles.end(), [&](const auto& r) {
      return r.first == state_.pod(p).role && r.second > 0;
    });
    if (role == roles.end()) continue;
    --role->second;
    out.push_back(p);
  }
  for (const PodId p : wish.tasks) {
    if (std::find(out.begin(), out.end(), p) == out.end()) out.push_back(p);
  }
  return out;
}

/// A node that takes the task with nobody more evicted: one of the plan's, then a free one.
NodeId Planner::free_place(const Wish& wish, PodId task, const EvictionPlan& plan) {
  const TaskClass& cls = state_.cls_of(task);
  const auto fits = [&](NodeId n) {
    return fits_after(state_, cls, n, plan) && tolerates_others(task, n, plan) &&
           may_take(wish, task, n, plan);
  };
  for (const auto& [node, on] : plan.nodes) {
    if (wish.domain != nullptr &&
        !std::binary_search(wish.domain->begin(), wish.domain->end(), node))
      continue;
    if (fits(node)) return node;
  }
  if (wish.domain != nullptr) {
    const auto it = std::find_if(wish.domain->begin(), wish.domain->end(), fits);
    return it == wish.domain->end() ? NodeId{} : *it;
  }
  ClassIndex& index = index_.of(state_.pod(task).cls);
  index.catch_up(state_, index_.checks, wish.undone);
  ClassIndex::Cursor cursor;
  for (NodeId n = index.next(cursor); n.valid(); n = index.next(cursor)) {
    if (fits(n)) return n;
  }
  return NodeId{};
}

/// Nobody ahead would be delayed. What a queue takes back is its due, whoever waits for it.
bool Planner::may_take(const Wish& wish, PodId task, NodeId node, const EvictionPlan& plan) {
  const bool takes_back = wish.asking.who.reclaim && !plan.victims.empty();
  if (live_holds_ == 0 || takes_back ||
      may_use(node, state_.cls_of(task), state_.pod(task).gang, &plan))
    return true;
  was_held_ = true;
  return false;
}

/// Terms between pods: members may repel each other, so one a node is always safe.
bool Planner::tolerates_others(PodId task, NodeId node, const EvictionPlan& plan) const {
  if (!needs_between(state_, task)) return true;
  const auto on = plan.nodes.find(node);
  return (on == plan.nodes.end() || on->second.guests.empty()) &&
         fit_between(state_, task, node, &plan.victims).ok();
}

/// Nodes on which victims may make room for a pod of the task's class: those of the plan, then the
/// cheapest.
std::vector<NodeId> Planner::candidates(const Wish& wish, const EvictionPlan& plan) {
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

/// How many members like this one the plan's nodes take, beside those planned already.
std::int32_t Planner::lets_in(const Wish& wish,
                              PodId task,
                              const EvictionPlan& plan,
                              std::int32_t limit) const {
  const TaskClass& cls = state_.cls_of(task);
  std::int32_t n = 0;
  for (const auto& [node, on] : plan.nodes) {
    if (n >= limit) break;
    if (on.victims.empty() || (wish.domain != nullptr &&
                               !std::binary_search(wish.domain->begin(), wish.domain->end(), node)))
      continue;
    if (fit_static(state_, cls, state_.node(node)).ok())
      n += Room(state_, node, plan).count(cls, limit - n);
  }
  return n;
}

/// The cheapest way to let one more member in; with `each`, the least for each of the members it
/// lets in.
bool Planner::let_in(Wish& wish, PodId task, std::int32_t left, bool each, EvictionPlan& plan) {
  wish.asking.who.cls = state_.pod(task).cls;
  const TaskClass& cls = state_.cls_of(task);
  struct Best {
    bool found = false;
    NodeId node;
    EvictionPlan plan;
    VictimCost cost;
    std::int32_t members = 1;
    PodId first;
  } best;
  const auto offer = [&](NodeId node, EvictionPlan trial, PodId first) {
    if (!may_take(wish, task, node, trial)) return;
    VictimCost cost = trial.cost;
    cost.budgets_broken -= plan.cost.budgets_broken;
    cost.pods -= plan.cost.pods;
    const std::int32_t members = each ? std::max(1, lets_in(wish, task, trial, left)) : 1;
    if (best.found) {
      const auto mine = std::tuple(cost.budgets_broken * best.members, cost.pods * best.members);
      const auto theirs = std::tuple(best.cost.budgets_broken * members, best.cost.pods * members);
      if (mine > theirs) return;
      if (mine == theirs) {
        const auto rest = [](const VictimCost& c) {
          return std::tuple(c.top_priority, c.work_lost_s);
        };
        if (rest(cost) > rest(best.cost)) return;
        if (rest(cost) == rest(best.cost) &&
            (!first.valid() || !best.first.valid() || !goes_before(state_, first, best.first)))
          return;
      }
    }
    best = {true, node, std::move(trial), cost, members, first};
  };
  std::vector<NodeId> nodes;
  if (wish.domain == nullptr && needs_between(state_, task)) {
    // Where room is not what it lacks, the index of victims has no say.
    for (std::uint32_t n = 0; n < state_.node_count(); ++n) nodes.emplace_back(n);
  } else {
    nodes = candidates(wish, plan);
  }
  std::size_t tried = 0;
  for (const NodeId n : nodes) {
    if (wish.domain == nullptr && tried++ >= kCandidates + plan.nodes.size() && best.found) break;
    if (!fit_static(state_, cls, state_.node(n)).ok()) continue;
    if (!tolerates_others(task, n, plan)) {
      // Those that keep it away must go, before anybody who is only in the way.
      auto apart = again(wish.asking, plan, repelled(state_, task, n));
      if (!apart || !tolerates_others(task, n, *apart)) continue;
      const VictimChoice rest = choose_on_node(wish.asking, n, *apart);
      if (!rest.possible) continue;
      if (auto trial = again(wish.asking, *apart, rest.victims))
        offer(n, std::move(*trial), rest.first.valid() ? rest.first : *trial->victims.begin());
      continue;
    }
    const VictimChoice choice = choose_on_node(wish.asking, n, plan);
    if (!choice.possible) continue;
    if (!each && best.found && counts(choice.cost) > counts(best.cost)) continue;
    if (auto trial = again(wish.asking, plan, choice.victims))
      offer(n, std::move(*trial), choice.first);
    if (!each) continue;
    // A gang as a whole may open several nodes at once.
    std::set<GangId> gangs;
    for (const PodId p : state_.node(n).pods) {
      if (state_.gang(state_.pod(p).gang).has_group && !plan.victims.contains(p) &&
          eligible(wish.asking, state_.pod(p)))
        gangs.insert(state_.pod(p).gang);
    }
    for (const GangId g : gangs) {
      EvictionPlan trial = plan;
      if (!trial.add_whole(wish.asking, g)) continue;
      const VictimChoice rest = choose_on_node(wish.asking, n, trial);
      if (!rest.possible) continue;
      if (auto whole = again(wish.asking, trial, rest.victims)) {
        const PodId first = choice.first.valid() ? choice.first : *whole->victims.begin();
        offer(n, std::move(*whole), first);
      }
    }
  }
  if (!best.found) return false;
  plan = std::move(best.plan);
  plan.seat(state_, best.node, task);
  return true;
}

/// Places for the least number of members, one after the other, with victims where it must be.
bool Planner::plan_members(Wish& wish, bool each, EvictionPlan& plan) {
  std::int32_t left = std::max(wish.need.total, 1);
  auto roles = wish.need.roles;
  for (const PodId task : needed(wish)) {
    if (left == 0) break;
    const auto role = std::find_if(roles.begin(), roles.end(), [&](const auto& r) {
      return r.first == state_.pod(task).role && r.second > 0;
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

/// The same guests on the same victims' room, or elsewhere where it is free. Guests stay where they
/// are when they can.
bool Planner::reseat(const Wish& wish,
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
        return state_.cls_of(g.pod).request[ResourceNames::kDevice];
      };
      std::stable_sort(guests.begin(), guests.end(), [&](const auto& a, const auto& b) {
        return size(a) > size(b);
      });
    }
    for (const auto& [g, devices] : guests) {
      if (before != base.nodes.end() && before->second.hosts(g)) continue;
      if (fits_after(state_, state_.cls_of(g), node, plan) && may_take(wish, g, node, plan) &&
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

/// Gives back victims whose leaving is not needed once all members have their places, the most
/// important first.
void Planner::give_back(Wish& wish, const EvictionPlan& base, EvictionPlan& plan) {
  std::vector<PodId> all;
  for (const PodId v : plan.victims) {
    if (!base.victims.contains(v)) all.push_back(v);
  }
  std::sort(all.begin(), all.end(), [&](PodId a, PodId b) {
    const auto pa = state_.rank_priority(state_.pod(a));
    const auto pb = state_.rank_priority(state_.pod(b));
    if (pa != pb) return pa > pb;
    return goes_before(state_, b, a);
  });
  const auto without = [&](const std::function<bool(PodId)>& spared) {
    std::vector<PodId> seeds;
    for (const PodId v : all) {
      if (plan.victims.contains(v) && !spared(v)) seeds.push_back(v);
    }
    auto trial = again(wish.asking, base, seeds);
    if (!trial || !(counts(trial->cost) < counts(plan.cost)) ||
        (wish.enough && !wish.enough(*trial)))
      return;
    if (reseat(wish, plan, base, *trial)) plan = std::move(*trial);
  };
  // Whole families and gangs first: they are what costs.
  std::set<GangId> gangs;
  std::set<GangId> families;
  for (const PodId v : all) {
    const GangId gang = state_.pod(v).gang;
    if (!state_.gang(gang).has_group) continue;
    gangs.insert(gang);
    if (state_.parent_of(gang).valid()) families.insert(state_.root_of(gang));
  }
  for (const GangId f : families)
    without([&](PodId v) { return state_.root_of(state_.pod(v).gang) == f; });
  for (const GangId g : gangs) without([&](PodId v) { return state_.pod(v).gang == g; });
  for (const PodId spared : all) {
    if (plan.victims.contains(spared)) without([&](PodId v) { return v == spared; });
  }
}

/// Looks through sets of victims, fewer pods first, for one that costs less than the plan. Bounded
/// in pods and sets.
void Planner::search_cheaper(Wish& wish, const EvictionPlan& base, EvictionPlan& plan) {
  std::vector<PodId> guests;
  for (const auto& [node, on] : plan.nodes) {
    const auto before = base.nodes.find(node);
    for (const auto& [g, devices] : on.guests) {
      if (before == base.nodes.end() || !before->second.hosts(g)) guests.push_back(g);
    }
  }
  std::sort(guests.begin(), guests.end(), [&](PodId a, PodId b) {
    return std::find(wish.tasks.begin(), wish.tasks.end(), a) <
           std::find(wish.tasks.begin(), wish.tasks.end(), b);
  });
  struct Option {
    PodId pod;
    VictimCost cost;
    std::int64_t size;
  };
  std::vector<Option> options;
  std::size_t nodes = 0;
  for (const NodeId n : candidates(wish, plan)) {
    if (nodes++ >= kCandidates + plan.nodes.size()) break;
    for (const PodId p : state_.node(n).pods) {
      if (base.victims.contains(p) || !eligible(wish.asking, state_.pod(p))) continue;
      EvictionPlan trial = base;
      if (!trial.add(wish.asking, p)) continue;
      const ResourceVector& request = state_.cls_of(p).request;
      options.push_back(
          {p,
           trial.cost,
           request[ResourceNames::kDevice] * 1'000'000 + request[ResourceNames::kCpu]});
    }
  }
  if (options.size() > kSearchPods) return;
  std::sort(options.begin(), options.end(), [&](const Option& a, const Option& b) {
    return std::tuple(a.cost.budgets_broken, a.cost.pods, -a.size, a.pod) <
           std::tuple(b.cost.budgets_broken, b.cost.pods, -b.size, b.pod);
  });
  const auto seated = [&](EvictionPlan& trial) {
    for (const PodId g : guests) {
      const NodeId n = free_place(wish, g, trial);
      if (!n.valid()) return false;
      trial.seat(state_, n, g);
    }
    return true;
  };
  const bool breaks = plan.cost.budgets_broken > base.cost.budgets_broken;
  const int most_steps = breaks ? kSearchStepsForBudgets : kSearchSteps;
  int steps = 0;
  std::int32_t limit = 0;
  const std::function<bool(const EvictionPlan&, std::size_t)> extend =
      [&](const EvictionPlan& so_far, std::size_t from) {
        for (std::size_t i = from; i < options.size(); ++i) {
          if (so_far.victims.contains(options[i].pod)) continue;
          if (++steps > most_steps) return true;
          EvictionPlan trial = so_far;
          if (!trial.add(wish.asking, options[i].pod)) continue;
          if (trial.cost.pods - base.cost.pods > limit || !(counts(trial.cost) < counts(plan.cost)))
            continue;
          EvictionPlan full = trial;
          if ((!wish.enough || wish.enough(full)) && seated(full)) {
            plan = std::move(full);
            return true;
          }
          if (extend(trial, i + 1)) return true;
        }
        return false;
      };
  const std::int32_t most = plan.cost.pods - base.cost.pods + (breaks ? 3 : -1);
  for (limit = 1; limit <= most && steps <= most_steps; ++limit) {
    const VictimCost before = plan.cost;
    (void)extend(base, 0);
    if (plan.cost.budgets_broken <= base.cost.budgets_broken && counts(plan.cost) < counts(before))
      return;
  }
}

/// The queue itself is full: lower ranks of the same queue go, until the limits would hold.
bool Planner::make_room_in_queue(Wish& wish, EvictionPlan& plan) {
  const TenantId tenant = wish.asking.who.tenant;
  struct Option {
    std::int32_t priority;
    std::int64_t size;
    PodId pod;
  };
  std::vector<Option> options;
  for (std::uint32_t p = 0; p < state_.pod_count(); ++p) {
    const PodState& pod = state_.pod(PodId(p));
    if (!pod.live || pod.phase != PodPhase::kBound || state_.gang(pod.gang).tenant != tenant ||
        plan.victims.contains(PodId(p)))
      continue;
    if (!eligible(wish.asking, pod)) continue;
    options.push_back(
        {state_.rank_priority(pod), state_.cls(pod.cls).request[ResourceNames::kDevice], PodId(p)});
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
bool Planner::plan_gang(Wish& wish, EvictionPlan& plan) {
  const EvictionPlan base = plan;
  std::optional<EvictionPlan> best;
  const auto offer = [&](EvictionPlan trial) {
    give_back(wish, base, trial);
    if (!best || trial.cost < best->cost) best = std::move(trial);
  };
  const std::int32_t wanted = std::max(wish.need.total, 1);
  for (const bool each : {false, true}) {
    if (each && (wanted == 1 || wanted > kCountedMembers ||
                 (best && best->cost.pods - base.cost.pods <= 1)))
      continue;
    if (!wish.enough) {
      EvictionPlan trial = base;
      if (plan_members(wish, each, trial)) offer(std::move(trial));
      continue;
    }
    // Room in the queue and room on nodes: either may come first.
    for (const bool queue_first : {true, false}) {
      EvictionPlan trial = base;
      if (queue_first && !make_room_in_queue(wish, trial)) break;
      if (!plan_members(wish, each, trial)) continue;
      if (!queue_first && !make_room_in_queue(wish, trial)) continue;
      offer(std::move(trial));
    }
  }
  if (!best) return false;
  if ((wanted > 1 || wish.enough) && wanted <= kCountedMembers &&
      best->cost.pods - base.cost.pods > 1)
    search_cheaper(wish, base, *best);
  plan = std::move(*best);
  return true;
}

/// The sets of nodes of which one must take all below the group, those with most room first. Empty:
/// any of `inside` will do.
std::vector<std::vector<NodeId>> Planner::domains_of(GangId group,
                                                     const std::vector<NodeId>* inside) const {
  std::vector<std::string> keys;
  for (const auto& level : state_.gang(group).spec.topology) {
    if (level.required) keys.push_back(level.key);
  }
  if (keys.empty()) return {};
  std::map<std::vector<std::string>, std::vector<NodeId>> by_value;
  const auto values_of = [&](NodeId n) {
    std::vector<std::string> values;
    for (const auto& key : keys) {
      const std::string* v = find_label(state_.node(n).spec.labels, key);
      if (v == nullptr) return std::vector<std::string>{};
      values.push_back(*v);
    }
    return values;
  };
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    if (!state_.node(NodeId(n)).live ||
        (inside != nullptr && !std::binary_search(inside->begin(), inside->end(), NodeId(n))))
      continue;
    auto values = values_of(NodeId(n));
    if (!values.empty()) by_value[std::move(values)].push_back(NodeId(n));
  }
  // Members that run already, or have room held, say where.
  std::set<std::vector<std::string>> pinned;
  ClassId cls;
  for (const GangId leaf : state_.leaves_of(group)) {
    for (const PodId p : state_.gang(leaf).pods) {
      const NodeId at =
          state_.pod(p).phase == PodPhase::kBound ? state_.pod(p).node : state_.pod(p).nominated;
      if (at.valid()) pinned.insert(values_of(at));
      if (state_.pod(p).phase == PodPhase::kPending && !cls.valid()) cls = state_.pod(p).cls;
    }
  }
  std::vector<std::pair<std::int64_t, std::vector<NodeId>>> ranked;
  for (auto& [values, nodes] : by_value) {
    if (!pinned.empty() && !pinned.contains(values)) continue;
    std::int64_t room = 0;
    for (const NodeId n : nodes)
      room += cls.valid() ? fit_count(state_, state_.cls(cls), state_.node(n), 1 << 20) : 0;
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
bool Planner::plan_group(GangId group,
                         Wish& wish,
                         const std::vector<NodeId>* inside,
                         EvictionPlan& plan) {
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

/// Beside the groups of its family that are planned for already. Where the queue is known to be
/// full, plan_gang() sees to it.
bool Planner::queue_takes(const Wish& wish, const EvictionPlan& plan) const {
  if (wish.enough) return true;
  const TenantId tenant = state_.gang(wish.gang).tenant;
  ResourceVector wanted = request_of(wish.gang, wish.need);
  for (const auto& [node, on] : plan.nodes) {
    for (const auto& guest : on.guests) {
      if (state_.gang(state_.pod(guest.pod).gang).tenant == tenant)
        wanted += state_.cls_of(guest.pod).request;
    }
  }
  return !tenants_
              .excess_without(
                  state_,
                  tenant,
                  wanted,
                  false,
                  [&](TenantId t) -> const ResourceVector& { return plan.taken_from(t); })
              .has_value();
}

bool Planner::plan_inside(GangId group,
                          Wish& wish,
                          const std::vector<NodeId>* inside,
                          EvictionPlan& plan) {
  const GangState& gang = state_.gang(group);
  if (!gang.spec.is_parent) {
    Refusal refusal;
    if (gang.pending == 0 || unready(gang, refusal) != Reason::kNone) return false;
    wish.gang = group;
    wish.need = need_of(gang);
    wish.tasks = tasks_of(group);
    wish.domain = inside;
    wish.asking.who.gang = group;
    if (wish.tasks.empty() || !queue_takes(wish, plan)) return false;
    return plan_gang(wish, plan);
  }
  std::int32_t left = std::max(1, gang.spec.min_groups);
  std::vector<GangId> waiting;
  for (const GangId child : state_.children_of(gang.key)) {
    if (group_runs(child) || nominated_.contains(child)) {
      --left;
    } else {
      waiting.push_back(child);
    }
  }
  std::sort(waiting.begin(), waiting.end(), [&](GangId a, GangId b) {
    return state_.gang(a).seq < state_.gang(b).seq;
  });
  // The cheapest child next, while that is quick to find out; older ones first otherwise.
  constexpr std::size_t kCompared = 8;
  while (left > 0 && !waiting.empty()) {
    std::optional<EvictionPlan> best;
    std::size_t which = 0;
    for (std::size_t i = 0; i < waiting.size() && (!best || waiting.size() <= kCompared); ++i) {
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

/// The victims of a whole gang or family, with the room in its queue where that is short, too.
bool Planner::plan_evictions(GangId root,
                             const Preemptor& who,
                             const ResourceVector* over_limit,
                             bool undone,
                             EvictionPlan& plan) {
  Wish wish{Asking{state_, tenants_, who, now_, false}, who.gang, {}, {}, nullptr, undone, {}};
  if (over_limit != nullptr) {
    wish.enough = [this, tenant = who.tenant, request = *over_limit](const EvictionPlan& p) {
      return !tenants_
                  .excess_without(
                      state_,
                      tenant,
                      request,
                      false,
                      [&](TenantId t) -> const ResourceVector& { return p.taken_from(t); })
                  .has_value();
    };
  }
  if (state_.parent_of(root).valid()) {
    const std::vector<NodeId> inside = nodes_for(root);
    return plan_group(root, wish, &inside, plan);
  }
  if (!plan_group(root, wish, nullptr, plan)) return false;
  if (state_.gang(root).spec.is_parent) {
    // Victims for the first groups may have become needless with those for the last.
    wish.settled = true;
    give_back(wish, EvictionPlan{}, plan);
  }
  return true;
}

}  // namespace muster::engine
