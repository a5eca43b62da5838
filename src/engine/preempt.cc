// Making room: the cheapest set of victims with which the whole gang fits, or nothing.
#include <algorithm>

#include "engine/fit.h"
#include "engine/match.h"
#include "engine/planner.h"

namespace muster::engine {

namespace {

/// Nodes tried exactly for each pod; the index has put the cheapest first.
constexpr std::size_t kCandidates = 24;
/// Topology domains in which a plan is worked out before the best of them is taken.
constexpr std::size_t kDomains = 8;

void take_victims(const State& state, const VictimChoice& choice, EvictionPlan& plan) {
  for (const PodId v : choice.victims) {
    if (!plan.victims.insert(v).second) continue;
    const PodState& pod = state.pod(v);
    plan.nodes[pod.node].victims.push_back(v);
    ++plan.evicted_of[pod.gang];
    plan.taken_from[state.gang(pod.gang).tenant] += state.cls(pod.cls).request;
    for (const auto& [key, b] : state.budgets()) {
      if (b.ns == pod.ns && b.selector && matches(*b.selector, pod.labels)) ++plan.budget_used[key];
    }
  }
}

/// Victims whose leaving turned out not to be needed once all members have their places.
void spare(const State& state, EvictionPlan& plan) {
  std::vector<PodId> all(plan.victims.begin(), plan.victims.end());
  std::sort(all.begin(), all.end(), [&](PodId a, PodId b) {
    const auto pa = state.rank_priority(state.pod(a));
    const auto pb = state.rank_priority(state.pod(b));
    if (pa != pb) return pa > pb;
    return goes_before(state, b, a);
  });
  for (const PodId v : all) {
    const PodState& pod = state.pod(v);
    const GangState& gang = state.gang(pod.gang);
    // Part of a gang that goes whole is never kept alone.
    const bool alone = gang.spec.disruption == DisruptionMode::kSingle ||
                       (gang.spec.disruption == DisruptionMode::kGang && gang.bound - plan.evicted_of[pod.gang] >= gang.spec.min_member);
    if (!alone) continue;
    EvictionPlan::OnNode& on = plan.nodes[pod.node];
    EvictionPlan trial = plan;
    std::erase(trial.nodes[pod.node].victims, v);
    std::vector<PodId> guests = std::move(trial.nodes[pod.node].guests);
    trial.nodes[pod.node].guests.clear();
    bool ok = true;
    for (const PodId g : guests) {
      if (!fits_after(state, state.cls_of(g), pod.node, trial)) {
        ok = false;
        break;
      }
      trial.nodes[pod.node].guests.push_back(g);
    }
    if (!ok) continue;
    std::erase(on.victims, v);
    plan.victims.erase(v);
    --plan.evicted_of[pod.gang];
  }
}

}  // namespace

/// The queue itself is full: lower ranks of the same queue go first, until the limits would hold.
bool Planner::make_room_in_queue(GangId id, const Preemptor& who, const ResourceVector& request, EvictionPlan& plan) const {
  const TenantId tenant = state_.gang(id).tenant;
  struct Option {
    std::int32_t priority;
    PodId pod;
  };
  std::vector<Option> options;
  for (std::uint32_t p = 0; p < state_.pod_count(); ++p) {
    const PodState& pod = state_.pod(PodId(p));
    if (!pod.live || pod.phase != PodPhase::kBound || state_.gang(pod.gang).tenant != tenant) continue;
    if (eligible(state_, tenants_, who, pod)) options.push_back({state_.rank_priority(pod), PodId(p)});
  }
  std::sort(options.begin(), options.end(), [&](const Option& a, const Option& b) {
    return a.priority != b.priority ? a.priority < b.priority : goes_before(state_, a.pod, b.pod);
  });
  const auto enough = [&] {
    const auto taken = plan.taken_from.find(tenant);
    return !tenants_.excess(state_, tenant, taken == plan.taken_from.end() ? request : request - taken->second).has_value();
  };
  for (const Option& o : options) {
    if (enough()) break;
    if (plan.victims.contains(o.pod)) continue;
    const GangState& gang = state_.gang(state_.pod(o.pod).gang);
    VictimChoice choice;
    const auto already = plan.evicted_of.find(state_.pod(o.pod).gang);
    const std::int32_t left = gang.bound - (already == plan.evicted_of.end() ? 0 : already->second);
    const bool alone = gang.spec.disruption == DisruptionMode::kSingle ||
                       (gang.spec.disruption == DisruptionMode::kGang && left > gang.spec.min_member);
    if (alone) {
      choice.victims = {o.pod};
    } else {
      // All that run, or none of them.
      bool all = true;
      for (const PodId p : gang.pods) {
        if (state_.pod(p).phase != PodPhase::kBound) continue;
        all = all && eligible(state_, tenants_, who, state_.pod(p));
        choice.victims.push_back(p);
      }
      if (!all) continue;
    }
    take_victims(state_, choice, plan);
  }
  return enough();
}

/// Finds a node for each of the first `left` tasks, with victims where it must be; inside the domain, when one is given.
bool Planner::plan_room(const std::vector<PodId>& tasks, std::int32_t left, Preemptor who, const std::vector<NodeId>* domain, bool undone,
                        EvictionPlan& plan) {
  const auto cost = [](const VictimChoice& c) { return std::tuple(c.budgets_broken, c.victims.size(), c.top_priority, c.work_lost_s); };
  for (const PodId task : tasks) {
    if (left == 0) break;
    who.cls = state_.pod(task).cls;
    const TaskClass& cls = state_.cls(who.cls);
    const bool between = needs_between(state_, task);
    const auto allowed = [&](NodeId n) {
      if (!between) return true;
      const auto on = plan.nodes.find(n);
      // Members may repel each other: one a node is always safe.
      return (on == plan.nodes.end() || on->second.guests.empty()) && fit_between(state_, task, n).ok();
    };
    const auto fits = [&](NodeId n) { return fits_after(state_, cls, n, plan) && allowed(n); };
    NodeId best;
    VictimChoice best_choice;
    // Places that need nobody more: nodes already touched, then free ones.
    for (const auto& [node, on] : plan.nodes) {
      if (domain != nullptr && !std::binary_search(domain->begin(), domain->end(), node)) continue;
      if (!fits(node)) continue;
      best = node;
      break;
    }
    if (!best.valid() && domain != nullptr) {
      const auto it = std::find_if(domain->begin(), domain->end(), fits);
      if (it != domain->end()) best = *it;
    } else if (!best.valid()) {
      ClassIndex& index = index_.of(who.cls);
      index.catch_up(state_, index_.checks, undone);
      ClassIndex::Cursor cursor;
      for (NodeId n = index.next(cursor); n.valid(); n = index.next(cursor)) {
        if (!fits(n)) continue;
        best = n;
        break;
      }
    }
    if (!best.valid()) {
      std::size_t tried = 0;
      const std::vector<NodeId> candidates =
          domain != nullptr ? *domain : victims_.cheapest(state_, tenants_, who, now_, kCandidates + 2 * plan.nodes.size());
      for (const NodeId n : candidates) {
        if (domain == nullptr && tried++ >= kCandidates && best.valid()) break;
        if (!allowed(n) || (domain != nullptr && !fit_static(state_, cls, state_.node(n)).ok())) continue;
        VictimChoice choice = choose_on_node(state_, tenants_, who, n, plan, now_);
        if (!choice.possible) continue;
        if (best.valid() && cost(choice) > cost(best_choice)) continue;
        if (best.valid() && cost(choice) == cost(best_choice) &&
            (!choice.first.valid() || !goes_before(state_, choice.first, best_choice.first))) {
          continue;
        }
        best = n;
        best_choice = std::move(choice);
      }
    }
    if (!best.valid()) continue;
    take_victims(state_, best_choice, plan);
    plan.nodes[best].guests.push_back(task);
    --left;
  }
  return left == 0;
}

/// The sets of nodes of which one must take the whole gang, those with most room first. Empty: any nodes will do.
std::vector<std::vector<NodeId>> Planner::domains_of(GangId id, const TaskClass& cls) const {
  std::vector<std::string> keys;
  for (const auto& level : levels_of(state_.gang(id))) {
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
    if (!state_.node(NodeId(n)).live) continue;
    auto values = values_of(NodeId(n));
    if (!values.empty()) by_value[std::move(values)].push_back(NodeId(n));
  }
  // Members that run already say where.
  std::set<std::vector<std::string>> pinned;
  for (const PodId p : state_.gang(id).pods) {
    if (state_.pod(p).phase == PodPhase::kBound) pinned.insert(values_of(state_.pod(p).node));
  }
  std::vector<std::pair<std::int64_t, std::vector<NodeId>>> ranked;
  for (auto& [values, nodes] : by_value) {
    if (!pinned.empty() && !pinned.contains(values)) continue;
    std::int64_t room = 0;
    for (const NodeId n : nodes) room += fit_count(state_, cls, state_.node(n), 1 << 20);
    ranked.emplace_back(room, std::move(nodes));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::vector<NodeId>> out;
  for (auto& [room, nodes] : ranked) out.push_back(std::move(nodes));
  if (out.empty()) out.emplace_back();  // A level that no node has: no place at all.
  return out;
}

/// The plan with the fewest victims over the domains the gang may use.
bool Planner::plan_in_domains(GangId id, const std::vector<PodId>& tasks, std::int32_t left, const Preemptor& who, bool undone,
                              EvictionPlan& plan) {
  const std::vector<std::vector<NodeId>> domains = domains_of(id, state_.cls_of(tasks.front()));
  if (domains.empty()) return plan_room(tasks, left, who, nullptr, undone, plan);
  std::optional<EvictionPlan> best;
  std::size_t found = 0;
  for (const auto& domain : domains) {
    EvictionPlan trial = plan;
    if (!plan_room(tasks, left, who, &domain, undone, trial)) continue;
    if (!best || trial.victims.size() < best->victims.size()) best = std::move(trial);
    if (++found == kDomains || best->victims.empty()) break;
  }
  if (!best) return false;
  plan = std::move(*best);
  return true;
}

void Planner::carry_out(GangId id, const EvictionPlan& plan, PodId any_task, bool reclaim) {
  for (const auto& [node, on] : plan.nodes) {
    for (const PodId v : on.victims) {
      const PodState& pod = state_.pod(v);
      Evict e;
      e.pod = pod.key;
      e.uid = pod.uid;
      e.node = state_.node(node).spec.name;
      e.kind = reclaim ? EvictKind::kReclaim : EvictKind::kPreempt;
      e.for_whom = state_.gang(id).key;
      e.for_whom_pod = state_.pod(on.guests.empty() ? any_task : on.guests.front()).key;
      e.message = (reclaim ? "Reclaimed for " : "Preempted by ") + e.for_whom_pod + " on node " + e.node;
      plan_.evicts.push_back(std::move(e));
      state_.evict(v);
    }
    for (const PodId g : on.guests) {
      state_.nominate(g, node);
      plan_.nominations.push_back({state_.pod(g).key, state_.node(node).spec.name});
    }
  }
  unlist(id);
  release_of(id);
  waits_[id.index()].nominated = true;
  nominated_.insert(id);
}

/// Takes the nominations of lower ranks off the books, so that the room held for them can be planned with.
std::vector<Planner::Lifted> Planner::lift_lower(std::int32_t priority) {
  std::vector<Lifted> lifted;
  for (const GangId g : nominated_) {
    if (state_.gang(g).spec.priority >= priority) continue;
    for (const PodId p : state_.gang(g).pods) {
      const NodeId node = state_.pod(p).nominated;
      if (!node.valid()) continue;
      lifted.push_back({g, p, node});
      state_.nominate(p, NodeId{});
    }
  }
  return lifted;
}

/// Gives them back, whole gangs only, the highest rank first; a gang whose room was `taken` waits again like others.
void Planner::put_back(std::vector<Lifted> lifted, bool taken) {
  std::stable_sort(lifted.begin(), lifted.end(), [&](const Lifted& a, const Lifted& b) {
    const auto pa = state_.gang(a.gang).spec.priority;
    const auto pb = state_.gang(b.gang).spec.priority;
    return pa != pb ? pa > pb : a.gang < b.gang;
  });
  static const EvictionPlan kNothing;
  for (std::size_t i = 0; i < lifted.size();) {
    const GangId gang = lifted[i].gang;
    std::size_t end = i;
    bool fits = true;
    for (; end < lifted.size() && lifted[end].gang == gang; ++end) {
      const Lifted& l = lifted[end];
      fits = fits && (!taken || fits_after(state_, state_.cls_of(l.pod), l.node, kNothing));
      if (fits) state_.nominate(l.pod, l.node);
    }
    if (!fits) {
      for (std::size_t k = i; k < end; ++k) {
        if (state_.pod(lifted[k].pod).nominated.valid()) state_.nominate(lifted[k].pod, NodeId{});
        plan_.nominations.push_back({state_.pod(lifted[k].pod).key, ""});
      }
      drop_nominations(gang);
    }
    i = end;
  }
}

bool Planner::preempt(GangId id, bool over_limit) {
  const GangState& gang = state_.gang(id);
  const Config& config = state_.config();
  const std::vector<PodId> tasks = tasks_of(id);
  if (tasks.empty() || never_preempts(id) || !gang.spec.parent.empty()) return false;
  const Need need = need_of(gang);

  Preemptor who;
  who.gang = id;
  who.tenant = gang.tenant;
  who.priority = gang.spec.priority;
  const auto& evictable = state_.evictable_priorities();
  const bool t9k = state_.tenant(gang.tenant).spec.t9k;
  const bool over_nominated = config.preempt && !over_limit && !t9k && nominated_below(who.priority);
  const bool by_priority = config.preempt && ((!evictable.empty() && (t9k || evictable.begin()->first < who.priority)) || over_nominated);
  const bool by_share = config.reclaim && tenants_.may_reclaim(state_, gang.tenant, request_of(id, need));
  if ((!by_priority && !by_share) || waits_[id.index()].preempt_seen == state_.log_end()) return false;
  if (waits_[id.index()].preempt_epoch == state_.epoch) return false;

  for (const bool reclaim : {true, false}) {
    if (reclaim ? !by_share || over_limit : !by_priority) continue;
    who.reclaim = reclaim;
    who.cls = state_.pod(tasks.front()).cls;
    EvictionPlan plan;
    if (over_limit && (t9k || !make_room_in_queue(id, who, request_of(id, need), plan))) continue;
    // What is lifted here and put back below is no gain for anybody who waits.
    const auto parts = shapes_[waits_[id.index()].shape.index()].parts;
    std::vector<Lifted> lifted;
    if (!reclaim && over_nominated) {
      for (const auto& [cls, n] : parts) index_.of(cls).catch_up(state_, index_.checks);
      lifted = lift_lower(who.priority);
    }
    const bool found = plan_in_domains(id, tasks, std::max(need.total, 1), who, !lifted.empty(), plan);
    if (found) {
      if (!over_limit) spare(state_, plan);
      carry_out(id, plan, tasks.front(), reclaim);
      waits_[id.index()].preempt_epoch = state_.epoch;
    }
    if (!lifted.empty()) {
      put_back(std::move(lifted), found);
      for (const auto& [cls, n] : parts) {
        index_.of(cls).catch_up(state_, index_.checks, true);
        if (found) index_.of(cls).note_gain();
      }
    }
    if (!found) continue;
    if (plan.victims.empty()) try_nominated(id);  // Its room may be there already.
    return true;
  }
  waits_[id.index()].preempt_seen = state_.log_end();
  return false;
}

bool Planner::nominated_below(std::int32_t priority) const {
  return std::any_of(nominated_.begin(), nominated_.end(), [&](GangId g) { return state_.gang(g).spec.priority < priority; });
}

void Planner::drop_nominations(GangId id) {
  for (const PodId p : std::vector<PodId>(state_.gang(id).pods)) {
    if (!state_.pod(p).nominated.valid()) continue;
    state_.nominate(p, NodeId{});
    plan_.nominations.push_back({state_.pod(p).key, ""});
  }
  waits_[id.index()].nominated = false;
  nominated_.erase(id);
}

/// Those whose victims were told to go: all room there -> bind; still waiting -> keep; hopeless -> start again.
void Planner::try_nominated() {
  const std::set<GangId> gangs = nominated_;
  for (const GangId id : gangs) try_nominated(id);
}

void Planner::try_nominated(GangId id) {
  std::vector<std::pair<PodId, NodeId>> where;
  bool waits_for_leavers = false;
  bool lost = false;
  ResourceVector request;
  for (const PodId p : state_.gang(id).pods) {
    const PodState& pod = state_.pod(p);
    if (!pod.nominated.valid()) continue;
    where.emplace_back(p, pod.nominated);
    lost |= pod.gated;
    request += state_.cls(pod.cls).request;
    waits_for_leavers |= !state_.node(pod.nominated).releasing.is_zero();
  }
  const Need need = need_of(state_.gang(id));
  if (static_cast<std::int32_t>(where.size()) < std::max(need.total, 1)) lost = true;
  // Limits may have changed, or been used up by others, since the victims were told to go.
  const bool over = tenants_.excess(state_, state_.gang(id).tenant, request).has_value();
  if (over && !waits_for_leavers) lost = true;
  if (over && waits_for_leavers && !lost) return;
  std::vector<PodId> placed;
  if (!lost) {
    bool fits = true;
    for (const auto& [p, n] : where) state_.nominate(p, NodeId{});
    for (const auto& [p, n] : where) {
      const TaskClass& cls = state_.cls_of(p);
      const NodeState& node = state_.node(n);
      if (!fit_static(state_, cls, node).ok() || (needs_between(state_, p) && !fit_between(state_, p, n).ok())) {
        fits = false;
        waits_for_leavers = false;  // That node is no place any more.
        break;
      }
      if (!fit_room(state_, cls, node).ok()) {
        fits = false;
        break;
      }
      state_.bind(p, n, now_);
      placed.push_back(p);
    }
    if (fits) {
      emit(id, placed);
      waits_[id.index()].nominated = false;
      nominated_.erase(id);
      return;
    }
    // No index has looked at these nodes in between, so nobody takes the undone binds for a gain.
    for (auto it = placed.rbegin(); it != placed.rend(); ++it) state_.unbind(*it);
    if (waits_for_leavers) {
      for (const auto& [p, n] : where) state_.nominate(p, n);
      Refusal refusal;
      refusal.reason = Reason::kWaitingForVictims;
      refuse(id, refusal);
      return;
    }
  }
  for (const auto& [p, n] : where) plan_.nominations.push_back({state_.pod(p).key, ""});
  drop_nominations(id);
  reclassify(id);
}

}  // namespace muster::engine
